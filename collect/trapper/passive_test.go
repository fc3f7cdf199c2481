package trapper

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/collect"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// answering listens as a passive proxy would, answers one request with these bytes, and returns what the server says to it.
func answering(t *testing.T, answer []byte) (nc net.Conn, verdict <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		defer ln.Close()
		c, err := ln.Accept()
		if err != nil {
			said <- err.Error()
			return
		}
		defer c.Close()
		var fr zbx.FrameReader
		if _, body, err := fr.Read(c); err != nil || string(body) != fetchRequest {
			said <- string(body)
			return
		}
		_, _ = c.Write(answer)
		_, body, _ := fr.Read(c)
		said <- string(body)
	}()
	if nc, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return nc, said
}

func TestFetch(t *testing.T) {
	h, f := startProxied(t, Options{ReadTimeout: 2 * time.Second})
	f.passive = true
	ask := func(answer []byte) (more bool, verdict string, err error) {
		t.Helper()
		nc, said := answering(t, answer)
		more, err = h.s.Fetch(t.Context(), 5, "p1", nc, collect.Peer{Kind: model.Unencrypted})
		_ = nc.Close()
		return more, <-said, err
	}
	has := zbx.AppendFrame(nil, []byte(`{"session":"`+token+`","history data":[{"id":1,"itemid":10,"clock":1796023000,"ns":5,"value":"1.5"}],"more":1,"version":"6.0.14","clock":1796023801,"ns":0}`))
	more, verdict, err := ask(has)
	if err != nil || !more || verdict != `{"response":"success","upload":"enabled"}` || len(h.sink.taken()) != 1 || f.contacts[0].Version != "6.0.14" || !f.contacts[0].Data {
		t.Errorf("%t, %s, %v, %+v", more, verdict, err, f.contacts)
	}
	if _, verdict, err := ask(has); err != nil || !strings.Contains(verdict, "success") || len(h.sink.taken()) != 1 {
		t.Errorf("the same again: %s, %v, %d rows", verdict, err, len(h.sink.taken()))
	}
	for _, rows := range []string{``, `"history data":[],`} {
		idle := zbx.AppendFrame(nil, []byte(`{"session":"`+token+`",`+rows+`"more":1,"version":"6.0.14"}`))
		if more, _, err := ask(idle); err != nil || more {
			t.Errorf("no values, and more of them: %t, %v", more, err)
		}
	}
	f.full = true
	if _, verdict, err := ask(zbx.AppendFrame(nil, []byte(`{"session":"`+token+`","history data":[{"id":2}],"version":"6.0.14"}`))); err == nil || !strings.Contains(verdict, `"upload":"disabled"`) {
		t.Errorf("without room: %s, %v", verdict, err)
	}
	f.full = false
	for what, answer := range map[string][]byte{
		"the proxy refuses: no":                    zbx.AppendFrame(nil, []byte(`{"response":"failed","info":"no"}`)),
		"read what the proxy has":                  zbx.AppendHeader(nil, zbx.Header{BodyBytes: 4 << 30}),
		"read what the proxy has: frame":           []byte("HTTP/1.1 200 OK\r\n\r\n"),
		"read what the proxy has: EOF":             nil,
		"closed the connection without an answer":  zbx.AppendFrame(nil, nil),
		"what the proxy has is not taken: invalid": zbx.AppendFrame(nil, []byte(`{"session":"short","history data":[]}`)),
	} {
		nc, said := answering(t, answer)
		go func() { <-said }()
		if answer == nil {
			_ = nc.Close()
		}
		_, err := h.s.Fetch(t.Context(), 5, "p1", nc, collect.Peer{Kind: model.Unencrypted})
		_ = nc.Close()
		if err == nil || answer != nil && !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
	if got := h.ask(`{"request":"proxy data","host":"p1","version":"6.0.14"}`); !strings.Contains(got, "must not connect") {
		t.Errorf("a passive proxy that connects: %s", got)
	}
}

// fakePassive is a passive proxy with one value, until the server has it. Each connection calls it on a goroutine of its own.
type fakePassive struct {
	mu      sync.Mutex
	refuse  error
	tables  string
	settled []string
	// cut ends the wait of the newest offer.
	cut func()
}

func (f *fakePassive) Admit(context.Context, collect.Peer, netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse
}

func (f *fakePassive) Configure(_ context.Context, tables []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tables = string(tables)
	if strings.Contains(f.tables, "odd") {
		return errors.New("odd tables")
	}
	return nil
}

func (f *fakePassive) Results(_ context.Context, dst []byte, _ func()) ([]byte, func([]byte, error) error, error) {
	return append(dst, `{"tasks":[]}`...), func([]byte, error) error { return nil }, nil
}

func (f *fakePassive) Offer(_ context.Context, dst []byte, cut func()) ([]byte, func([]byte, error) error, error) {
	f.mu.Lock()
	f.cut = cut
	f.mu.Unlock()
	return append(dst, `{"session":"s"}`...), func(answer []byte, err error) error {
		if err != nil {
			answer = []byte("lost")
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settled = append(f.settled, string(answer))
		return err
	}, nil
}

func (f *fakePassive) configured() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tables
}

func (f *fakePassive) refuseWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

// verdicts are what the server said to each offer, sorted: a connection that was cut may be noticed late.
func (f *fakePassive) verdicts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.settled)
	return f.settled
}

func (f *fakePassive) Version() string { return "6.0.0" }

func TestPassive(t *testing.T) {
	f := &fakePassive{}
	h := start(t, Options{Passive: f})
	talk := func(request, verdict string) string {
		t.Helper()
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		got, err := askOver(nc, request)
		if err != nil {
			t.Fatal(err)
		}
		if verdict != "" {
			_, _ = nc.Write(zbx.AppendFrame(nil, []byte(verdict)))
			_, _ = nc.Read(make([]byte, 1))
		}
		return got
	}
	is := func(request, verdict, want string) {
		t.Helper()
		if got := talk(request, verdict); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	is(`{"request":"proxy data"}`, `{"response":"success"}`, `{"session":"s"}`)
	is(`{"request":"proxy data"}`, "", `{"session":"s"}`)
	is(`{"request":"proxy tasks"}`, `{"response":"success"}`, `{"tasks":[]}`)
	is(`{"request":"proxy config","data":{"hosts":{}}}`, "", `{"response":"success","version":"6.0.0"}`)
	if got := f.configured(); got != `{"hosts":{}}` {
		t.Errorf("tables %s", got)
	}
	is(`{"request":"proxy config","data":{"odd":1}}`, "", `{"response":"failed","info":"odd tables","version":"6.0.0"}`)
	f.refuseWith(errors.New("who are you"))
	is(`{"request":"proxy data"}`, "", `{"response":"failed","info":"who are you"}`)
	err := h.s.Close()
	if got, want := f.verdicts(), []string{"lost", `{"response":"success"}`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the server said %q, want %q, %v", got, want, err)
	}
}

// The wait for what a server says can be ended from elsewhere, before it says anything and without its connection being closed.
func TestPassive_cut(t *testing.T) {
	f := &fakePassive{}
	h := start(t, Options{Passive: f})
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got, err := askOver(nc, `{"request":"proxy data"}`); err != nil || got != `{"session":"s"}` {
		t.Fatalf("%s, %v", got, err)
	}
	f.mu.Lock()
	cut := f.cut
	f.mu.Unlock()
	cut()
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("the proxy says more")
	}
	err = h.s.Close()
	if got := f.verdicts(); err != nil || !slices.Equal(got, []string{"lost"}) {
		t.Errorf("the server said %q, %v", got, err)
	}
}
