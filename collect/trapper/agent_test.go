package trapper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tidemark/model"
	"tidemark/wire/zbx"
)

func TestAgent_rows(t *testing.T) {
	h := start(t, Options{})
	got := h.counts(agentData(token,
		`{"id":1,"itemid":12,"value":"1","clock":1796023786,"ns":4}`,
		`{"id":2,"host":"h1","key":"agent.ping","value":"1","clock":1796023787,"ns":5}`,
		`{"id":3,"itemid":13,"value":"a line","clock":1796023788,"ns":6,"lastlogsize":37,"mtime":9,"timestamp":1700000000,"source":"src","severity":4,"eventid":77}`,
		`{"id":4,"itemid":13,"lastlogsize":40}`,
		`{"id":5,"itemid":12,"value":"no such file","state":1,"clock":1796023789,"ns":7,"lastlogsize":99}`,
		`{"id":6,"itemid":10,"value":"1"}`,
		`{"id":7,"itemid":21,"value":"1"}`,
		`{"id":8,"itemid":9999,"value":"1"}`,
		`{"id":9,"itemid":12}`,
		`{"id":10,"value":"1"}`,
	))
	if want := (zbx.Counts{Processed: 5, Failed: 5, Total: 10}); got != want {
		t.Errorf("counts %+v, expected %+v", got, want)
	}
	rows := h.sink.taken()
	if len(rows) != 4 || rows[0] != (row{12, 1796023786_000000004, model.Raw, "1"}) || rows[3] != (row{12, 1796023789_000000007, model.Unsupported, "no such file"}) {
		t.Fatalf("rows %v", rows)
	}
	l, err := model.DecodeLog([]byte(rows[2].text))
	if want := (model.Log{At: 1700000000, Severity: 4, EventID: 77, Source: "src", Text: "a line"}); err != nil || l != want || rows[2].t != model.LogEntry {
		t.Errorf("log %+v, %v", l, err)
	}
	if got := h.sink.mark("log/13"); got != "40 0" {
		t.Errorf("log position %q, expected 40 0", got)
	}
	if got := h.sink.mark("log/12"); got != "" {
		t.Errorf("an unsupported row moved a log to %q", got)
	}
	if got := h.sink.mark("session/1/" + token); got != "10" {
		t.Errorf("session mark %q, expected 10", got)
	}
}

func TestAgent_unknownHostIsAnsweredSuccess(t *testing.T) {
	h := start(t, Options{})
	got := h.ask(`{"request":"agent data","data":[{"id":1,"itemid":12,"value":"1"}],"host":"none","session":"` + token + `"}`)
	if want := `{"response":"success","info":"unknown host 'none'"}`; got != want {
		t.Errorf("answer %s, expected %s", got, want)
	}
	if got := h.ask(`{"request":"agent data","session":"short","host":"h1","data":[]}`); !strings.Contains(got, "invalid session token") {
		t.Errorf("answer to a short token: %s", got)
	}
}

func TestAgent_idsOfASessionAreTakenOnce(t *testing.T) {
	h := start(t, Options{})
	one, two, three := `{"id":1,"itemid":12,"value":"1"}`, `{"id":2,"itemid":12,"value":"2"}`, `{"id":3,"itemid":12,"value":"3"}`
	ask := func(session string, processed, failed uint64, rows ...string) {
		t.Helper()
		if got := h.counts(agentData(session, rows...)); got.Processed != processed || got.Failed != failed {
			t.Errorf("counts %+v, expected %d processed and %d failed", got, processed, failed)
		}
	}
	other := strings.Repeat("f", 32)
	ask(token, 2, 0, one, two)
	ask(token, 0, 2, one, two)
	ask(token, 1, 1, two, three)
	ask(other, 1, 0, one)
	ask("", 1, 0, one)

	// A restart: a new server that reads the marks of the first.
	h2 := start(t, Options{Sink: h.sink, Marks: h.sink})
	h = h2
	ask(token, 0, 3, one, two, three)
	ask(token, 1, 0, `{"id":4,"itemid":12,"value":"4"}`)
}

