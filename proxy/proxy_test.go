package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

// fakeServer answers the requests of a proxy.
type fakeServer struct {
	t       *testing.T
	address string

	mu     sync.Mutex
	config []byte
	// answer is what `proxy data` with values is answered; success when empty.
	answer string
	// rows are the values of acknowledged requests by their id, offered those of others.
	rows, offered map[uint64]string
	sessions      map[string]bool
	agents        []string
	changed       chan struct{}
}

func startFake(t *testing.T, config []byte) *fakeServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{
		t: t, address: ln.Addr().String(), config: config, rows: map[uint64]string{}, offered: map[uint64]string{}, sessions: map[string]bool{}, changed: make(chan struct{}, 1),
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			f.serve(c)
		}
	})
	t.Cleanup(func() { _ = ln.Close(); serving.Wait() })
	return f
}

func (f *fakeServer) serve(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	var frames zbx.FrameReader
	h, body, err := frames.Read(c)
	if err != nil {
		return // the proxy was stopped
	}
	if !h.Compressed() {
		f.t.Error("a request is not compressed")
	}
	r, err := zbx.DecodeRequest(body)
	if err != nil {
		f.t.Error(err)
		return
	}
	var zip zbx.FrameWriter
	_, _ = c.Write(zip.AppendCompressed(nil, f.reply(&r)))
}

func (f *fakeServer) reply(r *zbx.Request) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}()
	if string(r.Host) != "branch" || !strings.HasPrefix(string(r.Version), "6.0") {
		f.t.Errorf("request of %s, version %s", r.Host, r.Version)
	}
	if string(r.Name) == zbx.ProxyConfig {
		return f.config
	}
	rows := zbx.NewRows(r.History)
	into := f.rows
	answer := `{"response":"success","upload":"enabled"}`
	if f.answer != "" {
		into, answer = f.offered, f.answer
	}
	for row := (zbx.Row{}); rows.Next(&row); {
		f.sessions[string(r.Session)] = true
		text := fmt.Sprintf("%d %s %t %d", row.ItemID, row.Value, row.Unsupported, row.LastLogSize)
		if before, ok := into[row.ID]; ok && before != text {
			f.t.Errorf("id %d was %q and is %q", row.ID, before, text)
		}
		into[row.ID] = text
	}
	var agents []struct{ Host string }
	if r.Registrations != nil {
		if err := json.Unmarshal(r.Registrations, &agents); err != nil {
			f.t.Error(err)
		}
	}
	for _, a := range agents {
		f.agents = append(f.agents, a.Host)
	}
	return []byte(answer)
}

