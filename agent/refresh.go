package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tidemark/wire/zbx"
)

// A young agent asks for its list often, so that a change made while somebody looks on shows at once.
const (
	eagerRefresh  = 5 * time.Second
	eagerFor      = 2 * time.Minute
	maxRetry      = 2 * time.Second
	heartbeatTime = time.Minute
)

// refresher keeps the list of items that the server asks for, and sends heartbeats.
type refresher struct {
	agent    *Agent
	peer     *peer
	body     []byte
	revision uint64
	known    bool // the server answered once
	retry    time.Duration
	tidemark bool
	failing  string
	beatAt   time.Time
}

func newRefresher(a *Agent) *refresher {
	return &refresher{agent: a, peer: newPeer(a.options.Server, a.peer.dial), tidemark: a.state.get().Tidemark}
}

func (r *refresher) run(ctx context.Context) {
	started := time.Now()
	pause := time.Duration(0)
	for r.wait(ctx, pause) {
		err := r.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		r.report(err)
		switch {
		case err != nil:
			pause = min(max(2*r.retry, firstPause), maxRetry)
			r.retry = pause
			continue
		case time.Since(started) < eagerFor:
			pause = min(eagerRefresh, r.agent.options.Refresh)
		default:
			pause = r.agent.options.Refresh
		}
		r.retry = 0
		if !r.agent.ready.Swap(true) {
			r.agent.wake()
		}
		if time.Since(r.beatAt) >= heartbeatTime {
			r.beat(ctx)
		}
	}
}

// wait sleeps, or until the sender asks for a refresh, but not shorter than the pause between retries.
func (r *refresher) wait(ctx context.Context, pause time.Duration) bool {
	least := min(pause, max(r.retry, firstPause))
	if !wait(ctx, least) {
		return false
	}
	t := time.NewTimer(pause - least)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.agent.ask:
	case <-t.C:
	}
	return true
}

// report logs each new reason once.
func (r *refresher) report(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != "" && reason != r.failing {
		r.agent.log.Warn("the list of items cannot be had from the server", "server", r.peer.address, "error", err)
	}
	r.failing = reason
}

// refresh asks for the list and hands it to the collector.
func (r *refresher) refresh(ctx context.Context) error {
	o := &r.agent.options
	request := zbx.Request{
		Host: []byte(o.Host), Session: []byte(r.agent.state.get().Session), Version: []byte(protocolVersion), Variant: variant,
		ConfigRevision: r.revision, Metadata: []byte(o.Metadata), Tidemark: tidemarkVersion,
	}
	r.body = zbx.AppendActiveChecks(r.body[:0], &request)
	answer, err := r.peer.exchange(ctx, r.body)
	if err != nil {
		r.revision = 0 // Another server may answer next.
		return err
	}
	if !answer.Success {
		r.revision = 0
		if strings.HasSuffix(answer.Info, "not found") {
			return fmt.Errorf("the server refused: %s; make a host of this name there, or let it register agents (tidemark server --autoregistration)", answer.Info)
		}
		return fmt.Errorf("the server refused: %s", answer.Info)
	}
	// A bare success says only that the list is as before.
	if answer.HasChecks || answer.Tidemark > 0 {
		r.tidemark = answer.Tidemark > 0
	}
	l := list{tidemark: r.tidemark, changed: answer.HasChecks, checks: answer.Checks}
	select {
	case r.agent.lists <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.agent.sender.hold.Store(answer.UploadDisabled)
	if answer.HasChecks {
		r.revision = answer.ConfigRevision
	}
	if !r.known {
		r.known = true
		r.agent.log.Info("the server knows this agent", "server", r.peer.address, "host", o.Host,
			"tidemark", r.tidemark, "items_asked_for", len(answer.Checks))
	}
	return nil
}

// beat sends a heartbeat. Servers close the connection without an answer.
func (r *refresher) beat(ctx context.Context) {
	request := zbx.Request{
		Host: []byte(r.agent.options.Host), Version: []byte(protocolVersion), HeartbeatSeconds: uint64(heartbeatTime / time.Second),
	}
	r.beatAt = time.Now()
	r.body = zbx.AppendHeartbeat(r.body[:0], &request)
	if _, err := r.peer.exchange(ctx, r.body); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		r.agent.log.Debug("the heartbeat was not taken", "error", err)
	}
}

// delayOf returns an item's interval as text; servers before 4.4 give a number of seconds.
func delayOf(c *zbx.Check) string {
	if c.Delay != "" {
		return c.Delay
	}
	return strconv.FormatInt(c.DelaySeconds, 10)
}