func TestAgent_failedStoreDoesNotMoveTheSession(t *testing.T) {
	h := start(t, Options{})
	request := agentData(token, `{"id":1,"itemid":13,"value":"a","lastlogsize":5}`)
	for _, failure := range [][2]error{{errFull, nil}, {nil, errFull}} {
		h.sink.set(failure[0], failure[1])
		if got := h.ask(request); got != "" {
			t.Errorf("answered %s", got)
		}
		if p := h.s.logs.get(13); p != (logPosition{}) {
			t.Errorf("log moved to %v", p)
		}
	}
	h.sink.set(nil, nil)
	if got := h.counts(request); got.Processed != 1 {
		t.Errorf("the retry was not taken: %+v", got)
	}
	if got := h.ask(`{"request":"active checks","host":"h1","version":"6.0"}`); !strings.Contains(got, `"lastlogsize":5,`) {
		t.Errorf("list without the position: %s", got)
	}
}

func TestAgent_retryWaitsForTheFirstRequest(t *testing.T) {
	sink := &fakeSink{hold: true, puts: make(chan struct{}, 10)}
	h := start(t, Options{Sink: sink})
	request := agentData(token, `{"id":1,"itemid":12,"value":"1"}`)
	answers := make(chan string, 2)
	var asked sync.WaitGroup
	for range 2 {
		asked.Go(func() { answers <- h.ask(request) })
	}
	<-sink.puts
	sink.release(nil)
	asked.Wait()
	both := []string{<-answers, <-answers}
	processed := strings.Count(strings.Join(both, ""), "processed: 1; failed: 0")
	failed := strings.Count(strings.Join(both, ""), "processed: 0; failed: 1")
	if processed != 1 || failed != 1 || len(sink.taken()) != 1 {
		t.Errorf("answers %q, %d rows; expected one processed and one duplicate", both, len(sink.taken()))
	}
}

