package trapper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
	"tidemark/wire/zbx"
)

// arrival is the clock of the tests, Unix nanoseconds.
const arrival = 1_796_023_800_000_000_000

var errFull = errors.New("full")

// fakeItems is a small configuration.
type fakeItems struct {
	mu       sync.Mutex
	hosts    map[string]HostRef
	items    []model.Item
	trapping map[model.ItemID]bool
	disabled map[model.ItemID]bool
	revision uint64
}

func (f *fakeItems) Host(name []byte) (HostRef, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.hosts[string(name)]
	return h, ok
}

func (f *fakeItems) ref(i *model.Item) ItemRef {
	return ItemRef{ID: i.ID, HostID: i.HostID, Kind: i.Kind, Type: i.Type, ValueType: i.ValueType, Enabled: !f.disabled[i.ID], Trapping: f.trapping[i.ID]}
}

func (f *fakeItems) ItemByKey(host model.HostID, key []byte) (ItemRef, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.items {
		if f.items[i].HostID == host && f.items[i].Key == string(key) {
			return f.ref(&f.items[i]), true
		}
	}
	return ItemRef{}, false
}

func (f *fakeItems) ItemByID(id model.ItemID) (ItemRef, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.items {
		if f.items[i].ID == id {
			return f.ref(&f.items[i]), true
		}
	}
	return ItemRef{}, false
}

func (f *fakeItems) ActiveChecks(host model.HostID) ([]*model.Item, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*model.Item
	for i := range f.items {
		if f.items[i].HostID == host && f.items[i].Type == model.ActiveAgent && f.items[i].Kind == model.Configured {
			list = append(list, &f.items[i])
		}
	}
	return list, f.revision
}

func (f *fakeItems) add(i model.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, i)
}

// row is one value as the fake sink got it.
type row struct {
	item model.ItemID
	at   int64
	t    model.ValueType
	text string
}

// fakeSink keeps what it is given. It finishes completions at once, or when release is called.
type fakeSink struct {
	mu      sync.Mutex
	rows    []row
	marks   map[string]string
	batches int
	// put, if set, is the error of Put; durable that of the completions.
	put, durable error
	// hold keeps completions until release.
	hold bool
	held []*model.Completion
	// puts counts calls of Put for waiting tests.
	puts chan struct{}
}

func (f *fakeSink) Put(_ context.Context, b *model.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.puts != nil {
		defer func() { f.puts <- struct{}{} }()
	}
	if f.put != nil {
		return f.put
	}
	f.batches++
	for i := range b.Len() {
		r := row{b.Items[i], b.At[i], b.Types[i], ""}
		if b.Types[i].InArena() {
			r.text = string(b.Bytes(i))
		}
		f.rows = append(f.rows, r)
	}
	if f.marks == nil {
		f.marks = make(map[string]string)
	}
	for _, m := range b.Marks {
		f.marks[m.Key] = m.Value
	}
	if f.hold {
		f.held = append(f.held, b.Done...)
	} else {
		b.Finish(f.durable)
	}
	clear(b.Done)
	b.Done = b.Done[:0]
	b.Free()
	return nil
}

func (f *fakeSink) release(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.held {
		c.Finish(err)
	}
	f.held, f.hold = nil, false
}

func (f *fakeSink) set(put, durable error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put, f.durable = put, durable
}

func (f *fakeSink) taken() []row {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]row(nil), f.rows...)
}

func (f *fakeSink) mark(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[key]
}

// Marks makes the sink the source of marks for a second server, as an engine is after a restart.
func (f *fakeSink) Marks(fn func(model.Mark)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, v := range f.marks {
		fn(model.Mark{Key: k, Value: v, At: arrival})
	}
}

// harness is a running server with fakes.
type harness struct {
	t     *testing.T
	s     *Server
	addr  string
	items *fakeItems
	sink  *fakeSink
	set   *metrics.Set
}

