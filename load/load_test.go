package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/collect/trapper"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// store is a sink and a configuration that has every host and item of the load.
type store struct {
	protocol Protocol
	items    int
	mu       sync.Mutex
	values   map[model.ItemID][]string
	times    map[model.ItemID][]int64
	// failFirst makes that many batches not durable, after which the connection breaks.
	failFirst int
}

func (s *store) Put(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failFirst > 0 {
		s.failFirst--
		b.Finish(io.ErrUnexpectedEOF)
		return nil
	}
	for i := range b.Len() {
		id := b.Items[i]
		if n := len(s.times[id]); n > 0 && b.At[i] <= s.times[id][n-1] {
			continue // a repeated value
		}
		s.values[id] = append(s.values[id], string(b.Bytes(i)))
		s.times[id] = append(s.times[id], b.At[i])
	}
	b.Finish(nil)
	return nil
}

func (s *store) Host(name []byte) (trapper.HostRef, bool) {
	var h int
	if n, err := fmt.Sscanf(string(name), "load-%d", &h); n != 1 || err != nil {
		return trapper.HostRef{}, false
	}
	return trapper.HostRef{ID: model.HostID(h), Enabled: true}, true
}

func (s *store) ref(host model.HostID, item int) trapper.ItemRef {
	r := trapper.ItemRef{ID: model.ItemID(int(host)*1000 + item), HostID: host, Type: model.Trapper, Enabled: true}
	if s.protocol == Agent {
		r.Type = model.ActiveAgent
	}
	return r
}

func (s *store) ItemByKey(host model.HostID, key []byte) (trapper.ItemRef, bool) {
	var i int
	if n, err := fmt.Sscanf(string(key), "load.item[%d]", &i); n != 1 || err != nil {
		return trapper.ItemRef{}, false
	}
	return s.ref(host, i), i <= s.items
}

func (s *store) ItemByID(id model.ItemID) (trapper.ItemRef, bool) {
	return s.ref(model.HostID(id/1000), int(id%1000)), true
}

func (s *store) ActiveChecks(host model.HostID) ([]*model.Item, uint64) {
	var list []*model.Item
	for i := range s.items {
		list = append(list, &model.Item{ID: s.ref(host, i+1).ID, Key: ItemKey(i), Delay: "5s"})
	}
	return list, 1
}

func serve(t *testing.T, s *store) string {
	t.Helper()
	s.values, s.times = map[model.ItemID][]string{}, map[model.ItemID][]int64{}
	server := trapper.New(trapper.Options{Sink: s, Items: s})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(context.Background(), ln) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// check compares what was stored with what the schedules and walks say.
func check(t *testing.T, s *store, o Options, r Report) {
	t.Helper()
	o.Start = r.Start
	o, err := o.Check()
	if err != nil {
		t.Fatal(err)
	}
	var total uint64
	for h := range o.Hosts {
		schedule := NewSchedule(&o, h)
		walks := make([]Walk, o.Items)
		for i := range walks {
			walks[i] = NewWalk(h, i)
		}
		// The order of a host's values is that of sending, which for intervals depends on the ticks; per item it does not.
		at := make(map[int][]int64)
		for _, d := range schedule.Take(nil, o.Start.Add(time.Duration(o.Seconds*1e9)).UnixNano(), math.MaxInt) {
			at[d.Item] = append(at[d.Item], d.At)
		}
		for i := range o.Items {
			id := model.ItemID((h+1)*1000 + i + 1)
			if fmt.Sprint(s.times[id]) != fmt.Sprint(at[i]) {
				t.Fatalf("host %d, item %d: stored at %v, expected %v", h, i, s.times[id], at[i])
			}
			for n, got := range s.values[id] {
				want := string(AppendValue(nil, walks[i].Next()))
				if IsString(i, o.Strings) {
					again := NewWalk(h, i)
					for range n {
						again.Next()
					}
					want = string(AppendState(nil, again.Next()))
				}
				if got != want {
					t.Fatalf("host %d, item %d, value %d: %s, expected %s", h, i, n, got, want)
				}
			}
			total += uint64(len(at[i]))
		}
	}
	if r.Sent != total || r.Processed != total || r.Failed != 0 || total == 0 {
		t.Errorf("report %+v, expected %d values", r, total)
	}
}

func TestRun_storesWhatTheScheduleSays(t *testing.T) {
	for name, o := range map[string]Options{
		"sender rate":     {Protocol: Sender, Hosts: 3, Items: 7, NVPS: 3000, Seconds: 0.4},
		"agent rate":      {Protocol: Agent, Hosts: 3, Items: 7, NVPS: 3000, Seconds: 0.4},
		"with texts":      {Protocol: Agent, Hosts: 2, Items: 8, NVPS: 3000, Seconds: 0.4, Strings: 0.25},
		"agent intervals": {Protocol: Agent, Hosts: 2, Items: 50, IntervalMin: 10 * time.Millisecond, IntervalMax: 30 * time.Millisecond, Seconds: 0.4},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{protocol: o.Protocol, items: o.Items}
			o.Server = serve(t, s)
			var progress bytes.Buffer
			r, err := Run(t.Context(), o, &progress)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, o, r)
			if r.LatencyMS.Max <= 0 || r.LatencyMS.P50 > r.LatencyMS.P99 || r.LatencyMS.P99 > r.LatencyMS.Max {
				t.Errorf("latencies %+v", r.LatencyMS)
			}
		})
	}
}

