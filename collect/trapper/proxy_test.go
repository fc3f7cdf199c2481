package trapper

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/collect"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// fakeProxies knows one proxy, "p1" with the id 5.
type fakeProxies struct {
	mu         sync.Mutex
	full       bool
	passive    bool
	contacts   []ProxyContact
	stored     int
	backlog    bool
	states     []ProxyInterface
	registered []AgentHello
	finds      []zbx.ProxyFind
	findsErr   error
	statesErr  error
	tasks      []zbx.Task
	results    []zbx.Task
}

func (f *fakeProxies) Proxy(name []byte) (model.ProxyID, bool) { return 5, string(name) == "p1" }

func (f *fakeProxies) Passive(model.ProxyID) bool { return f.passive }

func (f *fakeProxies) Config(dst []byte, _ model.ProxyID, version string, positions func(model.ItemID) (size, mtime uint64)) ([]byte, error) {
	if version != "6.0.14" {
		return dst, errors.New("the versions do not match")
	}
	size, _ := positions(13)
	if size != 77 {
		return dst, errors.New("the log of item 13 was read up to 77")
	}
	return append(dst, `{"hosts":{}}`...), nil
}

func (f *fakeProxies) Takes(model.ProxyID, bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.full
}

func (f *fakeProxies) Began(_ model.ProxyID, c ProxyContact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contacts = append(f.contacts, c)
}

func (f *fakeProxies) Stored(_ model.ProxyID, _ int64, values int, backlog bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored, f.backlog = f.stored+values, backlog
}

func (f *fakeProxies) Available(_ context.Context, _ model.ProxyID, states []ProxyInterface) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.statesErr != nil {
		return f.statesErr
	}
	f.states = append(f.states, states...)
	return nil
}

func (f *fakeProxies) Discovered(_ context.Context, _ model.ProxyID, list []zbx.ProxyFind) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finds = append(f.finds, list...)
	return f.findsErr
}

func (f *fakeProxies) Tasks(model.ProxyID) []zbx.Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.tasks
	f.tasks = nil
	return list
}

func (f *fakeProxies) Untold(_ model.ProxyID, list []zbx.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, list...)
}

func (f *fakeProxies) Results(_ model.ProxyID, list []zbx.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = append(f.results, list...)
}

// give has tasks wait for the proxy.
func (f *fakeProxies) give(list ...zbx.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, list...)
}

func (f *fakeProxies) Register(_ context.Context, _ model.ProxyID, hello AgentHello) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.registered = append(f.registered, hello)
	return nil
}

// proxiedItems are the items of the tests with those of host h1 behind proxy 5.
type proxiedItems struct{ *fakeItems }

func (f proxiedItems) ItemByID(id model.ItemID) (ItemRef, bool) {
	ref, ok := f.fakeItems.ItemByID(id)
	if ref.HostID == 1 {
		ref.Proxy = 5
	}
	return ref, ok
}

func startProxied(t *testing.T, o Options) (*harness, *fakeProxies) {
	t.Helper()
	f := &fakeProxies{}
	o.Proxies, o.Items = f, proxiedItems{testItems()}
	return start(t, o), f
}

func proxyRequest(members string) string {
	return `{"request":"proxy data","host":"p1","version":"6.0.14","session":"` + token + `",` + members + `}`
}

