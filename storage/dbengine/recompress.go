package dbengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

// Codec is how extents of numbers are compressed behind their columns' own coding.
type Codec struct {
	Codec extent.Codec
	// Level is Zstandard's, 1 to 22; else zero.
	Level int
}

// ParseCodec reads none, lz4, zstd or zstd:LEVEL.
func ParseCodec(text string) (Codec, error) {
	name, level, leveled := strings.Cut(text, ":")
	wrong := fmt.Errorf("codec %.40q: expected none, lz4, or zstd:1 to zstd:22", text)
	switch {
	case name == "none" && !leveled:
		return Codec{}, nil
	case name == "lz4" && !leveled:
		return Codec{Codec: extent.LZ4}, nil
	case name == "zstd" && !leveled:
		return Codec{Codec: extent.Zstd, Level: textLevel}, nil
	case name == "zstd":
		n, err := strconv.Atoi(level)
		if err != nil || n < 1 || n > 22 {
			return Codec{}, wrong
		}
		return Codec{Codec: extent.Zstd, Level: n}, nil
	}
	return Codec{}, wrong
}

// String is what ParseCodec reads.
func (c Codec) String() string {
	if c.Codec == extent.Zstd {
		return fmt.Sprintf("zstd:%d", c.Level)
	}
	return c.Codec.String()
}

// The limits of extents.
const (
	MinExtentBytes = 4 << 10
	MaxExtentBytes = 4 << 20
	// coldPageValues is how many values a page at rest has; the tables of dense columns cost least per value in large ones.
	coldPageValues = 16384
	// coldExtentPages ends an extent of small pages.
	coldExtentPages = 1024
	// freeBytes is what must stay free of the file system while a pair is written anew.
	freeBytes = 64 << 20
)

// Recompress says how closed pairs are written anew.
type Recompress struct {
	Codec Codec
	// ExtentBytes ends an extent, MinExtentBytes to MaxExtentBytes; zero means 64 KiB.
	ExtentBytes int
	// OlderThan leaves pairs alone that hold younger values.
	OlderThan time.Duration
	// Again takes pairs too that were written anew before.
	Again bool
	// BytesPerSecond bounds reading and writing together; zero for no bound.
	BytesPerSecond int64
	// MergeBytes lets neighbours with small pages become one pair, as long as their files together take no more; zero leaves each for itself,
	// and MergeAuto takes an eighth of the disk space.
	MergeBytes int64
	// Busy, if not nil, is asked from time to time; while it says true nothing is done.
	Busy func() bool
	// Progress, if not nil, is told how far it is: at least after each pair, at most a few times a second.
	Progress func(RecompressProgress)
}

// MergeAuto is the MergeBytes that follows from the disk space, or from what is there if that is much less.
const MergeAuto = -1

// RecompressProgress says how far Recompress is.
type RecompressProgress struct {
	// Pairs and Bytes are what there is to do, datafiles with their journalfiles.
	Pairs int   `json:"pairs"`
	Bytes int64 `json:"bytes"`
	// DonePairs and DoneBytes of them are done, written or left as they were.
	DonePairs int   `json:"done_pairs"`
	DoneBytes int64 `json:"done_bytes"`
	// WrittenPairs are those that were replaced: BeforeBytes became AfterBytes. KeptPairs would not have become smaller, SkippedPairs could
	// not be done now.
	WrittenPairs int `json:"written_pairs"`
	KeptPairs    int `json:"kept_pairs"`
	// MergedPairs of those written became JoinedPairs.
	MergedPairs  int   `json:"merged_pairs"`
	JoinedPairs  int   `json:"joined_pairs"`
	SkippedPairs int   `json:"skipped_pairs"`
	BeforeBytes  int64 `json:"before_bytes"`
	AfterBytes   int64 `json:"after_bytes"`
	// BeforePages became AfterPages.
	BeforePages int64 `json:"before_pages"`
	AfterPages  int64 `json:"after_pages"`
	// FoldedValues are late values that went to the pages where they belong.
	FoldedValues uint64 `json:"folded_values"`
	// File is what is being read, Paused that it waits because the machine is busy.
	File   string `json:"file,omitempty"`
	Paused bool   `json:"paused,omitempty"`
	// Skipped says why the last pair was skipped.
	Skipped string `json:"skipped,omitempty"`
}

// errKept means that a pair would not become smaller.
var errKept = errors.New("it would not become smaller")

// recompression is what the engine remembers of it.
type recompression struct {
	// running lets one run at a time; Close takes it too.
	running sync.Mutex
	// kept are pairs that did not become smaller, by the codec.
	kept map[string]Codec
}

