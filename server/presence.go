package server

import (
	"sync"
	"sync/atomic"

	"tidemark/model"
)

// presence keeps when each host last gave a sign of life.
type presence struct {
	hosts sync.Map // model.HostID → *atomic.Int64
}

// Seen implements trapper.Presence.
func (p *presence) Seen(host model.HostID, at int64) {
	v, ok := p.hosts.Load(host)
	if !ok {
		v, _ = p.hosts.LoadOrStore(host, new(atomic.Int64))
	}
	last := v.(*atomic.Int64)
	if old := last.Load(); at > old {
		last.CompareAndSwap(old, at)
	}
}

// LastSeen returns the time of the last sign of life since the start, Unix nanoseconds; zero for none.
func (p *presence) LastSeen(host model.HostID) int64 {
	v, ok := p.hosts.Load(host)
	if !ok {
		return 0
	}
	return v.(*atomic.Int64).Load()
}
