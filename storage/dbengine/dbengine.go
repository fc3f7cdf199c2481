// Package dbengine is the embedded time-series engine.
//
//	Append ─▶ log ─▶ hot pages ─seal─▶ dirty pages ─▶ extents ─▶ datafile + journalfile, in pairs
//	          │ fsync: acknowledged                              │ synced: the log is recycled
//	Read  ◀── hot, dirty ◀───────────────── page cache ◀─────────┘
//
// A value is in the log before it is acknowledged and stays there until the page that holds it is in a datafile and
// that is synced. Datafiles are closed at a size, and the oldest pair is deleted when the quota needs room. What was damaged
// is set aside in quarantine/ and the rest is served. The formats are in format/, the reasons in docs/design/0010-dbengine.md.
package dbengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/rounds"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/pagecache"
	"tidemark/storage/dbengine/translog"
)

// Durability says when a batch counts as durable.
type Durability uint8

// The durabilities.
const (
	// Group finishes completions after the fdatasync that serves all who wait.
	Group Durability = iota
	// Relaxed finishes them after write(2); fdatasync follows within a second. A power cut may lose that second.
	Relaxed
)

// Class is a retention class. Zero durations keep values as long as the quota allows.
type Class struct {
	History, Trends time.Duration
	// MinimumAge is how long values of the class shall be there in any case; zero for what Options.MinimumAge says.
	MinimumAge time.Duration
}

const (
	// MinDiskSpaceBytes is the smallest quota that Open takes.
	MinDiskSpaceBytes = 256 << 20
	// MinPageCacheBytes is the smallest page cache that Open takes.
	MinPageCacheBytes = 32 << 20
	// MaxClasses bounds the retention classes.
	MaxClasses = 16
	// MaxGroupDelay bounds Options.GroupDelay.
	MaxGroupDelay = 20 * time.Millisecond
)

// Options configure an engine.
type Options struct {
	// DiskSpaceBytes is a hard limit for all files of the engine together; zero means 4 GiB.
	DiskSpaceBytes int64
	// PageCacheBytes is a hard limit for sealed pages kept in memory; zero means 64 MiB.
	PageCacheBytes int64
	Durability     Durability
	// GroupDelay is the least time between two syncs while several batches wait for each; zero means 2 ms.
	GroupDelay time.Duration
	// Classes are the retention classes that ItemDefinition.Class names; none means one class without limits.
	Classes []Class
	// OpenFiles bounds the datafiles that are kept open for reading; zero means a quarter of the descriptors that the
	// process may have, 8 to 1,024.
	OpenFiles int
	// Now returns Unix nanoseconds; nil means the system's clock. Only retention looks at it.
	Now func() int64
	// Metrics gets the engine's metrics; nil for none.
	Metrics *metrics.Set
	// Logger is told of damage and trouble; nil discards.
	Logger *slog.Logger

	// Snapshots, if not nil, keeps snapshots by links to the engine's files; what only they hold counts for the quota.
	Snapshots SnapshotStore

	// MinimumAge is how long values shall be there in any case: when the disk space does not reach for that, there is a warning before the
	// first younger ones are deleted. Zero for none. A class may have its own.
	MinimumAge time.Duration
	// MinuteShare and HourShare are the parts of the disk space that the summaries of minutes and of hours may take, in percent; zero means
	// 15 and 5, a negative number that there is no such tier. What a tier does not take is there for the values.
	MinuteShare, HourShare int

	// ShareFactor is how many times what the others have on average a share (a host) may have of the disk: where there is no room left, values of shares that
	// have more are deleted first, oldest first. Zero means 2, a negative number that the oldest values go, whose ever they are.
	ShareFactor int

	// HotCodec compresses extents of numbers as they are first written; the zero value leaves them as their columns are, so that one page can be
	// read without its neighbours.
	HotCodec Codec

	// DirectIO says what is read and written past the system's cache where the file system takes that; the zero value is DirectAuto.
	DirectIO DirectIO

	// Merge appends to dst what two binary values come to, such as two sketches: the order in which values are merged must make no difference. If
	// a is empty it appends b. An error, or more than MaxMergedBytes, leaves b out: it is not of the kind that merges. The tiers keep what the
	// binary values of a minute and of an hour merge to; nil for nothing.
	Merge func(dst, a, b []byte) ([]byte, error)

	// tierShares are made from these.
	tierShares tierShares
	// limits are made from DiskSpaceBytes; tests set smaller ones.
	limits *limits
}

