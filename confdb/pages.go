package confdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"tidemark/model"
)

// PageBytes is the size of the database's pages.
const PageBytes = 4096

// MaxPages bounds the pages of a database that is copied page by page: 2 GiB. Those that changed are in memory for a moment.
const MaxPages = 512 << 10

// PageSum identifies the contents of all pages at one moment.
type PageSum struct {
	// Count is the number of pages.
	Count uint32 `json:"count"`
	// Hash is made of each page's number and content.
	Hash uint64 `json:"hash"`
}

// Pages follows which pages of a database change, so that another copy can be kept equal by those alone. Its methods are called one at a time.
type Pages struct {
	db *DB
	// hashes are those of the pages at the last look, changed the version at which each became different.
	hashes  []uint64
	changed []uint64
	version uint64
	// rows is how many rows were changed on the connection at the last look.
	rows int64
}

// NewPages returns an observer that knows no page yet.
func (d *DB) NewPages() *Pages { return &Pages{db: d, rows: -1} }

// Version is that of the last look.
func (p *Pages) Version() uint64 { return p.version }

// Look reads all pages in one transaction, if anything changed since the last look, and calls page for those that changed after version
// since. The content is valid during the call. When nothing was to be read it returns read false and the sum of before is still right.
func (p *Pages) Look(ctx context.Context, since uint64, page func(number uint32, content []byte) error) (sum PageSum, err error) {
	c, err := p.db.sql.Conn(ctx)
	if err != nil {
		return sum, p.db.wrap("read pages", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var rows int64
	if err := c.QueryRowContext(ctx, "SELECT total_changes()").Scan(&rows); err != nil {
		return sum, p.db.wrap("read pages", err)
	}
	if rows == p.rows && since == p.version {
		return p.sum(), nil
	}
	next := p.version + 1
	count := 0
	var failed error // what page did not take
	err = eachPage(ctx, c, func(number uint32, content []byte) error {
		count++
		if int(number) != count || count > MaxPages {
			return fmt.Errorf("page %d, expected %d of at most %d", number, count, MaxPages)
		}
		p.note(count-1, pageHash(number, content), next)
		if p.changed[count-1] > since && failed == nil {
			failed = page(number, content)
		}
		return nil
	})
	if err != nil {
		return sum, p.db.wrap("read pages", err)
	}
	if count < len(p.hashes) {
		p.hashes, p.changed = p.hashes[:count], p.changed[:count]
	}
	p.version, p.rows = next, rows
	return p.sum(), failed
}

// note takes the hash of a page over.
func (p *Pages) note(i int, hash, version uint64) {
	if i == len(p.hashes) {
		p.hashes, p.changed = append(p.hashes, hash), append(p.changed, version)
	} else if p.hashes[i] != hash {
		p.hashes[i], p.changed[i] = hash, version
	}
}

// Changed reports whether rows were changed since the last look.
func (p *Pages) Changed(ctx context.Context) (bool, error) {
	rows, err := p.db.ChangedRows(ctx)
	return rows != p.rows, err
}

// ChangedRows counts the rows that were ever changed since the database was opened.
func (d *DB) ChangedRows(ctx context.Context) (int64, error) {
	var rows int64
	err := d.sql.QueryRowContext(ctx, "SELECT total_changes()").Scan(&rows)
	return rows, d.wrap("count changes", err)
}

// Rows is ChangedRows as of the last look.
func (p *Pages) Rows() int64 { return p.rows }

func (p *Pages) sum() PageSum { return sumOf(p.hashes) }

func sumOf(hashes []uint64) PageSum {
	s := PageSum{Count: uint32(len(hashes))}
	for _, h := range hashes {
		s.Hash += h
	}
	return s
}

// pageHash is the same on every machine. Of the first page the counters do not count that SQLite raises with each transaction, also with those
// of WritePages: bytes 24 to 27 and 92 to 99 of the file.
func pageHash(number uint32, content []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(number))
	if number == 1 && len(content) == PageBytes {
		_, _ = d.Write(content[:24])
		_, _ = d.Write(content[28:92])
		content = content[100:]
	}
	_, _ = d.Write(content)
	return d.Sum64()
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachPage calls fn for all pages as they are in one transaction.
func eachPage(ctx context.Context, c querier, fn func(number uint32, content []byte) error) error {
	rows, err := c.QueryContext(ctx, "SELECT pgno, data FROM sqlite_dbpage ORDER BY pgno")
	if err != nil {
		return err
	}
	defer rows.Close()
	var content sql.RawBytes
	for rows.Next() {
		var number uint32
		if err := rows.Scan(&number, &content); err != nil {
			return err
		}
		if len(content) != PageBytes {
			return fmt.Errorf("page %d has %d bytes, expected %d", number, len(content), PageBytes)
		}
		if err := fn(number, content); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ReadOnly lets nobody change anything but WritePages, or ends that.
func (d *DB) ReadOnly(ctx context.Context, on bool) error {
	text := "PRAGMA query_only = OFF"
	if on {
		text = "PRAGMA query_only = ON"
	}
	_, err := d.sql.ExecContext(ctx, text)
	return d.wrap("set read-only", err)
}

// TakeOver makes a copy that followed another database one that is changed here, with the schema of this program.
func (d *DB) TakeOver(ctx context.Context) error {
	if err := d.ReadOnly(ctx, false); err != nil {
		return err
	}
	var version int64
	err := d.sql.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version)
	if err != nil {
		return d.wrap("take over", err)
	}
	newest, err := newestMigration()
	if err != nil || version == newest {
		return err
	}
	return d.wrap("take over", d.prepare(ctx))
}

// ErrDiffers says that a copy is not what it should be after a change; all pages are needed.
var ErrDiffers = errors.New("the copy of the configuration database differs from its original")

// WritePages puts pages into a database that is read-only: n times a number, 4 bytes, and the content. All become visible and durable in one transaction, after which the
// database is what sum says, or nothing changed.
func (d *DB) WritePages(ctx context.Context, r io.Reader, n int, sum PageSum) (err error) {
	if n < 0 || n > MaxPages || sum.Count == 0 || sum.Count > MaxPages {
		return fmt.Errorf("%d changed pages of %d, expected 1 to %d pages", n, sum.Count, MaxPages)
	}
	c, err := d.sql.Conn(ctx)
	if err != nil {
		return d.wrap("write pages", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "PRAGMA query_only = OFF"); err != nil {
		return d.wrap("write pages", err)
	}
	defer func() {
		_, offErr := c.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = ON")
		err = errors.Join(err, d.wrap("set read-only", offErr))
	}()
	for _, text := range []string{"CREATE TEMP TABLE IF NOT EXISTS copied_pages (number INTEGER PRIMARY KEY, content BLOB)", "DELETE FROM temp.copied_pages"} {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return d.wrap("write pages", err)
		}
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return d.wrap("write pages", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	if err := writePages(ctx, tx, r, n, sum); err != nil {
		return d.wrap("write pages", err)
	}
	if err := tx.Commit(); err != nil {
		return d.wrap("write pages", err)
	}
	d.forgetCached()
	// SQLite keeps what it made of a page's content beside the page; it must read them anew.
	for _, text := range []string{"PRAGMA shrink_memory", "DELETE FROM temp.copied_pages"} {
		if _, err := c.ExecContext(context.WithoutCancel(ctx), text); err != nil {
			return d.wrap("write pages", err)
		}
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func writePages(ctx context.Context, tx *sql.Tx, r io.Reader, n int, sum PageSum) error {
	// What the pages will be is summed up from their contents: SQLite counts pages beyond the old end only in the next transaction.
	var hashes []uint64
	err := eachPage(ctx, tx, func(number uint32, content []byte) error {
		hashes = append(hashes, pageHash(number, content))
		return nil
	})
	if err != nil {
		return err
	}
	had := uint32(len(hashes))
	for uint32(len(hashes)) < sum.Count {
		hashes = append(hashes, 0)
	}
	put, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO temp.copied_pages(number, content) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer put.Close()
	var b [4 + PageBytes]byte
	for range n {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return fmt.Errorf("read a page: %w", err)
		}
		number := binary.LittleEndian.Uint32(b[:])
		if number == 0 || number > sum.Count {
			return fmt.Errorf("page %d of %d", number, sum.Count)
		}
		if _, err := put.ExecContext(ctx, number, b[4:]); err != nil {
			return err
		}
		hashes[number-1] = pageHash(number, b[4:])
	}
	if had > sum.Count { // a page without content cuts off what is behind
		if _, err := put.ExecContext(ctx, sum.Count+1, nil); err != nil {
			return err
		}
	}
	if is := sumOf(hashes[:sum.Count]); is != sum {
		return fmt.Errorf("%w: %d pages with sum %x, expected %x", ErrDiffers, is.Count, is.Hash, sum.Hash)
	}
	// One statement: another would be prepared anew against half a schema as soon as the first page is written.
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO sqlite_dbpage(pgno, data) SELECT number, content FROM temp.copied_pages ORDER BY number")
	return err
}

// Sum reads all pages and sums them up.
func (d *DB) Sum(ctx context.Context) (sum PageSum, err error) {
	c, err := d.sql.Conn(ctx)
	if err != nil {
		return sum, d.wrap("read pages", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = eachPage(ctx, c, func(number uint32, content []byte) error {
		sum.Count++
		sum.Hash += pageHash(number, content)
		return nil
	})
	return sum, d.wrap("read pages", err)
}

// forgetCached drops what was read before the pages changed.
func (d *DB) forgetCached() {
	d.mu.Lock()
	d.definitions = nil
	d.declared = make(map[model.HostID][]model.Item)
	d.mu.Unlock()
	d.announce()
}

// AppendPage appends a page as WritePages reads it.
func AppendPage(b *bytes.Buffer, number uint32, content []byte) {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], number)
	b.Write(n[:])
	b.Write(content)
}
