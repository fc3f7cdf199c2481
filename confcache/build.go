package confcache

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

// defaultRetention is for items whose retention cannot be read: rather too much than nothing.
const defaultRetention = 90 * 24 * time.Hour

// builder makes a snapshot out of an older one and the hosts that changed.
type builder struct {
	old      *Snapshot
	next     *Snapshot
	items    *tableBuilder[model.Item]
	triggers *tableBuilder[model.Trigger]
	changes  *Changes
	global   macroLevel
	faults   []Fault
}

func newBuilder(old *Snapshot, revision uint64, global Globals) *builder {
	next := &Snapshot{revision: revision, hosts: maps.Clone(old.hosts), byName: maps.Clone(old.byName), global: global.Macros, regexps: compileRegexps(global.Regexps)}
	return &builder{
		old: old, next: next, items: old.items.builder(), triggers: old.triggers.builder(),
		changes: &Changes{Snapshot: next}, global: newLevel(global.Macros),
	}
}

// remove takes a host out.
func (b *builder) remove(id model.HostID) {
	e := b.next.hosts[id]
	if e == nil {
		return
	}
	b.changes.DeletedHosts = append(b.changes.DeletedHosts, id)
	b.drop(e)
	b.replaced(e, &entry{})
}

func (b *builder) drop(e *entry) {
	delete(b.next.hosts, e.host.ID)
	if b.next.byName[e.host.Host] == e {
		delete(b.next.byName, e.host.Host)
	}
}

// put adds or replaces a host.
func (b *builder) put(c *model.HostConfig) {
	before := b.next.hosts[c.Host.ID]
	if before != nil {
		b.drop(before)
	} else {
		before = &entry{}
	}
	e := b.entry(c)
	b.next.hosts[e.host.ID], b.next.byName[e.host.Host] = e, e
	b.changes.Hosts = append(b.changes.Hosts, e.host.ID)
	b.faults = append(b.faults, e.faults...)
	b.replaced(before, e)
}

// replaced brings the tables and the change set in line with a host that was replaced.
func (b *builder) replaced(before, after *entry) {
	items, deletedItems := replace(b.items, before.items, after.items, func(i *model.Item) model.ItemID { return i.ID })
	triggers, deletedTriggers := replace(b.triggers, before.triggers, after.triggers, func(t *model.Trigger) model.TriggerID { return t.ID })
	b.changes.Items, b.changes.DeletedItems = append(b.changes.Items, items...), append(b.changes.DeletedItems, deletedItems...)
	b.changes.Triggers, b.changes.DeletedTriggers = append(b.changes.Triggers, triggers...), append(b.changes.DeletedTriggers, deletedTriggers...)
}

// replace puts the objects of a host into their table instead of those before, and tells which are new or differ and which are gone.
func replace[K ~uint64, T any](table *tableBuilder[T], before, after []T, id func(*T) K) (changed []*T, deleted []K) {
	old := make(map[K]*T, len(before))
	for i := range before {
		old[id(&before[i])] = &before[i]
	}
	for i := range after {
		v := &after[i]
		key := id(v)
		if was := old[key]; was == nil || !reflect.DeepEqual(was, v) {
			changed = append(changed, v)
		}
		delete(old, key)
		table.set(uint64(key), v)
	}
	for key := range old {
		deleted = append(deleted, key)
		table.set(uint64(key), nil)
	}
	return changed, deleted
}

func (b *builder) finish() *Changes {
	b.next.items, b.next.triggers = b.items.table, b.triggers.table
	b.next.order = slices.Sorted(maps.Keys(b.next.hosts))
	b.changes.sort()
	return b.changes
}

func (c *Changes) sort() {
	slices.Sort(c.Hosts)
	slices.Sort(c.DeletedHosts)
	slices.Sort(c.DeletedItems)
	slices.Sort(c.DeletedTriggers)
	slices.SortFunc(c.Items, func(x, y *model.Item) int { return int(x.ID) - int(y.ID) })
	slices.SortFunc(c.Triggers, func(x, y *model.Trigger) int { return int(x.ID) - int(y.ID) })
}

