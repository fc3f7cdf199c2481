package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"tidemark/agent/key"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/wire/zbx"
)

var errDisk = errors.New("the disk is gone")

// opened is a buffer over a file system in memory, and its counter.
type opened struct {
	*buffer
	t       *testing.T
	dropped *atomic.Uint64
	log     *strings.Builder
	lock    interface{ Close() error }
}

func openTestBuffer(t *testing.T, fsys vfs.FS, limitBytes int64, sync bool) *opened {
	t.Helper()
	o := &opened{t: t, dropped: new(atomic.Uint64), log: new(strings.Builder)}
	log := slog.New(slog.NewTextHandler(o.log, nil))
	if err := fsys.MkdirAll("agent"); err != nil {
		t.Fatal(err)
	}
	lock, err := fsys.Lock("agent/LOCK")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openState(fsys, "agent", lock, log)
	if err != nil {
		t.Fatal(err)
	}
	o.lock = lock
	o.buffer, err = openBuffer("agent", s, bufferOptions{fs: fsys, log: log, limitBytes: limitBytes, sync: sync, dropped: o.dropped})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// kill ends the buffer as kill -9 does: what is in memory is gone, and so is the lock.
func (o *opened) kill() {
	o.lock.Close()
	if o.disk.writing != nil {
		o.disk.writing.Close()
	}
	if o.disk.reading != nil {
		o.disk.reading.Close()
	}
}

func (o *opened) shut() {
	o.t.Helper()
	if err := o.close(); err != nil {
		o.t.Fatal(err)
	}
	o.lock.Close()
}

// testItems are one item of each kind.
var testItems = []*item{
	{key: "a.float", declaration: &zbx.Declaration{
		Key: "a.float", Type: model.Float, Units: "%", Name: "A float", Interval: 1e9,
		Labels: model.Labels{{Name: "cpu", Value: "0"}, {Name: "section", Value: "cpu"}},
	}},
	{key: "a.uint", id: 17},
	{key: `text["x,y"]`, declaration: &zbx.Declaration{Key: `text["x,y"]`, Type: model.Text}},
	{key: "broken", id: math.MaxUint64},
}

func testRows(from, count int) []row {
	rows := make([]row, count)
	for i := range rows {
		n := from + i
		r := row{at: 1_700_000_000e9 + int64(n)*1e9, item: testItems[n%len(testItems)]}
		switch n % len(testItems) {
		case 0:
			r.value = key.Float(float64(n) / 3)
		case 1:
			r.value = key.Uint(math.MaxUint64 - uint64(n))
		case 2:
			r.value = key.Text(fmt.Sprintf("text %d\nÄ", n))
		case 3:
			r.value, r.unsupported = key.Text("Unsupported item key."), true
		}
		rows[i] = r
	}
	return rows
}

// drain takes everything, limit rows at a time, and checks it against testRows(from, …).
func (o *opened) drain(from, count, limit int) []row {
	o.t.Helper()
	var all []row
	for {
		rows := o.take(nil, limit)
		if len(rows) == 0 {
			break
		}
		if len(rows) > limit {
			o.t.Fatalf("take gave %d rows; at most %d were asked for", len(rows), limit)
		}
		all = append(all, rows...)
		o.done(rows[len(rows)-1].id)
	}
	o.check(all, from, count)
	if s := o.stats(); s.rows != 0 {
		o.t.Errorf("%d rows are left of an empty buffer", s.rows)
	}
	return all
}

func (o *opened) check(all []row, from, count int) {
	o.t.Helper()
	if len(all) != count {
		o.t.Fatalf("%d rows came back; expected %d\n%s", len(all), count, o.log)
	}
	want := testRows(from, count)
	for i, r := range all {
		w := want[i]
		if r.at != w.at || r.value != w.value || r.unsupported != w.unsupported || !sameItem(r.item, w.item) {
			o.t.Fatalf("row %d is %+v; expected %+v", i, r, w)
		}
		if i > 0 && r.id <= all[i-1].id {
			o.t.Fatalf("row %d has id %d after %d", i, r.id, all[i-1].id)
		}
	}
}

func sameItem(a, b *item) bool {
	if a.key != b.key || a.id != b.id || (a.declaration == nil) != (b.declaration == nil) {
		return false
	}
	return a.declaration == nil || fmt.Sprint(*a.declaration) == fmt.Sprint(*b.declaration)
}

func TestBuffer_memoryOnly(t *testing.T) {
	m := vfs.NewMem()
	b := openTestBuffer(t, m, 1<<20, false)
	b.put(testRows(0, 250))
	b.put(testRows(250, 50))
	b.tick()
	b.drain(0, 300, 100)
	if size := b.stats().diskBytes; size != 0 {
		t.Errorf("%d bytes went to disk", size)
	}
	b.shut()
}

func TestBuffer_takesTheSameRowsUntilDone(t *testing.T) {
	for _, spilled := range []bool{false, true} {
		b := openTestBuffer(t, vfs.NewMem(), 1<<20, false)
		b.put(testRows(0, 20))
		if spilled {
			b.spill()
		}
		first, second := b.take(nil, 10), b.take(nil, 10)
		if len(first) != 10 || len(second) != 10 || first[0].id != second[0].id {
			t.Errorf("spilled %v: take gave %d and then %d rows", spilled, len(first), len(second))
		}
		b.spill() // The rows of an answer under way move to disk.
		b.done(first[9].id)
		b.drain(10, 10, 7)
		b.shut()
	}
}

func TestBuffer_survivesStopAndKill(t *testing.T) {
	m := vfs.NewMem()
	b := openTestBuffer(t, m, 1<<20, false)
	session := b.state.get().Session
	b.put(testRows(0, 100))
	taken := b.take(nil, 30)
	b.done(taken[29].id)
	b.shut()

	b = openTestBuffer(t, m, 1<<20, false)
	if got := b.state.get().Session; got != session {
		t.Errorf("the session is %s after a stop; it was %s", got, session)
	}
	if rows := b.stats().rows; rows != 70 {
		t.Errorf("%d rows wait after a stop; expected 70", rows)
	}
	b.put(testRows(100, 50))
	b.spill()
	b.put(testRows(150, 9)) // Lost: not spilled.
	b.kill()

	b = openTestBuffer(t, m, 1<<20, false)
	b.put(testRows(150, 50))
	b.drain(30, 170, 64)
	b.shut()
	names, err := m.List("agent")
	if err != nil || strings.Join(names, " ") != "LOCK agent.json" {
		t.Errorf("an empty buffer leaves %v, %v", names, err)
	}
}

func TestBuffer_idsRiseOverKills(t *testing.T) {
	m := vfs.NewMem()
	last := uint64(0)
	for range 5 {
		b := openTestBuffer(t, m, 1<<20, false)
		b.put(testRows(0, 10))
		rows := b.take(nil, 10)
		if rows[0].id <= last {
			t.Fatalf("id %d after a kill; %d was given before", rows[0].id, last)
		}
		last = rows[9].id
		b.kill()
	}
}

func TestBuffer_dropsTheOldestWhenFull(t *testing.T) {
	const limit = 1 << 20
	b := openTestBuffer(t, vfs.NewMem(), limit, false)
	total := 0
	for range 400 {
		b.put(testRows(total, 1000))
		total += 1000
		if err := b.spill(); err != nil {
			t.Fatal(err)
		}
		if s := b.stats(); s.diskBytes > limit {
			t.Fatalf("%d bytes are on disk; the limit is %d", s.diskBytes, limit)
		}
	}
	lost := int(b.dropped.Load())
	if lost == 0 || lost >= total {
		t.Fatalf("%d of %d rows were dropped", lost, total)
	}
	if !strings.Contains(b.log.String(), "buffer is full") {
		t.Error("the loss was not logged")
	}
	b.drain(lost, total-lost, 1000)
	b.shut()
}

func TestBuffer_syncsEachTick(t *testing.T) {
	m := vfs.NewMem()
	syncs := 0
	m.OnSync(func() { syncs++ })
	b := openTestBuffer(t, m, 1<<20, true)
	syncs = 0
	for i := range 10 {
		b.put(testRows(10*i, 10))
		b.tick()
		rows := b.take(nil, 100)
		b.check(rows, 10*i, 10)
		b.done(rows[9].id)
	}
	if syncs < 10 || syncs > 14 { // One a tick, and some for the file and the ids at the start.
		t.Errorf("10 ticks made %d syncs", syncs)
	}
	b.put(testRows(100, 10))
	b.tick()
	crashed := m.CrashClone(rand.New(rand.NewPCG(1, 2)))
	b.kill()
	b = openTestBuffer(t, crashed, 1<<20, true)
	rows := b.take(nil, 1000)
	b.check(rows[len(rows)-10:], 100, 10) // Those before may come again: the server has them by their ids.
	b.shut()
}

func TestBuffer_keepsRowsWhenTheDiskFails(t *testing.T) {
	failing := vfs.NewFailing(vfs.NewMem())
	b := openTestBuffer(t, failing, 1<<20, false)
	b.put(testRows(0, 10))
	if err := b.spill(); err != nil {
		t.Fatal(err)
	}
	for n, ops := range []vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpCreate, vfs.OpWrite} {
		b.put(testRows(10+10*n, 10))
		failing.SetRule(func(op vfs.Op, _ string, _ int) error {
			if op&ops != 0 {
				return errDisk
			}
			return nil
		})
		if err := b.spill(); !errors.Is(err, errDisk) && n != 2 {
			t.Errorf("step %d: spill gives %v", n, err)
		}
		failing.SetRule(nil)
		if err := b.spill(); err != nil {
			t.Errorf("step %d: spill after the failure: %v", n, err)
		}
	}
	if log := b.log.String(); !strings.Contains(log, "cannot be written") || !strings.Contains(log, "can be written again") {
		t.Errorf("log:\n%s", log)
	}
	b.shut()
	b = openTestBuffer(t, failing, 1<<20, false)
	b.drain(0, 50, 12)
	b.shut()
}

