package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/lease"
	"tidemark/storage/spool"
)

// pendingLog is where values are between Append and the tables: the spool in the data folder, or, when servers share the database, memory and the journal that
// is written in the very transaction of the values.
type pendingLog interface {
	Append(r spool.Record) (model.LSN, error)
	Read(ctx context.Context, from model.LSN, fn func(model.LSN, spool.Record) error) error
	Trim(lsn model.LSN) error
	StartAt(lsn model.LSN)
	Sync() (model.LSN, error)
	Lost(lsn model.LSN) bool
	End() model.LSN
	Synced() model.LSN
	SizeBytes() int64
	ID() uint64
	Damage() spool.Damage
	Close() error
}

var (
	_ pendingLog = (*spool.Log)(nil)
	_ pendingLog = (*journal)(nil)
)

// epochShift is where the epoch is in an LSN of a shared database: 2^40 batches are a thousand years at 30 a second.
const epochShift = 40

// journal gives batches their LSN and knows what of them is in the database's journal.
type journal struct {
	db *DB

	mu           sync.Mutex
	end, applied model.LSN
	// kept are the records in the database, oldest first, and bytes their size.
	kept  []journaled
	bytes int64
}

// journaled is a record in the database.
type journaled struct {
	lsn   model.LSN
	bytes int64
}

func newJournal(db *DB) *journal {
	begin := model.LSN(db.o.Term.Epoch()) << epochShift
	return &journal{db: db, end: begin, applied: begin}
}

// Append gives the next LSN. The record is the caller's until it is stored.
func (j *journal) Append(spool.Record) (model.LSN, error) {
	if err := j.db.o.Term.Err(); err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.end++
	return j.end, nil
}

// End is the LSN of the last batch.
func (j *journal) End() model.LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Synced is the LSN up to which everything is committed.
func (j *journal) Synced() model.LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.applied
}

// Sync is Synced: a commit makes durable, nothing else.
func (j *journal) Sync() (model.LSN, error) { return j.Synced(), nil }

// Lost is never so: what is not committed is not acknowledged.
func (j *journal) Lost(model.LSN) bool { return false }

// SizeBytes is what the journal takes in the database.
func (j *journal) SizeBytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// ID is unused: positions are those of the database.
func (j *journal) ID() uint64 { return 0 }

// Damage is none: the database has the records.
func (j *journal) Damage() spool.Damage { return spool.Damage{} }

// StartAt does nothing: a term begins behind all before it.
func (j *journal) StartAt(model.LSN) {}

// Trim does nothing: what is not needed goes with the next transaction.
func (j *journal) Trim(model.LSN) error { return nil }

// Close does nothing.
func (j *journal) Close() error { return nil }

// Read calls fn for every record in the database behind LSN from.
func (j *journal) Read(ctx context.Context, from model.LSN, fn func(model.LSN, spool.Record) error) error {
	for piece := int32(1 << 30); ; {
		lsn, n, record, err := j.next(ctx, from, piece)
		if err != nil || record == nil {
			return err
		}
		r, err := spool.Decode(record)
		if err != nil {
			return &storage.CorruptionError{File: "tidemark_journal", Offset: int64(lsn), Want: "expected a record: " + err.Error()}
		}
		if err := fn(lsn, r); err != nil {
			return err
		}
		from, piece = lsn, n
	}
}

// next reads one piece: a record may have 32 MiB, so they are not read together.
func (j *journal) next(ctx context.Context, from model.LSN, piece int32) (lsn model.LSN, n int32, record []byte, err error) {
	var at int64
	err = j.db.pool.QueryRow(ctx, "SELECT lsn, piece, record FROM tidemark_journal WHERE (lsn, piece) > ($1, $2) ORDER BY lsn, piece LIMIT 1", int64(min(from, 1<<63-1)), piece).Scan(&at, &n, &record)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, nil, nil
	}
	return model.LSN(at), n, record, err
}