// hostBuilder makes one host.
type hostBuilder struct {
	*builder
	*entry
	macros macros
	names  *strings.Replacer
	// masters are the keys of the master items of dependent ones, by place in items.
	masters map[int32]string
	// aliases are byAlias of the entry before it is known which of them other items have as their key.
	aliases map[string]int32
	// hasSecrets says that one of the macros is secret; accessSecrets are those in how SNMP and IPMI interfaces are spoken to.
	hasSecrets    bool
	accessSecrets []model.Macro
}

func (b *builder) entry(c *model.HostConfig) *entry {
	h := &hostBuilder{builder: b, entry: &entry{host: c.Host}}
	for _, list := range [][]model.Macro{c.Host.Macros, c.TemplateMacros} {
		h.macros.levels = append(h.macros.levels, newLevel(list))
		h.hasSecrets = h.hasSecrets || slices.ContainsFunc(list, isSecret)
	}
	h.macros.levels = append(h.macros.levels, b.global)
	h.hasSecrets = h.hasSecrets || slices.ContainsFunc(b.next.global, isSecret)
	h.names = strings.NewReplacer("{HOST.HOST}", c.Host.Host, "{HOST.NAME}", c.Host.Name)
	h.interfaces()
	h.entry.items = make([]model.Item, 0, len(c.Items))
	h.byKey = make(map[string]int32, len(c.Items))
	for i := range c.Items {
		h.item(&c.Items[i])
	}
	h.keepAliases()
	h.resolveMasters()
	h.markRemote()
	h.entry.rules = make([]model.Rule, len(c.Rules))
	for i := range c.Rules {
		h.entry.rules[i] = h.rule(c.Rules[i])
	}
	active := 0
	for i := range h.entry.items {
		if isActive(&h.entry.items[i]) {
			active++
		}
	}
	h.active = make([]*model.Item, 0, active)
	for i := range h.entry.items {
		if isActive(&h.entry.items[i]) {
			h.active = append(h.active, &h.entry.items[i])
		}
	}
	h.entry.triggers = make([]model.Trigger, len(c.Triggers))
	for i := range c.Triggers {
		h.entry.triggers[i] = h.trigger(c.Triggers[i])
	}
	return h.entry
}

// interfaces expands the macros in where the host is reached.
func (h *hostBuilder) interfaces() {
	list := slices.Clone(h.entry.host.Interfaces)
	for i := range list {
		at := &list[i]
		fields := []*string{&at.Address, &at.Port, &at.IP, &at.DNS}
		if at.SNMP != nil {
			access := *at.SNMP
			at.SNMP = &access
			fields = append(fields, &access.Community, &access.Context, &access.SecurityName, &access.AuthPassphrase, &access.PrivPassphrase)
		}
		var errs []error
		for _, field := range fields {
			var err error
			h.accessSecrets = h.noteSecrets(h.accessSecrets, *field)
			*field, err = h.macros.expand(*field)
			*field = h.names.Replace(*field) // last: a name may come from outside, and no macro of it is expanded
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			h.fault("interface "+list[i].Address, err)
		}
	}
	h.entry.host.Interfaces = list
	if h.entry.host.IPMI != nil {
		access := *h.entry.host.IPMI
		h.accessSecrets = h.noteSecrets(h.noteSecrets(h.accessSecrets, access.Username), access.Password)
		var errs [2]error
		access.Username, errs[0] = h.macros.expand(access.Username)
		access.Password, errs[1] = h.macros.expand(access.Password)
		if err := errors.Join(errs[:]...); err != nil {
			h.fault("IPMI access", err)
		}
		h.entry.host.IPMI = &access
	}
}

func isSecret(m model.Macro) bool { return m.Secret }

