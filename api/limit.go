package api

import (
	"iter"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/access"
	"tidemark/model"
	"tidemark/query"
)

// Visible is the hosts that somebody may see, as they were configured at one moment.
type Visible map[model.HostID]model.Role

// VisibleHosts returns the hosts that somebody may see with what they may do there; nil for somebody who sees all.
func VisibleHosts(who *access.Identity, hosts iter.Seq[*model.Host]) Visible {
	if who.SeesAllHosts() {
		return nil
	}
	v := make(Visible)
	for h := range hosts {
		if role := who.OnHost(h.Groups); role >= model.Viewer {
			v[h.ID] = role
		}
	}
	return v
}

// Has reports whether a host may be seen.
func (v Visible) Has(id model.HostID) bool { return v == nil || v[id] >= model.Viewer }

// IDs returns the hosts in order.
func (v Visible) IDs() []model.HostID { return slices.Sorted(maps.Keys(v)) }

// LimitedCatalog is a catalog in which only the items of visible hosts exist.
type LimitedCatalog struct {
	query.Catalog
	Visible Visible
}

// Item returns an entry of a visible host.
func (c LimitedCatalog) Item(id model.ItemID) (model.Entry, bool) {
	e, ok := c.Catalog.Item(id)
	if !ok || !c.Visible.Has(e.HostID) {
		return model.Entry{}, false
	}
	return e, true
}

// Labels returns the labels of an item of a visible host.
func (c LimitedCatalog) Labels(id model.ItemID) model.Labels {
	if _, ok := c.Item(id); !ok {
		return nil
	}
	return c.Catalog.Labels(id)
}

// OwnLabels returns the own labels of an item of a visible host.
func (c LimitedCatalog) OwnLabels(id model.ItemID) model.Labels {
	if _, ok := c.Item(id); !ok {
		return nil
	}
	return c.Catalog.OwnLabels(id)
}

// Match returns the items of visible hosts that fit.
func (c LimitedCatalog) Match(matchers ...*labels.Matcher) []model.ItemID {
	return slices.DeleteFunc(slices.Clone(c.Catalog.Match(matchers...)), func(id model.ItemID) bool {
		_, ok := c.Item(id)
		return !ok
	})
}

// LabelNames returns the names of labels of visible items, sorted.
func (c LimitedCatalog) LabelNames(matchers ...*labels.Matcher) []string {
	names := make(map[string]bool)
	for _, id := range c.Match(matchers...) {
		for _, l := range c.Catalog.Labels(id) {
			names[l.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// LabelValues returns the values of a label of visible items, sorted.
func (c LimitedCatalog) LabelValues(name string, matchers ...*labels.Matcher) []string {
	values := make(map[string]bool)
	for _, id := range c.Match(matchers...) {
		if v := c.Catalog.Labels(id).Get(name); v != "" {
			values[v] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}
