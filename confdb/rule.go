package confdb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tidemark/model"
)

// ruleBody is what is kept of a discovery rule beside its key and name, in the words of exports.
type ruleBody struct {
	Type                string         `json:"type"`
	Delay               string         `json:"delay"`
	Status              string         `json:"status"`
	Description         string         `json:"description"`
	Filter              filterBody     `json:"filter"`
	Lifetime            string         `json:"lifetime"`
	LifetimeType        string         `json:"lifetime_type"`
	EnabledLifetime     string         `json:"enabled_lifetime"`
	EnabledLifetimeType string         `json:"enabled_lifetime_type"`
	Paths               []pathBody     `json:"lld_macro_paths"`
	Steps               []stepBody     `json:"preprocessing"`
	Overrides           []overrideBody `json:"overrides"`
}

type filterBody struct {
	EvalType   string          `json:"evaltype"`
	Formula    string          `json:"formula"`
	Conditions []conditionBody `json:"conditions"`
}

type conditionBody struct {
	Macro     string `json:"macro"`
	Value     string `json:"value"`
	Operator  string `json:"operator"`
	FormulaID string `json:"formulaid"`
}

type pathBody struct {
	Macro string `json:"lld_macro"`
	Path  string `json:"path"`
}

type stepBody struct {
	Type    string   `json:"type"`
	Params  []string `json:"parameters"`
	Handler string   `json:"error_handler"`
	Value   string   `json:"error_handler_params"`
}

type overrideBody struct {
	Name       string          `json:"name"`
	Step       string          `json:"step"`
	Stop       string          `json:"stop"`
	Filter     filterBody      `json:"filter"`
	Operations []operationBody `json:"operations"`
}

type operationBody struct {
	Object    string `json:"operationobject"`
	Operator  string `json:"operator"`
	Value     string `json:"value"`
	Status    string `json:"status"`
	Discover  string `json:"discover"`
	Delay     string `json:"delay"`
	History   string `json:"history"`
	Trends    string `json:"trends"`
	Severity  string `json:"severity"`
	Inventory string `json:"inventory_mode"`
	Tags      []struct {
		Tag   string `json:"tag"`
		Value string `json:"value"`
	} `json:"tags"`
	Templates []struct {
		Name string `json:"name"`
	} `json:"templates"`
}

// The names of exports for the numbers of rules.
var (
	filterKinds = map[string]model.FilterKind{
		"": model.FilterAndOr, "AND_OR": model.FilterAndOr, "AND": model.FilterAnd, "OR": model.FilterOr, "FORMULA": model.FilterFormula,
	}
	conditionOperators = map[string]model.ConditionOperator{
		"": model.MatchesRegex, "MATCHES_REGEX": model.MatchesRegex, "NOT_MATCHES_REGEX": model.NotMatchesRegex,
		"EXISTS": model.MacroExists, "NOT_EXISTS": model.MacroNotExists,
	}
	nameOperators = map[string]model.NameOperator{
		"": model.NameEquals, "EQUAL": model.NameEquals, "NOT_EQUAL": model.NameDiffers, "LIKE": model.NameContains,
		"NOT_LIKE": model.NameContainsNot, "REGEXP": model.NameMatches, "NOT_REGEXP": model.NameMatchesNot,
	}
	prototypeKinds = map[string]model.PrototypeKind{
		"ITEM_PROTOTYPE": model.ItemPrototype, "TRIGGER_PROTOTYPE": model.TriggerPrototype, "GRAPH_PROTOTYPE": model.GraphPrototype,
		"HOST_PROTOTYPE": model.HostPrototype,
	}
	lifetimeKinds = map[string]model.LifetimeKind{
		"DELETE_AFTER": model.LifetimeAfter, "DELETE_NEVER": model.LifetimeNever, "DELETE_IMMEDIATELY": model.LifetimeImmediately,
		"DISABLE_AFTER": model.LifetimeAfter, "DISABLE_NEVER": model.LifetimeNever, "DISABLE_IMMEDIATELY": model.LifetimeImmediately,
	}
)

// prototypeID makes one id space of the rows of three tables.
func prototypeID(kind model.PrototypeKind, row int64) model.PrototypeID {
	return model.PrototypeID(row)<<2 | model.PrototypeID(kind)
}

// prototypeRow is the reverse of prototypeID.
func prototypeRow(id model.PrototypeID) (model.PrototypeKind, int64) {
	return model.PrototypeKind(id & 3), int64(id >> 2)
}

// ruleDefinition is a discovery rule as a template or host defines it.
type ruleDefinition struct {
	item model.ItemConfig
	rule model.Rule
}