func TestBuffer_memoryIsBounded(t *testing.T) {
	failing := vfs.NewFailing(vfs.NewMem())
	b := openTestBuffer(t, failing, 1<<20, false)
	failing.SetRule(func(op vfs.Op, _ string, _ int) error {
		if op&vfs.OpCreate != 0 {
			return fs.ErrPermission
		}
		return nil
	})
	const total = maxMemoryRows + 5000
	for n := 0; n < total; n += 1000 {
		b.put(testRows(n, min(1000, total-n)))
		b.tick()
	}
	if rows, lost := b.stats().rows, b.dropped.Load(); rows != maxMemoryRows || lost != total-maxMemoryRows {
		t.Errorf("%d rows wait and %d were dropped", rows, lost)
	}
	failing.SetRule(nil)
	b.shut()
}

func TestBuffer_damage(t *testing.T) {
	for _, at := range []int64{0, 4, 8, 12, 20, 29, 40, 300} {
		m := vfs.NewMem()
		b := openTestBuffer(t, m, 1<<20, false)
		b.put(testRows(0, 40))
		b.spill()
		b.disk.finish() //nolint:errcheck // Checked by what follows.
		path := b.disk.segments[0].path
		b.put(testRows(40, 40))
		b.shut()
		flip(t, m, path, at)
		b = openTestBuffer(t, m, 1<<20, false)
		if !strings.Contains(b.log.String(), path) {
			t.Errorf("damage at byte %d was not logged: %s", at, b.log)
		}
		b.drain(40, 40, 100)
		b.shut()
		if names, _ := m.List("agent"); !strings.Contains(strings.Join(names, " "), "damaged") {
			t.Errorf("damage at byte %d: the file was not kept: %v", at, names)
		}
	}
}

