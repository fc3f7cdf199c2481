// Package confcache keeps the configuration in memory as an immutable snapshot that is swapped when something changes.
//
// Readers take the snapshot with one atomic load and look things up without locks and without allocation. A refresh
// reads only the hosts that changed, builds them anew with user macros expanded, and shares all other hosts with the
// snapshot before. Subscribers are told what became different before the new snapshot is in force, so that a catalog
// knows an item before a collector can see it.
package confcache

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// Source is where the configuration is kept; confdb is one.
type Source interface {
	// Changes returns the newest revision, and the hosts changed and deleted after the revision since; since zero
	// stands for all hosts.
	Changes(ctx context.Context, since uint64) (revision uint64, changed, deleted []model.HostID, err error)
	// GlobalMacros returns the macros that hold for all hosts.
	GlobalMacros(ctx context.Context) ([]model.Macro, error)
	// Regexps returns the global regular expressions besides the defaults.
	Regexps(ctx context.Context) ([]model.GlobalRegexp, error)
	// HostConfigs calls f for each of the hosts that exist.
	HostConfigs(ctx context.Context, ids []model.HostID, f func(*model.HostConfig) error) error
}

// Options of New.
type Options struct {
	// Logger is told of configuration that cannot be used; nil: nowhere.
	Logger *slog.Logger
	// Metrics takes the package's metrics; nil: none.
	Metrics *metrics.Set
}

// Changes is what a refresh made different. Its slices are in order of id and must not be changed.
type Changes struct {
	// Snapshot is the new one.
	Snapshot *Snapshot
	// Hosts are new or changed, with all else that a host carries: items, triggers, macros.
	Hosts        []model.HostID
	DeletedHosts []model.HostID
	// Items and Triggers are new or changed.
	Items           []*model.Item
	DeletedItems    []model.ItemID
	Triggers        []*model.Trigger
	DeletedTriggers []model.TriggerID
}

// Cache holds the snapshot in force.
type Cache struct {
	source  Source
	log     *slog.Logger
	current atomic.Pointer[Snapshot]
	told    atomic.Pointer[Snapshot]

	mu          sync.Mutex // held during a refresh
	subscribers []*subscriber

	refreshes, faults *metrics.Counter
	busy              *metrics.FloatCounter
	// pause is retryPause but in tests.
	pause time.Duration
}

type subscriber struct {
	f func(context.Context, *Changes) error
}

// New returns a cache with an empty snapshot. Refresh fills it.
func New(source Source, o Options) *Cache {
	c := &Cache{source: source, log: o.Logger, pause: retryPause}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	c.current.Store(emptySnapshot())
	c.told.Store(c.current.Load())
	c.refreshes = set.GetOrCreateCounter("tidemark_confcache_refreshes_total")
	c.faults = set.GetOrCreateCounter("tidemark_confcache_faults_total")
	c.busy = set.GetOrCreateFloatCounter("tidemark_confcache_busy_seconds_total")
	set.GetOrCreateGauge("tidemark_confcache_hosts", func() float64 { return float64(c.Snapshot().HostCount()) })
	set.GetOrCreateGauge("tidemark_confcache_items", func() float64 { return float64(c.Snapshot().ItemCount()) })
	set.GetOrCreateGauge("tidemark_confcache_triggers", func() float64 { return float64(c.Snapshot().TriggerCount()) })
	set.GetOrCreateGauge("tidemark_confcache_revision", func() float64 { return float64(c.Snapshot().Revision()) })
	return c
}

// Snapshot returns the snapshot in force. It never changes; hold it as long as a consistent view is needed.
func (c *Cache) Snapshot() *Snapshot { return c.current.Load() }

// Told returns the newest snapshot of which subscribers were told: the one in force, or the one that will be when all of them took it over, also after an
// error of one of them. It is for whoever explains what subscribers do: they may act on what is new before it is in force.
func (c *Cache) Told() *Snapshot { return c.told.Load() }

// Subscribe has f called by each refresh that changes something, before the new snapshot is in force, one call at a time
// and in order. An error of f ends the refresh; the next one comes with at least the same changes again. The returned
// function ends the subscription.
func (c *Cache) Subscribe(f func(context.Context, *Changes) error) (cancel func()) {
	s := &subscriber{f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, s)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.subscribers = slices.DeleteFunc(slices.Clone(c.subscribers), func(o *subscriber) bool { return o == s })
	}
}