// Recompress writes closed pairs anew, smaller, and puts them in the place of the old ones, the youngest first: where the quota is reached the
// oldest will go soon. Readers see the one or the other. It can be stopped at any time, by the context, by Close, by a
// crash: a pair counts when it is whole and on disk. Of its room only that of one pair is taken at a time, before it is written.
func (db *DB) Recompress(ctx context.Context, o Recompress) (RecompressProgress, error) {
	if o.ExtentBytes == 0 {
		o.ExtentBytes = extentBytes
	}
	if o.ExtentBytes < MinExtentBytes || o.ExtentBytes > MaxExtentBytes {
		return RecompressProgress{}, fmt.Errorf("extents of %d bytes, expected %d to %d", o.ExtentBytes, MinExtentBytes, MaxExtentBytes)
	}
	db.recompression.running.Lock()
	defer db.recompression.running.Unlock()
	if db.ctx.Err() != nil {
		return RecompressProgress{}, storage.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.ctx, cancel)()
	r := &recompressing{db: db, o: o, ctx: ctx, began: time.Now()}
	runs := db.coldRuns(&o)
	for _, run := range runs {
		r.at.Pairs += len(run)
		r.at.Bytes += fileBytes(run)
	}
	for _, run := range runs {
		if err := r.step(run); err != nil {
			if db.ctx.Err() != nil {
				err = storage.ErrClosed
			}
			return r.at, err
		}
	}
	r.at.File = ""
	r.tell(true)
	return r.at, nil
}

// summedUp reports whether the tiers have what they need of a pair.
func (db *DB) summedUp(p *pair) bool {
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	for _, tier := range []header.Tier{header.Minute, header.Hour} {
		if db.o.tierShares[tier] > 0 && db.pairs.builtTo[tier] < p.id.Number {
			return false
		}
	}
	return true
}

// recompressing is one Recompress.
type recompressing struct {
	db    *DB
	o     Recompress
	ctx   context.Context
	at    RecompressProgress
	began time.Time
	told  time.Time
	// moved is how much was read and written, apart from pauses.
	moved   int64
	checked int64
	paused  time.Duration
}

// step does one run. Its error ends the work; what concerns the run only is counted. If there is no room for a run, less of it is tried.
func (r *recompressing) step(run []*pair) error {
	whole, base := len(run), r.at.DoneBytes
	size := fileBytes(run)
	r.at.File = run[len(run)-1].id.Name()
	err := r.run(run)
	for len(run) > 1 && errors.Is(err, storage.ErrFull) {
		run = run[1:]
		if len(run) == 1 && !r.db.anew(run[0], &r.o) {
			break
		}
		r.at.DoneBytes = base
		err = r.run(run)
	}
	r.at.DonePairs += whole
	r.at.DoneBytes = base + size
	switch {
	case err == nil:
		r.db.m.recompressed.Add(len(run))
		r.at.SkippedPairs += whole - len(run)
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, errKept):
		r.at.KeptPairs += whole
		if r.db.recompression.kept == nil {
			r.db.recompression.kept = map[string]Codec{}
		}
		r.db.recompression.kept[runName(run)] = r.o.Codec
	default:
		r.at.SkippedPairs += whole
		r.at.Skipped = fmt.Sprintf("%s: %v", runName(run), err)
		if !errors.Is(err, errGone) {
			r.db.o.Logger.Warn("pairs could not be written anew; they stay as they are", "files", runName(run), "error", err)
		}
	}
	r.tell(true)
	return nil
}

// tell tells the progress, now or if some time has passed.
func (r *recompressing) tell(now bool) {
	if r.o.Progress == nil || !now && time.Since(r.told) < 200*time.Millisecond {
		return
	}
	r.told = time.Now()
	r.o.Progress(r.at)
}

// move counts bytes that were read or written, and waits as long as the rate asks for, or the machine is busy.
func (r *recompressing) move(n int) error {
	r.moved += int64(n)
	if r.moved-r.checked < 256<<10 {
		return nil
	}
	r.checked = r.moved
	r.tell(false)
	for r.busy() {
		r.at.Paused = true
		r.tell(false)
		if err := r.sleep(250 * time.Millisecond); err != nil {
			return err
		}
		r.paused += 250 * time.Millisecond
	}
	r.at.Paused = false
	if r.o.BytesPerSecond > 0 {
		due := time.Duration(float64(r.moved) / float64(r.o.BytesPerSecond) * float64(time.Second))
		if wait := due - (time.Since(r.began) - r.paused); wait > 0 {
			return r.sleep(wait)
		}
	}
	return r.ctx.Err()
}

// busy reports whether values wait for the disk, or others need the machine.
func (r *recompressing) busy() bool {
	if r.ctx.Err() != nil {
		return false
	}
	if r.db.dirtyBytes.Load() > 4*r.db.o.limits.dirtyBytes || r.db.flushError.Load() != nil {
		return true
	}
	return r.o.Busy != nil && r.o.Busy()
}

func (r *recompressing) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// WaitSummedUp waits until the tiers have what they need of every closed pair: before that Recompress leaves a pair alone.
func (db *DB) WaitSummedUp(ctx context.Context) error {
	// What fails here is tried again by the goroutine whose work it is, and told by it.
	if err := db.buildTiers(ctx); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	for {
		missing := false
		for _, p := range db.pairs.all() {
			missing = missing || p.tier == header.Raw && p.index.Load() != nil && !db.summedUp(p)
		}
		if !missing {
			return nil
		}
		if db.ctx.Err() != nil {
			return storage.ErrClosed
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// ClosePair writes what is in memory and closes the pair that grows, so that it can be written anew too.
func (db *DB) ClosePair(ctx context.Context) error {
	if err := db.Flush(ctx); err != nil {
		return err
	}
	db.flushing.Lock()
	defer db.flushing.Unlock()
	if db.ctx.Err() != nil {
		return storage.ErrClosed
	}
	db.closePair()
	return nil
}
