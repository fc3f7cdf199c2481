package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

// crowdedOptions are those of a small store in which much happens.
func crowdedOptions(factor int) Options {
	o := smallOptions()
	o.DiskSpaceBytes, o.ShareFactor = 4<<20, factor
	o.limits = &limits{
		segmentBytes: 32 << 10, logBytes: 512 << 10, logFloorBytes: 128 << 10, datafileBytes: 256 << 10,
		pageValues: 64, pageBytes: 512, dirtyBytes: 64 << 10, dirtyAge: time.Hour, tick: time.Hour, idleAge: time.Hour,
	}
	return o
}

const (
	modestHosts = 9
	hostItems   = 6
	noisyHost   = 1000
)

// shareLoad writes values of nine hosts and of one that has so many times more items.
type shareLoad struct {
	db    *DB
	r     *rand.Rand
	at    int64
	noisy int
	most  int64
}

func (l *shareLoad) run(t *testing.T, rounds int) {
	t.Helper()
	ctx := context.Background()
	for round := range rounds {
		b := &model.Batch{}
		for i := range modestHosts * hostItems {
			b.AppendFloat(model.ItemID(1+i), l.at, l.r.NormFloat64())
		}
		for i := range l.noisy {
			b.AppendFloat(model.ItemID(10_000+i), l.at, l.r.NormFloat64())
		}
		l.at += int64(10 * time.Second)
		if _, err := l.db.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		if round%4 == 0 {
			l.db.work(ctx)
		}
		if round%64 == 0 {
			if err := l.db.buildTiers(ctx); err != nil {
				t.Fatal(err)
			}
		}
		l.most = max(l.most, l.db.space.usedBytes())
	}
}

func (l *shareLoad) define(t *testing.T) {
	t.Helper()
	var defs []storage.ItemDefinition
	for i := range modestHosts * hostItems {
		defs = append(defs, storage.ItemDefinition{ID: model.ItemID(1 + i), Share: uint64(1 + i/hostItems)})
	}
	for i := range l.noisy {
		defs = append(defs, storage.ItemDefinition{ID: model.ItemID(10_000 + i), Share: noisyHost})
	}
	if err := l.db.Define(context.Background(), defs); err != nil {
		t.Fatal(err)
	}
}

// reach returns how far values, minutes and hours of an item go back.
func (l *shareLoad) reach(t *testing.T, id model.ItemID) (values, minutes, hours time.Duration) {
	t.Helper()
	ctx, q := context.Background(), storagetest.All(id)
	oldest := func(at int64, of *time.Duration) { *of = max(*of, time.Duration(l.at-at)) }
	rows := func(of *time.Duration) func(*storage.TrendColumns) error {
		return func(c *storage.TrendColumns) error {
			oldest(c.Trends[0].At, of)
			return nil
		}
	}
	err := l.db.Read(ctx, q, func(c *model.Columns) error {
		oldest(c.At[0], &values)
		return nil
	})
	if err := errors.Join(err, l.db.Minutes(ctx, q, rows(&minutes)), l.db.Trends(ctx, q, rows(&hours))); err != nil {
		t.Fatal(err)
	}
	return values, minutes, hours
}

// TestDB_sharesOfHosts fills the disk with the values of nine hosts, and again with a tenth that writes 50 times what each of them does: the
// others keep most of what they had, and would not if the oldest values went.
func TestDB_sharesOfHosts(t *testing.T) {
	const rounds = 4_000
	alone := &shareLoad{db: openTest(t, vfs.NewMem(), crowdedOptions(0)), r: rand.New(rand.NewPCG(1, 1)), at: testBase}
	alone.define(t)
	alone.run(t, rounds*3/2)
	values, minutes, hours := alone.reach(t, 3)
	if err := alone.db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, factor := range []int{2, -1} {
		fsys := vfs.NewMem()
		l := &shareLoad{db: openTest(t, fsys, crowdedOptions(factor)), r: rand.New(rand.NewPCG(1, 1)), at: testBase, noisy: 50 * hostItems}
		l.define(t)
		l.run(t, rounds)
		v, m, h := l.reach(t, 3)
		nv, nm, nh := l.reach(t, 10_003)
		t.Logf("factor %d: values of a host reach back %v of %v, minutes %v of %v, hours %v of %v; those of the noisy one %v, %v and %v; %d pairs, %d written anew, %d bytes written for it",
			factor, v, values, m, minutes, h, hours, nv, nm, nh, len(l.db.Pairs()), l.db.m.thinnedPairs.Get(), l.db.m.thinWritten.Get())
		if l.most > l.db.o.DiskSpaceBytes {
			t.Errorf("factor %d: %d bytes were taken, expected at most %d", factor, l.most, l.db.o.DiskSpaceBytes)
		}
		if factor > 0 {
			most := min(hours, rounds*10*time.Second)        // this run is shorter than what the hours of the other one reach
			if v < values/2 || m < minutes/2 || h < most/2 { // how much is written anew depends on how busy the machine is
				t.Errorf("values reach back %v, minutes %v, hours %v; expected at least half of %v, %v, %v", v, m, h, values, minutes, most)
			}
			l.checkShares(t)
		} else if v > values/5 || l.db.m.thinnedPairs.Get() > 0 {
			t.Errorf("without shares values reach back %v; expected less than a fifth of %v", v, values)
		}
		if err := l.db.Close(); err != nil {
			t.Fatal(err)
		}
		if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) > 0 {
			t.Errorf("factor %d: %v %v", factor, findings, err)
		}
		l.reopen(t, fsys, v)
	}
}