// start runs a server on loopback until the test ends.
func start(t *testing.T, o Options) *harness {
	t.Helper()
	h := &harness{t: t, set: metrics.NewSet()}
	if o.Items == nil {
		o.Items = testItems()
	}
	if o.Sink == nil {
		o.Sink = &fakeSink{}
	}
	h.items, _ = o.Items.(*fakeItems)
	h.sink, _ = o.Sink.(*fakeSink)
	o.Metrics = h.set
	if o.Now == nil {
		o.Now = func() int64 { return arrival }
	}
	h.s = New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.s.Serve(context.Background(), ln) }()
	t.Cleanup(func() {
		if h.sink != nil {
			h.sink.release(nil)
		}
		if err := h.s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

func testItems() *fakeItems {
	return &fakeItems{
		hosts: map[string]HostRef{"h1": {ID: 1, Enabled: true}, "h2": {ID: 2, Enabled: true}, "off": {ID: 3}},
		items: []model.Item{
			{ID: 10, HostID: 1, Type: model.Trapper, ValueType: model.Float, Key: "trap.f"},
			{ID: 11, HostID: 1, Type: model.Trapper, ValueType: model.Text, Key: "trap.t"},
			{ID: 12, HostID: 1, Type: model.ActiveAgent, ValueType: model.Uint, Key: "agent.ping", Delay: "5s", Interval: 5e9},
			{ID: 13, HostID: 1, Type: model.ActiveAgent, ValueType: model.LogEntry, Key: `log[/a,"ERR"]`, Delay: "1s", Interval: 1e9},
			{ID: 14, HostID: 1, Type: model.HTTPAgent, ValueType: model.Float, Key: "http.trap"},
			{ID: 15, HostID: 1, Type: model.HTTPAgent, ValueType: model.Float, Key: "http"},
			{ID: 16, HostID: 1, Type: model.Trapper, ValueType: model.Float, Key: "trap.off"},
			{ID: 20, HostID: 2, Type: model.Trapper, ValueType: model.Float, Key: "trap.f"},
			{ID: 21, HostID: 2, Type: model.ActiveAgent, ValueType: model.Uint, Key: "agent.ping", Delay: "5s", Interval: 5e9},
			{ID: 30, HostID: 3, Type: model.Trapper, ValueType: model.Float, Key: "trap.f"},
		},
		trapping: map[model.ItemID]bool{14: true},
		disabled: map[model.ItemID]bool{16: true},
		revision: 7,
	}
}

// send sends bytes, closes the sending side, and returns everything that comes back. A connection that is reset, as
// happens when it is closed with bytes unread, gives what came before.
func (h *harness) send(b []byte) []byte {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Write(b)
	if err == nil {
		err = c.(*net.TCPConn).CloseWrite()
	}
	got, err2 := io.ReadAll(c)
	if err = errors.Join(err, err2); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ENOTCONN) {
		h.t.Error(err)
	}
	return got
}

// ask sends a request and returns the body of the answer; "" for a connection closed without one.
func (h *harness) ask(request string) string {
	h.t.Helper()
	got := h.send(zbx.AppendFrame(nil, []byte(request)))
	if len(got) == 0 {
		return ""
	}
	var fr zbx.FrameReader
	_, body, err := fr.Read(bytes.NewReader(got))
	if err != nil {
		h.t.Errorf("answer %q: %v", got, err)
	}
	return string(body)
}

// counts asks for the counts of a data request.
func (h *harness) counts(request string) zbx.Counts {
	h.t.Helper()
	a, err := zbx.DecodeAnswer([]byte(h.ask(request)))
	if err != nil || !a.Success || !a.HasCounts {
		h.t.Fatalf("answer to %.200s: %+v, %v", request, a, err)
	}
	return a.Counts
}

// counter returns a metric's value.
func (h *harness) counter(name string) uint64 { return h.set.GetOrCreateCounter(name).Get() }

func (h *harness) refused(reason string) uint64 {
	return h.counter(`tidemark_trapper_refused_requests_total{reason="` + reason + `"}`)
}

func (h *harness) refusedValues(reason string) uint64 {
	return h.counter(`tidemark_trapper_refused_values_total{reason="` + reason + `"}`)
}

const token = "0123456789abcdef0123456789abcdef"

// agentData builds an agent data request of host h1.
func agentData(session string, rows ...string) string {
	return `{"request":"agent data","session":"` + session + `","data":[` + strings.Join(rows, ",") + `],"host":"h1","version":"6.0"}`
}
