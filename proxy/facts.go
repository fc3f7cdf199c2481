package proxy

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"tidemark/collect/poller"
	"tidemark/collect/self"
	"tidemark/confcache"
	"tidemark/model"
)

// internals are the checks that the proxy makes of itself.
func (p *Proxy) internals() poller.Kind {
	cores := runtime.GOMAXPROCS(0)
	checker := self.New(self.Options{
		Metrics: p.metrics, Server: p.facts, Version: p.o.Version, Started: p.started, Processes: []self.Process{
			{Name: "trapper", Count: cores, BusySeconds: []string{"tidemark_trapper_busy_seconds_total"}},
			{Name: "preprocessing worker", Count: cores, BusySeconds: []string{"tidemark_preproc_busy_seconds_total"}},
			{Name: "preprocessing manager", Count: cores, BusySeconds: []string{"tidemark_preproc_busy_seconds_total"}},
			{Name: "configuration syncer", Count: 1, BusySeconds: []string{"tidemark_confcache_busy_seconds_total"}},
		},
	})
	return poller.Kind{Name: "self-monitoring", Types: []model.ItemType{model.Internal}, Checker: checker, MaxInFlight: 1, MaxBatch: 256, Timeout: time.Minute}
}

// facts is what internal items ask of the proxy. It implements self.Server.
type facts struct {
	cache  *confcache.Cache
	poller *poller.Poller

	mu sync.Mutex
	// unsupported are the items that could not be measured last time.
	unsupported map[model.ItemID]struct{}
}

// observe takes note of which items of a batch could not be measured.
func (f *facts) observe(b *model.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, id := range b.Items {
		if b.Types[i] == model.Unsupported {
			f.unsupported[id] = struct{}{}
		} else if len(f.unsupported) > 0 {
			delete(f.unsupported, id)
		}
	}
}

func (f *facts) forget(ids []model.ItemID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.unsupported, id)
	}
}

// Counts implements self.Server.
func (f *facts) Counts() self.Counts {
	var c self.Counts
	s := f.cache.Snapshot()
	for h := range s.Hosts() {
		c.Hosts++
		items := s.Items(h.ID)
		for i := range items {
			if !items[i].Enabled {
				continue
			}
			c.Items++
			if items[i].Interval > 0 {
				c.Performance += 1 / items[i].Interval.Seconds()
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Unsupported = len(f.unsupported)
	return c
}

// Host implements self.Server.
func (f *facts) Host(id model.HostID) (self.Host, bool) {
	s := f.cache.Snapshot()
	if _, ok := s.HostByID(id); !ok {
		return self.Host{}, false
	}
	var h self.Host
	items := s.Items(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range items {
		if !items[i].Enabled {
			continue
		}
		h.Items++
		if _, is := f.unsupported[items[i].ID]; is {
			h.Unsupported++
		}
	}
	return h, true
}

// Available implements self.Server: one interface of the kind that works is enough.
func (f *facts) Available(id model.HostID, kind string) int {
	best := poller.Unknown
	for _, s := range f.poller.Interfaces(id) {
		switch {
		case !strings.HasPrefix(s.Kind, kind):
		case s.Available == poller.Available:
			return poller.Available
		default:
			best = max(best, s.Available)
		}
	}
	return best
}

// Queue implements self.Server.
func (f *facts) Queue(from, to time.Duration) int { return f.poller.Queue(from, to) }