// load takes note of what an earlier term has left.
func (j *journal) load(ctx context.Context) error {
	rows, err := j.db.pool.Query(ctx, "SELECT lsn, sum(octet_length(record))::bigint FROM tidemark_journal GROUP BY lsn ORDER BY lsn")
	if err != nil {
		return err
	}
	var lsn, bytes int64
	_, err = pgx.ForEachRow(rows, []any{&lsn, &bytes}, func() error {
		j.kept = append(j.kept, journaled{model.LSN(lsn), bytes})
		j.bytes += bytes
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	return nil
}

// store adds to a transaction the records of batches, and the end of those that are not needed any more. It returns what is to be noted after the commit.
func (j *journal) store(batch *pgconn.Batch, batches []*pending) (added []journaled, trim model.LSN, err error) {
	lsns, pieces, records := newArray(oidInt8Array), newArray(oidInt4Array), newArray(oidByteaArray)
	total := int64(0)
	for _, p := range batches {
		piece, size := int32(0), int64(0)
		err := spool.Encode(p.Record, func(b []byte) error {
			lsns.int8(int64(p.lsn))
			pieces.int4(piece)
			records.data(b)
			piece++
			size += int64(len(b))
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		added = append(added, journaled{p.lsn, size})
		total += size
	}
	if lsns.n > 0 {
		values, oids, formats := parameters([]*array{lsns, pieces, records})
		batch.ExecParams("INSERT INTO tidemark_journal (lsn, piece, record) SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bytea[]) ON CONFLICT DO NOTHING", values, oids, formats, nil)
	}
	if trim = j.trimmed(total); trim != 0 {
		batch.ExecParams("DELETE FROM tidemark_journal WHERE lsn <= $1", [][]byte{int8Param(int64(trim))}, []uint32{oidInt8}, []int16{1}, nil)
	}
	return added, trim, nil
}

// trimmed is the LSN up to which the journal need not be kept: what was evaluated, and the oldest that are beyond half of the spool's bound.
func (j *journal) trimmed(more int64) model.LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	released, left, trim := model.LSN(j.db.released.Load()), j.bytes+more, model.LSN(0)
	for _, k := range j.kept {
		if k.lsn > released && left <= j.db.o.SpoolBytes/2 {
			break
		}
		left -= k.bytes
		trim = k.lsn
	}
	return trim
}

// committed takes note of a transaction.
func (j *journal) committed(added []journaled, trim model.LSN) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for n < len(j.kept) && j.kept[n].lsn <= trim {
		j.bytes -= j.kept[n].bytes
		n++
	}
	j.kept = j.kept[n:] // Not copied: where evaluation stands still they are many.
	for _, a := range added {
		j.kept = append(j.kept, a)
		j.bytes += a.bytes
		j.applied = max(j.applied, a.lsn)
	}
}

// openShared begins with what the database has. Values that a spool of this folder still holds would be lost, so they are refused.
func (db *DB) openShared() error {
	if err := db.refuseSpool(); err != nil {
		return err
	}
	db.journal = newJournal(db)
	db.spool = db.journal
	return nil
}

// refuseSpool looks for values that this server took when it was alone.
func (db *DB) refuseSpool() error {
	names, err := db.o.FS.List(db.o.SpoolDir)
	if err != nil || len(names) == 0 {
		return nil //nolint:nilerr // there is no spool
	}
	left, err := spool.Open(db.o.FS, db.o.SpoolDir, spool.Options{Logger: db.o.Logger})
	if err != nil {
		return err
	}
	defer left.Close() //nolint:errcheck // nothing was written
	if left.End() == 0 || left.SizeBytes() == 0 {
		return nil
	}
	db.leftover = left.ID()
	db.leftoverEnd = left.End()
	return nil
}

// checkLeftover fails if the spool that was found holds more than the database has of it.
func (db *DB) checkLeftover(ctx context.Context) error {
	if db.leftoverEnd == 0 {
		return nil
	}
	var has bool
	err := db.pool.QueryRow(ctx, "SELECT coalesce((SELECT applied FROM tidemark_state WHERE spool = $1::numeric) >= $2::numeric, false)",
		fmt.Sprint(db.leftover), fmt.Sprint(uint64(db.leftoverEnd))).Scan(&has)
	if err != nil {
		return fmt.Errorf("compare the spool with the database: %w", err)
	}
	if has {
		return nil
	}
	return fmt.Errorf("the folder %s holds values that are not in the database yet: start this server alone once, without storage.shared, until its metric tidemark_postgres_pending_bytes is 0, and stop it",
		filepath.Clean(db.o.SpoolDir))
}

// patience is how long values wait for a database that is away before their senders are told that they were not stored.
const patience = 5 * time.Second

const (
	// groupDelay is how long a transaction of a shared database waits for further values, while senders wait for its commit.
	groupDelay = 10 * time.Millisecond
	// sharedBackoff is the longest pause between two tries to reach a shared database: a restart must not cost more than it takes.
	sharedBackoff = time.Second
)

// finishCommitted finishes what is committed, and with an error all that waits.
func (db *DB) finishCommitted(failed error) {
	applied := db.spool.Synced()
	db.waitMu.Lock()
	rest := db.waiting[:0]
	var done []waiter
	for _, w := range db.waiting {
		if w.lsn <= applied || failed != nil {
			done = append(done, w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(db.waiting[len(rest):])
	db.waiting = rest
	db.waitMu.Unlock()
	for _, w := range done {
		err := failed
		if w.lsn <= applied {
			err = nil
		}
		for _, c := range w.done {
			c.Finish(err)
		}
	}
}

// noteAway keeps nobody waiting for a database that stays away, or is another server's now.
func (db *DB) noteAway(err error) {
	if db.o.Term == nil {
		return
	}
	if db.awaySince.IsZero() {
		db.awaySince = time.Now()
	}
	if lost := db.o.Term.Err(); lost != nil {
		err = lost
	} else if time.Since(db.awaySince) < patience {
		return
	}
	db.finishCommitted(fmt.Errorf("the database cannot be written to, and this server shares it with another one, so the value was not taken (%w): %w", err, storage.ErrFull))
}

// fence makes a transaction fail if the term is over.
func (db *DB) fence(ctx context.Context, tx pgx.Tx) error {
	if db.o.Term == nil {
		return nil
	}
	return db.o.Term.Fence(ctx, tx)
}

// fenced runs fn in a transaction that is committed only while the term of this server lasts.
func (db *DB) fenced(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := db.fence(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// execFenced runs a statement in such a transaction; alone it is one by itself.
func (db *DB) execFenced(ctx context.Context, conn *pgx.Conn, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if db.o.Term == nil {
		return conn.Exec(ctx, sql, args...)
	}
	err = db.fenced(ctx, conn, func(tx pgx.Tx) error {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// watch makes connections of a shared database notice a dead machine.
func (db *DB) watch(config *pgx.ConnConfig) {
	if db.o.Term != nil {
		lease.Watchful(config)
	}
}

// tag lets the next holder find a connection and end it.
func (db *DB) tag(ctx context.Context, conn *pgx.Conn) error {
	if db.o.Term == nil {
		return nil
	}
	return db.o.Term.Session(ctx, conn)
}

// refused says why a shared database takes nothing now: whatever came would not be durable.
func (db *DB) refused(away *error) error {
	if err := db.o.Term.Err(); err != nil {
		return fmt.Errorf("%w: %w", err, storage.ErrFull)
	}
	if away != nil {
		return fmt.Errorf("the database cannot be written to, and this server shares it with another one, so nothing is taken (%w): %w", *away, storage.ErrFull)
	}
	return nil
}

// Taking says whether values are taken: away that the database cannot be written to now, and err why values are refused because of that. It says nothing of
// where the database is, so that anybody may read it.
func (db *DB) Taking() (away bool, err error) {
	if db.o.Term != nil {
		if err := db.o.Term.Err(); err != nil {
			return false, err
		}
	}
	if db.away.Load() == nil {
		return false, nil
	}
	if db.journal != nil {
		return true, errors.New("the database cannot be written to, and this server shares it with another one, so values are refused")
	}
	if db.full.Load() {
		return true, errors.New("the database cannot be written to and the spool is full, so values are refused")
	}
	return true, nil
}

// whatWaits says what becomes of values while the database is away.
func (db *DB) whatWaits() string {
	if db.journal != nil {
		return "senders are refused, because this server shares it with another one"
	}
	return "they wait in the spool"
}

// recoverJournal puts nothing in the queue: what was acknowledged is in the tables.
func (db *DB) recoverJournal(context.Context) error {
	end := db.journal.End()
	db.applied, db.queued, db.recovered = end, end, end
	return nil
}
