package housekeeper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

type fake struct {
	prunes, items int
	events        int
	fail          bool
}

func (f *fake) Prune(context.Context, int64) (int64, error) {
	f.prunes++
	if f.fail {
		return 0, errors.New("disk on fire")
	}
	return 10, nil
}

func (f *fake) PruneEvents(_ context.Context, _ int64, limit int) (int, error) {
	n := min(limit, f.events)
	f.events -= n
	return n, nil
}

func (f *fake) ExpireItems(context.Context, int64) (int, error) { f.items++; return 1, nil }

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{events: 2500}
		set := metrics.NewSet()
		h := New(Options{Pruner: f, Events: f, Items: f, Metrics: set})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		time.Sleep(25 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if f.prunes != 2 || f.items != 2 || f.events != 0 {
			t.Errorf("after 25 minutes: %+v; want two rounds and no old events", f)
		}
		if h.freed.Get() != 20 || h.events.Get() != 2500 {
			t.Errorf("freed %d bytes, deleted %d events", h.freed.Get(), h.events.Get())
		}
	})
}

func TestRound_goesOnAfterFailure(t *testing.T) {
	f := &fake{events: 1, fail: true}
	h := New(Options{Pruner: f, Events: f, Items: f})
	h.Round(context.Background())
	if f.events != 0 || f.items != 1 || h.failures.Get() != 1 {
		t.Errorf("after a failed prune: %+v, %d failures", f, h.failures.Get())
	}
}