func TestProxy_data(t *testing.T) {
	h, f := startProxied(t, Options{})
	const history = `"history data":[{"id":1,"itemid":10,"clock":1796023000,"ns":5,"value":"1.5"},{"id":2,"itemid":13,"clock":1796023001,"ns":0,"value":"line","lastlogsize":77,"mtime":3},` +
		`{"id":3,"itemid":20,"clock":1,"ns":0,"value":"of a host of nobody"},{"id":4,"itemid":12,"clock":1796023002,"ns":0,"value":"no","state":1}]`
	const want = `{"response":"success","upload":"enabled"}`
	if got := h.ask(proxyRequest(history + `,"more":1,"clock":1796023801,"ns":0`)); got != want {
		t.Fatalf("answer: %s", got)
	}
	rows := h.sink.taken()
	if len(rows) != 3 || rows[0] != (row{10, 1796023000*second + 5, model.Raw, "1.5"}) || rows[2].t != model.Unsupported {
		t.Errorf("rows: %+v", rows)
	}
	if f.stored != 3 || !f.backlog || f.contacts[0].AheadNanos != second || f.contacts[0].Version != "6.0.14" {
		t.Errorf("stored %d, backlog %v, contacts %+v", f.stored, f.backlog, f.contacts)
	}
	if h.refusedValues(otherProxy) != 1 {
		t.Errorf("values of other proxies: %d, want 1", h.refusedValues(otherProxy))
	}
	// The same again, as after an answer that was lost, stores nothing, also after a restart.
	if got := h.ask(proxyRequest(history)); got != want || len(h.sink.taken()) != 3 {
		t.Errorf("again: %s, %d rows", got, len(h.sink.taken()))
	}
	after, _ := startProxied(t, Options{Marks: h.sink})
	if got := after.ask(proxyRequest(history)); got != want || len(after.sink.taken()) != 0 {
		t.Errorf("after a restart: %s, %d rows", got, len(after.sink.taken()))
	}
	if got := after.ask(`{"request":"proxy config","host":"p1","version":"6.0.14"}`); got != `{"hosts":{}}` {
		t.Errorf("configuration: %s", got)
	}
}

func TestProxy_news(t *testing.T) {
	h, f := startProxied(t, Options{})
	got := h.ask(proxyRequest(`"interface availability":[{"interfaceid":1001,"available":2,"error":"refused"}],` +
		`"auto registration":[{"clock":1,"host":"new","ip":"10.0.0.1","port":"10050","host_metadata":"Linux"},{"host":""}],"discovery data":[{"clock":1,"drule":3,"dcheck":4,"ip":"10.0.0.9"},{"clock":1,"drule":3,"ip":"10.0.0.9"}]`))
	if got != `{"response":"success","upload":"enabled"}` {
		t.Errorf("answer: %s", got)
	}
	if len(f.states) != 1 || f.states[0] != (ProxyInterface{ID: 1001, Available: 2, Error: "refused"}) {
		t.Errorf("interfaces: %+v", f.states)
	}
	if len(f.finds) != 2 || f.finds[0] != (zbx.ProxyFind{At: 1, Rule: 3, Check: 4, IP: "10.0.0.9"}) {
		t.Errorf("found: %+v", f.finds)
	}
	f.statesErr = errFull
	if got := h.ask(proxyRequest(`"interface availability":[{"interfaceid":1001,"available":1,"error":""}]`)); !strings.Contains(got, `"failed"`) || len(f.states) != 1 {
		t.Errorf("interfaces that are not stored: %s, %+v", got, f.states)
	}
	f.statesErr, f.findsErr = nil, errFull
	if got := h.ask(proxyRequest(`"discovery data":[{"clock":1,"drule":3}]`)); !strings.Contains(got, `"failed"`) {
		t.Errorf("finds that are not stored: %s", got)
	}
	if len(f.registered) != 1 || f.registered[0].Host != "new" || f.registered[0].Port != 10050 || f.registered[0].Metadata != "Linux" {
		t.Errorf("registered: %+v", f.registered)
	}
}

func TestProxy_waits(t *testing.T) {
	h, f := startProxied(t, Options{})
	f.full = true
	const history = `"history data":[{"id":1,"itemid":10,"clock":1796023000,"ns":5,"value":"1.5"}]`
	if got := h.ask(proxyRequest(history)); !strings.Contains(got, `"response":"failed"`) || !strings.Contains(got, `"upload":"disabled"`) {
		t.Errorf("full: %s", got)
	}
	if got := h.ask(proxyRequest(`"interface availability":[]`)); got != `{"response":"success","upload":"disabled"}` {
		t.Errorf("without values: %s", got)
	}
	f.full = false
	h.sink.set(nil, errFull)
	if got := h.ask(proxyRequest(history)); !strings.Contains(got, `"response":"failed"`) {
		t.Errorf("not durable: %s", got)
	}
	h.sink.set(nil, nil)
	if got := h.ask(proxyRequest(history)); got != `{"response":"success","upload":"enabled"}` || f.stored != 1 {
		t.Errorf("afterwards: %s, %d stored", got, f.stored)
	}
}

// proxyAccess lets proxies in with a pre-shared key only.
type proxyAccess struct{}