// checkShares looks at what is told of shares, and at how much was written for them.
func (l *shareLoad) checkShares(t *testing.T) {
	t.Helper()
	list, count := l.db.Shares(3)
	if count != modestHosts+1 || len(list) != 3 || list[0].Share != noisyHost {
		t.Errorf("%d shares, those with most %+v; expected %d, and the noisy one first", count, list, modestHosts+1)
	}
	written := l.db.m.thinWritten.Get()
	if all := l.db.m.writtenBytes.Get(); written == 0 || written > all/2 {
		t.Errorf("%d of %d bytes were written to leave values out, expected some and at most half", written, all)
	}
}

// reopen opens the store again and finds the same reach, and the count of room that the files have.
func (l *shareLoad) reopen(t *testing.T, fsys *vfs.Mem, values time.Duration) {
	t.Helper()
	l.db = openTest(t, fsys, l.db.o)
	l.define(t)
	if v, _, _ := l.reach(t, 3); v != values {
		t.Errorf("after a start values reach back %v, expected %v", v, values)
	}
	if used, counted := diskBytes(t, fsys), l.db.space.usedBytes(); used > counted {
		t.Errorf("files take %d bytes, %d are counted", used, counted)
	}
	if err := l.db.Close(); err != nil {
		t.Fatal(err)
	}
}