// noteSecrets adds to a list the secret macros of a text.
func (h *hostBuilder) noteSecrets(list []model.Macro, text string) []model.Macro {
	if !h.hasSecrets || !strings.Contains(text, "{$") {
		return list
	}
	for _, m := range h.macros.secrets(text) {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func isActive(i *model.Item) bool { return i.Enabled && i.Type == model.ActiveAgent }

func (h *hostBuilder) fault(object string, err error) {
	h.entry.faults = append(h.entry.faults, Fault{Host: h.host.Host, Object: object, Reason: err.Error()})
}

// item expands one item. One that cannot be used is kept, switched off, and becomes a fault; one whose key another item
// of the host has after macros are expanded is left out.
func (h *hostBuilder) item(c *model.ItemConfig) {
	i := c.Item
	var errs [10]error
	if i.AllowedHosts != "" {
		i.AllowedHosts, errs[8] = h.macros.expand(i.AllowedHosts)
		i.AllowedHosts = h.names.Replace(i.AllowedHosts)
	}
	i.Key, errs[0] = h.macros.key(i.Key)
	i.Delay, errs[1] = h.macros.expand(i.Delay)
	i.Interval, errs[2] = interval(i.Delay)
	i.History, errs[3] = h.retention("history", c.HistoryText)
	i.Trends, errs[4] = h.retention("trends", c.TrendsText)
	i.Steps, errs[5] = h.steps(i.Steps)
	switch {
	case i.Params == "":
	case i.Type == model.Calculated:
		i.Params, errs[6] = h.macros.expandExpression(i.Params)
	default:
		i.Params, errs[6] = h.macros.expand(i.Params)
		i.Params = h.names.Replace(i.Params)
	}
	errs[9] = h.collect(&i, c)
	master := c.MasterKey
	if i.Type == model.Dependent {
		if master, errs[7] = h.macros.key(master); master == "" && errs[7] == nil {
			errs[7] = errors.New("a dependent item without master item")
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		i.Enabled = false
		h.fault(c.Key, errors.New(i.Conceal(err.Error())))
	}
	i.Name = h.macros.show(i.Name)
	if strings.Contains(i.Name, "{HOST.") {
		i.Name = h.names.Replace(i.Name)
	}
	i.Tags = h.tags(i.Tags)
	if _, taken := h.byKey[i.Key]; taken {
		h.fault(c.Key, fmt.Errorf("another item of the host has the key %s", i.Key))
		return
	}
	h.byKey[i.Key] = int32(len(h.entry.items))
	h.alias(&i, c.Key)
	if i.Type == model.Dependent && master != "" {
		if h.masters == nil {
			h.masters = make(map[int32]string)
		}
		h.masters[int32(len(h.entry.items))] = master
	}
	h.entry.items = append(h.entry.items, i)
}

// alias remembers the other keys under which an item is named from outside: the one that an agent is asked for, and the one that its macros were
// written with, which senders of a Zabbix shop have.
func (h *hostBuilder) alias(i *model.Item, written string) {
	for _, key := range [...]string{i.CheckKey(), written} {
		if key == i.Key {
			continue
		}
		if h.aliases == nil {
			h.aliases = make(map[string]int32)
		}
		if _, taken := h.aliases[key]; !taken {
			h.aliases[key] = int32(len(h.entry.items))
		}
	}
}

// keepAliases keeps the aliases that are not the key of another item.
func (h *hostBuilder) keepAliases() {
	maps.DeleteFunc(h.aliases, func(key string, _ int32) bool { _, taken := h.byKey[key]; return taken })
	h.byAlias = h.aliases
}

// resolveMasters finds the master items of dependent ones. An item whose master does not exist is switched off and becomes a fault.
func (h *hostBuilder) resolveMasters() {
	for i := range h.entry.items {
		key, ok := h.masters[int32(i)]
		if !ok {
			continue
		}
		item := &h.entry.items[i]
		n, ok := h.byKey[key]
		if !ok || int(n) == i {
			item.Enabled = false
			h.fault(item.Key, fmt.Errorf("the master item %s does not exist", key))
			continue
		}
		master := &h.entry.items[n]
		item.MasterID = master.ID
		if !item.Enabled {
			continue
		}
		master.HasDependents = true
		if h.dependents == nil {
			h.dependents = make(map[model.ItemID][]*model.Item)
		}
		h.dependents[master.ID] = append(h.dependents[master.ID], item)
	}
}

// markRemote marks the items whose values a proxy asks for and preprocesses: all but calculated ones and what is made of those.
func (h *hostBuilder) markRemote() {
	if h.host.Proxy == 0 {
		return
	}
	for i := range h.entry.items {
		item := &h.entry.items[i]
		source := item
		// A dependent item is at most a few levels below its source; longer chains and rings end here.
		for range maxDependence {
			n, ok := h.byKey[h.masters[h.byKey[source.Key]]]
			if source.Type != model.Dependent || !ok {
				break
			}
			source = &h.entry.items[n]
		}
		item.Remote = source.Type != model.Calculated
	}
}

// maxDependence bounds how many master items are looked at above an item; Zabbix has 3.
const maxDependence = 8

// interval reads the simple part of a delay: "30s", "1m;10s/1-5,9:00-18:00". Zero is for items that nobody asks for and
// for those with custom intervals only.
func interval(delay string) (time.Duration, error) {
	simple, custom, _ := strings.Cut(delay, ";")
	if simple == "" && custom == "" {
		return 0, nil
	}
	d, ok := expr.ParseDuration(simple, false)
	if !ok || d < 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("delay %q; expected 0 to 24h, such as 30s or 1m", delay)
	}
	return d, nil
}

func (h *hostBuilder) retention(what, text string) (time.Duration, error) {
	text, err := h.macros.expand(text)
	if err != nil || text == "" {
		return defaultRetention, err
	}
	d, ok := expr.ParseRetention(text)
	if !ok {
		return defaultRetention, fmt.Errorf("%s %q; expected 0 or up to 25 years, such as 90d", what, text)
	}
	return d, nil
}

// steps expands the macros in preprocessing parameters; without any the list is shared.
func (h *hostBuilder) steps(list []model.Step) ([]model.Step, error) {
	uses := func(s model.Step) bool {
		return strings.Contains(s.FailValue, "{$") ||
			slices.ContainsFunc(s.Params, func(p string) bool { return strings.Contains(p, "{$") })
	}
	if !slices.ContainsFunc(list, uses) {
		return list, nil
	}
	list = slices.Clone(list)
	var errs []error
	for i := range list {
		s := &list[i]
		var err error
		s.FailValue, err = h.macros.expand(s.FailValue)
		errs = append(errs, err)
		s.Params = slices.Clone(s.Params)
		for n := range s.Params {
			s.Params[n], err = h.macros.expand(s.Params[n])
			errs = append(errs, err)
		}
	}
	return list, errors.Join(errs...)
}

// tags expands the macros in tags; without any the list is shared.
func (h *hostBuilder) tags(list []model.Tag) []model.Tag {
	uses := func(t model.Tag) bool {
		return strings.Contains(t.Name, "{$") || strings.Contains(t.Value, "{$") || strings.Contains(t.Value, "{HOST.")
	}
	if !slices.ContainsFunc(list, uses) {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = h.macros.show(list[i].Name)
		list[i].Value = h.names.Replace(h.macros.show(list[i].Value))
	}
	return list
}

// trigger expands one trigger. An expression with an unknown macro is kept as it is: its compiler says what is wrong and
// the trigger's state is unknown. {HOST.NAME} and the like in names are expanded when an event is recorded.
func (h *hostBuilder) trigger(t model.Trigger) model.Trigger {
	written := t
	var errs [2]error
	t.Expression, errs[0] = h.macros.expandExpression(t.Expression)
	t.Recovery, errs[1] = h.macros.expandExpression(t.Recovery)
	t.Expression, t.Recovery = h.next.regexps.inExpression(t.Expression), h.next.regexps.inExpression(t.Recovery)
	if err := errors.Join(errs[:]...); err != nil {
		h.fault(t.Name, err)
	}
	if shown := h.next.regexps.inExpression(h.macros.written(written.Expression)); shown != t.Expression {
		t.ShownExpression = shown
	}
	if shown := h.next.regexps.inExpression(h.macros.written(written.Recovery)); shown != t.Recovery {
		t.ShownRecovery = shown
	}
	for _, field := range []*string{&t.Name, &t.EventName, &t.OpData, &t.URL} {
		*field = h.macros.show(*field)
	}
	t.Tags = h.tags(t.Tags)
	if text := (model.TriggerText{Name: written.Name, Expression: written.Expression, Recovery: written.Recovery}); text != t.AsWritten() {
		t.Written = &text
	}
	return t
}
