package zabbixdb

import (
	"context"
	"regexp"
)

// trigger is a trigger or trigger prototype that belongs to hosts or templates themselves.
type trigger struct {
	row
	out object
	// owner is the host or template that the expression names first, rule the discovery rule of a prototype.
	owner, rule int64
	// apart says that it must come when all hosts and triggers are there.
	apart bool
}

// functionRow is what an expression's {id} stands for.
type functionRow struct {
	host, rule int64
	text       string
}

const nativeTriggers = "(SELECT triggerid FROM triggers WHERE templateid IS NULL AND flags IN (0,2))"

// triggers reads all of them, with the expressions as exports write them.
func (s *Source) triggers(ctx context.Context, byID map[int64]*owner) ([]*trigger, error) {
	in := "(SELECT triggerid_up FROM trigger_depends WHERE triggerid_down IN " + nativeTriggers + ")"
	functions, err := s.functions(ctx, in)
	if err != nil {
		return nil, err
	}
	all := make(map[int64]*trigger)
	var own []*trigger
	err = s.each(ctx, "SELECT * FROM triggers WHERE triggerid IN "+nativeTriggers+" OR triggerid IN "+in+" ORDER BY triggerid", func(r row) error {
		t := &trigger{row: r}
		s.expand(t, functions)
		all[r.id("triggerid")] = t
		if r["templateid"] == "" && r.num("flags")&^flagPrototype == 0 && byID[t.owner] != nil {
			own = append(own, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tagged, err := s.grouped(ctx, "triggerid", "SELECT * FROM trigger_tag WHERE triggerid IN "+nativeTriggers+" ORDER BY triggertagid")
	if err != nil {
		return nil, err
	}
	depends, err := s.grouped(ctx, "triggerid_down", "SELECT * FROM trigger_depends WHERE triggerid_down IN "+nativeTriggers+" ORDER BY triggerdepid")
	if err != nil {
		return nil, err
	}
	for _, t := range own {
		id := t.id("triggerid")
		t.out.putList("tags", tags(tagged[id]))
		var list []object
		for _, d := range depends[id] {
			if up := all[d.id("triggerid_up")]; up != nil {
				o := object{"name": up.row["description"], "expression": up.out["expression"]}
				o.put("recovery_expression", text(up.out["recovery_expression"]), "")
				list = append(list, o)
				t.apart = t.apart || up.owner != t.owner
			}
		}
		t.out.putList("dependencies", list)
	}
	setApart(own)
	return own, nil
}

// setApart keeps the triggers of one owner with the same name together, because they are matched by their name.
func setApart(list []*trigger) {
	type key struct {
		owner int64
		name  string
	}
	apart := make(map[key]bool)
	for _, t := range list {
		if t.apart && t.rule == 0 {
			apart[key{t.owner, t.row["description"]}] = true
		}
	}
	for _, t := range list {
		t.apart = t.rule == 0 && apart[key{t.owner, t.row["description"]}]
	}
}

func (s *Source) functions(ctx context.Context, more string) (map[string]functionRow, error) {
	m := make(map[string]functionRow)
	err := s.each(ctx, `SELECT f.functionid, f.name, f.parameter, i.key_, i.hostid, h.host, d.parent_itemid FROM functions f JOIN items i ON i.itemid = f.itemid
		JOIN hosts h ON h.hostid = i.hostid LEFT JOIN item_discovery d ON d.itemid = i.itemid AND i.flags = 2
		WHERE f.triggerid IN `+nativeTriggers+" OR f.triggerid IN "+more, func(r row) error {
		f := functionRow{host: r.id("hostid"), rule: r.id("parent_itemid")}
		parameter := r["parameter"]
		if parameter != "" && parameter[0] == '$' {
			parameter = parameter[1:]
		}
		f.text = r["name"] + "(/" + r["host"] + "/" + r["key_"] + parameter + ")"
		m[r["functionid"]] = f
		return nil
	})
	return m, err
}

var functionID = regexp.MustCompile(`\{([0-9]+)\}`)

// expand makes the trigger's export, and finds whose it is.
func (s *Source) expand(t *trigger, functions map[string]functionRow) {
	expand := func(expression string) string {
		return functionID.ReplaceAllStringFunc(expression, func(match string) string {
			f, ok := functions[match[1:len(match)-1]]
			if !ok {
				return match
			}
			if t.owner == 0 {
				t.owner = f.host
			}
			t.apart = t.apart || t.owner != f.host
			if f.rule != 0 {
				t.rule = f.rule
			}
			return f.text
		})
	}
	r := t.row
	o := object{"expression": expand(r["expression"]), "name": r["description"]}
	t.out = o
	o.put("uuid", r["uuid"], "")
	o.put("event_name", r["event_name"], "")
	o.put("opdata", r["opdata"], "")
	o.put("recovery_mode", enum(recoveryModes, r["recovery_mode"]), "EXPRESSION")
	o.put("recovery_expression", expand(r["recovery_expression"]), "")
	o.put("priority", enum(severities, r["priority"]), "NOT_CLASSIFIED")
	o.put("status", enum(enabledNames, r["status"]), "ENABLED")
	if r["type"] == "1" {
		o["type"] = "MULTIPLE"
	}
	o.put("manual_close", enum(yesNames, r["manual_close"]), "NO")
	o.put("description", r["comments"], "")
	o.put("url", r["url"], "")
	o.put("url_name", r["url_name"], "")
	if r["correlation_mode"] == "1" {
		o["correlation_mode"] = "TAG_VALUE"
		o.put("correlation_tag", r["correlation_tag"], "")
	}
	if t.rule != 0 {
		o.put("discover", enum(discoverNames, r["discover"]), "DISCOVER")
	}
}