// limits are the sizes that follow from the quota.
type limits struct {
	segmentBytes  int64 // one log file
	logBytes      int64 // all log files
	logFloorBytes int64 // the log may have so much however few bytes are hot
	datafileBytes int64
	pageValues    int // a page is sealed at so many values
	pageBytes     int // or at so many bytes of text
	dirtyBytes    int64
	dirtyAge      time.Duration
	tierTick      time.Duration // how often closed pairs are looked for that have no tiers yet; zero for never
	idleAge       time.Duration // a series whose values are all in closed pairs stays in memory for so long
	silentAge     time.Duration // a series that is silent for so long, and longer than it ever was, is sealed; zero for never
	heldSeries    int           // a pair is closed when only that keeps so many stopped series in memory; zero for no bound
	tick          time.Duration // how often the flusher looks, and a full disk is tried again
}

func limitsFor(quota int64) *limits {
	logBytes := quota / 4
	return &limits{
		segmentBytes:  min(max(logBytes/8, 1<<20), 16<<20) &^ 4095,
		logBytes:      logBytes,
		logFloorBytes: 64 << 20,
		datafileBytes: min(max(quota/20, 4<<20), 256<<20),
		pageValues:    1024,
		pageBytes:     4096,
		dirtyBytes:    4 << 20,
		dirtyAge:      time.Minute,
		tierTick:      5 * time.Second,
		idleAge:       10 * time.Minute,
		silentAge:     5 * time.Minute,
		heldSeries:    1 << 17,
		tick:          time.Second,
	}
}

