// Package postgres keeps values in PostgreSQL, in tables that look like Zabbix's.
//
//	Append ─▶ spool (local log) ─▶ pending rows in memory ─writer, in order─▶ history_uint_c0, …
//	          │ fsync: acknowledged  │                                        │
//	Read  ◀───────────────────────── └──────────────── merged ────────────────┘
//
// A value is in the spool before it is acknowledged and stays there until the transaction that stores it is committed, so the database
// may be slow, restart, or be away for as long as the spool has room. The writer's statements may be repeated: a row that is there already is
// left alone. Each retention class has tables of its own, and views with Zabbix's names lie over them. The reasons are in
// docs/design/0023-postgres.md.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/idtable"
	"tidemark/internal/rounds"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/spool"
)

// DB is an open engine.
type DB struct {
	o Options
	// kept are the retention classes in force, as many as o.Classes.
	kept  atomic.Pointer[[]Class]
	dsn   string
	pool  *pgxpool.Pool
	spool pendingLog
	// searchPath finds the tables in one schema; see lease.SearchPath.
	searchPath string
	// journal is the spool when servers share the database, else nil.
	journal *journal
	// leftover is the id of a spool that was found besides, and leftoverEnd its end; zero for none.
	leftover    uint64
	leftoverEnd model.LSN
	m           *meters
	mode        Mode
	// writer belongs to runWriter from the end of Open until Close.
	writer *writer
	caps   capabilities
	// remote says that the database is on another machine.
	remote bool

	// appending makes one Append at a time.
	appending  sync.Mutex
	generation uint64

	// mu guards what follows.
	mu    sync.RWMutex
	items idtable.Table[model.ItemID, item]
	ids   []model.ItemID // of all items that the database has
	marks map[string]model.Mark
	// queue are the pending batches, oldest first; pendingBytes is what they take.
	queue        []*pending
	pendingBytes int64
	// spilled says that the spool holds records behind the queue's last, which memory had no room for; queued is that LSN. Behind pushed, the LSN of the
	// last batch that was ever in the queue, queued is only where nothing could be read.
	spilled        bool
	queued, pushed model.LSN
	applied        model.LSN
	// recovered is the LSN behind the records that an earlier process left.
	recovered model.LSN
	// low and high bound all stored times.
	low, high int64
	tables    map[tableKey]*tableState
	// dropped is what housekeeping removed, the newest last.
	dropped []DroppedPartition
	// shape is the generation of tables.
	shape int64

	released atomic.Uint64
	closed   atomic.Bool
	// away is why the database cannot be written to now.
	away atomic.Pointer[error]
	// full says that a value was refused because the spool had no room, since the database was written to last.
	full atomic.Bool
	// viewsDue says that the keeper is to look at the views.
	viewsDue atomic.Bool
	// lateAt is when values so old were last stored that they may be for compressed chunks, mergedAt when such values were last merged; Unix nanoseconds.
	lateAt, mergedAt atomic.Int64
	// values counts rows written since Open; sizeBytes is what the tables take.
	sizeBytes, rowsEstimate atomic.Int64
	// room is the last measurement of the database; walHidden says that the size of its log may not be asked for.
	room      atomic.Pointer[Room]
	walHidden atomic.Bool

	waitMu  sync.Mutex
	waiting []waiter

	// shaping serialises what changes tables.
	shaping sync.Mutex

	progress rounds.Waiters
	// awaySince is when the database went away; the writer's.
	awaySince time.Time
	wake      chan struct{}
	wakeSync  chan struct{}
	ctx       context.Context
	cancel    context.CancelFunc
	loops     sync.WaitGroup
	once      sync.Once
	closeErr  error
}

var (
	_ storage.Engine      = (*DB)(nil)
	_ storage.Definer     = (*DB)(nil)
	_ storage.Replayer    = (*DB)(nil)
	_ storage.Marker      = (*DB)(nil)
	_ storage.Statter     = (*DB)(nil)
	_ storage.Trendkeeper = (*DB)(nil)
)

// Open opens the spool and the database at dsn, a connection string of libpq or a URL, and brings the tables up to date. It tries for
// Options.ConnectTimeout to reach the database. What the spool holds is written in the background.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("open the engine on PostgreSQL: %w", err)
	}
	db := &DB{
		o: o, dsn: dsn, marks: map[string]model.Mark{}, tables: map[tableKey]*tableState{},
		wake: make(chan struct{}, 1), wakeSync: make(chan struct{}, 1), low: math.MaxInt64, high: never,
	}
	db.kept.Store(&o.Classes)
	db.mergedAt.Store(o.Now())
	db.ctx, db.cancel = context.WithCancel(context.Background())
	db.m = newMeters(db)
	if err := db.open(ctx); err != nil {
		db.cancel()
		if db.writer != nil {
			db.writer.close()
		}
		if db.pool != nil {
			db.pool.Close()
		}
		if db.spool != nil {
			err = errors.Join(err, db.spool.Close())
		}
		return nil, fmt.Errorf("open the engine on PostgreSQL: %w", err)
	}
	db.loops.Go(db.runSyncer)
	db.loops.Go(db.runWriter)
	db.loops.Go(db.runKeeper)
	return db, nil
}

