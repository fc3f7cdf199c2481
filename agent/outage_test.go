package agent

import (
	"errors"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/wire/zbx"
)

// ping is an item that every agent declares and that always has a value.
const ping = "agent.ping"

func TestOutage_nothingIsLostOrDoubled(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	dir := t.TempDir()
	a := start(t, dir, Options{Server: f.address()})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.stop()
	before := len(f.rows(ping))
	eventually(t, "rows on disk", func() bool { return a.buffer.stats().diskBytes > 0 })
	f.restart()
	eventually(t, "values of the outage", func() bool {
		return len(f.rows(ping)) > before+20 && a.buffer.stats().rows < 2000
	})
	eventually(t, "the files are gone", func() bool { return a.buffer.stats().diskBytes == 0 })
	a.stop()
	rows := f.rows(ping)
	checkTicks(t, f.rows(""))
	missed := a.stats.missed.Load()
	span := time.Duration(rows[len(rows)-1].at - rows[0].at)
	if want := uint64(span/(50*time.Millisecond)) + 1; uint64(len(rows))+missed+1 < want {
		t.Errorf("%d values came in %s, and %d ticks were missed; expected %d together", len(rows), span, missed, want)
	}
	if dropped := a.stats.dropped.Load(); dropped != 0 {
		t.Errorf("%d rows were dropped", dropped)
	}
	if f.batch > batchRows {
		t.Errorf("a request had %d rows", f.batch)
	}
}

func TestOutage_lostAnswersDoubleNothing(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	a := start(t, t.TempDir(), Options{Server: f.address()})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.set(func() { f.silent = true })
	n := len(f.rows(ping))
	eventually(t, "more values without an answer", func() bool { return len(f.rows(ping)) > n+1 })
	f.set(func() { f.silent = false })
	eventually(t, "repeated rows", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.doubled > 0 })
	n = len(f.rows(ping))
	eventually(t, "new values", func() bool { return len(f.rows(ping)) > n+2 })
	a.stop()
	checkTicks(t, f.rows(""))
	if dropped := a.stats.dropped.Load(); dropped != 0 {
		t.Errorf("%d rows were dropped", dropped)
	}
}

// TestOutage_restartedAgent stops an agent while its server is away: the next run delivers what it left, declares it to
// an empty server, and measures before the server answers.
func TestOutage_restartedAgent(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	dir := t.TempDir()
	a := start(t, dir, Options{Server: f.address(), BufferSync: true})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.stop()
	eventually(t, "rows that wait", func() bool { return a.buffer.stats().rows > 1000 })
	a.stop()
	waiting := a.buffer.next
	f.set(func() { clear(f.declared) })
	a = start(t, dir, Options{Server: f.address(), BufferSync: true})
	eventually(t, "more rows that wait", func() bool { return a.buffer.stats().rows > 2000 })
	f.restart()
	eventually(t, "rows of both runs", func() bool {
		rows := f.rows("")
		return len(rows) > 0 && rows[len(rows)-1].id > waiting && a.buffer.stats().rows < 1000
	})
	a.stop()
	checkTicks(t, f.rows(""))
	if failed := a.stats.failed.Load(); failed != 0 {
		t.Errorf("the server refused %d rows", failed)
	}
}

// TestOutage_killedAgent takes the agent's folder as a kill leaves it, and starts a second agent on it.
func TestOutage_killedAgent(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	m := vfs.NewMem()
	a := start(t, "agent", Options{Server: f.address(), FS: m})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.stop()
	eventually(t, "rows on disk", func() bool { return a.buffer.stats().diskBytes > 20_000 })
	a.buffer.mu.Lock()
	spilled := a.buffer.disk.lastID()
	a.buffer.mu.Unlock()
	killed := m.Clone()
	a.stop()
	f.restart()
	b := start(t, "agent", Options{Server: f.address(), FS: killed})
	eventually(t, "rows of the second run", func() bool {
		rows := f.rows("")
		return len(rows) > 0 && rows[len(rows)-1].id > a.buffer.next
	})
	b.stop()
	rows := f.rows("")
	checkTicks(t, rows)
	ids := map[uint64]bool{}
	for _, g := range rows {
		ids[g.id] = true
	}
	for id := uint64(1); id <= spilled; id++ {
		if !ids[id] {
			t.Fatalf("row %d was on disk when the agent was killed and did not come", id)
		}
	}
}

func TestSend_declaresAgainWhenAsked(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	a := start(t, t.TempDir(), Options{Server: f.address()})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.set(func() { clear(f.declared); f.redeclare = true })
	n := len(f.rows(ping))
	eventually(t, "values after the server forgot", func() bool { return len(f.rows(ping)) > n+3 })
	a.stop()
	if failed := a.stats.failed.Load(); failed != 0 {
		t.Errorf("the server refused %d rows", failed)
	}
}

func TestSend_keepsValuesWhileTheHostIsUnknown(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	a := start(t, t.TempDir(), Options{Server: f.address()})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	f.set(func() { f.unknown = true })
	n := len(f.rows(ping))
	eventually(t, "rows that wait", func() bool { return a.buffer.stats().rows > 1000 })
	f.set(func() { f.unknown = false; clear(f.declared) })
	eventually(t, "all of them", func() bool { return len(f.rows(ping)) > n+5 && a.buffer.stats().rows < 1000 })
	a.stop()
	checkTicks(t, f.rows(""))
	if failed := a.stats.failed.Load(); failed != 0 {
		t.Errorf("the server refused %d rows", failed)
	}
}

func TestRun_changesItsList(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	f.set(func() { f.revision = 1; f.checks = []zbx.Check{{Key: ping, ItemID: 5, Delay: "1s"}} })
	a := start(t, t.TempDir(), Options{Server: f.address(), Refresh: 100 * time.Millisecond})
	byID := func(id uint64) int {
		n := 0
		for _, g := range f.rows("") {
			if g.itemID == id {
				n++
			}
		}
		return n
	}
	eventually(t, "the item that was asked for", func() bool { return byID(5) > 0 })
	if n := len(f.rows(ping)); n != 0 {
		t.Errorf("%s came %d times as a declared item while the server asks for it", ping, n)
	}
	f.set(func() { f.revision = 2; f.checks = []zbx.Check{{Key: "system.uptime", ItemID: 6, Delay: "1s"}} })
	eventually(t, "the new item", func() bool { return byID(6) > 0 })
	eventually(t, "the declared item", func() bool { return len(f.rows(ping)) > 0 })
	// A Zabbix server takes over: no declared items any more.
	f.set(func() { f.revision, f.tidemark = 3, 0 })
	eventually(t, "the change", func() bool { return !a.state.get().Tidemark })
	a.stop()
}

func TestOpen_refuses(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []Options{
		{Server: "localhost"},
		{Server: "127.0.0.1:1", Interval: time.Millisecond},
		{Server: "127.0.0.1:1", Interval: 1500 * time.Millisecond},
		{Server: "127.0.0.1:1", Metadata: string(make([]byte, 3000))},
		{Server: "127.0.0.1:1", Host: string(make([]byte, 300))},
	} {
		if a, err := Open(t.Context(), dir, o); err == nil {
			t.Errorf("Open takes %+v", o)
			a.Close()
		}
	}
	a, err := Open(t.Context(), dir, Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{Server: "127.0.0.1:1"}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second agent on the same folder: %v", err)
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
}
