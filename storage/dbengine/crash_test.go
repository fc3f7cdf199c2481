package dbengine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/memory"
	"tidemark/storage/storagetest"
)

// tinyLimits make everything happen within a few dozen batches.
func tinyLimits() *limits {
	return &limits{
		segmentBytes: 32 << 10, logBytes: 512 << 10, logFloorBytes: 96 << 10, datafileBytes: 12 << 10,
		pageValues: 16, pageBytes: 512, dirtyBytes: 2 << 10, dirtyAge: time.Hour, tick: 2 * time.Millisecond, idleAge: -1,
	}
}

func tinyOptions() Options {
	return Options{DiskSpaceBytes: 64 << 20, PageCacheBytes: 256 << 10, limits: tinyLimits(), Now: storagetest.Now}
}

// count returns a number from the environment, for `make soak`.
func count(t testing.TB, name string, normal int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return normal
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: expected a number above zero", name, s)
	}
	return n
}

var crashItems = []model.ItemID{1, 2, 3, 70, 200, 201}

// history is what a test did: every value has a payload of its own, by which it is known again.
type history struct {
	mu sync.Mutex
	r  *rand.Rand
	// sent holds the time that each payload was sent with, acked where it was stored when that was acknowledged.
	sent, acked map[string]int64
	marks       map[string]string
	clock       int64
	n           uint64
	old         []storagetest.Value
}

func newHistory(r *rand.Rand) *history {
	return &history{r: r, sent: map[string]int64{}, acked: map[string]int64{}, marks: map[string]string{}, clock: storagetest.Base}
}

func payload(item model.ItemID, t model.ValueType, bits uint64, text string) string {
	if t.InArena() {
		return fmt.Sprintf("%d %v %q", item, t, text)
	}
	return fmt.Sprintf("%d %v %x", item, t, bits)
}

func payloadOf(b *model.Batch, i int) string {
	if b.Types[i].InArena() {
		return payload(b.Items[i], b.Types[i], 0, string(b.Bytes(i)))
	}
	return payload(b.Items[i], b.Types[i], b.Bits[i], "")
}

// batch makes a batch with new, late, moved and repeated values.
func (h *history) batch() *model.Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &model.Batch{ArrivedAt: h.clock}
	h.clock += int64(h.r.IntN(200)) * int64(time.Second)
	for range 1 + h.r.IntN(25) {
		if len(h.old) > 0 && h.r.IntN(12) == 0 { // sent again
			v := h.old[h.r.IntN(len(h.old))]
			if v.Type.InArena() {
				b.AppendString(v.Item, v.At, v.Type, v.Text)
			} else {
				b.Append(v.Item, v.At, v.Type, v.Bits)
			}
			continue
		}
		h.n++
		at := h.clock + int64(b.Len())*int64(time.Millisecond)
		if h.r.IntN(8) == 0 {
			at -= int64(h.r.IntN(4*3600)) * int64(time.Second)
		}
		v := storagetest.Value{Item: crashItems[h.r.IntN(len(crashItems))], At: at, Bits: h.n * 0x9E3779B97F4A7C15 >> 8}
		switch {
		case v.Item == 200:
			v.Type, v.Text, v.Bits = model.Text, fmt.Sprintf("%d %0*d", h.n, h.r.IntN(60), 0), 0
			b.AppendString(v.Item, v.At, v.Type, v.Text)
		case v.Item == 201 && h.r.IntN(2) == 0, v.Item < 3:
			v.Type = model.Uint
			b.Append(v.Item, v.At, v.Type, v.Bits)
		default:
			v.Type, v.Bits = model.Float, v.Bits>>4|0x40<<56
			b.Append(v.Item, v.At, v.Type, v.Bits)
		}
		h.old = append(h.old, v)
		h.sent[payloadOf(b, b.Len()-1)] = at
	}
	if h.r.IntN(3) == 0 {
		b.Marks = append(b.Marks, model.Mark{Key: fmt.Sprint("k", h.r.IntN(5)), Value: fmt.Sprint(h.n), At: h.clock})
	}
	return b
}

