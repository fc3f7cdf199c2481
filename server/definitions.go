package server

import (
	"sync"

	"tidemark/catalog"
	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/model"
)

// definitions answers for both kinds of items: configured ones from the configuration cache, declared ones from the catalog. It is what
// the stages know as Items.
type definitions struct {
	cache   *confcache.Cache
	catalog *catalog.Catalog

	mu sync.RWMutex
	// declared holds the items that the catalog declares, made on first use; entries are replaced, never changed.
	declared map[model.ItemID]*model.Item
}

func newDefinitions(cache *confcache.Cache, c *catalog.Catalog) *definitions {
	return &definitions{cache: cache, catalog: c, declared: map[model.ItemID]*model.Item{}}
}

// Item implements preproc.Items.
func (d *definitions) Item(id model.ItemID) (*model.Item, bool) {
	if item, ok := d.cache.Snapshot().Item(id); ok {
		return item, true
	}
	d.mu.RLock()
	item := d.declared[id]
	d.mu.RUnlock()
	if item != nil {
		return item, true
	}
	entry, ok := d.catalog.Item(id)
	if !ok || entry.Kind != model.Declared {
		// Pollers may have a value of a new item before it is in force.
		return d.cache.Told().Item(id)
	}
	item = d.declaredItem(entry)
	d.mu.Lock()
	d.declared[id] = item
	d.mu.Unlock()
	return item, true
}

// declaredItem turns a catalog entry into an item without preprocessing steps.
func (d *definitions) declaredItem(e model.Entry) *model.Item {
	return &model.Item{
		ID: e.ID, HostID: e.HostID, Kind: model.Declared, Type: model.ActiveAgent, Key: e.Key, Name: e.Name, Description: e.Help,
		ValueType: e.ValueType, Units: e.Units, Interval: e.Interval, History: declaredHistory, Trends: declaredTrends, Enabled: true,
		Labels: d.catalog.OwnLabels(e.ID),
	}
}

// forget drops declared items that changed or went.
func (d *definitions) forget(ids []model.ItemID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		delete(d.declared, id)
	}
}

// ItemByKey implements preproc.Items.
func (d *definitions) ItemByKey(host model.HostID, key string) (*model.Item, bool) {
	if item, ok := d.cache.Snapshot().ItemByKey(host, key); ok {
		return item, true
	}
	entry, ok := d.catalog.ByKey(host, key)
	if !ok {
		return nil, false
	}
	return d.Item(entry.ID)
}

// Dependents implements preproc.Items. Only configured items have dependents.
func (d *definitions) Dependents(id model.ItemID) []*model.Item {
	s := d.cache.Snapshot()
	if _, ok := s.Item(id); !ok {
		s = d.cache.Told()
	}
	return s.Dependents(id)
}

// trapperItems is what the trapper asks; the methods are called for every value and do not allocate.
type trapperItems struct{ *definitions }

// Host implements trapper.Items.
func (d trapperItems) Host(name []byte) (trapper.HostRef, bool) {
	h, ok := d.cache.Snapshot().HostBytes(name)
	if !ok {
		return trapper.HostRef{}, false
	}
	return trapper.HostRef{ID: h.ID, Enabled: h.Enabled, Metadata: h.Metadata, Proxy: h.Proxy}, true
}

// ItemByKey implements trapper.Items.
func (d trapperItems) ItemByKey(host model.HostID, key []byte) (trapper.ItemRef, bool) {
	if item, ok := d.cache.Snapshot().ItemByKeyBytes(host, key); ok {
		return d.ref(item), true
	}
	entry, ok := d.catalog.ByKeyBytes(host, key)
	if !ok || entry.Kind != model.Declared {
		return trapper.ItemRef{}, false
	}
	return trapper.ItemRef{
		ID: entry.ID, HostID: entry.HostID, Kind: model.Declared, Type: model.ActiveAgent, ValueType: entry.ValueType, Enabled: true,
	}, true
}

// ItemByID implements trapper.Items.
func (d trapperItems) ItemByID(id model.ItemID) (trapper.ItemRef, bool) {
	item, ok := d.Item(id)
	if !ok {
		return trapper.ItemRef{}, false
	}
	return d.ref(item), true
}

// ref is itemRef with the proxy that the item's values come from.
func (d trapperItems) ref(item *model.Item) trapper.ItemRef {
	ref := itemRef(item)
	if item.Remote {
		if h, ok := d.cache.Snapshot().HostByID(item.HostID); ok {
			ref.Proxy, ref.Enabled = h.Proxy, item.Enabled && h.Enabled
		}
	}
	return ref
}

func itemRef(item *model.Item) trapper.ItemRef {
	return trapper.ItemRef{
		ID: item.ID, HostID: item.HostID, Kind: item.Kind, Type: item.Type, ValueType: item.ValueType, Enabled: item.Enabled,
		Trapping: item.Trapping, AllowedHosts: item.AllowedHosts,
	}
}

// ActiveChecks implements trapper.Items.
func (d trapperItems) ActiveChecks(host model.HostID) ([]*model.Item, uint64) {
	s := d.cache.Snapshot()
	return s.ActiveItems(host), s.HostRevision(host)
}

// namedItems is what the trigger evaluator asks: items by the technical name of their host.
type namedItems struct{ *definitions }

// ItemByKey implements trigger.Items.
func (n *namedItems) ItemByKey(host, key string) (model.ItemID, model.ValueType, bool) {
	s := n.cache.Told()
	h, ok := s.Host(host)
	if !ok || !h.Enabled {
		return 0, 0, false
	}
	if item, ok := s.ItemByKey(h.ID, key); ok && item.RuleID == 0 {
		return item.ID, item.ValueType, item.Enabled
	}
	entry, ok := n.catalog.ByKey(h.ID, key)
	if !ok || entry.Kind != model.Declared {
		return 0, 0, false
	}
	return entry.ID, entry.ValueType, true
}

// itemOf finds an item of either kind by host and key, for the names of events.
func (n *namedItems) itemOf(host, key string) (*model.Item, bool) {
	s := n.cache.Told()
	h, ok := s.Host(host)
	if !ok {
		return nil, false
	}
	if item, ok := s.ItemByKey(h.ID, key); ok {
		return item, true
	}
	return n.definitions.ItemByKey(h.ID, key)
}

// eventObjects is what the event log asks for names, tags and severities. The evaluator has what is new before it is in force, and what was deleted until
// then, so both snapshots are asked.
type eventObjects struct{ items *namedItems }

// soon looks for an object in the configuration that comes into force, else in the one that is.
func soon[T any](c *confcache.Cache, find func(*confcache.Snapshot) (T, bool)) (T, bool) {
	if found, ok := find(c.Told()); ok {
		return found, true
	}
	return find(c.Snapshot())
}

// TriggerByID implements event.Objects.
func (o eventObjects) TriggerByID(id model.TriggerID) (*model.Trigger, bool) {
	return soon(o.items.cache, func(s *confcache.Snapshot) (*model.Trigger, bool) { return s.TriggerByID(id) })
}

// HostByName implements event.Objects.
func (o eventObjects) HostByName(host string) (*model.Host, bool) {
	return soon(o.items.cache, func(s *confcache.Snapshot) (*model.Host, bool) { return s.HostByName(host) })
}

// ItemOf implements event.Objects.
func (o eventObjects) ItemOf(host, key string) (*model.Item, bool) { return o.items.itemOf(host, key) }
