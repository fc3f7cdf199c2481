package postgres

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage/lease"
	"tidemark/storage/spool"
)

const (
	// flushBytes bounds one transaction, statementRows and statementBytes one statement.
	flushBytes     = 16 << 20
	statementRows  = 10_000
	statementBytes = 8 << 20
	// copyRows is from how many rows on COPY is tried first.
	copyRows = 50
	// minBackoff and maxBackoff space the tries to write while the database is away.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// writer moves pending rows into the tables. It serves one goroutine.
type writer struct {
	db   *DB
	conn *pgx.Conn
	// unreplicated is set when a commit came back before the replicas had it.
	unreplicated bool
}

func newWriter(db *DB) *writer { return &writer{db: db} }

func (w *writer) close() {
	if w.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.conn.Close(ctx) // nothing is open on it
		w.conn = nil
	}
}

// runWriter writes until the engine closes.
func (db *DB) runWriter() {
	w := db.writer
	backoff := minBackoff
	for {
		if !db.gather() {
			return
		}
		for db.ctx.Err() == nil && w.flush(db.ctx) {
			backoff = minBackoff
		}
		if db.away.Load() == nil {
			continue
		}
		select {
		case <-db.ctx.Done():
			return
		case <-time.After(backoff/2 + rand.N(backoff/2)):
			poke(db.wake)
		}
		backoff = min(2*backoff, maxBackoff)
		if db.journal != nil {
			backoff = min(backoff, sharedBackoff)
		}
	}
}

// gather waits for values, and then a little for more, so that transactions are not tiny. It reports whether the engine is open.
func (db *DB) gather() bool {
	select {
	case <-db.ctx.Done():
		return false
	case <-db.wake:
	}
	if db.away.Load() != nil {
		return true
	}
	delay := db.o.FlushDelay
	if db.journal != nil {
		delay = min(delay, groupDelay) // senders wait for it
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		db.mu.RLock()
		enough := db.spilled || db.pendingBytes >= min(flushBytes, db.o.PendingBytes/2)
		db.mu.RUnlock()
		if enough {
			return true
		}
		select {
		case <-db.ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-db.wake:
		}
	}
}

// flush writes one transaction and reports whether there may be more to write. Trouble is put into db.away.
func (w *writer) flush(ctx context.Context) bool {
	db := w.db
	batches, err := w.next(ctx)
	if err == nil && len(batches) == 0 {
		return false
	}
	start := time.Now()
	if err == nil {
		err = w.write(ctx, batches)
	}
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		if db.away.Swap(&err) == nil {
			db.o.Logger.Error("values cannot be written to the database; "+db.whatWaits(), "error", err)
		}
		w.close()
		db.noteAway(err)
		db.progress.Announce()
		return false
	}
	db.awaySince = time.Time{}
	db.full.Store(false)
	if db.away.Swap(nil) != nil {
		db.o.Logger.Info("values are written to the database again")
	}
	db.settle(batches)
	db.m.flushSeconds.Update(time.Since(start).Seconds())
	return true
}

// next returns the oldest batches for one transaction, reading them from the spool if they were too many for memory.
func (w *writer) next(ctx context.Context) ([]*pending, error) {
	db := w.db
	if err := db.refill(ctx); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	rows, size := 0, 0
	for i, p := range db.queue {
		if i > 0 && (rows+p.Batch.Len() > db.o.flushRows || size+p.bytes > flushBytes) {
			return slices.Clone(db.queue[:i]), nil
		}
		rows += p.Batch.Len()
		size += p.bytes
	}
	return slices.Clone(db.queue), nil
}

// errEnough ends a reading of the spool.
var errEnough = errors.New("enough")