func (o *Options) setDefaults() error {
	if o.DiskSpaceBytes == 0 {
		o.DiskSpaceBytes = 4 << 30
	}
	if o.PageCacheBytes == 0 {
		o.PageCacheBytes = 64 << 20
	}
	if o.GroupDelay == 0 {
		o.GroupDelay = 2 * time.Millisecond
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = openFilesLimit()
	}
	if len(o.Classes) == 0 {
		o.Classes = []Class{{}}
	}
	if o.ShareFactor == 0 {
		o.ShareFactor = 2
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.limits == nil {
		if o.DiskSpaceBytes < MinDiskSpaceBytes {
			return fmt.Errorf("disk space: %d bytes, expected at least %d", o.DiskSpaceBytes, MinDiskSpaceBytes)
		}
		if o.PageCacheBytes < MinPageCacheBytes {
			return fmt.Errorf("page cache size: %d bytes, expected at least %d", o.PageCacheBytes, MinPageCacheBytes)
		}
		o.limits = limitsFor(o.DiskSpaceBytes)
	}
	if err := o.setShares(); err != nil {
		return err
	}
	if o.GroupDelay < 0 || o.GroupDelay > MaxGroupDelay {
		return fmt.Errorf("group delay: %v, expected at most %v", o.GroupDelay, MaxGroupDelay)
	}
	if o.DirectIO > DirectAll {
		return fmt.Errorf("direct I/O: %d, expected at most %d", o.DirectIO, DirectAll)
	}
	if len(o.Classes) > MaxClasses {
		return fmt.Errorf("retention classes: %d, expected at most %d", len(o.Classes), MaxClasses)
	}
	return checkClasses(o.Classes)
}

// maxTierShares is the most that both tiers may take together, in percent.
const maxTierShares = 80

func (o *Options) setShares() error {
	for tier, share := range map[header.Tier][2]int{header.Minute: {o.MinuteShare, 15}, header.Hour: {o.HourShare, 5}} {
		if share[0] > maxTierShares {
			return fmt.Errorf("share of the %v tier: %d %%, expected at most %d", tier, share[0], maxTierShares)
		}
		if o.tierShares[tier] = max(share[0], 0); share[0] == 0 {
			o.tierShares[tier] = share[1]
		}
	}
	if sum := o.tierShares[header.Minute] + o.tierShares[header.Hour]; sum > maxTierShares {
		return fmt.Errorf("shares of the tiers: %d %% together, expected at most %d", sum, maxTierShares)
	}
	return nil
}

// DB is an open engine.
//
// Locks are taken in this order: shards by number, marks, pairs, space, log, cache.
type DB struct {
	o Options
	// kept are the retention classes in force, as many as o.Classes.
	kept   atomic.Pointer[[]Class]
	fs     vfs.FS
	dir    string
	lock   io.Closer
	log    *translog.Log
	cache  *pagecache.Cache
	space  space
	shards [shardCount]shard
	marks  marks
	pairs  pairs
	files  descriptors
	direct direct
	m      *meters
	// recompression and readers belong to Recompress.
	recompression recompression
	readers       readers
	// pins are removed files that kept snapshots still hold.
	pins pins

	// released is the LSN up to which Replay is no longer needed.
	released atomic.Uint64
	// dirtyBytes is what detached pages take in memory, hotBytes what all values do that are in no datafile.
	dirtyBytes, hotBytes atomic.Int64
	// newest is the latest time of any value.
	newest atomic.Int64
	// values counts the values that are stored anywhere.
	values       atomic.Int64
	lastRecycled model.LSN
	// marksBytes is what the file of marks is charged with.
	marksBytes int64
	// flushing serialises what writes to datafiles, and guards extentBytes, the room for what they write.
	flushing sync.Mutex
	// growing is held while the files of the pair that grows, or the marks, change, for one group of pages at most; behind flushing, before the locks of
	// shards and pairs.
	growing     sync.Mutex
	extentBytes []byte
	// tiering is held while pairs of tiers are made.
	tiering sync.Mutex
	// ageShort means that the disk space does not reach for the minimum ages.
	ageShort atomic.Bool
	// ages is what was read of the pair that goes next, definitions how often Define was called.
	ages        atomic.Pointer[classAges]
	definitions atomic.Int64
	// shareChanges counts changes of the share of items that closed pairs may hold; zero while there are no shares. recovered is the largest id
	// of an item when the engine was opened: values of larger ones come after their definition.
	shareChanges atomic.Int64
	recovered    model.ItemID
	// sharesSeen and sharesOver are how many shares there were when room was made last, and how many of them had too much.
	sharesSeen, sharesOver atomic.Int64
	// balanced is how many pairs and indexes there had been when no pair was found whose oldest values could make room; db.flushing guards it.
	balanced uint64
	// retiring is the room of pairs that were replaced and are still read; retires are who waits for their readers.
	retiring atomic.Int64
	retires  sync.WaitGroup
	// ceiling is what SetCeiling was told, nil for none; borrowed is the room of pairs that are being written anew.
	ceiling  atomic.Pointer[ceiling]
	borrowed atomic.Int64
	// flushError is why pages cannot be written now.
	flushError atomic.Pointer[error]

	// progress wakes those who wait for the log to become shorter.
	progress rounds.Waiters

	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	once   sync.Once
	closed error
}

var (
	_ storage.Engine     = (*DB)(nil)
	_ storage.Definer    = (*DB)(nil)
	_ storage.Replayer   = (*DB)(nil)
	_ storage.Marker     = (*DB)(nil)
	_ storage.Statter    = (*DB)(nil)
	_ storage.Summarizer = (*DB)(nil)
	_ storage.Folder     = (*DB)(nil)
	_ storage.Merger     = (*DB)(nil)
)

// Open opens the engine in dir, which it creates if need be, and recovers what the log holds. Damaged files are moved to
// dir/quarantine and the rest is served. A folder that a newer program has written to is refused and left untouched.
func Open(ctx context.Context, fsys vfs.FS, dir string, o Options) (*DB, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	db := &DB{o: o, fs: fsys, dir: dir, lock: lock, cache: pagecache.New(o.PageCacheBytes), wake: make(chan struct{}, 1)}
	db.kept.Store(&o.Classes)
	db.ctx, db.cancel = context.WithCancel(context.Background())
	db.files = descriptors{fs: fsys, dir: dir, limit: o.OpenFiles}
	db.m = newMeters(db)
	for i := range db.shards {
		db.shards[i].runs = map[uint64]*run{}
	}
	if err := db.recover(ctx); err != nil {
		db.cancel()
		return nil, errors.Join(fmt.Errorf("open engine in %s: %w", dir, err), db.pairs.close(), lock.Close())
	}
	db.newest.Store(db.Stats().To)
	db.recovered = db.MaxItemID()
	db.loops.Go(db.runFlusher)
	if o.limits.tierTick > 0 {
		db.loops.Go(db.runTiers)
	}
	return db, nil
}

// Define takes over item definitions. They are not kept on disk: hand them over after every Open, before the items' values.
func (db *DB) Define(_ context.Context, defs []storage.ItemDefinition) error {
	for i := range defs {
		if int(defs[i].Class) >= len(db.o.Classes) {
			return fmt.Errorf("item %d: retention class %d, expected below %d", defs[i].ID, defs[i].Class, len(db.o.Classes))
		}
	}
	for i := range defs {
		sh := db.shardOf(defs[i].ID)
		sh.mu.Lock()
		sh.define(defs[i].ID, defs[i].Class)
		if sh.setShare(defs[i].ID, defs[i].Share) && (defs[i].ID <= db.recovered || db.shareChanges.Load() == 0) {
			db.shareChanges.Add(1)
		}
		sh.mu.Unlock()
	}
	db.definitions.Add(1)
	return nil
}

// LastLSN is the LSN behind the last record.
func (db *DB) LastLSN() model.LSN { return db.log.End() }

// Release says that records up to lsn need not be kept for Replay any more.
func (db *DB) Release(lsn model.LSN) {
	for {
		old := db.released.Load()
		if uint64(lsn) <= old || db.released.CompareAndSwap(old, uint64(lsn)) {
			return
		}
	}
}

// Replay calls fn for every durable batch behind LSN from, oldest first. A batch that was large comes in several parts.
func (db *DB) Replay(ctx context.Context, from model.LSN, fn func(model.LSN, *model.Batch) error) error {
	b := model.NewBatch()
	defer b.Free()
	return db.log.Replay(ctx, from, func(lsn model.LSN, kind byte, payload []byte) error {
		if kind != translog.KindBatch {
			return nil
		}
		if err := translog.DecodeBatch(b, payload); err != nil {
			db.o.Logger.Warn("a log record with an intact checksum cannot be read", "lsn", lsn, "error", err)
			return nil
		}
		return fn(lsn, b)
	})
}

// Close makes the log durable and ends the engine. Hot pages stay in the log: closing does not wait for them to be written.
func (db *DB) Close() error {
	db.once.Do(func() {
		for i := range db.shards {
			db.shards[i].mu.Lock()
			db.shards[i].closed = true
			db.shards[i].mu.Unlock()
		}
		db.cancel()
		db.loops.Wait()
		db.recompression.running.Lock()
		defer db.recompression.running.Unlock()
		db.flushing.Lock()
		defer db.flushing.Unlock()
		db.retires.Wait()
		db.closed = errors.Join(db.log.Close(), db.pairs.close(), db.lock.Close())
	})
	return db.closed
}
