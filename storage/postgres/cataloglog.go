package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CatalogLog keeps the records of declared items in a database that servers share, in the place of a file in the data folder.
type CatalogLog struct{ db *DB }

// CatalogLog returns the log of declared items; nil when this server has the database for itself and keeps them in its folder.
func (db *DB) CatalogLog() *CatalogLog {
	if db.journal == nil {
		return nil
	}
	return &CatalogLog{db}
}

// catalogPage is how many records are read by one statement; each has at most 64 KiB.
const catalogPage = 500

// Load calls apply for each record, the oldest first. A record is valid during the call.
func (l *CatalogLog) Load(ctx context.Context, apply func([]byte) error) error {
	for last := int64(0); ; {
		rows, err := l.db.pool.Query(ctx, "SELECT n, record FROM tidemark_catalog WHERE n > $1 ORDER BY n LIMIT $2", last, catalogPage)
		if err != nil {
			return fmt.Errorf("read the catalog: %w", err)
		}
		var record []byte
		before := last
		_, err = pgx.ForEachRow(rows, []any{&last, &record}, func() error { return apply(record) })
		if err != nil {
			return fmt.Errorf("read the catalog behind record %d: %w", before, err)
		}
		if last == before {
			return nil
		}
	}
}

const appendCatalogSQL = `INSERT INTO tidemark_catalog (n, record) SELECT (SELECT coalesce(max(n), 0) FROM tidemark_catalog) + o, r FROM unnest($1::bytea[]) WITH ORDINALITY AS u(r, o)`

// Append writes records behind all others, all or none. They are committed when it returns nil; after an error that is not known.
func (l *CatalogLog) Append(records [][]byte) error {
	return l.write(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, appendCatalogSQL, records)
		return err
	})
}

// rewriteBytes is how much of a new log is sent by one statement.
const rewriteBytes = 4 << 20

// Rewrite puts the records that fill emits in the place of all others. fill must not change a record after it was emitted.
func (l *CatalogLog) Rewrite(fill func(emit func([]byte) error) error) error {
	return l.write(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM tidemark_catalog"); err != nil {
			return err
		}
		var records [][]byte
		size := 0
		flush := func() error {
			if len(records) == 0 {
				return nil
			}
			_, err := tx.Exec(ctx, appendCatalogSQL, records)
			records, size = records[:0], 0
			return err
		}
		err := fill(func(record []byte) error {
			records = append(records, record)
			if size += len(record); size < rewriteBytes {
				return nil
			}
			return flush()
		})
		if err != nil {
			return err
		}
		return flush()
	})
}

func (l *CatalogLog) write(fn func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(l.db.ctx, l.db.o.WriteTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, l.db.pool, func(tx pgx.Tx) error {
		if err := l.db.fence(ctx, tx); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	return nil
}
