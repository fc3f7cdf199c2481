package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"tidemark/model"
	"tidemark/wire/zbx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_declaresItsItems(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	a := start(t, t.TempDir(), Options{Server: f.address(), Host: "db1", Metadata: "linux", Version: "1.2.3"})
	const util = "system.cpu.util[all,used,last]"
	eventually(t, "three values of "+util, func() bool { return len(f.rows(util)) >= 3 })
	a.stop()
	if rows := a.buffer.stats().rows; rows != 0 {
		t.Errorf("%d rows are left after a stop beside a server that answers", rows)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.declared[util]
	if d.Type != model.Float || d.Units != "%" || d.Labels.Get("mode") != "used" || d.Labels.Get("section") != "cpu" {
		t.Errorf("declaration of %s: %+v", util, d)
	}
	if d := f.declared["system.cpu.switches"]; d.Type != model.Uint || d.Labels.Get(CounterLabel) != CounterValue {
		t.Errorf("declaration of a counter: %+v", d)
	}
	if d := f.declared["system.uname"]; d.Type != model.Text || d.Interval != everyHour {
		t.Errorf("declaration of a fact: %+v", d)
	}
	if f.declares != len(f.declared) {
		t.Errorf("%d items were declared %d times", len(f.declared), f.declares)
	}
	if f.metadata != "linux" || !f.hosts["db1"] || len(f.hosts) != 1 {
		t.Errorf("metadata %q, hosts %v", f.metadata, f.hosts)
	}
	if f.doubled != 0 {
		t.Errorf("%d rows were sent twice", f.doubled)
	}
	checkTicks(t, f.taken)
	for key := range f.declared {
		for _, want := range []string{"loop", "ram0", "/proc"} {
			if strings.Contains(key, "["+want) {
				t.Errorf("%s is declared", key)
			}
		}
	}
}

// checkTicks checks that ids rise and that the values of one moment have one time, no item twice.
func checkTicks(t *testing.T, rows []got) {
	t.Helper()
	seen := map[string]int64{}
	for i, g := range rows {
		if i > 0 && g.id <= rows[i-1].id {
			t.Errorf("id %d comes after %d", g.id, rows[i-1].id)
		}
		if g.at <= seen[g.key] && g.key != "" {
			t.Errorf("%s has a value at %d after one at %d", g.key, g.at, seen[g.key])
		}
		seen[g.key] = g.at
	}
}

func TestRun_doesWhatAServerAsks(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	f.set(func() {
		f.tidemark, f.revision = 0, 7
		f.checks = []zbx.Check{
			{Key: "agent.ping", ItemID: 11, Delay: "1s"},
			{Key: "system.hostname", ItemID: 12, Delay: "0;s/1"},
			{Key: "no.such.key", ItemID: 13, Delay: "1s"},
			{Key: "vfs.file.exists[/proc/self]", ItemID: 14, Delay: "1s"},
			{Key: "agent.version", ItemID: 15, Delay: "soon"},
			{Key: "agent.buffer[rows]", ItemID: 16, Delay: "1s"},
		}
	})
	a := start(t, t.TempDir(), Options{Server: f.address(), Version: "1.2.3"})
	values := func() map[uint64]got {
		last := map[uint64]got{}
		for _, g := range f.rows("") {
			last[g.itemID] = g
		}
		return last
	}
	eventually(t, "values of six items", func() bool { return len(values()) == 6 })
	eventually(t, "a bare success", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.requests[zbx.ActiveChecks] > 0 })
	// A busy machine may be late for some seconds, not for all of them.
	eventually(t, "a value at the start of a second", func() bool {
		return slices.ContainsFunc(f.rows(""), func(g got) bool { return g.itemID == 12 && g.value != "" && g.at%1e9 <= 100e6 })
	})
	a.stop()
	v := values()
	if v[11].value != "1" || v[11].unsupported {
		t.Errorf("agent.ping: %+v", v[11])
	}
	if v[13].value != "Unsupported item key." || !v[13].unsupported {
		t.Errorf("no.such.key: %+v", v[13])
	}
	if v[14].value != "0" { // A directory is no file.
		t.Errorf("vfs.file.exists: %+v", v[14])
	}
	if !v[15].unsupported || !strings.Contains(v[15].value, "soon") {
		t.Errorf("wrong interval: %+v", v[15])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.declared) != 0 {
		t.Errorf("%d items were declared to a server that does not know how", len(f.declared))
	}
}

func TestTest(t *testing.T) {
	c, v, err := Test("system.cpu.num")
	if err != nil || c.Type != model.Uint || v.Bits == 0 {
		t.Errorf("system.cpu.num: %+v, %v", v, err)
	}
	if _, _, err := Test("system.cpu.num["); err == nil {
		t.Error("a broken key is taken")
	}
}

func TestMetrics(t *testing.T) {
	f := newFakeServer(t, "127.0.0.1:0")
	set := metrics.NewSet()
	a := start(t, t.TempDir(), Options{Server: f.address(), Metrics: set})
	eventually(t, "first values", func() bool { return len(f.rows(ping)) > 2 })
	a.stop()
	var text strings.Builder
	set.WritePrometheus(&text)
	for _, want := range []string{"tidemark_agent_values_dropped_total 0\n", "tidemark_agent_connected 1\n", "tidemark_agent_buffer_limit_bytes 67108864\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "tidemark_agent_values_sent_total 0\n") {
		t.Error("nothing is counted as sent")
	}
}

// BenchmarkSecond is what one second costs the agent besides the network: measuring, buffering and encoding.
func BenchmarkSecond(b *testing.B) {
	a, err := Open(b.Context(), b.TempDir(), Options{Server: "127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	c := newCollector(a)
	c.tidemark = true
	moment := time.Now().Truncate(time.Hour)
	values := 0
	b.ReportAllocs()
	for b.Loop() {
		moment = moment.Add(time.Second)
		c.tick(moment, moment)
		rows := a.buffer.take(nil, batchRows)
		values += len(rows)
		a.sender.encode(rows)
		for i := range rows {
			a.sender.declared[rows[i].item] = true
		}
		a.buffer.done(rows[len(rows)-1].id)
	}
	b.ReportMetric(float64(values)/float64(b.N), "values/op")
}
