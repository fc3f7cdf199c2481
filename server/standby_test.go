package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/standby"
)

const standbyToken = "a token of the test's cluster"

// pair is a primary and a standby in this process.
type pair struct {
	t             *testing.T
	primary       *running
	http, trapper string
	opened        chan *Server
}

// newPair starts both. They ask for a token, and the standby sends it.
func newPair(t *testing.T, change func(*Options)) *pair {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	options := func() Options {
		o := Options{
			Data: t.TempDir(), HTTP: listen(), Trapper: listen(), Token: standbyToken, Peer: Peer{Token: standbyToken, Own: "http://new.example"}, Version: "test", DiskSpaceBytes: 256 << 20,
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}
		if change != nil {
			change(&o)
		}
		return o
	}
	o := options()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, opened: make(chan *Server, 10), primary: &running{t: t, server: s, http: "http://" + o.HTTP.Addr().String(), trapper: o.Trapper.Addr().String()}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	so := options()
	p.http, p.trapper = "http://"+so.HTTP.Addr().String(), so.Trapper.Addr().String()
	go func() {
		ended <- Follow(ctx, so, FollowOptions{Of: o.HTTP.Addr().String(), Address: p.http, opened: func(s *Server) { p.opened <- s }})
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// call sends a request with the token.
func (p *pair) call(method, url, body string, into any) int {
	p.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+standbyToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && into != nil && answer.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", method, url, err, text)
	}
	return answer.StatusCode
}

// until waits for something that comes within moments.
func (p *pair) until(what string, is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if is() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	p.t.Fatalf("waited in vain: %s", what)
}

func (p *pair) equal() bool {
	var one, two digestAnswer
	return p.call("GET", p.primary.http+"/api/storage/digest", "", &one) == 200 && p.call("GET", p.http+"/api/storage/digest", "", &two) == 200 &&
		one.Digest == two.Digest && one.Values == two.Values && one.Values > 0
}

// itemIDs are the ids of the items of hosts that begin with web.
func (p *pair) itemIDs() map[string]bool {
	ids := map[string]bool{}
	var hosts struct{ Hosts []struct{ ID string } }
	p.call("GET", p.http+"/api/hosts?search=web", "", &hosts)
	for _, h := range hosts.Hosts {
		var list struct{ Items []struct{ ID string } }
		p.call("GET", p.http+"/api/items?host="+h.ID, "", &list)
		for _, i := range list.Items {
			ids[i.ID] = true
		}
	}
	return ids
}

// TestFollow goes through the life of a standby: it copies, shows, refuses, and takes over.
func TestFollow(t *testing.T) {
	p := newPair(t, nil)
	if status := p.call("POST", p.primary.http+"/api/import", export, nil); status != 200 {
		t.Fatalf("import: %d", status)
	}
	now := time.Now().Unix()
	for i := range 20 {
		p.primary.sender(fmt.Sprint(i), now-100+int64(i))
	}
	p.until("the standby has the values", p.equal)
	var list problemList
	p.until("the standby shows the problem", func() bool {
		return p.call("GET", p.http+"/api/problems", "", &list) == 200 && len(list.Problems) == 1
	})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/api/import", export, 503},
		{"POST", "/api/users", "{}", 503},
		{"GET", "/-/primary", "", 503},
		{"GET", "/-/ready", "", 503},
		{"GET", "/-/healthy", "", 200},
		{"POST", "/api/standby/log", "{}", 405},
		{"GET", "/api/v1/query?query=temperature", "", 200},
	} {
		if got := p.call(c.method, p.http+c.path, c.body, nil); got != c.want && !(c.want == 405 && got == 404) {
			t.Errorf("%s %s is answered %d, expected %d", c.method, c.path, got, c.want)
		}
	}
	sent := &running{t: t, trapper: p.trapper}
	if answer := sent.send(`{"request":"sender data","data":[]}`); !strings.Contains(answer, "standby") || !strings.Contains(answer, "failed") {
		t.Errorf("a sender is answered %s", answer)
	}
	standing := <-p.opened
	follower := standing.replica.follower
	for _, step := range []struct {
		add     bool
		differs bool
	}{{false, false}, {true, true}} {
		if step.add { // what a standby must never have
			b := model.NewBatch()
			b.AppendFloat(1<<20, (now-50)*int64(time.Second), 1)
			if _, err := standing.engine.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		err := follower.Verify(t.Context(), model.TimeRange{From: (now - 200) * int64(time.Second), To: now * int64(time.Second)})
		if lag := follower.Lag(); err != nil || lag.Differs != step.differs || lag.VerifiedAt == 0 {
			t.Errorf("added %v: %+v, %v", step.add, lag, err)
		}
	}
	var done Promoted
	if status := p.call("POST", p.http+"/api/standby/promote", "", &done); status != 200 || !done.HandedOver || !strings.HasPrefix(standby.EpochText(done.Epoch), "2-") {
		t.Fatalf("%d %+v", status, done)
	}
	b := model.NewBatch()
	b.AppendFloat(1, time.Now().UnixNano(), 1)
	if _, err := p.primary.server.engine.Append(t.Context(), b); !errors.Is(err, standby.ErrFenced) {
		t.Errorf("the old primary stores with %v", err)
	}
	if status := p.call("POST", p.primary.http+"/api/import", export, nil); status != 503 {
		t.Errorf("the old primary imports: %d", status)
	}
	for _, request := range []string{"sender data", "agent data", "active checks", "proxy data"} {
		answer := p.primary.send(`{"request":"` + request + `","host":"web-1","data":[]}`)
		if !strings.Contains(answer, "failed") || !strings.Contains(answer, "send to the new primary") || !strings.Contains(answer, "the new primary is http://new.example") {
			t.Errorf("the old primary answers %s with %q", request, answer)
		}
	}
	for address, want := range map[string]int{p.primary.http: 503, p.http: 200} {
		if got := p.call("GET", address+"/-/ready", "", nil); got != want {
			t.Errorf("%s/-/ready is answered %d, expected %d", address, got, want)
		}
	}
	sent.sender("1", now)
	p.until("the problem recovered at the new primary", func() bool {
		return p.call("GET", p.http+"/api/problems", "", &list) == 200 && len(list.Problems) == 1 && list.Problems[0].RecoveredAt != nil
	})
	// The configuration that was a copy is this server's own, and gives new ids.
	before := p.itemIDs()
	if status := p.call("POST", p.http+"/api/import", strings.ReplaceAll(export, "web-1", "web-2"), nil); status != 200 {
		t.Errorf("the new primary imports: %d", status)
	}
	if after := p.itemIDs(); len(after) != 2*len(before) {
		t.Errorf("items %v became %v", before, after)
	}
	if status := p.call("POST", p.http+"/api/standby/promote", "", nil); status != 409 {
		t.Errorf("promoted again: %d", status)
	}
}

// TestFollow_synchronous answers a change only when the standby has it.
func TestFollow_synchronous(t *testing.T) {
	p := newPair(t, func(o *Options) { o.Synchronous, o.Alone = true, time.Minute })
	p.until("the standby is there", func() bool {
		var s standbyAnswer
		return p.call("GET", p.http+"/api/standby", "", &s) == 200 && s.Lag != nil && s.Lag.Connected && s.Lag.ConfigurationAt > 0
	})
	if status := p.call("POST", p.primary.http+"/api/import", export, nil); status != 200 {
		t.Fatalf("import: %d", status)
	}
	var hosts struct{ Hosts []struct{ Host string } }
	p.call("GET", p.http+"/api/hosts?search=web-1", "", &hosts)
	if len(hosts.Hosts) != 1 {
		t.Errorf("the standby knows %+v when the change is answered", hosts)
	}
	p.primary.sender("11", time.Now().Unix())
	if !p.equal() {
		t.Error("the standby lacks a value that was answered")
	}
	s := p.primary.server.replica.source
	if err := s.Confirmed(t.Context()); err != nil {
		t.Error(err)
	}
}
