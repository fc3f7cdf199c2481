package catalog

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
)

// Match returns the numeric items that all matchers fit, in no particular order. Without matchers it returns all.
// Items without numbers are never returned: PromQL has no text.
func (c *Catalog) Match(matchers ...*labels.Matcher) []model.ItemID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found := c.index.match(matchers)
	ids := make([]model.ItemID, len(found))
	for i, n := range found {
		ids[i] = c.index.at(n).id
	}
	return ids
}

// LabelNames returns the names of the labels that numeric items have, or those that fit the matchers; sorted.
func (c *Catalog) LabelNames(matchers ...*labels.Matcher) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	seen := make(map[uint32]bool)
	if len(matchers) == 0 {
		for name, values := range x.postings {
			seen[name] = x.anyLive(values)
		}
	} else {
		sets := make(map[uint32]bool)
		found := x.match(matchers)
		for _, n := range found {
			e := x.at(n)
			sets[e.set], seen[x.metricName] = true, true
			if !e.series {
				seen[x.hostName], seen[x.keyName] = true, true
			}
		}
		for set := range sets {
			for pairs := x.sets.text[set]; pairs != ""; pairs = pairs[8:] {
				name, _ := pair(pairs)
				seen[name] = true
			}
		}
	}
	return x.sortedTexts(seen)
}

// LabelValues returns the values of one label over the numeric items that fit the matchers; sorted.
func (c *Catalog) LabelValues(name string, matchers ...*labels.Matcher) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	symbol := x.symbols.find(name)
	seen := make(map[uint32]bool)
	if len(matchers) == 0 {
		for value, list := range x.postings[symbol] {
			seen[value] = slices.ContainsFunc(list, x.live)
		}
	} else {
		for _, n := range x.match(matchers) {
			if value := x.value(x.at(n), symbol); value != 0 {
				seen[value] = true
			}
		}
	}
	return x.sortedTexts(seen)
}

func (x *index) live(n uint32) bool { return !x.at(n).dead }

func (x *index) anyLive(values map[uint32][]uint32) bool {
	for _, list := range values {
		if slices.ContainsFunc(list, x.live) {
			return true
		}
	}
	return false
}

func (x *index) sortedTexts(seen map[uint32]bool) []string {
	texts := make([]string, 0, len(seen))
	for symbol, ok := range seen {
		if ok {
			texts = append(texts, x.symbols.text[symbol])
		}
	}
	slices.Sort(texts)
	return texts
}

// value returns the symbol of an entry's label, 0 when it has none.
func (x *index) value(e *entry, name uint32) uint32 {
	switch {
	case name == x.metricName:
		return e.metric
	case name == x.hostName && !e.series:
		return e.hostName
	case name == x.keyName && !e.series:
		return e.key
	}
	for pairs := x.sets.text[e.set]; pairs != ""; pairs = pairs[8:] {
		if n, value := pair(pairs); n == name {
			return value
		}
	}
	return 0
}

// match starts with the smallest posting list that a matcher gives and tests the other matchers on what is left: each
// distinct value is tested once.
func (x *index) match(matchers []*labels.Matcher) []uint32 {
	plans := make([]plan, 0, len(matchers))
	for _, m := range matchers {
		p := x.plan(m)
		if p.narrow && p.count == 0 {
			return nil
		}
		plans = append(plans, p)
	}
	slices.SortStableFunc(plans, func(a, b plan) int {
		switch {
		case a.narrow != b.narrow && a.narrow:
			return -1
		case a.narrow != b.narrow:
			return 1
		}
		return a.count - b.count
	})
	var found []uint32
	if len(plans) > 0 && plans[0].narrow {
		found = plans[0].union()
		found = slices.DeleteFunc(found, func(n uint32) bool { return x.at(n).dead })
		plans = plans[1:]
	} else {
		for n := range x.count {
			if e := x.at(n); !e.dead && e.valueType.Numeric() {
				found = append(found, n)
			}
		}
	}
	for i := range plans {
		found = x.filter(found, &plans[i])
	}
	return found
}

// plan is what one matcher can do.
type plan struct {
	matcher *labels.Matcher
	name    uint32
	// narrow: the items that fit all have the label, so lists holds every one of them.
	narrow bool
	lists  [][]uint32
	count  int
}

// plan finds the posting lists that a matcher selects. A matcher that also fits the empty text (a label that is not
// there) selects no lists and only filters.
func (x *index) plan(m *labels.Matcher) plan {
	p := plan{matcher: m, name: x.symbols.find(m.Name)}
	if m.Matches("") {
		return p
	}
	p.narrow = true
	values := x.postings[p.name]
	take := func(value string) {
		if list := values[x.symbols.find(value)]; len(list) > 0 {
			p.lists = append(p.lists, list)
			p.count += len(list)
		}
	}
	if m.Type == labels.MatchEqual {
		take(m.Value)
		return p
	}
	if set := m.SetMatches(); m.Type == labels.MatchRegexp && len(set) > 0 {
		slices.Sort(set)
		for _, value := range slices.Compact(set) {
			take(value)
		}
		return p
	}
	prefix := ""
	if m.Type == labels.MatchRegexp {
		prefix = m.Prefix()
	}
	for value, list := range values {
		text := x.symbols.text[value]
		if strings.HasPrefix(text, prefix) && m.Matches(text) {
			p.lists = append(p.lists, list)
			p.count += len(list)
		}
	}
	return p
}

// union merges the lists. They share no entry, because an entry has one value per label.
func (p *plan) union() []uint32 {
	found := make([]uint32, 0, p.count)
	for _, list := range p.lists {
		found = append(found, list...)
	}
	if len(p.lists) > 1 {
		slices.Sort(found)
	}
	return found
}

// filter keeps the entries whose label fits.
func (x *index) filter(found []uint32, p *plan) []uint32 {
	if p.matcher.Type == labels.MatchEqual {
		want := x.symbols.find(p.matcher.Value)
		return slices.DeleteFunc(found, func(n uint32) bool { return x.value(x.at(n), p.name) != want })
	}
	fits := make(map[uint32]bool)
	return slices.DeleteFunc(found, func(n uint32) bool {
		value := x.value(x.at(n), p.name)
		fit, known := fits[value]
		if !known {
			fit = p.matcher.Matches(x.symbols.text[value])
			fits[value] = fit
		}
		return !fit
	})
}