// refill queues records of the spool that memory had no room for, as far as it has now.
func (db *DB) refill(ctx context.Context) error {
	db.mu.RLock()
	spilled, from, queue := db.spilled, db.queued, len(db.queue)
	end := db.spool.End()
	db.mu.RUnlock()
	if !spilled || queue > 0 {
		return nil
	}
	err := db.spool.Read(ctx, from, func(lsn model.LSN, r spool.Record) error {
		db.mu.Lock()
		defer db.mu.Unlock()
		if db.pendingBytes >= db.o.PendingBytes/2 && len(db.queue) > 0 {
			return errEnough
		}
		p := &pending{Record: r, lsn: lsn, bytes: r.Batch.SizeBytes(), unsure: lsn <= db.recovered || slices.ContainsFunc(r.Batch.Flags, isLate)}
		for i, id := range r.Batch.Items {
			db.get(id).add(ref{at: r.Batch.At[i], p: p, row: i})
		}
		db.push(p)
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(db.queue) == 0 {
		// Nothing before end can be read: a failed Append or sync left a gap there.
		db.queued, db.applied = max(db.queued, end), max(db.applied, end)
	}
	db.spilled = db.queued < db.spool.End()
	return nil
}

func isLate(f model.Flag) bool { return f&model.Late != 0 }

// settle takes note that batches are in the tables.
func (db *DB) settle(batches []*pending) {
	db.mu.Lock()
	last := batches[len(batches)-1]
	db.applied = last.lsn
	rows := 0
	for _, p := range batches {
		rows += p.Batch.Len()
		db.pendingBytes -= int64(p.bytes)
		for _, id := range p.Batch.Items {
			if it := db.items.Get(id); len(it.waiting) > 0 {
				it.settle(db.applied)
			}
		}
	}
	clear(db.queue[:len(batches)])
	db.queue = db.queue[len(batches):]
	if len(db.queue) == 0 {
		db.queue = nil
	}
	db.mu.Unlock()
	db.m.written.Add(rows)
	db.m.transactions.Inc()
	trim := last.lsn
	if db.spool.SizeBytes() < db.o.SpoolBytes/2 {
		trim = min(trim, model.LSN(db.released.Load()))
	}
	if err := db.spool.Trim(trim); err != nil {
		db.o.Logger.Error("the spool could not be shortened", "error", err)
	}
	if db.journal != nil {
		db.finishCommitted(nil)
	}
	db.progress.Announce()
}

// connect opens the writer's connection if there is none.
func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil && !w.conn.IsClosed() { // a cancelled statement closes it
		return nil
	}
	w.close()
	config, err := pgx.ParseConfig(w.db.dsn)
	if err != nil {
		return err
	}
	setTimeouts(config.RuntimeParams, w.db.o.WriteTimeout, "tidemark writer")
	config.RuntimeParams["search_path"] = w.db.searchPath
	w.db.watch(config)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { w.unreplicated = w.unreplicated || lease.Unreplicated(n) }
	if w.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return err
	}
	if err = w.db.tag(ctx, w.conn); err == nil {
		err = takeLease(ctx, w.conn)
	}
	if err != nil {
		w.close()
	}
	return err
}

func setTimeouts(params map[string]string, statement time.Duration, name string) {
	params["application_name"] = name
	params["statement_timeout"] = strconv.FormatInt(statement.Milliseconds(), 10)
	params["lock_timeout"] = strconv.FormatInt(min(statement, lockTimeout).Milliseconds(), 10)
	params["idle_in_transaction_session_timeout"] = strconv.FormatInt(2*statement.Milliseconds(), 10)
}

// lockTimeout bounds the wait for a lock, such as that of a partition which is being dropped.
const lockTimeout = 10 * time.Second

