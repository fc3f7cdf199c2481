package dbengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// The items of a host that keeps its values, and of one whose values are left out: numbers, then texts, then binary values. The latter have the greatest
// ids, so that an index without them ends before them.
var (
	stayingItems = []model.ItemID{1, 2, 3, 4, 5}
	leavingItems = []model.ItemID{300, 301, 302, 303, 304}
)

// twin is an engine in which pairs are thinned, merged, re-compressed, copied and cut off, and one that holds the same values and does none of that.
type twin struct {
	t         *testing.T
	r         *rand.Rand
	fsys      *vfs.Mem
	o         Options
	db, plain *DB
	clock     int64
	thinned   int
	joined    int
	copies    int
}

func newTwin(t *testing.T, seed uint64) *twin {
	o := tinyOptions()
	o.Merge = addSums
	o.limits.logFloorBytes = 32 << 10
	o.DirectIO = anyDirect(seed)
	w := &twin{t: t, r: rand.New(rand.NewPCG(seed, 11)), fsys: vfs.NewMem(), o: o, clock: storagetest.Base}
	w.db, w.plain = openTest(t, w.fsys, o), openTest(t, vfs.NewMem(), o)
	return w
}

func (w *twin) define() error {
	var defs []storage.ItemDefinition
	for _, id := range stayingItems {
		defs = append(defs, storage.ItemDefinition{ID: id, Share: 1})
	}
	for _, id := range leavingItems {
		defs = append(defs, storage.ItemDefinition{ID: id, Share: 2})
	}
	return w.db.Define(context.Background(), defs)
}

// write appends values in order of time to both.
func (w *twin) write() error {
	for range 20 + w.r.IntN(60) {
		b := &model.Batch{ArrivedAt: w.clock}
		w.clock += int64(1+w.r.IntN(90)) * int64(time.Second)
		for _, ids := range [][]model.ItemID{stayingItems, leavingItems} {
			b.AppendFloat(ids[0], w.clock, float64(w.r.IntN(40))/4)
			b.AppendUint(ids[1], w.clock, uint64(w.r.IntN(1000)))
			if w.r.IntN(4) > 0 {
				b.AppendFloat(ids[2], w.clock, w.r.NormFloat64())
			}
			b.AppendString(ids[3], w.clock, model.Text, fmt.Sprint("text ", w.r.IntN(4)))
			b.AppendBytes(ids[4], w.clock, model.Binary, binary.LittleEndian.AppendUint64(nil, uint64(w.r.IntN(1<<30))))
		}
		if err := errors.Join(appendAll(w.plain, cloneBatch(b)), appendAll(w.db, b)); err != nil {
			return err
		}
	}
	return nil
}

