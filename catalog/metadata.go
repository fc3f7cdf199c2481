package catalog

import (
	"slices"
	"strings"
)

// Metadata is what is known of a metric name over all its items.
type Metadata struct {
	Metric string
	// Type is the label "type" of its items where that is one of Prometheus' types, else "unknown".
	Type string
	Help string
	// Unit is the items' units in Zabbix's form.
	Unit string
}

// Metadata returns what is known of metric names, sorted by name: of all, or of one. A limit of zero or less is none.
// Where items of one name differ, one of them speaks for all.
func (c *Catalog) Metadata(metric string, limit int) []Metadata {
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := c.index
	typeName := x.symbols.find("type")
	var found []Metadata
	take := func(list []uint32) {
		for _, n := range list {
			if e := x.at(n); !e.dead {
				found = append(found, x.metadata(e, typeName))
				return
			}
		}
	}
	if metric != "" {
		take(x.postings[x.metricName][x.symbols.find(metric)])
		return found
	}
	for _, list := range x.postings[x.metricName] {
		take(list)
	}
	slices.SortFunc(found, func(a, b Metadata) int { return strings.Compare(a.Metric, b.Metric) })
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	return found
}

func (x *index) metadata(e *entry, typeName uint32) Metadata {
	s := x.symbols.text
	m := Metadata{Metric: s[e.metric], Type: "unknown", Help: s[e.help], Unit: s[e.units]}
	if m.Help == "" {
		m.Help = s[e.name]
	}
	if typeName == noSymbol {
		return m
	}
	switch t := s[x.value(e, typeName)]; t {
	case "counter", "gauge", "histogram", "summary", "info", "stateset":
		m.Type = t
	}
	return m
}