// write stores batches, with their marks, in one transaction; if the database refuses a value as such, without it.
func (w *writer) write(ctx context.Context, batches []*pending) error {
	ctx, cancel := context.WithTimeout(ctx, 4*w.db.o.WriteTimeout)
	defer cancel()
	count := 0
	for _, p := range batches {
		count += p.Batch.Len()
	}
	rows := make([]row, 0, count)
	var keys []tableKey
	for _, p := range batches {
		for i, id := range p.Batch.Items {
			rows = append(rows, row{item: id, at: p.Batch.At[i], p: p, row: i})
			if k := (tableKey{valueType: p.Batch.Types[i], class: p.Classes[i]}); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := w.db.ensureTables(ctx, w.conn, keys); err != nil {
		return err
	}
	for range reshapes {
		err := w.writeRows(ctx, batches, rows)
		if !errors.Is(err, errReshaped) {
			return err
		}
		if err := w.db.loadTables(ctx, w.conn); err != nil {
			return err
		}
		if err := w.db.ensureTables(ctx, w.conn, keys); err != nil {
			return err
		}
	}
	return errReshaped
}

// filling stores rows within the writer's transaction and returns those that it stored.
type filling func(ctx context.Context, rows []row) ([]row, error)

// writeRows stores rows, by COPY if they should all be new. COPY costs the database less than half of what INSERT does, but ends at the first row that is
// there already. If the database refuses values as such, all others are stored without them. Whichever way, rows and position are in one transaction: rows
// without their position would be taken for duplicates when they come again after a crash, and never be evaluated.
func (w *writer) writeRows(ctx context.Context, batches []*pending, rows []row) error {
	ways := []filling{w.insertEvery, w.sieve}
	if len(rows) >= copyRows && !slices.ContainsFunc(batches, func(p *pending) bool { return p.unsure }) {
		ways = slices.Insert(ways, 0, filling(w.copyEvery))
	}
	var err error
	for i, way := range ways {
		if i > 0 {
			w.db.m.repeated.Inc()
		}
		if err = w.transact(ctx, batches, rows, way); err == nil || !aboutValues(err) {
			break
		}
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42P01" { // no such table: somebody dropped it
		w.db.forgetTables()
	}
	return err
}

// aboutValues reports whether the database refused a statement for what is in its rows.
func aboutValues(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{"22", "23", "54"}, refused.Code[:2])
}

func (w *writer) copyEvery(ctx context.Context, rows []row) ([]row, error) {
	return rows, w.copyAll(ctx, statements(rows))
}

func (w *writer) insertEvery(ctx context.Context, rows []row) ([]row, error) {
	return rows, w.insertAll(ctx, statements(rows))
}

// sieve stores all rows but those that the database refuses, which it finds by halving.
func (w *writer) sieve(ctx context.Context, rows []row) ([]row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	if _, err := w.conn.Exec(ctx, "SAVEPOINT part"); err != nil {
		return nil, err
	}
	refused := w.insertAll(ctx, statements(rows))
	if refused == nil {
		_, err := w.conn.Exec(ctx, "RELEASE SAVEPOINT part")
		return rows, err
	}
	if !aboutValues(refused) {
		return nil, refused
	}
	if _, err := w.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part"); err != nil {
		return nil, err
	}
	if len(rows) == 1 {
		w.db.m.dropped.Inc()
		w.db.o.Logger.Error("the database refuses a value, which is dropped", "item", uint64(rows[0].item), "at", rows[0].at, "error", refused)
		return nil, nil
	}
	first, err := w.sieve(ctx, rows[:len(rows)/2])
	if err != nil {
		return nil, err
	}
	second, err := w.sieve(ctx, rows[len(rows)/2:])
	return slices.Concat(first, second), err
}

// transact is one transaction: rows, stored in a way, and what must be true together with them.
func (w *writer) transact(ctx context.Context, batches []*pending, rows []row, way filling) error {
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after Commit it does nothing, and after an error the connection is closed
	var shape int64        // from here on no table changes its place until the end of the transaction
	if err := w.db.fence(ctx, tx); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, shapeSQL).Scan(&shape); err != nil {
		return err
	}
	if shape != w.db.knownShape() {
		return errReshaped
	}
	oldest := int64(math.MaxInt64)
	for i := range rows {
		oldest = min(oldest, rows[i].at)
	}
	if err := w.db.permitUnpacking(ctx, tx, oldest); err != nil {
		return err
	}
	stored, err := way(ctx, rows)
	if err != nil {
		return err
	}
	touched := w.db.touchedBy(stored)
	added, trim, err := w.keepState(ctx, batches, touched, stored)
	if err != nil {
		return err
	}
	if err := w.commit(ctx, tx); err != nil {
		return err
	}
	if w.db.journal != nil {
		w.db.journal.committed(added, trim)
	}
	w.db.noteTables(touched)
	return nil
}

// commit fails, too, when the transaction is committed and may not be on the replicas that commits wait for: it is then written again, which finds its rows.
func (w *writer) commit(ctx context.Context, tx pgx.Tx) error {
	w.unreplicated = false
	err := tx.Commit(ctx)
	if err == nil && w.unreplicated {
		err = lease.ErrUnreplicated
	}
	return err
}
