package catalog

import (
	"slices"
	"strings"

	"tidemark/model"
)

// Item returns the item with an id.
func (c *Catalog) Item(id model.ItemID) (model.Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, ok := c.index.byID[id]
	if !ok {
		return model.Entry{}, false
	}
	return c.index.view(c.index.at(i)), true
}

// ByKey returns the item with a key on a host.
func (c *Catalog) ByKey(host model.HostID, key string) (model.Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.lookup(host, c.index.symbols.find(key))
}

// ByKeyBytes is ByKey without an allocation; key is not kept.
func (c *Catalog) ByKeyBytes(host model.HostID, key []byte) (model.Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.lookup(host, c.index.symbols.findBytes(key))
}

// FindBytes returns only the id of the item with a key on a host: what a collector needs for every value.
func (c *Catalog) FindBytes(host model.HostID, key []byte) (model.ItemID, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.hosts[host]
	if h == nil {
		return 0, false
	}
	i, ok := h.items[c.index.symbols.findBytes(key)]
	if !ok {
		return 0, false
	}
	return c.index.at(i).id, true
}

func (x *index) lookup(host model.HostID, key uint32) (model.Entry, bool) {
	h := x.hosts[host]
	if h == nil {
		return model.Entry{}, false
	}
	i, ok := h.items[key]
	if !ok {
		return model.Entry{}, false
	}
	return x.view(x.at(i)), true
}

// Host returns the id of the host with a technical name.
func (c *Catalog) Host(name string) (model.HostID, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.byName[name]
	if h == nil {
		return 0, false
	}
	return h.id, true
}

// HostBytes is Host without an allocation; name is not kept.
func (c *Catalog) HostBytes(name []byte) (model.HostID, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.byName[string(name)]
	if h == nil {
		return 0, false
	}
	return h.id, true
}

// HostItems returns the ids of a host's items, rising.
func (c *Catalog) HostItems(host model.HostID) []model.ItemID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.hosts[host]
	if h == nil {
		return nil
	}
	ids := make([]model.ItemID, 0, len(h.items))
	for _, i := range h.items {
		ids = append(ids, c.index.at(i).id)
	}
	slices.Sort(ids)
	return ids
}

// HostItemCount returns how many items a host has and how many of them are declared.
func (c *Catalog) HostItemCount(host model.HostID) (items, declared int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h := c.index.hosts[host]
	if h == nil {
		return 0, 0
	}
	return len(h.items), h.declared
}

// Len returns the number of items.
func (c *Catalog) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.index.byID)
}

// Each calls fn for every item, in no order. The catalog waits meanwhile, so fn must be quick and must not call it.
func (c *Catalog) Each(fn func(model.Entry)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range c.index.count {
		if e := c.index.at(i); !e.dead {
			fn(c.index.view(e))
		}
	}
}

// OwnLabels returns an item's labels without name, host and key; nil for an unknown item.
func (c *Catalog) OwnLabels(id model.ItemID) model.Labels {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, ok := c.index.byID[id]
	if !ok {
		return nil
	}
	return c.index.labels(c.index.at(i))
}

// Labels returns an item as PromQL sees it: __name__, host, key and its own labels, sorted; a series (see IsSeries) has only those that it came
// with. Nil for an unknown item.
func (c *Catalog) Labels(id model.ItemID) model.Labels {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, ok := c.index.byID[id]
	if !ok {
		return nil
	}
	return c.index.allLabels(c.index.at(i))
}

// metricNameLabel is the label under which PromQL knows a metric's name.
const metricNameLabel = "__name__"

func (x *index) allLabels(e *entry) model.Labels {
	s := x.symbols.text
	own := x.sets.text[e.set]
	ls := make(model.Labels, 0, 3+len(own)/8)
	ls = append(ls, model.Label{Name: metricNameLabel, Value: s[e.metric]})
	if !e.series {
		ls = append(ls, model.Label{Name: "host", Value: s[e.hostName]}, model.Label{Name: "key", Value: s[e.key]})
	}
	for ; own != ""; own = own[8:] {
		name, value := pair(own)
		ls = append(ls, model.Label{Name: s[name], Value: s[value]})
	}
	slices.SortFunc(ls, func(a, b model.Label) int { return strings.Compare(a.Name, b.Name) })
	return ls
}

// Filter says which items Search looks for.
type Filter struct {
	// Host, if not zero, is the only host to look at.
	Host model.HostID
	// Text, if not empty, must be in the key, the name or the host's name, in any case of letters.
	Text string
	// After is where the page before this one ended; zero begins at the first.
	After model.ItemID
	// Visible, if not nil, says of which hosts items are looked for.
	Visible func(model.HostID) bool
	// Limit bounds the answer; zero or less returns nothing but the total.
	Limit int
}

// Search returns the items that fit, by rising id, at most Limit of them behind After, and how many fit in all.
func (c *Catalog) Search(f Filter) (entries []model.Entry, total int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found := c.index.search(f)
	slices.SortFunc(found, func(a, b *entry) int { return compareIDs(a.id, b.id) })
	first, _ := slices.BinarySearchFunc(found, f.After+1, func(e *entry, id model.ItemID) int { return compareIDs(e.id, id) })
	last := min(len(found), first+max(f.Limit, 0))
	for _, e := range found[first:last] {
		entries = append(entries, c.index.view(e))
	}
	return entries, len(found)
}

func (x *index) search(f Filter) []*entry {
	var found []*entry
	text := newTextFilter(x.symbols, f.Text)
	if f.Host != 0 {
		h := x.hosts[f.Host]
		if h == nil || f.Visible != nil && !f.Visible(f.Host) {
			return nil
		}
		for _, i := range h.items {
			if e := x.at(i); text.match(e.key) || text.match(e.name) {
				found = append(found, e)
			}
		}
		return found
	}
	for i := range x.count {
		e := x.at(i)
		if !e.dead && (f.Visible == nil || f.Visible(e.host.id)) && (text.match(e.key) || text.match(e.name) || text.match(e.hostName)) {
			found = append(found, e)
		}
	}
	return found
}

// textFilter looks for a text in symbols, once in each.
type textFilter struct {
	symbols *symbols
	text    string
	known   []byte // 0 not looked at, 1 without, 2 with the text
}

func newTextFilter(s *symbols, text string) *textFilter {
	f := &textFilter{symbols: s, text: strings.ToLower(text)}
	if text != "" {
		f.known = make([]byte, len(s.text))
	}
	return f
}

func (f *textFilter) match(symbol uint32) bool {
	if f.text == "" {
		return true
	}
	if f.known[symbol] == 0 {
		f.known[symbol] = 1
		if strings.Contains(strings.ToLower(f.symbols.text[symbol]), f.text) {
			f.known[symbol] = 2
		}
	}
	return f.known[symbol] == 2
}