// set changes how the server answers.
func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// until waits for a state of the server.
func (f *fakeServer) until(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.After(time.Minute); ; {
		f.mu.Lock()
		is := ok()
		f.mu.Unlock()
		if is {
			return
		}
		select {
		case <-f.changed:
		case <-deadline:
			f.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// testConfig is a configuration with one host.
func testConfig(t *testing.T, more ...*model.Item) []byte {
	t.Helper()
	host := &model.Host{ID: 7, Host: "db1", Name: "db1"}
	items := append([]*model.Item{
		{ID: 1, HostID: 7, Type: model.Trapper, Key: "n", ValueType: model.Uint, Steps: []model.Step{{Type: model.StepMultiplier, Params: []string{"10"}}}},
		{ID: 2, HostID: 7, Type: model.Dependent, Key: "d", ValueType: model.Text, MasterID: 1},
		{ID: 3, HostID: 7, Type: model.ActiveAgent, Key: "log[/x]", ValueType: model.LogEntry, Delay: "1s"},
	}, more...)
	body, err := proxyconfig.Encode(nil, &proxyconfig.Configuration{Hosts: []proxyconfig.Host{{Host: host, Items: items}}}, func(id model.ItemID) (uint64, uint64) {
		if id == 3 {
			return 500, 9
		}
		return 0, 0
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// running is a proxy that runs.
type running struct {
	*Proxy
	t    *testing.T
	stop func()
}

func run(t *testing.T, dir, server string) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), Options{Data: dir, Server: server, Name: "branch", Trapper: ln, Refresh: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	r := &running{Proxy: p, t: t}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, p.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// ask makes a request of an agent or sender.
func (r *running) ask(body string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", r.o.Trapper.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(zbx.AppendFrame(nil, []byte(body))); err != nil {
		r.t.Fatal(err)
	}
	var frames zbx.FrameReader
	_, answer, err := frames.Read(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(answer)
}

func (r *running) send(value int) {
	r.t.Helper()
	answer := r.ask(fmt.Sprintf(`{"request":"sender data","data":[{"host":"db1","key":"n","value":"%d","clock":%d,"ns":%d}]}`, value, 1000, value))
	if !strings.Contains(answer, "processed: 1; failed: 0") {
		r.t.Errorf("value %d: %s", value, answer)
	}
}

// values are what the server has, in order of ids.
func (f *fakeServer) values() []string {
	var list []string
	ids := make([]uint64, 0, len(f.rows))
	for id := range f.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		list = append(list, f.rows[id])
	}
	return list
}

// Values are preprocessed and sent; while the server refuses them or wants none, and over restarts of the proxy, they stay and keep their ids.
func TestProxy(t *testing.T) {
	f := startFake(t, testConfig(t))
	dir := t.TempDir()
	p := run(t, dir, f.address)
	f.until("the configuration is in force", func() bool { return p.State().Hosts == 1 })
	p.send(1)
	f.until("the first value is there", func() bool { return len(f.rows) == 2 })
	for _, refusal := range []string{`{"response":"failed","info":"busy"}`, `{"response":"failed","upload":"disabled"}`, `{"response":"success","upload":"disabled"}`} {
		f.set(func() { f.answer, f.offered = refusal, map[uint64]string{} })
		p.send(len(refusal))
		f.until("the proxy tells of it", func() bool { s := p.State(); return s.Waiting >= 2 && len(s.Problems) > 0 })
		p.stop()
		p = run(t, dir, f.address)
	}
	f.set(func() { f.answer = "" })
	f.until("all values are there", func() bool { return len(f.rows) >= 8 })
	f.set(func() {
		want := []string{"1 10 false 0", "2 10 false 0"}
		for _, n := range []int{35, 41, 42} {
			want = append(want, fmt.Sprintf("1 %d false 0", 10*n), fmt.Sprintf("2 %d false 0", 10*n))
		}
		if got := f.values(); !reflect.DeepEqual(got, want) {
			t.Errorf("values %q, want %q", got, want)
		}
		if len(f.sessions) != 1 {
			t.Errorf("sessions %v, want one", f.sessions)
		}
	})
}

// Agents get their list with how far logs were read, and unknown ones are told to the server.
func TestProxy_agents(t *testing.T) {
	f := startFake(t, testConfig(t))
	dir := t.TempDir()
	p := run(t, dir, f.address)
	f.until("the configuration is in force", func() bool { return p.State().Hosts == 1 })
	if list := p.ask(`{"request":"active checks","host":"db1","version":"6.0"}`); !strings.Contains(list, `"key":"log[/x]","itemid":3,"delay":"1s","lastlogsize":500,"mtime":9`) {
		t.Errorf("list %s", list)
	}
	data := `{"request":"agent data","session":"0123456789abcdef0123456789abcdef","host":"db1","version":"6.0","data":[` +
		`{"host":"db1","key":"log[/x]","value":"line","id":1,"lastlogsize":600,"mtime":10,"clock":1,"ns":1}]}`
	for _, want := range []string{"processed: 1", "processed: 0; failed: 1"} {
		if answer := p.ask(data); !strings.Contains(answer, want) {
			t.Errorf("agent data: %s, want %s", answer, want)
		}
	}
	f.until("the line and its position are there", func() bool {
		return reflect.DeepEqual(f.values(), []string{"3 line false 0", "3  false 600"})
	})
	p.stop()
	p = run(t, dir, f.address)
	if answer := p.ask(data); !strings.Contains(answer, "processed: 0; failed: 1") {
		t.Errorf("agent data again after a restart: %s", answer)
	}
	if list := p.ask(`{"request":"active checks","host":"db1","version":"6.0"}`); !strings.Contains(list, `"lastlogsize":600,"mtime":10`) {
		t.Errorf("list after a restart %s", list)
	}
	if answer := p.ask(`{"request":"active checks","host":"new","host_metadata":"Linux","version":"6.0"}`); !strings.Contains(answer, "not found") {
		t.Errorf("an unknown agent is told %s", answer)
	}
	f.until("the server hears of the agent", func() bool { return slices.Contains(f.agents, "new") })
}

// Without a server the proxy works with the configuration of its last run.
func TestProxy_withoutServer(t *testing.T) {
	f := startFake(t, testConfig(t))
	dir := t.TempDir()
	p := run(t, dir, f.address)
	f.until("the configuration is in force", func() bool { return p.State().Hosts == 1 })
	p.stop()
	p = run(t, dir, "127.0.0.1:1")
	p.send(5)
	if s := p.State(); s.Hosts != 1 || s.Waiting != 2 {
		t.Errorf("without a server: %+v", s)
	}
	if _, err := Open(t.Context(), Options{Data: dir, Server: f.address, Name: "branch"}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second proxy in the folder: %v", err)
	}
	if _, err := Open(t.Context(), Options{Data: t.TempDir(), Server: "nowhere", Name: "branch"}); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("a server without port: %v", err)
	}
}

func TestConfiguration(t *testing.T) {
	fs, log := vfs.NewMem(), slog.New(slog.DiscardHandler)
	c, err := openConfiguration(fs, "/configuration", log)
	if err != nil {
		t.Fatal(err)
	}
	take := func(body []byte, want bool) {
		t.Helper()
		if changed, err := c.take(body, 1); err != nil || changed != want {
			t.Fatalf("changed %t, %v, want %t", changed, err, want)
		}
	}
	changes := func(since uint64, wantChanged, wantDeleted []model.HostID) uint64 {
		t.Helper()
		revision, changed, deleted, err := c.Changes(t.Context(), since)
		if err != nil || !slices.Equal(changed, wantChanged) || !slices.Equal(deleted, wantDeleted) {
			t.Errorf("since %d: changed %v, deleted %v, %v, want %v and %v", since, changed, deleted, err, wantChanged, wantDeleted)
		}
		return revision
	}
	take(testConfig(t), true)
	first := changes(0, []model.HostID{7}, nil)
	take(testConfig(t), false)
	changes(first, nil, nil)
	take(testConfig(t, &model.Item{ID: 4, HostID: 7, Type: model.Trapper, Key: "more"}), true)
	second := changes(first, []model.HostID{7}, nil)
	if _, err := c.take([]byte(`{"response":"failed","info":"the versions do not match"}`), 1); err == nil {
		t.Error("a refusal is a configuration")
	}
	changes(second, nil, nil)
	take([]byte(`{"hosts":{"fields":["hostid","host"],"data":[[8,"db2"]]}}`), true)
	third := changes(second, []model.HostID{8}, []model.HostID{7})
	c.settled(third)
	changes(first, []model.HostID{8}, nil)
	take([]byte(`{"globalmacro":{"fields":["macro","value"],"data":[["{$A}","1"]]},"hosts":{"fields":["hostid","host"],"data":[[8,"db2"]]}}`), true)
	changes(third, []model.HostID{8}, nil)
	again, err := openConfiguration(fs, "/configuration", log)
	if hosts, _ := again.state(); err != nil || hosts != 1 {
		t.Errorf("after a restart there are %d hosts, %v", hosts, err)
	}
}
