package rest

import (
	"testing"
	"time"

	"tidemark/model"
)

// TestHostState_proxied: a host behind a proxy is as fresh as its values, which may come more seldom than an agent's heartbeats; one without is silent.
func TestHostState_proxied(t *testing.T) {
	now := int64(1_790_000_000_000_000_000)
	seen, value, fresh := int64(0), int64(0), false
	a := &API{options: Options{
		Seen:      func(model.HostID) int64 { return seen },
		ValueSeen: func(model.HostID) (int64, bool) { return value, fresh },
	}}
	ago := func(d time.Duration) int64 { return now - int64(d) }
	for _, c := range []struct {
		proxy       model.ProxyID
		seen, value int64
		fresh       bool
		state, by   string
		at          int64
	}{
		{1, ago(time.Minute), ago(time.Hour), true, "ok", "agent", ago(time.Minute)},
		{1, ago(10 * time.Minute), ago(11 * time.Minute), true, "ok", "values", ago(10 * time.Minute)},
		{1, ago(10 * time.Minute), ago(time.Minute), false, "silent", "values", ago(time.Minute)},
		{1, ago(10 * time.Minute), 0, false, "silent", "values", ago(10 * time.Minute)},
		{1, 0, ago(time.Hour), true, "ok", "values", ago(time.Hour)},
		{1, 0, 0, false, "unknown", "", 0},
		{0, ago(10 * time.Minute), ago(time.Minute), true, "silent", "agent", ago(10 * time.Minute)},
	} {
		seen, value, fresh = c.seen, c.value, c.fresh
		if state, at, by := a.hostState(&model.Host{ID: 7, Proxy: c.proxy}, now); state != c.state || at != c.at || by != c.by {
			t.Errorf("%+v: %s by %q at %d", c, state, by, at)
		}
	}
}