// settle closes and sums up.
func (w *twin) settle() error {
	ctx := context.Background()
	for _, e := range []*DB{w.db, w.plain} {
		e.Release(e.LastLSN())
		if err := errors.Join(e.ClosePair(ctx), e.buildTiers(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// thin leaves the share out of some of the pairs that may be thinned.
func (w *twin) thin() error {
	db := w.db
	db.flushing.Lock()
	defer db.flushing.Unlock()
	for _, p := range db.sharesOf(header.Raw).pairs {
		if w.r.IntN(2) == 0 || !db.settled(p) {
			continue
		}
		p.mu.Lock()
		size := p.charged
		p.mu.Unlock()
		err := db.thin(context.Background(), p, size, map[uint64]bool{2: true}, func(swap func()) { swap() })
		if err != nil && !errors.Is(err, errKept) {
			return fmt.Errorf("thin %s: %w", p.id.Name(), err)
		}
		if err == nil {
			w.thinned++
		}
	}
	return nil
}

func (w *twin) recompress() error {
	o := everything([]string{"none", "lz4", "zstd:1"}[w.r.IntN(3)])
	o.Again = w.r.IntN(3) == 0
	o.MergeBytes = []int64{0, 24 << 10, 1 << 20}[w.r.IntN(3)]
	done, err := w.db.Recompress(context.Background(), o)
	w.joined += done.JoinedPairs
	if err == nil && done.SkippedPairs > 0 {
		err = errors.New(done.Skipped)
	}
	return err
}

// reopened compares what a copy of the folder answers.
func (w *twin) reopened(fsys *vfs.Mem) error {
	w.copies++
	db, err := Open(context.Background(), fsys, "/engine", w.o)
	if err != nil {
		return err
	}
	return errors.Join(w.compare(db), db.Close(), noDamage(fsys))
}

// snapshot restores a snapshot, now and then without one of its journalfiles.
func (w *twin) snapshot(n int) error {
	dir, files := fmt.Sprintf("/snapshot-%d", n), map[string]int64{}
	if err := w.fsys.MkdirAll(dir); err != nil {
		return err
	}
	if _, err := w.db.Freeze(context.Background(), linkInto(w.fsys, dir, files), nil); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if id, journal, ok := datafile.ParseName(name); ok && journal && id.Generation > generation && w.r.IntN(3) == 0 {
			delete(files, name)
			break
		}
	}
	return w.reopened(restoreFrom(w.t, w.fsys, dir, files))
}

// cutting calls fn and opens what power cuts at some of the syncs meanwhile leave.
func (w *twin) cutting(fn func() error) error {
	var mu sync.Mutex
	var failed error
	r := rand.New(rand.NewPCG(w.r.Uint64(), 1))
	w.fsys.OnSync(func() { // syncs come from other goroutines too
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && r.IntN(12) == 0 {
			failed = w.reopened(w.fsys.CrashClone(r))
		}
	})
	err := fn()
	w.fsys.OnSync(nil)
	mu.Lock()
	defer mu.Unlock()
	if failed != nil {
		failed = fmt.Errorf("after a power cut: %w", failed)
	}
	return errors.Join(err, failed)
}

// compare compares all answers, over all and over two random ranges.
func (w *twin) compare(db *DB) error {
	if err := errors.Join(compareMinutes(db, w.plain, stayingItems...), compareTrendsOf(db, w.plain, stayingItems...)); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(w.clock), uint64(w.copies)))
	ranges := []model.TimeRange{storagetest.All().Range}
	for range 2 {
		from := storagetest.Base - storage.Hour + r.Int64N(w.clock-storagetest.Base+storage.Hour)
		ranges = append(ranges, model.TimeRange{From: from, To: from + 1 + r.Int64N(w.clock+storage.Hour-from)})
	}
	for _, at := range ranges {
		if err := w.compareRange(db, at); err != nil {
			return fmt.Errorf("from %d to %d: %w", at.From, at.To, err)
		}
	}
	return nil
}

func (w *twin) compareRange(db *DB, at model.TimeRange) error {
	q := storage.Query{Items: stayingItems, Range: at}
	if got, want := storagetest.Collect(w.t, db, q), storagetest.Collect(w.t, w.plain, q); !slices.Equal(got, want) {
		return fmt.Errorf("%d values, expected %d", len(got), len(want))
	}
	return w.compareTiers(db, at)
}

// compareTiers compares hours, minutes and merged values.
func (w *twin) compareTiers(db *DB, at model.TimeRange) error {
	q := storage.Query{Range: at}
	for _, id := range slices.Concat(stayingItems[:3], leavingItems[:3]) {
		q.Items = []model.ItemID{id}
		got, err := trendList(db.Trends, q)
		want, err2 := trendList(w.plain.Trends, q)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("hours of item %d: %s", id, unlikeRows(got, want))
		}
		got, err = trendList(db.Minutes, q)
		want, err2 = trendList(w.plain.Minutes, q)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if !slices.EqualFunc(got, want, func(a, b model.Trend) bool {
			return a.At == b.At && a.Count == b.Count && a.Min == b.Min && a.Max == b.Max
		}) {
			return fmt.Errorf("%d minutes of item %d, expected %d", len(got), id, len(want))
		}
	}
	for _, id := range []model.ItemID{stayingItems[4], leavingItems[4]} {
		q.Items = []model.ItemID{id}
		q.Range = model.TimeRange{From: stepEnd(max(at.From, storagetest.Base-storage.Hour), minute) + 1, To: stepEnd(min(at.To, w.clock+storage.Hour), minute) + 1}
		cell := func(at int64) int { return int((at - q.Range.From) / (10 * minute)) }
		got, _ := mergedSums(w.t, db, q, cell)
		want, _ := mergedSums(w.t, w.plain, q, cell)
		if !maps.Equal(got, want) {
			return fmt.Errorf("merged values of item %d: %d cells, expected %d: %v, expected %v", id, len(got), len(want), got, want)
		}
	}
	return nil
}