func diskBytes(t *testing.T, fsys *vfs.Mem) int64 {
	t.Helper()
	names, err := fsys.List("/engine")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, name := range names {
		info, err := fsys.Stat(path.Join("/engine", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
		total += roundUp(info.Size())
	}
	return total
}

// thinAll leaves the values of a share out of every closed pair, of the tiers too.
func thinAll(db *DB, share uint64) (int, error) {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	done := 0
	for _, tier := range []header.Tier{header.Raw, header.Minute, header.Hour} {
		for _, p := range db.sharesOf(tier).pairs {
			if tier == header.Raw && !db.summedUp(p) {
				continue
			}
			p.mu.Lock()
			size := p.charged
			p.mu.Unlock()
			err := db.thin(context.Background(), p, size, map[uint64]bool{share: true}, func(swap func()) { swap() })
			if errors.Is(err, errKept) { // it has nothing of the share
				continue
			}
			if err != nil {
				return done, fmt.Errorf("%s: %w", p.id.Name(), err)
			}
			done++
		}
	}
	return done, nil
}

// lossyItems are those of the share that the tests leave out.
var lossyItems = map[model.ItemID]bool{3: true, 70: true, 201: true}

func defineLossy(db *DB) error {
	var defs []storage.ItemDefinition
	for _, id := range crashItems {
		d := storage.ItemDefinition{ID: id, Share: 1}
		if lossyItems[id] {
			d.Share = 2
		}
		defs = append(defs, d)
	}
	return db.Define(context.Background(), defs)
}

// TestDB_thinCrash leaves values of a share out of pairs while values come, and cuts the power again and again: no value of the other share is lost, none
// comes twice, and what is read fits its trends.
func TestDB_thinCrash(t *testing.T) {
	if untilClones(t, count(t, "TIDEMARK_THIN_CLONES", 100), thinRun) == 0 {
		t.Error("no pair was written anew")
	}
}

func thinRun(_ *testing.T, seed uint64) (clones, thinned int, err error) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHistory(rand.New(rand.NewPCG(seed, 2)))
	promised := func() promises {
		p := h.promises()
		p.lossy = lossyItems
		return p
	}
	fsys := vfs.NewMem()
	cuts := cutPower(fsys, rand.New(rand.NewPCG(seed, 3)), 6, promised)
	o := tinyOptions()
	o.HotCodec = everything([]string{"none", "lz4", "zstd:1"}[r.IntN(3)]).Codec
	o.DirectIO = anyDirect(seed)
	db, err := Open(ctx, fsys, "/engine", o)
	if err != nil {
		return 0, 0, err
	}
	if err := defineLossy(db); err != nil {
		return 0, 0, err
	}
	for i := range 60 {
		b := h.batch()
		if err := appendAll(db, b); err != nil {
			return clones, thinned, err
		}
		h.ack(b)
		if i%6 == 5 {
			if err := db.Flush(ctx); err != nil {
				return clones, thinned, err
			}
		}
		if i%15 != 14 {
			continue
		}
		if err := db.buildTiers(ctx); err != nil {
			return clones, thinned, err
		}
		if h.r.IntN(2) == 0 {
			if _, err := db.Recompress(ctx, everything("lz4")); err != nil {
				return clones, thinned, err
			}
		}
		n, err := thinAll(db, 2)
		if err != nil {
			return clones, thinned, err
		}
		thinned += n
		if err := verify(db, promised()); err != nil {
			return clones, thinned, fmt.Errorf("after leaving values out: %w", err)
		}
	}
	fsys.OnSync(nil)
	clones, err = cuts.found()
	return clones, thinned, errors.Join(err, db.Close())
}

// TestDB_thinModel does the same random work with two engines, one of which leaves the values of a share out of closed pairs now and then: the other
// share reads the same from both in every way; the share itself keeps its hours and its minutes as long as the tiers do.
func TestDB_thinModel(t *testing.T) {
	perSeed(t, count(t, "TIDEMARK_MODEL_ROUNDS", 300)/30, thinModel)
}

func thinModel(t *testing.T, seed uint64) error {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 7))
	fsys, o := vfs.NewMem(), tinyOptions()
	db, plain := openTest(t, fsys, o), openTest(t, vfs.NewMem(), o)
	clock := storagetest.Base
	var kept, all []model.ItemID
	for _, id := range crashItems {
		if all = append(all, id); !lossyItems[id] {
			kept = append(kept, id)
		}
	}
	for round := range 30 {
		if err := defineLossy(db); err != nil {
			return err
		}
		b := randomBatch(r, &clock)
		if err := errors.Join(appendAll(plain, cloneBatch(b)), appendAll(db, b)); err != nil {
			return err
		}
		if r.IntN(4) == 0 {
			for _, e := range []*DB{db, plain} {
				if err := errors.Join(e.ClosePair(ctx), e.buildTiers(ctx)); err != nil {
					return err
				}
			}
			if err := onlyRawThinned(db, r); err != nil {
				return err
			}
		}
		if r.IntN(8) == 0 {
			if err := db.Close(); err != nil {
				return err
			}
			db = openTest(t, fsys, o)
		}
		q := randomQuery(r, clock)
		q.Items = kept
		if got, want := storagetest.Collect(t, db, q), storagetest.Collect(t, plain, q); !slices.Equal(got, want) {
			return fmt.Errorf("round %d: %d values, expected %d: %+v", round, len(got), len(want), q)
		}
		if err := errors.Join(compareTrendsOf(db, plain, kept...), compareMinutes(db, plain, kept...)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for _, id := range all {
			if err := sameMinutes(db, plain, id); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
	}
	return errors.Join(db.Close(), plain.Close())
}

// onlyRawThinned leaves the values of the share out of random pairs.
func onlyRawThinned(db *DB, r *rand.Rand) error {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	for _, p := range db.sharesOf(header.Raw).pairs {
		if r.IntN(2) == 0 {
			continue
		}
		p.mu.Lock()
		size := p.charged
		p.mu.Unlock()
		err := db.thin(context.Background(), p, size, map[uint64]bool{2: true}, func(swap func()) { swap() })
		if err != nil && !errors.Is(err, errKept) {
			return err
		}
	}
	return nil
}

// sameMinutes compares how many values the minutes of an item count, which the tier of minutes keeps when values go.
func sameMinutes(db, plain *DB, id model.ItemID) error {
	var counts [2]map[int64]uint64
	for i, e := range []*DB{db, plain} {
		counts[i] = map[int64]uint64{}
		err := e.Minutes(context.Background(), storagetest.All(id), func(c *storage.TrendColumns) error {
			for _, row := range c.Trends {
				counts[i][row.At] += row.Count
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for at, n := range counts[1] {
		if counts[0][at] < n { // a value that comes again is not known any more, and counts again
			return fmt.Errorf("item %d: the minute %d counts %d values, expected at least %d", id, at, counts[0][at], n)
		}
	}
	return nil
}