func TestAgent_sessionsHeldCrosswiseDoNotDeadlock(t *testing.T) {
	ss := newSessions(10)
	a, err := ss.hold(t.Context(), 1, []byte(token), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ss.hold(t.Context(), 1, []byte(token), 0, false); !errors.Is(err, errSessionBusy) {
		t.Errorf("second hold: %v, expected busy", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ss.hold(ctx, 1, []byte(token), 0, true); !errors.Is(err, context.Canceled) {
		t.Errorf("third hold: %v, expected canceled", err)
	}
	ss.release(a)
	if a.holders != 0 {
		t.Errorf("%d holders are left", a.holders)
	}
}

func TestSessions_areBounded(t *testing.T) {
	ss := newSessions(100)
	held, err := ss.hold(t.Context(), 1, []byte(token), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		ss.seed(model.Mark{Key: fmt.Sprintf("session/2/%032x", i), Value: "5", At: int64(i + 1)})
	}
	if n := ss.count(); n > 100 {
		t.Errorf("%d sessions, expected at most 100", n)
	}
	if ss.byKey[held.key] != held {
		t.Error("a session in use was forgotten")
	}
	if ss.byKey[sessionKey{2, fmt.Sprintf("%032x", 999)}] == nil {
		t.Error("the newest session was forgotten")
	}
}

// registry registers hosts whose metadata begins with "linux".
type registry struct {
	items *fakeItems
	mu    sync.Mutex
	calls []AgentHello
}

func (r *registry) Register(_ context.Context, hello AgentHello) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, hello)
	if !strings.HasPrefix(hello.Metadata, "linux") {
		return false, nil
	}
	r.items.mu.Lock()
	defer r.items.mu.Unlock()
	id := r.items.hosts[hello.Host].ID
	if id == 0 {
		id = 50
		r.items.items = append(r.items.items, model.Item{ID: 60, HostID: id, Type: model.ActiveAgent, Key: "agent.ping", Delay: "5s"})
	}
	r.items.hosts[hello.Host] = HostRef{ID: id, Enabled: true, Metadata: hello.Metadata}
	return true, nil
}

func TestActiveChecks_registration(t *testing.T) {
	items := testItems()
	reg := &registry{items: items}
	h := start(t, Options{Items: items, Registrar: reg})
	if got := h.ask(`{"request":"active checks","host":"new","version":"6.0","host_metadata":"linux x","interface":"if","ip":"127.0.0.1","port":10150}`); got !=
		`{"response":"success","data":[{"key":"agent.ping","itemid":60,"delay":"5s","lastlogsize":0,"mtime":0}]}` {
		t.Errorf("answer to a new agent: %s", got)
	}
	if got := h.ask(`{"request":"active checks","host":"other","host_metadata":"windows"}`); got != `{"response":"failed","info":"host [other] not found"}` {
		t.Errorf("answer to a refused agent: %s", got)
	}
	h.ask(`{"request":"active checks","host":"new","version":"6.0","host_metadata":"linux x"}`)
	h.ask(`{"request":"active checks","host":"new","version":"6.0","host_metadata":"linux y"}`)
	// Metadata that the registrar refuses is offered once.
	for range 3 {
		h.ask(`{"request":"active checks","host":"h1","host_metadata":"windows"}`)
	}
	if len(reg.calls) != 4 || reg.calls[0].Port != 10150 || reg.calls[0].Interface != "if" || reg.calls[0].Peer != "127.0.0.1" || reg.calls[2].Metadata != "linux y" {
		t.Errorf("calls %+v", reg.calls)
	}
	if got := h.ask(`{"request":"active checks","host":"off"}`); got != `{"response":"failed","info":"host \"off\" not monitored"}` {
		t.Errorf("answer to a disabled host: %s", got)
	}
}

func TestActiveChecks_revisions(t *testing.T) {
	h := start(t, Options{})
	ask := func(revision int, session string) string {
		return h.ask(fmt.Sprintf(`{"request":"active checks","host":"h1","version":"7.0.3","session":"%s","config_revision":%d,"variant":2}`, session, revision))
	}
	full := `{"response":"success","config_revision":7,"data":[{"key":"agent.ping","itemid":12,"delay":"5s","lastlogsize":0,"mtime":0,"timeout":"3s"},` +
		`{"key":"log[/a,\"ERR\"]","itemid":13,"delay":"1s","lastlogsize":0,"mtime":0,"timeout":"3s"}]}`
	if got := ask(7, token); got != full {
		t.Errorf("a revision that this server never sent: %s", got)
	}
	if got := ask(7, token); got != `{"response":"success"}` {
		t.Errorf("the newest revision: %s", got)
	}
	if got := ask(0, token); got != full {
		t.Errorf("revision 0: %s", got)
	}
	if got := ask(7, strings.Repeat("e", 32)); got != full {
		t.Errorf("another session: %s", got)
	}
	h.items.mu.Lock()
	h.items.revision = 8
	h.items.mu.Unlock()
	if got := ask(7, token); !strings.Contains(got, `"config_revision":8,"data":[`) {
		t.Errorf("after a change: %s", got)
	}
	if got := h.ask(`{"request":"active checks","host":"h2"}`); got != `{"response":"success","data":[{"key":"agent.ping","delay":5,"lastlogsize":0,"mtime":0}]}` {
		t.Errorf("an agent without version: %s", got)
	}
	if got := ask(0, "abc"); !strings.Contains(got, "invalid session token") {
		t.Errorf("a short token: %s", got)
	}
}

// declarer makes declared items in the fake configuration and refuses keys that begin with "no".
type declarer struct {
	items *fakeItems
	next  model.ItemID
}

func (d *declarer) Declare(_ context.Context, host model.HostID, declarations []Declaration) ([]model.ItemID, error) {
	ids := make([]model.ItemID, len(declarations))
	for i, c := range declarations {
		if strings.HasPrefix(c.Key, "no") {
			continue
		}
		if item, ok := d.items.ItemByKey(host, []byte(c.Key)); ok {
			ids[i] = item.ID
			continue
		}
		d.next++
		ids[i] = d.next
		d.items.add(model.Item{ID: d.next, HostID: host, Kind: model.Declared, ValueType: c.Type, Key: c.Key})
	}
	return ids, nil
}

func TestDeclared_items(t *testing.T) {
	items := testItems()
	h := start(t, Options{Items: items, Declarer: &declarer{items, 100}})
	if got := h.ask(`{"request":"active checks","host":"h2","version":"7.0","tidemark":1,"session":"` + token + `"}`); !strings.HasPrefix(got, `{"response":"success","tidemark":1,"config_revision":7,"data":[`) {
		t.Errorf("list of our agent: %s", got)
	}
	if got := h.ask(`{"request":"active checks","host":"h2","version":"7.0","tidemark":1,"config_revision":7,"session":"` + token + `"}`); got != `{"response":"success","tidemark":1}` {
		t.Errorf("short list of our agent: %s", got)
	}
	data := func(declare, rows string) string {
		return `{"request":"agent data","tidemark":1,"session":"` + token + `","data":[` + rows + `],"declare":[` + declare + `],"host":"h1"}`
	}
	rows := `{"id":1,"key":"a.b","value":"5","clock":1,"ns":2},{"id":2,"key":"nope","value":"1","clock":1,"ns":3},{"id":3,"key":"sketch","value":"AQID","clock":1,"ns":4},{"id":4,"key":"sketch","value":"%","clock":1,"ns":5}`
	a, err := zbx.DecodeAnswer([]byte(h.ask(data("", rows))))
	if err != nil || a.Success || !a.Redeclare || len(h.sink.taken()) != 0 {
		t.Fatalf("undeclared keys: %+v, %v, rows %v", a, err, h.sink.taken())
	}
	declare := `{"key":"a.b","type":"unsigned","units":"B","labels":{"x":"y"}},{"key":"nope"},{"key":"bad","type":"x"},{"key":"sketch","type":"binary"}`
	if got := h.counts(data(declare, rows+`,{"id":5,"key":"bad","value":"1"}`)); got.Processed != 2 || got.Failed != 3 {
		t.Errorf("counts %+v", got)
	}
	want := []row{{101, 1_000000002, model.Raw, "5"}, {102, 1_000000004, model.Binary, "\x01\x02\x03"}}
	if got := h.sink.taken(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows %v, expected %v", got, want)
	}
	if got := h.ask(strings.Replace(data("", rows), `"h1"`, `"none"`, 1)); !strings.Contains(got, `"redeclare":1`) {
		t.Errorf("unknown host of our agent: %s", got)
	}
	// A sender may feed a declared item; a foreign agent cannot declare.
	if got := h.counts(`{"request":"sender data","data":[{"host":"h1","key":"a.b","value":"6"}]}`); got.Processed != 1 {
		t.Errorf("sender to a declared item: %+v", got)
	}
	if got := h.counts(`{"request":"agent data","host":"h1","declare":[{"key":"z"}],"data":[{"id":1,"key":"z","value":"6"}]}`); got.Failed != 1 {
		t.Errorf("declaration without the extension: %+v", got)
	}
}

// presence remembers who was seen.
type presence struct {
	mu   sync.Mutex
	seen map[model.HostID]int
}

func (p *presence) Seen(host model.HostID, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == arrival {
		p.seen[host]++
	}
}

func TestPresence(t *testing.T) {
	p := &presence{seen: map[model.HostID]int{}}
	h := start(t, Options{Presence: p})
	if got := h.ask(`{"request":"active check heartbeat","host":"h1","heartbeat_freq":60}`); got != "" {
		t.Errorf("a heartbeat was answered: %s", got)
	}
	h.ask(`{"request":"active check heartbeat","host":"none","heartbeat_freq":60}`)
	h.ask(`{"request":"active check heartbeat","host":"off","heartbeat_freq":60}`)
	h.ask(`{"request":"active checks","host":"h1"}`)
	h.counts(agentData(token, `{"id":1,"itemid":12,"value":"1"}`))
	h.counts(`{"request":"sender data","data":[{"host":"h2","key":"trap.f","value":"1"}]}`)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[1] != 3 || p.seen[2] != 1 || p.seen[3] != 0 {
		t.Errorf("seen %v", p.seen)
	}
}
