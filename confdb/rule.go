package confdb

import (
	"encoding/json"
	"fmt"
	"slices"

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
