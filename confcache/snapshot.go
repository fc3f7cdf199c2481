package confcache

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"tidemark/model"
)

// Fault is something configured that cannot be used.
type Fault struct {
	// Host is the host's technical name, Object the item key or the trigger's name.
	Host, Object string
	Reason       string
}

// Snapshot is the whole configuration at one revision. Everything reached from it is read-only.
type Snapshot struct {
	revision uint64
	hosts    map[model.HostID]*entry
	byName   map[string]*entry
	order    []model.HostID
	items    *table[model.Item]
	triggers *table[model.Trigger]
	global   []model.Macro
	regexps  regexps
}

// entry is one host. Snapshots share it until the host changes.
type entry struct {
	host  model.Host
	items []model.Item
	byKey map[string]int32
	// byAlias has items by keys that only agents, senders and other servers name them by; nil when there are none.
	byAlias map[string]int32
	active  []*model.Item
	// dependents are the enabled items of each master item.
	dependents map[model.ItemID][]*model.Item
	triggers   []model.Trigger
	// rules are the discovery rules in order of their items.
	rules  []model.Rule
	faults []Fault
}

func emptySnapshot() *Snapshot {
	return &Snapshot{
		hosts: map[model.HostID]*entry{}, byName: map[string]*entry{},
		items: newTable[model.Item](), triggers: newTable[model.Trigger](),
	}
}

// Revision is the number of the newest change in the snapshot.
func (s *Snapshot) Revision() uint64 { return s.revision }

// HostCount returns the number of hosts.
func (s *Snapshot) HostCount() int { return len(s.hosts) }

// ItemCount returns the number of items.
func (s *Snapshot) ItemCount() int { return s.items.count }

// TriggerCount returns the number of triggers.
func (s *Snapshot) TriggerCount() int { return s.triggers.count }

// UserMacro returns the value of a user macro, given with its braces: the host's own, or the global one. Zero is no host.
func (s *Snapshot) UserMacro(host model.HostID, text string) (string, bool) {
	ref, end := parseMacro(text, 0)
	if end != len(text) {
		return "", false
	}
	m := macros{levels: []macroLevel{newLevel(s.global)}}
	if e := s.hosts[host]; e != nil {
		m.levels = []macroLevel{newLevel(e.host.Macros), m.levels[0]}
	}
	value, _, ok := m.resolve(ref)
	return value, ok
}

// Host finds a host by its technical name.
func (s *Snapshot) Host(name string) (*model.Host, bool) {
	if e := s.byName[name]; e != nil {
		return &e.host, true
	}
	return nil, false
}

// HostBytes is Host for a name that is not yet a string; it does not allocate.
func (s *Snapshot) HostBytes(name []byte) (*model.Host, bool) {
	if e := s.byName[string(name)]; e != nil {
		return &e.host, true
	}
	return nil, false
}

// HostByID finds a host.
func (s *Snapshot) HostByID(id model.HostID) (*model.Host, bool) {
	if e := s.hosts[id]; e != nil {
		return &e.host, true
	}
	return nil, false
}

// HostByName is Host, under the name by which event logs ask.
func (s *Snapshot) HostByName(name string) (*model.Host, bool) { return s.Host(name) }

// Hosts walks the hosts in order of id.
func (s *Snapshot) Hosts() iter.Seq[*model.Host] {
	return func(yield func(*model.Host) bool) {
		for _, id := range s.order {
			if !yield(&s.hosts[id].host) {
				return
			}
		}
	}
}

// Item finds a configured item.
func (s *Snapshot) Item(id model.ItemID) (*model.Item, bool) {
	i := s.items.get(uint64(id))
	return i, i != nil
}

// ItemByKey finds a configured item of a host by its key.
func (s *Snapshot) ItemByKey(host model.HostID, key string) (*model.Item, bool) {
	if e := s.hosts[host]; e != nil {
		if i, ok := e.byKey[key]; ok {
			return &e.items[i], true
		}
	}
	return nil, false
}

// ItemByKeyBytes is ItemByKey for a key as agents and senders name it: also as it was asked for, with all macros expanded, or as it was written, with
// none. The key is not yet a string; it does not allocate.
func (s *Snapshot) ItemByKeyBytes(host model.HostID, key []byte) (*model.Item, bool) {
	if e := s.hosts[host]; e != nil {
		if i, ok := e.byKey[string(key)]; ok {
			return &e.items[i], true
		}
		if i, ok := e.byAlias[string(key)]; ok {
			return &e.items[i], true
		}
	}
	return nil, false
}

// ItemOf finds a configured item by its host's technical name and its key, which may be as it was written, before macros were expanded.
func (s *Snapshot) ItemOf(host, key string) (*model.Item, bool) {
	if e := s.byName[host]; e != nil {
		if i, ok := e.byKey[key]; ok {
			return &e.items[i], true
		}
		if i, ok := e.byAlias[key]; ok {
			return &e.items[i], true
		}
	}
	return nil, false
}

// Items returns the configured items of a host. The slice must not be changed.
func (s *Snapshot) Items(host model.HostID) []model.Item {
	if e := s.hosts[host]; e != nil {
		return e.items
	}
	return nil
}

// ActiveItems returns the enabled items of type ActiveAgent of a host: what its agent is asked for. A disabled host has
// none. The slice must not be changed.
func (s *Snapshot) ActiveItems(host model.HostID) []*model.Item {
	if e := s.hosts[host]; e != nil && e.host.Enabled {
		return e.active
	}
	return nil
}