// defineRule decodes a rule. What its body does not say has the values of Zabbix 7.0.
func defineRule(id int64, f *ruleFields) (*ruleDefinition, error) {
	body := ruleBody{}
	text := f.body
	if text == "" {
		text = "{}"
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		return nil, fmt.Errorf("discovery rule %s: %w", f.key, err)
	}
	kind, ok := itemTypes[body.Type]
	if !ok {
		kind = model.PassiveAgent
	}
	item := itemFields{
		uuid: f.uuid, key: f.key, name: f.name, kind: kind, valueType: model.Text, enabled: body.Status != "DISABLED",
		delay: body.Delay, history: "0", trends: "0", description: body.Description, steps: body.steps(), extra: text,
	}
	if item.delay == "" {
		item.delay = defaultDelay(kind)
	}
	d := &ruleDefinition{rule: model.Rule{
		ID: model.RuleID(id), Key: f.key, Name: f.name, Filter: body.Filter.filter(),
		Deletes:  lifetime(body.LifetimeType, body.Lifetime, "7d", model.LifetimeAfter),
		Disables: lifetime(body.EnabledLifetimeType, body.EnabledLifetime, "0", model.LifetimeImmediately),
	}}
	if err := item.item(&d.item); err != nil {
		return nil, err
	}
	d.item.RuleID = model.RuleID(id)
	for _, p := range body.Paths {
		d.rule.Paths = append(d.rule.Paths, model.MacroPath{Macro: p.Macro, Path: p.Path})
	}
	slices.SortStableFunc(body.Overrides, func(a, b overrideBody) int { return atoi(a.Step) - atoi(b.Step) })
	for i := range body.Overrides {
		d.rule.Overrides = append(d.rule.Overrides, body.Overrides[i].override())
	}
	return d, nil
}

// atoi is the small number that a text says, else zero.
func atoi(text string) int {
	var n int
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return 0
	}
	return n
}

func lifetime(kind, text, missing string, otherwise model.LifetimeKind) model.Lifetime {
	l := model.Lifetime{Kind: otherwise, Text: text}
	if k, ok := lifetimeKinds[kind]; ok {
		l.Kind = k
	} else if text != "" {
		l.Kind = model.LifetimeAfter
	}
	if l.Text == "" {
		l.Text = missing
	}
	return l
}

func (b *ruleBody) steps() string {
	steps := make([]packedStep, 0, len(b.Steps))
	for _, s := range b.Steps {
		steps = append(steps, packedStep{Type: stepTypes[s.Type], Params: s.Params, OnFail: failActions[s.Handler], Value: s.Value})
	}
	return pack(steps)
}

func (b *filterBody) filter() model.Filter {
	f := model.Filter{Kind: filterKinds[b.EvalType], Formula: b.Formula}
	for _, c := range b.Conditions {
		f.Conditions = append(f.Conditions, model.Condition{
			ID: c.FormulaID, Macro: c.Macro, Operator: conditionOperators[c.Operator], Value: c.Value,
		})
	}
	return f
}

func (b *overrideBody) override() model.Override {
	o := model.Override{Name: b.Name, Filter: b.Filter.filter()}
	switch b.Stop {
	case "STOP", "YES", "1", "true":
		o.Stops = true
	}
	for i := range b.Operations {
		o.Operations = append(o.Operations, b.Operations[i].operation())
	}
	return o
}

func (b *operationBody) operation() model.Operation {
	o := model.Operation{Kind: prototypeKinds[b.Object], Operator: nameOperators[b.Operator], Value: b.Value}
	c := &o.Change
	if b.Status != "" {
		on := b.Status != "DISABLED"
		c.Enabled = &on
	}
	if b.Discover != "" {
		discover := b.Discover != "NO_DISCOVER"
		c.Discover = &discover
	}
	if s, ok := severities[b.Severity]; ok {
		c.Severity = &s
	}
	c.Delay, c.History, c.Trends, c.Inventory = b.Delay, b.History, b.Trends, b.Inventory
	for _, t := range b.Tags {
		c.Tags = append(c.Tags, model.Tag{Name: t.Tag, Value: t.Value})
	}
	for _, t := range b.Templates {
		c.Templates = append(c.Templates, t.Name)
	}
	return o
}

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
	if formula, ok := all["params"].(string); ok && kind == model.Calculated {
		all["params"] = expandExpression(formula, macros)
	}
	if master, ok := all["master_item"].(map[string]any); ok {
		if key, ok := master["key"].(string); ok {
			master["key"] = expandKey(key, macros)
		}
	}
	b, err := json.Marshal(expandAny(all, macros))
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
