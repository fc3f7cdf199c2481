package zabbixdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// File is a part of the configuration in the form of Zabbix's export, JSON.
type File struct {
	Name   string
	Source []byte
}

const (
	// ownersAtOnce is how many hosts and templates are read together.
	ownersAtOnce = 100
	// partBytes is how large a part may grow before the next one begins; one host or template is never split.
	partBytes = 16 << 20
)

// Export reads hosts, templates and all that belongs to them. The files must be imported in their order, each a whole; take gets them
// one after another. What has no place in them is counted; see Left.
func (s *Source) Export(ctx context.Context, take func(File) error) error {
	e := &exporter{Source: s, take: take}
	var err error
	s.begins("reading hosts and templates")
	if e.all, e.byID, err = s.owners(ctx); err != nil {
		return err
	}
	s.begins("reading triggers")
	triggers, err := s.triggers(ctx, e.byID)
	if err != nil {
		return err
	}
	s.begins("reading graphs")
	graphs, err := s.graphs(ctx, e.byID)
	if err != nil {
		return err
	}
	e.sortOut(triggers, graphs)
	if e.proxies, err = e.proxyNames(ctx); err != nil {
		return err
	}
	s.begins("counting what cannot be taken")
	if err := s.countLeft(ctx, e.byID); err != nil {
		return err
	}
	if err := e.head(ctx); err != nil {
		return err
	}
	read := 0
	for chunk := range slices.Chunk(e.all, ownersAtOnce) {
		s.begins(fmt.Sprintf("reading items of %d to %d of %d hosts and templates", read+1, read+len(chunk), len(e.all)))
		read += len(chunk)
		if err := e.chunk(ctx, chunk); err != nil {
			return err
		}
	}
	return e.last()
}

// Left is what was not taken so far, by kind.
func (s *Source) Left() []Left {
	var out []Left
	for k, n := range s.left {
		out = append(out, Left{Kind: k.kind, Count: n, Reason: k.reason})
	}
	slices.SortFunc(out, func(a, b Left) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason)) })
	return out
}

// exporter writes one export.
type exporter struct {
	*Source
	all  []*owner
	byID map[int64]*owner
	// By owner and by rule.
	triggers, rulesTriggers map[int64][]object
	graphs, rulesGraphs     map[int64][]object
	apart                   []object
	proxies                 map[int64]string
	take                    func(File) error
	// The part that is being filled.
	part  object
	bytes int
	parts int
}

func (e *exporter) sortOut(triggers []*trigger, graphs []*graph) {
	e.triggers, e.rulesTriggers = make(map[int64][]object), make(map[int64][]object)
	e.graphs, e.rulesGraphs = make(map[int64][]object), make(map[int64][]object)
	for _, t := range triggers {
		switch {
		case t.rule != 0:
			e.rulesTriggers[t.rule] = append(e.rulesTriggers[t.rule], t.out)
		case t.apart:
			e.apart = append(e.apart, t.out)
		default:
			e.triggers[t.owner] = append(e.triggers[t.owner], t.out)
		}
	}
	for _, g := range graphs {
		if g.rule != 0 {
			e.rulesGraphs[g.rule] = append(e.rulesGraphs[g.rule], g.out)
		} else {
			e.graphs[g.owner] = append(e.graphs[g.owner], g.out)
		}
	}
}

