package server

import (
	"testing"
	"time"

	"tidemark/collect/trapper"
)

// TestProxyTwice: two sessions that alternate are two processes, wherever they send from; restarts, moves and two ways of one process are not.
func TestProxyTwice(t *testing.T) {
	type contact struct {
		session, peer string
		after         time.Duration
	}
	for _, c := range []struct {
		name     string
		contacts []contact
		news     int
	}{
		{"one", []contact{{"a", "1", 0}, {"a", "1", time.Second}, {"", "1", time.Second}}, 0},
		{"restarts", []contact{{"a", "1", 0}, {"b", "1", time.Second}, {"c", "1", time.Second}, {"c", "1", time.Second}}, 0},
		{"two ways", []contact{{"a", "1", 0}, {"a", "2", time.Second}, {"a", "1", time.Second}}, 0},
		{"heartbeats of another", []contact{{"a", "1", 0}, {"", "2", time.Second}, {"a", "1", time.Second}}, 0},
		{"two", []contact{{"a", "1", 0}, {"b", "2", time.Second}, {"a", "1", time.Second}, {"b", "2", time.Second}, {"a", "1", time.Second}}, 1},
		{"two behind one address", []contact{{"a", "1", 0}, {"b", "1", time.Second}, {"a", "1", time.Second}}, 1},
		{"again", []contact{{"a", "1", 0}, {"b", "2", time.Second}, {"a", "1", time.Second}, {"b", "2", time.Hour}, {"a", "1", time.Second}}, 2},
	} {
		var twice proxyTwice
		at, news := time.Unix(1e9, 0), 0
		for _, one := range c.contacts {
			at = at.Add(one.after)
			if twice.heard(&trapper.ProxyContact{At: at.UnixNano(), Session: one.session, Peer: one.peer}) {
				news++
			}
		}
		if news != c.news || twice.is(at.UnixNano()) != (c.news > 0) || twice.is(at.Add(twiceTime).UnixNano()) {
			t.Errorf("%s: told %d times, expected %d; twice %v", c.name, news, c.news, twice.is(at.UnixNano()))
		}
	}
}