func TestTally_ratesTheSteadyPart(t *testing.T) {
	now := time.Now()
	steady := newTally(&Options{Seconds: 5, Start: now.Add(-tick / 2)})
	if got := steady.until.Sub(steady.from); got != 4*time.Second {
		t.Fatalf("the steady part of 5 s is %v, expected 4s", got)
	}
	steady.add(zbx.Counts{Processed: 100}, 1) // in the first round
	steady.from = now.Add(-time.Second)
	steady.until = steady.from.Add(4 * time.Second)
	steady.add(zbx.Counts{Processed: 800, Failed: 3}, 1)
	if got := steady.nvps(5.5); got != 200 {
		t.Errorf("%v values a second, expected 200", got)
	}
	for name, o := range map[string]Options{"short": {Seconds: 2, Start: now}, "endless": {Start: now}, "of the past": {Seconds: 5, Start: now.Add(-time.Hour)}} {
		all := newTally(&o)
		all.add(zbx.Counts{Processed: 100}, 1)
		if got := all.nvps(4); got != 25 {
			t.Errorf("%s: %v values a second, expected 25", name, got)
		}
	}
}

func TestRun_sendsAgainAfterABreak(t *testing.T) {
	for _, p := range []Protocol{Sender, Agent} {
		s := &store{protocol: p, items: 5, failFirst: 3}
		o := Options{Protocol: p, Hosts: 2, Items: 5, NVPS: 1000, Seconds: 0.2, Server: serve(t, s)}
		r, err := Run(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, o, r)
		if r.Retries != 3 {
			t.Errorf("%s: %d retries, expected 3", p, r.Retries)
		}
	}
}

