package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"tidemark/model"
)

// definitions are what all templates define, decoded once and shared by the hosts that inherit it.
type definitions struct {
	secrets   *sealer
	templates map[model.TemplateID]*template
	byName    map[string]*template
	items     map[int64]*model.ItemConfig
	triggers  map[int64]*triggerDefinition
	// depends are the dependencies between triggers' rows, also those of hosts' own triggers with templates' ones.
	depends map[int64][]int64
	// rules are the discovery rules, also those of hosts; prototypes their item prototypes, others their graph and host prototypes.
	rules      map[int64]*ruleDefinition
	valueMaps  map[model.TemplateID]valueMaps
	prototypes map[int64]*itemPrototype
	others     map[int64]*rulePrototype
}

type template struct {
	id      model.TemplateID
	name    string
	macros  []model.Macro
	tags    []model.Tag
	parents []model.TemplateID
}

// triggerDefinition is a template's trigger or a prototype.
type triggerDefinition struct {
	model.Trigger
	// expression and recovery are split where the name of a host goes: parts joined by it are the text.
	expression, recovery []string
	// macros are the discovery macros that a prototype uses, sorted; keys the item keys that it names.
	macros, keys []string
}

// define returns the definitions, which it reads when a template changed since the last call. They belong to the state
// of the database that tx sees.
func (d *DB) define(ctx context.Context, tx *sql.Tx) (*definitions, error) {
	d.mu.Lock()
	have := d.definitions
	d.mu.Unlock()
	if have != nil {
		return have, nil
	}
	f, err := d.readDefinitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	// There is one connection, so a change that makes this stale can only begin, and then clear it, after tx.
	d.mu.Lock()
	d.definitions = f
	d.mu.Unlock()
	return f, nil
}

// readDefinitions reads the definitions as tx sees them.
func (d *DB) readDefinitions(ctx context.Context, tx *sql.Tx) (*definitions, error) {
	f := &definitions{
		secrets:   d.secrets,
		templates: make(map[model.TemplateID]*template), byName: make(map[string]*template),
		items: make(map[int64]*model.ItemConfig), triggers: make(map[int64]*triggerDefinition), depends: make(map[int64][]int64),
		rules: make(map[int64]*ruleDefinition), valueMaps: make(map[model.TemplateID]valueMaps), prototypes: make(map[int64]*itemPrototype), others: make(map[int64]*rulePrototype),
	}
	for _, read := range []func(context.Context, *sql.Tx) error{
		f.readTemplates, f.readLinks, f.readValueMaps, f.readItems, f.readRules, f.readTriggers, f.readDepends,
	} {
		if err := read(ctx, tx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func rowsOf(ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

func (f *definitions) readTemplates(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		t := &template{}
		var macros, tags string
		err := r.Scan(&t.id, &t.name, &macros, &tags)
		if err == nil {
			t.macros, err = f.secrets.unpackMacros(macros)
		}
		if err == nil {
			t.tags, err = unpackTags(tags)
		}
		f.templates[t.id], f.byName[t.name] = t, t
		return err
	}, "SELECT id, template, macros, tags FROM templates")
}

func (f *definitions) readLinks(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var child, parent model.TemplateID
		err := r.Scan(&child, &parent)
		if t := f.templates[child]; t != nil {
			t.parents = append(t.parents, parent)
		}
		return err
	}, "SELECT template_id, parent_id FROM template_links ORDER BY template_id, parent_id")
}

func (f *definitions) readItems(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id int64
		var t model.TemplateID
		var fields itemFields
		if err := r.Scan(append([]any{&id, &t}, fields.pointers()...)...); err != nil {
			return err
		}
		i := &model.ItemConfig{}
		i.TemplateID = t
		f.items[id] = i
		err := fields.item(i)
		i.ValueMap = f.valueMaps[t][i.ValueMapName]
		return err
	}, "SELECT id, template_id, "+itemColumns+" FROM items WHERE template_id IS NOT NULL AND rule_id IS NULL")
}

// item fills an item from its columns.
func (f *itemFields) item(i *model.ItemConfig) error {
	i.UUID, i.Key, i.Name, i.Type, i.ValueType, i.Enabled = f.uuid, f.key, f.name, f.kind, f.valueType, f.enabled
	i.Delay, i.HistoryText, i.TrendsText, i.Units, i.Description = f.delay, f.history, f.trends, f.units, f.description
	var err error
	if i.Steps, err = unpackSteps(f.steps); err != nil {
		return fmt.Errorf("item %s: steps: %w", f.key, err)
	}
	if i.Tags, err = unpackTags(f.tags); err != nil {
		return fmt.Errorf("item %s: tags: %w", f.key, err)
	}
	if err := f.extras(i); err != nil {
		return fmt.Errorf("item %s: %w", f.key, err)
	}
	if err := f.display(i); err != nil {
		return fmt.Errorf("item %s: %w", f.key, err)
	}
	return nil
}