// Dependents returns the enabled dependent items of a master item, in order of their place in the configuration. The slice must
// not be changed.
func (s *Snapshot) Dependents(master model.ItemID) []*model.Item {
	if i := s.items.get(uint64(master)); i != nil {
		if e := s.hosts[i.HostID]; e != nil {
			return e.dependents[master]
		}
	}
	return nil
}

// Trigger finds a trigger.
func (s *Snapshot) Trigger(id model.TriggerID) (*model.Trigger, bool) {
	t := s.triggers.get(uint64(id))
	return t, t != nil
}

// TriggerByID is Trigger, under the name by which event logs ask.
func (s *Snapshot) TriggerByID(id model.TriggerID) (*model.Trigger, bool) { return s.Trigger(id) }

// Triggers walks the triggers of all hosts, host by host in order of id.
func (s *Snapshot) Triggers() iter.Seq[*model.Trigger] {
	return func(yield func(*model.Trigger) bool) {
		for _, id := range s.order {
			list := s.hosts[id].triggers
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// TriggersOf returns the triggers that are shown under a host: those whose expression names it first. The slice must
// not be changed.
func (s *Snapshot) TriggersOf(host model.HostID) []model.Trigger {
	if e := s.hosts[host]; e != nil {
		return e.triggers
	}
	return nil
}

// ExpandGlobal replaces the global macros of a text; what is none stays as it is.
func (s *Snapshot) ExpandGlobal(text string) string {
	if !strings.Contains(text, "{$") {
		return text
	}
	m := macros{levels: []macroLevel{newLevel(s.global)}}
	out, _ := m.expand(text) // the error names macros that stay
	return out
}

// Rules returns the discovery rules of a host, macros expanded. The slice must not be changed.
func (s *Snapshot) Rules(host model.HostID) []model.Rule {
	if e := s.hosts[host]; e != nil {
		return e.rules
	}
	return nil
}

// Rule finds the discovery rule whose values an item takes.
func (s *Snapshot) Rule(item model.ItemID) (*model.Rule, bool) {
	i := s.items.get(uint64(item))
	if i == nil || i.RuleID == 0 {
		return nil, false
	}
	if e := s.hosts[i.HostID]; e != nil {
		for n := range e.rules {
			if e.rules[n].ItemID == item {
				return &e.rules[n], true
			}
		}
	}
	return nil, false
}

// HostRevision is the revision at which a host last changed; zero when there is no such host.
func (s *Snapshot) HostRevision(host model.HostID) uint64 {
	if e := s.hosts[host]; e != nil {
		return e.host.Revision
	}
	return 0
}

// Faults lists what is configured for a host and cannot be used.
func (s *Snapshot) Faults(host model.HostID) []Fault {
	if e := s.hosts[host]; e != nil {
		return slices.Clone(e.faults)
	}
	return nil
}

// pageBits says how many objects share a page of a table: a change copies one page of 4 KiB per object.
const pageBits = 9

// directPages is how many pages are found by their place in a list, for ids below 2²⁵; those behind are in a map. The list takes
// 8 bytes for each page up to the last one, at most 512 KiB.
const directPages = 1 << 16

type tablePage[T any] [1 << pageBits]*T

// table finds objects by id. Two tables share the pages in which they do not differ. Ids come from a counter, so pages
// are full but for deleted objects.
type table[T any] struct {
	direct []*tablePage[T]
	far    map[uint64]*tablePage[T]
	count  int
}

func newTable[T any]() *table[T] { return &table[T]{far: map[uint64]*tablePage[T]{}} }

// page returns page n, nil when there is none.
func (t *table[T]) page(n uint64) *tablePage[T] {
	if n < uint64(len(t.direct)) {
		return t.direct[n]
	}
	if n < directPages {
		return nil
	}
	return t.far[n]
}

func (t *table[T]) get(id uint64) *T {
	if p := t.page(id >> pageBits); p != nil {
		return p[id&(1<<pageBits-1)]
	}
	return nil
}

// tableBuilder changes a copy of a table.
type tableBuilder[T any] struct {
	*table[T]
	// own are the pages that no other table shares.
	own map[uint64]bool
}

func (t *table[T]) builder() *tableBuilder[T] {
	c := &table[T]{direct: slices.Clone(t.direct), far: maps.Clone(t.far), count: t.count}
	return &tableBuilder[T]{c, make(map[uint64]bool)}
}

// put makes p page n, which no other table shares.
func (b *tableBuilder[T]) put(n uint64, p *tablePage[T]) {
	b.own[n] = true
	if n >= directPages {
		b.far[n] = p
		return
	}
	for uint64(len(b.direct)) <= n {
		b.direct = append(b.direct, nil)
	}
	b.direct[n] = p
}

// set stores an object, or removes it when v is nil.
func (b *tableBuilder[T]) set(id uint64, v *T) {
	n := id >> pageBits
	p := b.page(n)
	switch {
	case p == nil && v == nil:
		return
	case p == nil:
		p = new(tablePage[T])
		b.put(n, p)
	case !b.own[n]:
		c := *p
		p = &c
		b.put(n, p)
	}
	slot := &p[id&(1<<pageBits-1)]
	if *slot != nil {
		b.count--
	}
	if v != nil {
		b.count++
	}
	*slot = v
}