// Refresh reads what changed since the snapshot in force and swaps in a new one. After an error the old one stays.
// It returns what changed; nil for nothing.
func (c *Cache) Refresh(ctx context.Context) (*Changes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func(start time.Time) { c.busy.Add(time.Since(start).Seconds()) }(time.Now())
	old := c.Snapshot()
	revision, changed, deleted, err := c.source.Changes(ctx, old.revision)
	if err != nil {
		return nil, fmt.Errorf("refresh configuration: %w", err)
	}
	if revision == old.revision && old.revision != 0 || revision == 0 && len(changed) == 0 {
		return nil, nil
	}
	global, err := c.source.GlobalMacros(ctx)
	if err != nil {
		return nil, fmt.Errorf("refresh configuration: %w", err)
	}
	regexps, err := c.source.Regexps(ctx)
	if err != nil {
		return nil, fmt.Errorf("refresh configuration: %w", err)
	}
	b := newBuilder(old, revision, Globals{Macros: global, Regexps: regexps})
	for _, id := range deleted {
		b.remove(id)
	}
	missing := make(map[model.HostID]bool, len(changed))
	for _, id := range changed {
		missing[id] = true
	}
	err = c.source.HostConfigs(ctx, changed, func(h *model.HostConfig) error {
		delete(missing, h.Host.ID)
		b.put(h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("refresh configuration: %w", err)
	}
	for id := range missing { // deleted since Changes answered
		b.remove(id)
	}
	changes := b.finish()
	c.told.Store(changes.Snapshot)
	for _, s := range c.subscribers {
		if err := s.f(ctx, changes); err != nil {
			return nil, fmt.Errorf("refresh configuration: %w", err)
		}
	}
	c.current.Store(changes.Snapshot)
	c.refreshes.Inc()
	c.tellFaults(b.faults)
	return changes, nil
}

// Adopt brings a snapshot into force that another cache had of the same source, in the place of the empty one: subscribers are told of everything in it, and
// nothing is read. The next Refresh reads what changed since.
func (c *Cache) Adopt(ctx context.Context, s *Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Snapshot(); now.revision != 0 || now.HostCount() > 0 {
		return fmt.Errorf("adopt configuration: revision %d is in force already", now.revision)
	}
	if s.revision == 0 {
		return nil
	}
	changes := &Changes{Snapshot: s, Hosts: slices.Clone(s.order), Items: make([]*model.Item, 0, s.ItemCount()), Triggers: make([]*model.Trigger, 0, s.TriggerCount())}
	for _, id := range s.order {
		e := s.hosts[id]
		for i := range e.items {
			changes.Items = append(changes.Items, &e.items[i])
		}
		for i := range e.triggers {
			changes.Triggers = append(changes.Triggers, &e.triggers[i])
		}
	}
	changes.sort()
	c.told.Store(s)
	for _, sub := range c.subscribers {
		if err := sub.f(ctx, changes); err != nil {
			return fmt.Errorf("adopt configuration: %w", err)
		}
	}
	c.current.Store(s)
	return nil
}

// maxToldFaults bounds what one refresh logs; the rest is in the snapshot.
const maxToldFaults = 20

func (c *Cache) tellFaults(faults []Fault) {
	c.faults.Add(len(faults))
	for i, f := range faults {
		if i == maxToldFaults {
			c.log.Warn("more configuration cannot be used", "count", len(faults)-i)
			return
		}
		c.log.Warn("configuration cannot be used", "host", f.Host, "object", f.Object, "reason", f.Reason)
	}
}

// retryPause is how long Run waits before it tries a refresh again that failed.
const retryPause = 5 * time.Second

// Run refreshes each time the source has changed, until ctx ends. A refresh that fails is tried again every five seconds, until one does not: the database
// may have been away for a moment, and nothing tells when it is back. The first failure in a row is logged.
func (c *Cache) Run(ctx context.Context, changed <-chan struct{}) error {
	var again <-chan time.Time
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
		again = nil
		_, err := c.Refresh(ctx)
		if err == nil || ctx.Err() != nil {
			failed = false
			continue
		}
		if !failed {
			c.log.Error("configuration not refreshed; the old one stays in force, and it is tried again", "error", err)
		}
		failed, again = true, time.After(c.pause)
	}
}
