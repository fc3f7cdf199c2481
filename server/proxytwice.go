package server

import (
	"time"

	"tidemark/collect/trapper"
)

// twiceTime is for how long a proxy counts as running twice after the last change between two of its processes.
const twiceTime = 10 * time.Minute

// proxyTwice notices that two processes send under the name of one proxy: a session that comes back after another one. A proxy that was restarted, or moved, begins
// a session once and the old one is never heard of again. Guarded by proxies.mu; times are Unix nanoseconds.
type proxyTwice struct {
	session, peer        string
	before, beforePeer   string
	changedAt, noticedAt int64
}

// heard notes a request and reports whether this is news of two processes.
func (t *proxyTwice) heard(c *trapper.ProxyContact) bool {
	if c.Session == "" || c.Session == t.session {
		return false
	}
	back := c.Session == t.before && c.At-t.changedAt < int64(twiceTime)
	t.session, t.peer, t.before, t.beforePeer, t.changedAt = c.Session, c.Peer, t.session, t.peer, c.At
	if !back {
		return false
	}
	news := !t.is(c.At)
	t.noticedAt = c.At
	return news
}

// is reports whether the proxy runs twice.
func (t *proxyTwice) is(now int64) bool {
	return t.noticedAt != 0 && now-t.noticedAt < int64(twiceTime)
}