func flip(t *testing.T, m *vfs.Mem, path string, at int64) {
	t.Helper()
	f, err := m.OpenReadWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x41
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestBuffer_unfinishedBlock(t *testing.T) {
	m := vfs.NewMem()
	b := openTestBuffer(t, m, 1<<20, false)
	b.put(testRows(0, 40))
	b.spill()
	b.put(testRows(40, 40))
	b.spill()
	path, size := b.disk.segments[0].path, b.disk.segments[0].sizeBytes
	b.kill()
	f, err := m.OpenReadWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size-5), f.Close()); err != nil {
		t.Fatal(err)
	}
	b = openTestBuffer(t, m, 1<<20, false)
	b.drain(0, 40, 100)
	b.shut()
}

func TestState_damaged(t *testing.T) {
	m := vfs.NewMem()
	b := openTestBuffer(t, m, 1<<20, false)
	session := b.state.get().Session
	b.put(testRows(0, 40))
	b.shut()
	flip(t, m, "agent/agent.json", 3)
	b = openTestBuffer(t, m, 1<<20, false)
	if s := b.state.get().Session; s == session || len(s) != 32 {
		t.Errorf("session %q after damage", s)
	}
	b.put(testRows(40, 1))
	b.drain(0, 41, 100)
	b.shut()
}

