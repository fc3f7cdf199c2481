package alert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestHeartbeat lets a real receiver count the beats of an Alerter that is healthy, and of one that is not.
func TestHeartbeat(t *testing.T) {
	beats := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { beats <- r.Method + r.URL.Path }))
	defer server.Close()
	w := newWorld()
	healthy := make(chan error, 1)
	asked := make(chan struct{}, 100)
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Healthy: func() error {
		asked <- struct{}{}
		select {
		case err := <-healthy:
			return err
		default:
			return nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = a.Run(ctx) })
	defer func() { cancel(); running.Wait() }()
	apply := func(path string) {
		c, err := Parse(fmt.Appendf(nil, "heartbeat: {url: '%s/%s', allow: [127.0.0.1]}", server.URL, path))
		if err == nil {
			err = a.Apply(t.Context(), c, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Each change of the setting beats at once.
	apply("one")
	<-asked
	if got := <-beats; got != "GET/one" {
		t.Errorf("beat %s", got)
	}
	healthy <- errors.New("stuck")
	apply("two")
	<-asked
	apply("three")
	<-asked
	if got := <-beats; got != "GET/three" {
		t.Errorf("beat %s, want none while something is stuck", got)
	}
	a.steppedAt.Store(time.Now().Add(-time.Hour).UnixNano())
	if a.alive() == nil {
		t.Error("alive although nothing moved for an hour")
	}
}