// extras fills in what only some kinds of items have: formula, master item, from where and how values may be sent, and what
// collectors need.
func (f *itemFields) extras(i *model.ItemConfig) error {
	if f.extra == "" && f.kind != model.HTTPAgent {
		return nil
	}
	extra := itemExtras{FollowRedirects: "YES", StatusCodes: "200"}
	if f.extra != "" {
		if err := json.Unmarshal([]byte(f.extra), &extra); err != nil {
			return fmt.Errorf("column extra: %w", err)
		}
	}
	switch f.kind {
	case model.Calculated, model.Script, model.SSH, model.Telnet, model.Database:
		i.Params = extra.Params
	case model.Dependent:
		i.MasterKey = extra.Master.Key
		return nil
	case model.Trapper, model.HTTPAgent:
		i.AllowedHosts = extra.AllowedHosts
		i.Trapping = f.kind == model.HTTPAgent && (extra.AllowTraps == "YES" || extra.AllowTraps == "1")
	}
	i.TimeoutText = extra.Timeout
	i.Collect = extra.collect(f.kind)
	return nil
}

func (f *definitions) readTriggers(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id, rule int64
		var t model.TemplateID
		var fields triggerFields
		if err := r.Scan(append([]any{&id, &t, &rule}, fields.pointers()...)...); err != nil {
			return err
		}
		def := &triggerDefinition{}
		def.TemplateID = t
		if err := fields.trigger(&def.Trigger); err != nil {
			return err
		}
		def.expression, def.recovery = f.split(def.Expression), f.split(def.Recovery)
		f.triggers[id] = def
		if rule != 0 {
			def.macros = usedMacros(fields.expression, fields.recovery, fields.name, fields.eventName, fields.opdata, fields.tags, fields.comments, fields.url)
			def.keys = refKeys(fields.expression, fields.recovery)
			f.offer(rule, model.Prototype{ID: prototypeID(model.TriggerPrototype, id), Kind: model.TriggerPrototype, Name: fields.name, Discovers: discovers(fields.extra)})
		}
		return nil
	}, "SELECT id, coalesce(template_id, 0), coalesce(rule_id, 0), "+triggerColumns+
		" FROM triggers WHERE template_id IS NOT NULL OR rule_id IS NOT NULL ORDER BY id")
}

// trigger fills a trigger from its columns.
func (f *triggerFields) trigger(t *model.Trigger) error {
	t.UUID, t.Name, t.EventName, t.OpData = f.uuid, f.name, f.eventName, f.opdata
	t.Expression, t.Recovery, t.RecoveryMode, t.Severity = f.expression, f.recovery, f.recoveryMode, f.severity
	t.Enabled, t.MultipleEvents, t.ManualClose = f.enabled, f.multiple, f.manual
	t.Comments, t.URL = f.comments, f.url
	t.CorrelationTag = f.correlation()
	var err error
	if t.Tags, err = unpackTags(f.tags); err != nil {
		return fmt.Errorf("trigger %s: tags: %w", f.name, err)
	}
	return nil
}

// correlation is the tag by which recoveries close problems; empty for all problems.
func (f *triggerFields) correlation() string {
	if !strings.Contains(f.extra, "correlation_tag") {
		return ""
	}
	var extra struct {
		Mode string `json:"correlation_mode"`
		Tag  string `json:"correlation_tag"`
	}
	if json.Unmarshal([]byte(f.extra), &extra) != nil || extra.Mode != "TAG_VALUE" && extra.Mode != "1" {
		return ""
	}
	return extra.Tag
}

// split cuts an expression at the names of templates, which a host's name replaces.
func (f *definitions) split(text string) []string {
	refs, err := itemRefs(text)
	if err != nil {
		return []string{text}
	}
	var parts []string
	last := 0
	for _, r := range refs {
		if f.byName[text[r.hostAt:r.hostEnd]] != nil {
			parts = append(parts, text[last:r.hostAt])
			last = r.hostEnd
		}
	}
	return append(parts, text[last:])
}

func (f *definitions) readDepends(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var id, on int64
		err := r.Scan(&id, &on)
		f.depends[id] = append(f.depends[id], on)
		return err
	}, `SELECT d.trigger_id, d.depends_on FROM trigger_dependencies d JOIN triggers t ON t.id = d.trigger_id
		WHERE t.host_id IS NULL OR t.rule_id IS NOT NULL ORDER BY d.trigger_id, d.depends_on`)
}

// inherited returns the trigger as a host inherits it.
func (t *triggerDefinition) inherited(host string) model.Trigger {
	m := t.Trigger
	m.Expression = strings.Join(t.expression, host)
	m.Recovery = strings.Join(t.recovery, host)
	return m
}

// chain returns the templates of a host, nearest first.
func (f *definitions) chain(direct []model.TemplateID) []*template {
	var chain []*template
	seen := make(map[model.TemplateID]bool)
	for level := direct; len(level) > 0; {
		var next []model.TemplateID
		for _, id := range level {
			if t := f.templates[id]; t != nil && !seen[id] {
				seen[id] = true
				chain, next = append(chain, t), append(next, t.parents...)
			}
		}
		level = next
	}
	return chain
}
