package confdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tidemark/model"
)

// itemPrototype is an item prototype with what is needed to make items of it.
type itemPrototype struct {
	fields itemFields
	item   model.ItemConfig
	// macros are the discovery macros that it uses, sorted.
	macros []string
}

func newItemPrototype(f *itemFields) (*itemPrototype, error) {
	p := &itemPrototype{fields: *f}
	p.macros = usedMacros(f.key, f.name, f.delay, f.history, f.trends, f.units, f.description, f.steps, f.tags, f.extra)
	return p, p.fields.item(&p.item)
}

// usedMacros returns the discovery macros of texts, sorted, each once.
func usedMacros(texts ...string) []string {
	var names []string
	for _, t := range texts {
		names = append(names, macroNames(t)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// make fills an item made of the prototype.
func (p *itemPrototype) make(i *model.ItemConfig, macros map[string]string) error {
	*i = p.item
	i.Key = expandKey(p.fields.key, macros)
	i.Name = expandText(p.fields.name, macros)
	if p.fields.name == p.fields.key {
		i.Name = i.Key
	}
	i.Delay, i.HistoryText, i.TrendsText = expandText(i.Delay, macros), expandText(i.HistoryText, macros), expandText(i.TrendsText, macros)
	i.Units, i.Description = expandText(i.Units, macros), expandText(i.Description, macros)
	if strings.Contains(p.fields.steps, "{#") {
		i.Steps = slices.Clone(i.Steps)
		for n := range i.Steps {
			s := &i.Steps[n]
			s.Params, s.FailValue = slices.Clone(s.Params), expandText(s.FailValue, macros)
			for k := range s.Params {
				s.Params[k] = expandText(s.Params[k], macros)
			}
		}
	}
	if strings.Contains(p.fields.tags, "{#") {
		i.Tags = slices.Clone(i.Tags)
		for n := range i.Tags {
			i.Tags[n].Name, i.Tags[n].Value = expandText(i.Tags[n].Name, macros), expandText(i.Tags[n].Value, macros)
		}
	}
	if strings.Contains(p.fields.extra, "{#") {
		f := p.fields
		var err error
		if f.extra, err = expandExtra(f.extra, f.kind, macros); err != nil {
			return fmt.Errorf("item %s: %w", i.Key, err)
		}
		if err := f.extras(i); err != nil {
			return fmt.Errorf("item %s: %w", i.Key, err)
		}
	}
	i.Labels = macroLabels(macros)
	return nil
}

// expandExtra expands discovery macros in all texts of the JSON that kinds of items need: in the formula of a calculated item as in an
// expression, in the key of a master item as in a key.
func expandExtra(extra string, kind model.ItemType, macros map[string]string) (string, error) {
	var all map[string]any
	if err := json.Unmarshal([]byte(extra), &all); err != nil {
		return "", fmt.Errorf("column extra: %w", err)
	}
	formula, calculated := all["params"].(string)
	if calculated = calculated && kind == model.Calculated; calculated {
		delete(all, "params")
	}
	if master, ok := all["master_item"].(map[string]any); ok {
		if key, ok := master["key"].(string); ok {
			master["key"] = expandKey(key, macros)
		}
	}
	expandAny(all, macros)
	if calculated {
		all["params"] = expandExpression(formula, macros)
	}
	b, err := json.Marshal(all)
	return string(b), err
}

func expandAny(v any, macros map[string]string) any {
	switch v := v.(type) {
	case string:
		return expandText(v, macros)
	case []any:
		for i := range v {
			v[i] = expandAny(v[i], macros)
		}
	case map[string]any:
		for k := range v {
			v[k] = expandAny(v[k], macros)
		}
	}
	return v
}

// macroLabels are discovery macros as labels: {#FSNAME} is fsname.
func macroLabels(macros map[string]string) model.Labels {
	labels := make(model.Labels, 0, len(macros))
	for name, value := range macros {
		labels = append(labels, model.Label{Name: strings.ToLower(strings.Trim(name, "{#}")), Value: value})
	}
	slices.SortFunc(labels, func(a, b model.Label) int { return strings.Compare(a.Name, b.Name) })
	return labels
}

// changeItem applies what overrides changed.
func changeItem(i *model.ItemConfig, c *model.Change) {
	if c.Enabled != nil {
		i.Enabled = *c.Enabled
	}
	if c.Delay != "" {
		i.Delay = c.Delay
	}
	if c.History != "" {
		i.HistoryText = c.History
	}
	if c.Trends != "" {
		i.TrendsText = c.Trends
	}
	i.Tags = withTags(i.Tags, c.Tags)
}

func changeTrigger(t *model.Trigger, c *model.Change) {
	if c.Enabled != nil {
		t.Enabled = *c.Enabled
	}
	if c.Severity != nil {
		t.Severity = *c.Severity
	}
	t.Tags = withTags(t.Tags, c.Tags)
}

// withTags returns both lists, without repetitions.
func withTags(tags, more []model.Tag) []model.Tag {
	if len(more) == 0 {
		return tags
	}
	all := slices.Clone(tags)
	for _, t := range more {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// unpackChange reads the column changes; nil for none.
func unpackChange(text string) (*model.Change, error) {
	if text == "" {
		return nil, nil
	}
	c := &model.Change{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("column changes: %w", err)
	}
	return c, nil
}

// packChange writes the column changes.
func packChange(c *model.Change) string {
	if c == nil {
		return ""
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("confdb: pack change: %v", err)) // only texts and numbers
	}
	if string(b) == "{}" {
		return ""
	}
	return string(b)
}

func unpackInstance(text string) (map[string]string, error) {
	if text == "" || text == noMacros {
		return nil, nil
	}
	var macros map[string]string
	if err := json.Unmarshal([]byte(text), &macros); err != nil {
		return nil, fmt.Errorf("column instance: %w", err)
	}
	return macros, nil
}
