package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"tidemark/model"
)

func (r *hostReader) readTriggers(ctx context.Context, span idRange) error {
	made := make(map[origin][]madeTrigger)
	origins := make(map[model.TriggerID]madeTrigger)
	var host model.HostID
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var m madeTrigger
		var by model.ItemID
		var changes string
		var disabled bool
		if err := rows.Scan(&host, &m.id, &m.def, &m.instance, &by, &changes, &disabled); err != nil {
			return err
		}
		h := r.host(host)
		if h == nil {
			return nil
		}
		t, err := r.inherited(h, &m)
		if err != nil {
			return err
		}
		change, err := unpackChange(changes)
		if err != nil {
			return fmt.Errorf("trigger %d: %w", m.id, err)
		}
		if change != nil {
			changeTrigger(&t, change)
		}
		t.ID, t.HostID, t.DiscoveredBy, t.Enabled = m.id, host, by, t.Enabled && !disabled
		h.Triggers = append(h.Triggers, t)
		made[origin{host, m.def}], origins[m.id] = append(made[origin{host, m.def}], m), m
		return nil
	}, `SELECT host_id, id, def_id, instance, coalesce(rule_item, 0), changes, disabled FROM triggers WHERE host_id BETWEEN ? AND ? AND rule_id IS NULL
		AND def_id IS NOT NULL ORDER BY host_id, id`, span.from, span.to)
	if err != nil {
		return err
	}
	if err := r.readOwnTriggers(ctx, span); err != nil {
		return err
	}
	own, err := r.ownDepends(ctx, span)
	if err != nil {
		return err
	}
	for at := span.from; at <= span.to; at++ {
		if h := r.hosts[at]; h != nil {
			r.depend(h, made, origins, own)
		}
	}
	return nil
}

// origin is a template's trigger, or a prototype, as one host has it.
type origin struct {
	host model.HostID
	def  int64
}

// madeTrigger is a host's trigger that was inherited or made from a prototype.
type madeTrigger struct {
	id       model.TriggerID
	def      int64
	instance string
}

// depend fills the dependencies of a host's triggers. Stored are those between definitions; a host's trigger depends on
// the triggers that the host has of them, and of several made from one prototype on those with the same macros.
func (r *hostReader) depend(h *model.HostConfig, made map[origin][]madeTrigger, origins map[model.TriggerID]madeTrigger, own map[model.TriggerID][]int64) {
	for n := range h.Triggers {
		t := &h.Triggers[n]
		from, inherited := origins[t.ID]
		masters := own[t.ID]
		if inherited {
			masters = r.defs.depends[from.def]
		}
		for _, master := range masters {
			if r.defs.triggers[master] == nil {
				t.DependsOn = append(t.DependsOn, model.TriggerID(master))
				continue
			}
			for _, m := range made[origin{h.Host.ID, master}] {
				if compatible(from.instance, m.instance) {
					t.DependsOn = append(t.DependsOn, m.id)
				}
			}
		}
	}
}

// compatible reports whether two instances agree in the macros that both have.
func compatible(a, b string) bool {
	if a == b || a == "" || b == "" || a == noMacros || b == noMacros {
		return true
	}
	var x, y map[string]string
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	for name, value := range x {
		if other, ok := y[name]; ok && other != value {
			return false
		}
	}
	return true
}

// inherited makes a host's trigger from the template's one or the prototype that defines it.
func (r *hostReader) inherited(h *model.HostConfig, m *madeTrigger) (model.Trigger, error) {
	d := r.defs.triggers[m.def]
	if d == nil {
		return model.Trigger{}, fmt.Errorf("trigger %d is inherited from row %d, which is no trigger of a template", m.id, m.def)
	}
	t := d.inherited(h.Host.Host)
	if m.instance == "" || m.instance == noMacros {
		return t, nil
	}
	var macros map[string]string
	if err := json.Unmarshal([]byte(m.instance), &macros); err != nil {
		return t, fmt.Errorf("trigger %d: macros: %w", m.id, err)
	}
	return instanceOf(t, macros), nil
}

func (r *hostReader) readOwnTriggers(ctx context.Context, span idRange) error {
	var id model.TriggerID
	var host model.HostID
	var f triggerFields
	targets := append([]any{&host, &id}, f.pointers()...)
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		h := r.host(host)
		if h == nil {
			return nil
		}
		h.Triggers = append(h.Triggers, model.Trigger{ID: id, HostID: host})
		t := &h.Triggers[len(h.Triggers)-1]
		tags := f.tags
		if r.tags[tags] != nil {
			f.tags = ""
		}
		if err := f.trigger(t); err != nil {
			return err
		}
		if f.tags == "" {
			t.Tags = r.tags[tags]
		} else {
			r.tags[tags] = t.Tags
		}
		return nil
	}, "SELECT host_id, id, "+triggerColumns+
		" FROM triggers WHERE host_id BETWEEN ? AND ? AND rule_id IS NULL AND def_id IS NULL ORDER BY host_id, id", span.from, span.to)
}

// ownDepends are the dependencies of the hosts' own triggers.
func (r *hostReader) ownDepends(ctx context.Context, span idRange) (map[model.TriggerID][]int64, error) {
	own := make(map[model.TriggerID][]int64)
	err := rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var id model.TriggerID
		var on int64
		err := rows.Scan(&id, &on)
		own[id] = append(own[id], on)
		return err
	}, `SELECT d.trigger_id, d.depends_on FROM trigger_dependencies d JOIN triggers t ON t.id = d.trigger_id
		WHERE t.host_id BETWEEN ? AND ? AND t.rule_id IS NULL ORDER BY d.trigger_id, d.depends_on`, span.from, span.to)
	return own, err
}

// instanceOf expands discovery macros in all texts of a trigger.
func instanceOf(t model.Trigger, macros map[string]string) model.Trigger {
	t.Name, t.EventName, t.OpData = expandEventText(t.Name, macros), expandEventText(t.EventName, macros), expandEventText(t.OpData, macros)
	t.Comments, t.URL, t.CorrelationTag = expandEventText(t.Comments, macros), expandEventText(t.URL, macros), expandEventText(t.CorrelationTag, macros)
	t.Expression, t.Recovery = expandExpression(t.Expression, macros), expandExpression(t.Recovery, macros)
	t.Tags = slices.Clone(t.Tags)
	for i := range t.Tags {
		t.Tags[i].Name, t.Tags[i].Value = expandEventText(t.Tags[i].Name, macros), expandEventText(t.Tags[i].Value, macros)
	}
	return t
}
