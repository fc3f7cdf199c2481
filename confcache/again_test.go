package confcache

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/model"
)

// away is a source that cannot be read for some time.
type away struct {
	*source
	left atomic.Int64
}

func (a *away) Changes(ctx context.Context, since uint64) (uint64, []model.HostID, []model.HostID, error) {
	if a.left.Add(-1) >= 0 {
		return 0, nil, nil, errors.New("the database is away")
	}
	return a.source.Changes(ctx, since)
}

// TestCache_Run_again: a change that could not be read is in force when the source is back, though nothing else changes; the log says so once.
func TestCache_Run_again(t *testing.T) {
	s := &away{source: newSource()}
	s.put(model.HostConfig{Host: model.Host{ID: 1, Host: "web1", Enabled: true}})
	s.left.Store(3)
	var said strings.Builder
	c := New(s, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	c.pause = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- c.Run(ctx, changed) }()
	changed <- struct{}{}
	for end := time.Now().Add(time.Minute); c.Snapshot().HostCount() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d hosts in force, expected 1", c.Snapshot().HostCount())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(said.String(), "the database is away"); n != 1 {
		t.Errorf("told %d times:\n%s", n, said.String())
	}
}