// TestBuffer_crashes writes, takes and stops in random order, and cuts the power: what was spilled and not taken must
// come back, in order, each row once.
func TestBuffer_crashes(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := vfs.NewMem()
		b := openTestBuffer(t, m, 8<<20, seed%2 == 0)
		put, spilled, taken := 0, 0, 0
		for range 200 {
			switch n := r.IntN(10); {
			case n < 4:
				count := 1 + r.IntN(300)
				b.put(testRows(put, count))
				put += count
			case n < 6:
				if err := b.spill(); err != nil {
					t.Fatal(err)
				}
				spilled = put
			case n < 9:
				if rows := b.take(nil, 1+r.IntN(500)); len(rows) > 0 {
					b.done(rows[len(rows)-1].id)
					b.check(rows, taken, len(rows))
					taken += len(rows)
				}
			default:
				m = m.CrashClone(r)
				b.kill()
				b = openTestBuffer(t, m, 8<<20, seed%2 == 0)
				rows := b.take(nil, 1<<20)
				for more := rows; len(more) > 0; {
					b.done(more[len(more)-1].id)
					more = b.take(nil, 1<<20)
					rows = append(rows, more...)
				}
				kept := max(spilled-taken, 0)
				if len(rows) < kept {
					t.Fatalf("seed %d: %d rows came back; %d were spilled and not taken\n%s", seed, len(rows), kept, b.log)
				}
				b.check(rows[len(rows)-kept:], spilled-kept, kept)
				put, taken = spilled, spilled
				if kept == 0 {
					put, taken = 0, 0
					spilled = 0
				}
			}
		}
		b.shut()
	}
}

func FuzzBlock(f *testing.F) {
	w := blockWriter{numbers: map[*item]uint64{}}
	rows := testRows(0, 9)
	for i := range rows {
		rows[i].id = uint64(i + 1)
	}
	block, _ := w.encode(nil, rows)
	f.Add(block[blockHeaderBytes:], uint32(9))
	f.Add([]byte{}, uint32(1))
	f.Add([]byte{1, 1, 'k', 0, 1, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}, uint32(1))
	f.Fuzz(func(t *testing.T, payload []byte, count uint32) {
		h := blockHead{payloadBytes: len(payload), count: int(count % (maxBlockRows + 1)), firstID: 1}
		var r blockReader
		rows, err := r.decode(nil, h, payload)
		if err != nil || len(rows) == 0 {
			return
		}
		if len(rows) != h.count {
			t.Fatalf("%d rows of %d without an error", len(rows), h.count)
		}
		w := blockWriter{numbers: map[*item]uint64{}}
		again, n := w.encode(nil, rows)
		var second blockReader
		back, err := second.decode(nil, blockHead{count: n, firstID: 1}, again[blockHeaderBytes:])
		if err != nil {
			t.Fatalf("what was encoded cannot be read: %v", err)
		}
		for i, b := range back {
			if b.at != rows[i].at || b.value != rows[i].value || !sameItem(b.item, rows[i].item) {
				t.Fatalf("row %d is %+v; it was %+v", i, b, rows[i])
			}
		}
	})
}