// unlikeRows names the first rows that differ.
func unlikeRows(got, want []model.Trend) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%+v, expected %+v", got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows, expected %d", len(got), len(want))
}

// trendList collects rows.
func trendList(read func(context.Context, storage.Query, func(*storage.TrendColumns) error) error, q storage.Query) (rows []model.Trend, err error) {
	err = read(context.Background(), q, func(c *storage.TrendColumns) error {
		rows = append(rows, c.Trends...)
		return nil
	})
	return rows, err
}

func (w *twin) round(n int) error {
	if err := errors.Join(w.define(), w.write()); err != nil {
		return err
	}
	if w.r.IntN(2) == 0 {
		if err := w.settle(); err != nil {
			return err
		}
		err := w.cutting(func() error {
			for range 1 + w.r.IntN(3) {
				if err := []func() error{w.thin, w.recompress}[w.r.IntN(2)](); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	switch w.r.IntN(6) {
	case 0:
		if err := w.db.Close(); err != nil {
			return err
		}
		w.db = openTest(w.t, w.fsys, w.o)
	case 1:
		if err := w.snapshot(n); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	return w.compare(w.db)
}

// compareMade compares hours of what stays, over all and over random ranges.
func (w *twin) compareMade() error {
	for n := range 12 {
		from := storagetest.Base + w.r.Int64N(w.clock-storagetest.Base)
		q := storage.Query{Range: model.TimeRange{From: from, To: from + 1 + w.r.Int64N(3*storage.Hour)}}
		if n == 0 {
			q = storagetest.All()
		}
		for _, id := range stayingItems[:3] {
			q.Items = []model.ItemID{id}
			got, err := trendList(w.db.Trends, q)
			want, err2 := trendList(w.plain.Trends, q)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("from %d to %d: hours of item %d: %s", q.Range.From, q.Range.To, id, unlikeRows(got, want))
			}
		}
	}
	return nil
}

// remove deletes the closed pairs of a tier, as by hand.
func (w *twin) remove(db *DB, tier header.Tier) {
	for _, p := range db.pairs.all() {
		if p.tier == tier && db.removePair(p) {
			db.deletePair(p)
		}
	}
}

// withoutValues deletes the values from a copy: hours, minutes and merged values stay.
func (w *twin) withoutValues() error {
	if err := w.settle(); err != nil {
		return err
	}
	files := map[string]int64{}
	if err := w.fsys.MkdirAll("/last"); err != nil {
		return err
	}
	if _, err := w.db.Freeze(context.Background(), linkInto(w.fsys, "/last", files), nil); err != nil {
		return err
	}
	db := openTest(w.t, restoreFrom(w.t, w.fsys, "/last", files), w.o)
	w.remove(db, header.Raw)
	ended := storagetest.All().Range
	ended.To = storage.HourOf(w.clock) // the row of the running hour may still be made from its values
	return errors.Join(w.compareTiers(db, ended), db.Close())
}

// end repairs the folder, deletes the values of a copy, and deletes the tier of hours by hand, bit by bit: hours of what stays are made again.
func (w *twin) end() error {
	ctx := context.Background()
	if err := w.db.Close(); err != nil {
		return err
	}
	if used, err := Repair(ctx, w.fsys, "/engine", nil); err != nil || len(used.Rewritten) > 0 {
		return fmt.Errorf("repair: %+v, %w", used, err)
	}
	w.db = openTest(w.t, w.fsys, w.o)
	if err := w.compare(w.db); err != nil {
		return fmt.Errorf("after a repair: %w", err)
	}
	if used, counted := diskBytes(w.t, w.fsys), w.db.space.usedBytes(); used > counted {
		return fmt.Errorf("files take %d bytes, %d are counted", used, counted)
	}
	if err := w.withoutValues(); err != nil {
		return fmt.Errorf("without the values: %w", err)
	}
	for {
		var parts []*pair
		for _, p := range w.db.pairs.all() {
			if p.tier == header.Hour {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			break
		}
		w.r.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
		for _, p := range parts[:(len(parts)+1)/2] {
			if w.db.removePair(p) {
				w.db.deletePair(p)
			}
		}
		if err := w.compareMade(); err != nil {
			return fmt.Errorf("without %d of the tier: %w", len(parts), err)
		}
	}
	return errors.Join(w.db.Close(), w.plain.Close(), noDamage(w.fsys))
}