// head begins the first part with groups and global macros.
func (e *exporter) head(ctx context.Context) error {
	e.begin()
	var host, template []object
	empty, err := e.emptyGroups(ctx)
	if err != nil {
		return err
	}
	var unused []object
	err = e.each(ctx, "SELECT * FROM hstgrp ORDER BY groupid", func(r row) error {
		o := object{"name": r["name"]}
		o.put("uuid", r["uuid"], "")
		if empty[r.id("groupid")] {
			unused = append(unused, o)
			return nil
		}
		if r["type"] == "1" {
			template = append(template, o)
		} else {
			host = append(host, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if e.mandatory < 6020000 { // one kind for both
		e.part.putList("groups", host)
		e.part.putList("host_groups", unused)
	} else {
		e.part.putList("host_groups", host)
		e.part.putList("template_groups", template)
	}
	rows, err := e.rows(ctx, "SELECT * FROM globalmacro ORDER BY globalmacroid")
	if err != nil {
		return err
	}
	e.part.putList("global_macros", e.macros(rows))
	return e.regexps(ctx)
}

// emptyGroups are the groups of a database with one kind for both that no host or template is in: host groups here, as rights and actions may name them.
func (e *exporter) emptyGroups(ctx context.Context) (map[int64]bool, error) {
	empty := make(map[int64]bool)
	if e.mandatory >= 6020000 {
		return empty, nil
	}
	return empty, e.each(ctx, "SELECT groupid FROM hstgrp WHERE groupid NOT IN (SELECT l.groupid FROM hosts_groups l JOIN hosts h ON h.hostid = l.hostid WHERE h.status IN (0,1,3) AND h.flags = 0)", func(r row) error {
		empty[r.id("groupid")] = true
		return nil
	})
}

func (e *exporter) begin() {
	e.part, e.bytes = object{"version": e.Version()}, 0
}

// chunk adds some hosts and templates.
func (e *exporter) chunk(ctx context.Context, chunk []*owner) error {
	ids := make([]int64, len(chunk))
	for i, o := range chunk {
		ids[i] = o.id
	}
	parts, err := e.ownerParts(ctx, ids)
	if err != nil {
		return err
	}
	parts.proxies = e.proxies
	for _, o := range chunk {
		e.owner(o, parts, e.byID)
	}
	if err := e.contents(ctx, ids); err != nil {
		return err
	}
	for _, o := range chunk {
		if err := e.add(o); err != nil {
			return err
		}
	}
	return nil
}

// contents gives hosts and templates their items and discovery rules.
func (e *exporter) contents(ctx context.Context, ids []int64) error {
	parts, err := e.itemParts(ctx, ids)
	if err != nil {
		return err
	}
	ruleParts, err := e.ruleParts(ctx, ids)
	if err != nil {
		return err
	}
	items, rules := make(map[int64][]object), make(map[int64][]object)
	prototypes := make(map[int64][]object)
	ruleIDs := make(map[int64]int64)
	err = e.each(ctx, "SELECT * FROM items WHERE "+within(ids)+" AND type <> 9 ORDER BY itemid", func(r row) error {
		id, host := r.id("itemid"), r.id("hostid")
		if parts.keys[id] == "" {
			parts.keys[id] = r["key_"]
		}
		o := e.item(r, parts)
		switch r.num("flags") {
		case flagPlain:
			items[host] = append(items[host], measured(o, r, parts))
		case flagPrototype:
			rule := ruleParts.parents[id]
			prototypes[rule] = append(prototypes[rule], measured(o, r, parts))
		case flagRule:
			ruleIDs[id] = host
			o.put("name", r["name"], "")
			rules[host] = append(rules[host], e.rule(o, r, ruleParts))
			o["id"] = id
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, list := range rules {
		for _, o := range list {
			id, _ := o["id"].(int64)
			delete(o, "id")
			o.putList("item_prototypes", prototypes[id])
			o.putList("trigger_prototypes", e.rulesTriggers[id])
			o.putList("graph_prototypes", e.rulesGraphs[id])
		}
	}
	for _, id := range ids {
		e.byID[id].out.putList("items", items[id])
		e.byID[id].out.putList("discovery_rules", rules[id])
	}
	return nil
}

// add puts a host or template into the part.
func (e *exporter) add(o *owner) error {
	b, err := json.Marshal(o.out)
	if err != nil {
		return err
	}
	if e.bytes > 0 && e.bytes+len(b) > partBytes {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.bytes += len(b)
	name := "hosts"
	if o.template {
		name = "templates"
	}
	o.out = nil // written
	have, _ := e.part[name].([]json.RawMessage)
	e.part[name] = append(have, b)
	for kind, list := range map[string][]object{"triggers": e.triggers[o.id], "graphs": e.graphs[o.id]} {
		have, _ := e.part[kind].([]object)
		e.part.putList(kind, append(have, list...))
		e.bytes += 512 * len(list)
	}
	return nil
}

// last writes the triggers that name several hosts or depend on those of others: into the part if it is the only one, else into one of
// their own.
func (e *exporter) last() error {
	if e.parts > 0 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	have, _ := e.part["triggers"].([]object)
	e.part.putList("triggers", append(have, e.apart...))
	return e.flush()
}

// flush hands the part over.
func (e *exporter) flush() error {
	if len(e.part) <= 1 {
		return nil
	}
	b, err := json.Marshal(object{"zabbix_export": e.part})
	if err != nil {
		return err
	}
	e.parts++
	name := fmt.Sprintf("part %d: %s", e.parts, e.describe())
	e.begin()
	return e.take(File{Name: name, Source: b})
}

func (e *exporter) describe() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(e.part)) {
		n := 0
		switch v := e.part[name].(type) {
		case []object:
			n = len(v)
		case []json.RawMessage:
			n = len(v)
		}
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, name)
		}
	}
	return text[min(2, len(text)):]
}

// countLeft counts what has no place in an export.
func (s *Source) countLeft(ctx context.Context, byID map[int64]*owner) error {
	for _, l := range []struct{ kind, query, reason string }{
		{"items made by discovery", "SELECT count(*) FROM items WHERE flags = 4", "their rules make them here again; run the history import after that"},
		{"hosts made by discovery", "SELECT count(*) FROM hosts WHERE flags = 4 AND status IN (0,1)", "their rules make them here again"},
		{"triggers made by discovery", "SELECT count(*) FROM triggers WHERE flags = 4", "their rules make them here again"},
	} {
		n, err := s.count(ctx, l.query)
		if err != nil {
			return err
		}
		s.leave(l.kind, n, "%s", l.reason)
	}
	return s.countSwitched(ctx, byID)
}