func TestRun_sayWhatIsMissing(t *testing.T) {
	s := &store{protocol: Agent, items: 2}
	_, err := Run(t.Context(), Options{Protocol: Agent, Hosts: 1, Items: 5, NVPS: 10, Seconds: 0.1, Server: serve(t, s)}, nil)
	if err == nil || !strings.Contains(err.Error(), "load.item[3]") {
		t.Errorf("missing items: %v", err)
	}
	s = &store{items: 2, failFirst: 1 << 30}
	_, err = Run(t.Context(), Options{Hosts: 1, Items: 1, NVPS: 10, Seconds: 0.1, Drain: time.Second, Server: serve(t, s)}, nil)
	if err == nil || !strings.Contains(err.Error(), "not everything was sent") {
		t.Errorf("a server that takes nothing: %v", err)
	}
	for _, o := range []Options{{}, {Hosts: 1}, {Hosts: 1, Items: 1}, {Hosts: 1, Items: 1, NVPS: 1, Protocol: "x"}, {Hosts: 1, Items: 1, NVPS: 1, Triggers: 2}, {Hosts: 1, Items: 1, IntervalMin: 2e9, IntervalMax: 1e9}} {
		if _, err := Run(t.Context(), o, nil); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}

func TestReport_JSON(t *testing.T) {
	b, err := json.Marshal(Report{Sent: 1, Processed: 2, Failed: 3, Seconds: 4, NVPS: 5, LatencyMS: Latency{6, 7, 8}, CPUSeconds: 9, Retries: 1, PerHost: []uint64{1}})
	want := `{"sent":1,"processed":2,"failed":3,"seconds":4,"nvps":5,"latency_ms":{"p50":6,"p99":7,"max":8},"cpu_seconds":9}`
	if err != nil || string(b) != want {
		t.Errorf("%s, expected %s", b, want)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	l := h.latency()
	if l.P50 < 500 || l.P50 > 530 || l.P99 < 990 || l.P99 > 1000 || l.Max != 1000 {
		t.Errorf("latencies %+v", l)
	}
	h.add(time.Hour)
	if (&histogram{}).latency() != (Latency{}) {
		t.Error("an empty histogram has latencies")
	}
}

func TestProvision(t *testing.T) {
	var mu sync.Mutex
	got := map[string]export{}
	refuse := false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e export
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.URL.Path != "/api/import" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer of-an-editor" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if refuse {
			fmt.Fprint(w, `{"counts":[{"kind":"items","refused":1}],"remarks":[{"path":"item x","reason":"bad key"}]}`)
			return
		}
		got[e.Export.Hosts[0].Host] = e
		fmt.Fprint(w, `{"counts":[{"kind":"hosts","created":1}],"remarks":[]}`)
	}))
	defer api.Close()
	o := Options{Hosts: 12, Items: 10, NVPS: 24, Triggers: 0.6, Protocol: Agent, HTTP: api.Listener.Addr().String(), Token: "of-an-editor"}
	if err := Provision(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	e := got["load-0012"].Export
	if len(got) != 12 || len(e.Hosts[0].Items) != 10 || e.Hosts[0].Items[9].Key != "load.item[10]" || e.Hosts[0].Items[0].Type != "ZABBIX_ACTIVE" || e.Hosts[0].Items[0].Delay != "5s" {
		t.Errorf("%d hosts, %+v", len(got), e)
	}
	var last, avg int
	for _, item := range e.Hosts[0].Items {
		for _, tr := range item.Triggers {
			switch {
			case strings.HasPrefix(tr.Expression, "last(/load-0012/"+item.Key+")>"):
				last++
			case strings.HasPrefix(tr.Expression, "avg(/load-0012/"+item.Key+",5m)>"):
				avg++
			}
		}
	}
	if last != 4 || avg != 2 {
		t.Errorf("%d triggers on last and %d on avg, expected 4 and 2", last, avg)
	}
	mu.Lock()
	refuse = true
	mu.Unlock()
	if err := Provision(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "item x: bad key") {
		t.Errorf("a refused import: %v", err)
	}
}

func TestHostExport_hasTexts(t *testing.T) {
	h := hostExport(&Options{Hosts: 1, Items: 8, NVPS: 1, Triggers: 1, Strings: 0.25}, 0).Export.Hosts[0]
	for i, item := range h.Items {
		text := i == 3 || i == 7
		if (item.ValueType == "CHAR") != text || strings.HasSuffix(item.Triggers[0].Expression, `="state 9"`) != text {
			t.Errorf("item %d is %s with %s", i, item.ValueType, item.Triggers[0].Expression)
		}
	}
	for _, hundredths := range []int32{0, walkMax/10 - 1, walkMax / 10, walkMax} {
		want := fmt.Sprintf("state %d", min(9, hundredths*10/walkMax))
		if got := string(AppendState(nil, hundredths)); got != want {
			t.Errorf("%d is %q, expected %q", hundredths, got, want)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	o, err := Options{Protocol: Sender, Hosts: 1, Items: 2000, NVPS: 1e6, Start: time.Unix(1, 0)}.Check()
	if err != nil {
		b.Fatal(err)
	}
	h := newHost(&o, 0, &tally{}, nil)
	if err := h.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		h.due = h.schedule.Take(h.due[:0], math.MaxInt64, o.BatchRows)
		h.build()
	}
	b.ReportMetric(float64(b.N*o.BatchRows)/b.Elapsed().Seconds(), "values/s")
}