func (proxyAccess) Allows(host model.HostID, p collect.Peer) bool {
	return host.Proxy() == 0 || p.Kind == model.PSK
}
func (proxyAccess) AllowsNew(collect.Peer) bool { return true }

func TestProxy_refused(t *testing.T) {
	h, _ := startProxied(t, Options{})
	f := func(request, want string) {
		t.Helper()
		if got := h.ask(request); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	f(`{"request":"proxy heartbeat","host":"p1","version":"6.0.14"}`, `"success"`)
	f(`{"request":"proxy heartbeat","host":"p2"}`, `proxy \"p2\" not found`)
	f(`{"request":"proxy config","host":"p1","version":"7.0.0"}`, `versions do not match`)
	f(`{"request":"proxy data","host":"p1","session":"short","history data":[]}`, `invalid session token`)
	f(proxyRequest(`"auto registration":[{"host":5}]`), `"failed"`)
	f(proxyRequest(`"discovery data":[{"port":"x"}]`), `"failed"`)
	f(proxyRequest(`"history data":[{"id":1,"value":"x"},5]`), `"success"`)
	closed, _ := startProxied(t, Options{Access: proxyAccess{}})
	if got := closed.ask(`{"request":"proxy heartbeat","host":"p1"}`); !strings.Contains(got, "is not allowed for proxy") {
		t.Errorf("wrong connection: %s", got)
	}
}

// Agents and senders of a host behind a proxy are sent away.
func TestProxy_agents(t *testing.T) {
	items := testItems()
	items.hosts["h1"] = HostRef{ID: 1, Enabled: true, Proxy: 5}
	h := start(t, Options{Items: keyedItems{proxiedItems{items}}, Proxies: &fakeProxies{}})
	if got := h.ask(`{"request":"active checks","host":"h1","version":"6.0"}`); !strings.Contains(got, "is monitored by a proxy") {
		t.Errorf("active checks: %s", got)
	}
	if c := h.counts(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"},{"host":"h2","key":"trap.f","value":"1"}]}`); c.Processed != 1 {
		t.Errorf("sender data: %+v, want the value of h2 only", c)
	}
}

// keyedItems gives items that are asked for by key their proxy, too.
type keyedItems struct{ proxiedItems }

func (k keyedItems) ItemByKey(host model.HostID, key []byte) (ItemRef, bool) {
	ref, ok := k.proxiedItems.ItemByKey(host, key)
	if !ok {
		return ref, false
	}
	return k.ItemByID(ref.ID)
}

// Tasks travel with the answers to what a proxy brings, once, and results with what it brings.
func TestProxy_tasks(t *testing.T) {
	h, f := startProxied(t, Options{})
	const given = `{"response":"success","upload":"enabled","tasks":[{"type":6,"clock":5,"ttl":60,"itemid":10}]}`
	f.give(zbx.Task{Type: zbx.TaskCheckNow, At: 5, TTL: time.Minute, Item: 10})
	if got := h.ask(proxyRequest(`"history data":[]`)); got != given {
		t.Errorf("answer: %s", got)
	}
	if got := h.ask(proxyRequest(`"tasks":[{"type":3,"clock":6,"ttl":0,"status":-1,"info":"no","parent_taskid":44}]`)); got != `{"response":"success","upload":"enabled"}` {
		t.Errorf("answer: %s", got)
	}
	if want := (zbx.Task{Type: zbx.TaskCommandResult, At: 6, ID: 44, Failed: true, Info: "no"}); len(f.results) != 1 || f.results[0] != want {
		t.Errorf("results: %+v", f.results)
	}
	if got := h.ask(proxyRequest(`"tasks":[{"type":3,"status":"odd"}]`)); !strings.Contains(got, `"response":"failed"`) {
		t.Errorf("odd results: %s", got)
	}
	f.give(zbx.Task{Type: zbx.TaskCheckNow, Item: 10})
	f.full = true
	if got := h.ask(proxyRequest(`"history data":[{"id":1,"itemid":10,"clock":1796023000,"ns":5,"value":"1.5"}]`)); strings.Contains(got, "tasks") {
		t.Errorf("tasks with a refusal, which proxies do not read: %s", got)
	}
}
