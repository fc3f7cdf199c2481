package agent

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidemark/wire/zbx"
)

// got is a row as the fake server stored it.
type got struct {
	id          uint64
	key         string
	itemID      uint64
	value       string
	at          int64
	unsupported bool
}

// fakeServer answers agents as a server does, and keeps what it took. Rows whose id it had in the same session are
// counted as failed, as the protocol says.
type fakeServer struct {
	t        *testing.T
	listener net.Listener
	done     sync.WaitGroup

	mu        sync.Mutex
	tidemark  uint64
	checks    []zbx.Check
	revision  uint64
	unknown   bool // the host is not known
	silent    bool // take the rows, but close without an answer
	declared  map[string]zbx.Declaration
	declares  int // how often a key was declared
	redeclare bool
	taken     []got
	last      map[string]uint64
	hosts     map[string]bool
	requests  map[string]int
	doubled   int
	metadata  string
	batch     int // rows of the largest request
}

func newFakeServer(t *testing.T, address string) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{
		t: t, listener: listener, tidemark: 1, declared: map[string]zbx.Declaration{},
		last: map[string]uint64{}, hosts: map[string]bool{}, requests: map[string]int{},
	}
	f.done.Go(f.serve)
	t.Cleanup(f.stop)
	return f
}

func (f *fakeServer) address() string { return f.listener.Addr().String() }

func (f *fakeServer) stop() {
	f.listener.Close()
	f.done.Wait()
}

// restart begins to listen again on the same address after stop, with the same memory.
func (f *fakeServer) restart() {
	f.t.Helper()
	address := f.address()
	for range 100 {
		var err error
		if f.listener, err = net.Listen("tcp", address); err == nil {
			f.done.Go(f.serve)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	f.t.Fatal("the fake server's port is taken")
}

func (f *fakeServer) serve() {
	listener := f.listener
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.done.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			var reader zbx.FrameReader
			_, body, err := reader.Read(conn)
			if err != nil {
				return
			}
			if answer := f.answer(body); answer != nil {
				conn.Write(zbx.AppendFrame(nil, answer))
			}
		})
	}
}

func (f *fakeServer) answer(body []byte) []byte {
	r, err := zbx.DecodeRequest(body)
	if err != nil {
		f.t.Errorf("a request cannot be read: %v", err)
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[string(r.Name)]++
	f.hosts[string(r.Host)] = true
	switch string(r.Name) {
	case zbx.ActiveChecks:
		return f.list(&r)
	case zbx.AgentData:
		return f.data(&r)
	}
	return nil
}

func (f *fakeServer) list(r *zbx.Request) []byte {
	f.metadata = string(r.Metadata)
	if f.unknown {
		return zbx.AppendFailed(nil, "host ["+string(r.Host)+"] not found")
	}
	a := zbx.ChecksAnswer{Form: zbx.FormOf(r.Version), Revision: f.revision, WithRevision: true, Tidemark: f.tidemark * r.Tidemark}
	if f.revision != 0 && r.ConfigRevision == f.revision {
		return zbx.AppendSuccess(nil, "")
	}
	b := a.Begin(nil)
	for i := range f.checks {
		b = a.Add(b, &f.checks[i])
	}
	return a.End(b)
}

func (f *fakeServer) data(r *zbx.Request) []byte {
	if f.unknown {
		return zbx.AppendSuccess(nil, "unknown host '"+string(r.Host)+"'")
	}
	if f.redeclare && len(r.Declare) == 0 {
		return zbx.AppendRedeclare(nil, "unknown item")
	}
	declarations := zbx.NewDeclarations(r.Declare)
	for d := (zbx.Declaration{}); declarations.Next(&d); {
		if d.Bad != "" {
			f.t.Errorf("declaration of %q: %s", d.Key, d.Bad)
		}
		f.declared[d.Key] = d
		f.declares++
	}
	var counts zbx.Counts
	rows := zbx.NewRows(r.Data)
	for row := (zbx.Row{}); rows.Next(&row); {
		counts.Total++
		if row.Bad != "" {
			f.t.Errorf("row %d: %s", row.ID, row.Bad)
		}
		if row.ID <= f.last[string(r.Session)] {
			f.doubled++
			continue
		}
		f.last[string(r.Session)] = row.ID
		_, known := f.declared[string(row.Key)]
		if row.Has&zbx.HasItemID == 0 && !known {
			continue
		}
		counts.Processed++
		f.taken = append(f.taken, got{
			row.ID, string(row.Key), row.ItemID, string(row.Value), int64(row.Clock)*1e9 + int64(row.NS), row.Unsupported,
		})
	}
	f.batch = max(f.batch, int(counts.Total))
	counts.Failed = counts.Total - counts.Processed
	if f.silent {
		return nil
	}
	return zbx.AppendDataAnswer(nil, counts, 0)
}

// rows returns a copy of what was taken of a key, or of everything for "".
func (f *fakeServer) rows(key string) []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []got
	for _, g := range f.taken {
		if key == "" || g.key == key {
			rows = append(rows, g)
		}
	}
	return rows
}

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// eventually waits until ok; a machine under load may take long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1500 {
		if ok() {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatalf("did not happen within 30 s: %s", what)
}

// running is an agent that runs.
type running struct {
	*Agent
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, dir string, o Options) *running {
	t.Helper()
	if o.Host == "" {
		o.Host = "host-" + strconv.Itoa(len(t.Name()))
	}
	if o.Interval == 0 {
		o.Interval = 50 * time.Millisecond
	}
	a, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{a, t, cancel, make(chan error, 1)}
	go func() { r.ended <- a.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

// stop ends the agent cleanly; a second call does nothing.
func (r *running) stop() {
	r.t.Helper()
	if r.ended == nil {
		return
	}
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	if err := r.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	r.ended = nil
}
