package server

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"tidemark/standby"
)

// TestFollow_twoPromoted promotes both standbys of a primary that is gone. They know of each other by it: the higher epoch wins, and the other server is
// fenced, says so to senders and asks no device.
func TestFollow_twoPromoted(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	options := func() Options {
		return Options{
			Data: t.TempDir(), HTTP: listen(), Trapper: listen(), Token: standbyToken, Peer: Peer{Token: standbyToken, Own: "http://new.example"}, Version: "test", DiskSpaceBytes: 256 << 20,
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}
	}
	o := options()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	primary, stopPrimary := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.Run(primary) }()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	p := &pair{t: t, primary: &running{t: t, server: s}}
	if status := p.call("POST", "http://"+o.HTTP.Addr().String()+"/api/import", export, nil); status != 200 {
		t.Fatalf("import: %d", status)
	}
	standbys, trappers := []string{}, []string{}
	for range 2 {
		so := options()
		address := "http://" + so.HTTP.Addr().String()
		standbys, trappers = append(standbys, address), append(trappers, so.Trapper.Addr().String())
		go func() { ended <- Follow(ctx, so, FollowOptions{Of: o.HTTP.Addr().String(), Address: address}) }()
	}
	t.Cleanup(func() {
		stopPrimary()
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	show := func(address string) (a standbyAnswer) {
		p.call("GET", address+"/api/standby", "", &a)
		return a
	}
	p.until("both follow and know of each other", func() bool {
		knows := true
		for _, address := range standbys {
			a := show(address)
			knows = knows && a.Lag != nil && a.Lag.Connected && a.Lag.ConfigurationAt > 0 && len(a.Peers) == 1
		}
		return knows
	})
	stopPrimary()
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Both at the same moment, as by two people.
	promoted := make(chan Promoted, 2)
	for _, address := range standbys {
		go func() {
			var done Promoted
			p.call("POST", address+"/api/standby/promote", "", &done)
			promoted <- done
		}()
	}
	one, two := <-promoted, <-promoted
	if one.Epoch == two.Epoch || one.HandedOver || two.HandedOver {
		t.Fatalf("promoted %+v and %+v", one, two)
	}
	var states [2]standbyAnswer
	p.until("one is fenced", func() bool {
		states = [2]standbyAnswer{show(standbys[0]), show(standbys[1])}
		return states[0].Role == standby.Fenced || states[1].Role == standby.Fenced
	})
	winner, loser := 0, 1
	if states[0].Role == standby.Fenced {
		winner, loser = 1, 0
	}
	if states[winner].Role != standby.Primary || states[winner].Epoch != max(one.Epoch, two.Epoch) || states[loser].FencedBy != states[winner].Epoch {
		t.Errorf("winner %+v, loser %+v", states[winner], states[loser])
	}
	sent := &running{t: t, trapper: trappers[loser]}
	if answer := sent.send(`{"request":"sender data","data":[]}`); !strings.Contains(answer, "send to the new primary") {
		t.Errorf("the loser answers %s", answer)
	}
	sent.trapper = trappers[winner]
	sent.sender("1", time.Now().Unix())
	// What only reads or is the server's own goes on; changes do not.
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/api/hosts", "", 200},
		{"POST", "/api/storage/snapshots", `{"name":"kept"}`, 200},
		{"PUT", "/api/storage/retention", `{"history":"30d","trends":"365d"}`, 503},
		{"POST", "/api/import", export, 503},
	} {
		if got := p.call(c.method, standbys[loser]+c.path, c.body, nil); got != c.want {
			t.Errorf("the loser answers %s %s with %d, expected %d", c.method, c.path, got, c.want)
		}
	}
}

// TestServer_collect: what collects ends when the server is fenced, and the server goes on.
func TestServer_collect(t *testing.T) {
	s := &Server{}
	s.replica = s.newReplica(nil)
	ctx, cancel := context.WithCancel(t.Context())
	stopped, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.collect(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			close(stopped)
			return ctx.Err()
		})
	}()
	close(s.replica.stop)
	<-stopped
	select {
	case err := <-ended:
		t.Fatalf("the server would end: %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