// ack notes what is durable now.
func (h *history) ack(b *model.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range b.Items {
		if p := payloadOf(b, i); b.Flags[i]&model.Duplicate == 0 {
			h.acked[p] = b.At[i]
		} else if _, ok := h.acked[p]; !ok {
			h.acked[p] = -1 // somewhere
		}
	}
	for _, m := range b.Marks {
		h.marks[m.Key] = m.Value
	}
}

// promises is a copy of what must be there, and what may.
type promises struct {
	sent, acked map[string]int64
	// lossy items may have lost values to make room; nil for none.
	lossy map[model.ItemID]bool
}

func (h *history) promises() promises {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := promises{sent: map[string]int64{}, acked: map[string]int64{}}
	for k, v := range h.sent {
		p.sent[k] = v
	}
	for k, v := range h.acked {
		p.acked[k] = v
	}
	return p
}

// verify checks that an engine holds what was promised, nothing else, and trends that fit its values.
func verify(db *DB, p promises) error {
	found := map[string]int64{}
	taken := map[[2]int64]bool{} // items with their times
	reference := memory.New(memory.Options{})
	copied := &model.Batch{}
	last := map[model.ItemID]int64{}
	err := db.Read(context.Background(), storagetest.All(crashItems...), func(c *model.Columns) error {
		for i, at := range c.At {
			if at <= last[c.Item] {
				return fmt.Errorf("item %d: %d comes behind %d", c.Item, at, last[c.Item])
			}
			last[c.Item] = at
			taken[[2]int64{int64(c.Item), at}] = true
			text := ""
			if c.Type.InArena() {
				text = string(c.Bytes(i))
				copied.AppendString(c.Item, at, c.Type, text)
			} else {
				copied.Append(c.Item, at, c.Type, c.Bits[i])
			}
			key := payload(c.Item, c.Type, c.Bits[i], text)
			sent, ok := p.sent[key]
			if !ok || at < sent || at > sent+1000 {
				return fmt.Errorf("%s at %d was never sent so", key, at)
			}
			if _, twice := found[key]; twice {
				return fmt.Errorf("%s is there twice", key)
			}
			found[key] = at
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, at := range p.acked {
		var item model.ItemID
		if _, err := fmt.Sscanf(key, "%d", &item); err != nil {
			return err
		}
		got, ok := found[key]
		if ok && p.lossy[item] {
			// A value that had been left out is back with the old file of its pair: what came late for its instant since then stands behind it.
			for at >= 0 && at < got && taken[[2]int64{int64(item), at}] {
				at++
			}
		}
		if !ok && !p.lossy[item] || (ok && at >= 0 && got != at) {
			return fmt.Errorf("%s was acknowledged at %d; found %v at %d", key, at, ok, got)
		}
	}
	if _, err := reference.Append(context.Background(), copied); err != nil {
		return err
	}
	return compareTrendsOf(db, reference, slices.DeleteFunc(slices.Clone(crashItems), func(id model.ItemID) bool { return p.lossy[id] })...)
}

func compareTrendsOf(db *DB, reference storage.Engine, items ...model.ItemID) error {
	for _, id := range items {
		var lists [2][]model.Trend
		for i, e := range []storage.Engine{db, reference} {
			err := e.Trends(context.Background(), storagetest.All(id), func(c *storage.TrendColumns) error {
				lists[i] = append(lists[i], c.Trends...)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if id == 201 { // its type changes within hours, and the order of the types in an hour is the engine's own
			continue
		}
		if len(lists[0]) != len(lists[1]) {
			return fmt.Errorf("item %d: %d trends, expected %d", id, len(lists[0]), len(lists[1]))
		}
		for i := range lists[0] {
			if lists[0][i] != lists[1][i] {
				return fmt.Errorf("item %d: trend %+v, expected %+v", id, lists[0][i], lists[1][i])
			}
		}
	}
	return nil
}

// anyDirect chooses what goes past the system's cache.
func anyDirect(n uint64) DirectIO { return DirectIO(n % (uint64(DirectAll) + 1)) }

// TestDB_crash cuts the power at random syncs and checks what a new start finds.
func TestDB_crash(t *testing.T) {
	untilClones(t, count(t, "TIDEMARK_CRASH_CLONES", 2000), crashRun)
}

func crashRun(_ *testing.T, seed uint64) (clones, _ int, err error) {
	ctx := context.Background()
	h := newHistory(rand.New(rand.NewPCG(seed, 2)))
	fsys := vfs.NewMem()
	cuts := cutPower(fsys, rand.New(rand.NewPCG(seed, 1)), 4, h.promises)
	o := tinyOptions()
	o.DirectIO = anyDirect(seed)
	db, err := Open(ctx, fsys, "/engine", o)
	if err != nil {
		return 0, 0, err
	}
	for range 40 {
		b := h.batch()
		if err := appendAll(db, b); err != nil {
			return 0, 0, err
		}
		h.ack(b)
		switch h.r.IntN(12) {
		case 0:
			err = db.Flush(ctx)
			db.Release(db.LastLSN())
		case 1:
			if err := db.Close(); err != nil {
				return 0, 0, err
			}
			o.DirectIO = anyDirect(h.r.Uint64())
			db, err = Open(ctx, fsys, "/engine", o)
		case 2:
			err = db.buildTiers(ctx)
		}
		if clones, failed := cuts.found(); err != nil || failed != nil {
			return clones, 0, errors.Join(err, failed)
		}
	}
	if err := verify(db, h.promises()); err != nil {
		return 0, 0, fmt.Errorf("at the end: %w", err)
	}
	fsys.OnSync(nil)
	clones, err = cuts.found()
	return clones, 0, errors.Join(err, db.Close())
}

// checkClone opens what a power cut left, checks it, goes on writing, and opens it again.
func checkClone(fsys *vfs.Mem, p promises, r *rand.Rand) error {
	o := tinyOptions()
	o.DirectIO = anyDirect(r.Uint64())
	quarantined := &spy{}
	o.Logger = slog.New(quarantined)
	db, err := Open(context.Background(), fsys, "/engine", o)
	if err != nil {
		return err
	}
	if err := verify(db, p); err != nil {
		return err
	}
	if quarantined.said("set aside") {
		return fmt.Errorf("a power cut made the engine set a file aside: %v", quarantined.lines)
	}
	b := &model.Batch{ArrivedAt: storagetest.Now()}
	for i, id := range crashItems[:3] {
		b.Append(id, storagetest.Now()+int64(i), model.Uint, uint64(1000+i))
		p.sent[payloadOf(b, i)] = b.At[i]
		p.acked[payloadOf(b, i)] = b.At[i]
	}
	if err := appendAll(db, b); err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		if err := db.Flush(context.Background()); err != nil {
			return err
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	if db, err = Open(context.Background(), fsys, "/engine", tinyOptions()); err != nil {
		return err
	}
	if err := verify(db, p); err != nil {
		return fmt.Errorf("after going on: %w\nthe first start said %q", err, quarantined.lines)
	}
	return db.Close()
}

func appendAll(db *DB, b *model.Batch) error {
	c := model.NewCompletion()
	b.Done = append(b.Done, c)
	if _, err := db.Append(context.Background(), b); err != nil {
		return err
	}
	<-c.Done()
	return c.Err()
}

// TestDB_unborn opens folders in which a power cut left the start of a pair.
func TestDB_unborn(t *testing.T) {
	for name, content := range map[string][]byte{"empty": nil, "zeros": make([]byte, 64)} {
		fsys := vfs.NewMem()
		db := openTest(t, fsys, tinyOptions())
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Create("/engine/datafile-1-0000000001.ndf")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		said := &spy{}
		o := tinyOptions()
		o.Logger = slog.New(said)
		if db, err = Open(context.Background(), fsys, "/engine", o); err != nil {
			t.Fatal(err)
		}
		if said.said("set aside") {
			t.Errorf("%s: %v", name, said.lines)
		}
		b := &model.Batch{}
		b.AppendUint(1, storagetest.Base, 5)
		if err := errors.Join(appendAll(db, b), db.Flush(context.Background()), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