func (db *DB) open(ctx context.Context) error {
	if err := db.openLog(); err != nil {
		return err
	}
	if err := db.connect(ctx); err != nil {
		return err
	}
	db.remote = !sameMachine(db.pool.Config().ConnConfig.Host)
	// What is read from here on is what this server goes on from, so nobody else may write any more.
	db.writer = newWriter(db)
	if err := db.writer.waitForLease(ctx); err != nil {
		return err
	}
	if err := db.prepareSchema(ctx); err != nil {
		return err
	}
	if err := db.load(ctx); err != nil {
		return err
	}
	if db.journal != nil {
		return db.recoverJournal(ctx)
	}
	return db.recoverSpool(ctx)
}

// openLog opens what values wait in.
func (db *DB) openLog() error {
	if db.o.Term != nil {
		return db.openShared()
	}
	log, err := spool.Open(db.o.FS, db.o.SpoolDir, spool.Options{SegmentBytes: db.o.segmentBytes, Logger: db.o.Logger})
	if err != nil {
		return err
	}
	db.spool = log
	return nil
}

// recoverSpool queues what the spool holds behind what is in the tables.
func (db *DB) recoverSpool(ctx context.Context) error {
	db.spool.StartAt(db.applied)
	db.applied = min(db.applied, db.spool.End())
	db.queued = db.applied
	db.recovered = db.spool.End()
	db.spilled = db.spool.End() > db.applied
	// Marks and times of all records count at once, also of those that wait in the spool.
	err := db.spool.Read(ctx, db.applied, func(_ model.LSN, r spool.Record) error {
		db.keepMarks(r.Batch.Marks)
		for i, id := range r.Batch.Items {
			it := db.get(id)
			it.newest = max(it.newest, r.Batch.At[i])
			db.high = max(db.high, r.Batch.At[i])
			db.low = min(db.low, r.Batch.At[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	poke(db.wake)
	return db.refill(ctx)
}

// Define takes over item definitions. They are not kept: hand them over after every Open, before the items' values.
func (db *DB) Define(_ context.Context, defs []storage.ItemDefinition) error {
	for i := range defs {
		if int(defs[i].Class) >= len(db.o.Classes) {
			return fmt.Errorf("item %d: retention class %d, expected below %d", defs[i].ID, defs[i].Class, len(db.o.Classes))
		}
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for i := range defs {
		db.get(defs[i].ID).class = defs[i].Class
	}
	return nil
}

// LastLSN is the LSN behind the last record.
func (db *DB) LastLSN() model.LSN { return db.spool.End() }

// Release says that records up to lsn need not be kept for Replay any more.
func (db *DB) Release(lsn model.LSN) {
	for {
		old := db.released.Load()
		if uint64(lsn) <= old || db.released.CompareAndSwap(old, uint64(lsn)) {
			return
		}
	}
}

// Replay calls fn for every record of the spool behind LSN from, oldest first. A batch that was large comes in several parts.
func (db *DB) Replay(ctx context.Context, from model.LSN, fn func(model.LSN, *model.Batch) error) error {
	return db.spool.Read(ctx, from, func(lsn model.LSN, r spool.Record) error { return fn(lsn, r.Batch) })
}

// closeTimeout bounds the last try to empty the queue.
const closeTimeout = 10 * time.Second

// Close writes what is pending, as far as the database takes it within ten seconds, and ends the engine. The rest stays in the spool.
func (db *DB) Close() error {
	db.once.Do(func() {
		db.closed.Store(true)
		db.appending.Lock() // waits for a running Append
		defer db.appending.Unlock()
		db.cancel()
		db.loops.Wait()
		if db.journal == nil {
			db.finishWaiting()
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		w := db.writer // runWriter has ended
		for db.away.Load() == nil && w.flush(ctx) {
		}
		if db.journal != nil {
			db.finishCommitted(storage.ErrClosed)
		} else if err := db.away.Load(); err != nil {
			db.o.Logger.Warn("closed with values in the spool; they are written after the next start", "error", *err)
		}
		w.close()
		db.pool.Close()
		db.closeErr = db.spool.Close()
	})
	return db.closeErr
}
