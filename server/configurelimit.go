package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confcache"
	"tidemark/expr"
	"tidemark/model"
)

// People who may change only the hosts of some groups change them within these bounds (docs/design/0033-people.md): a host stays in their
// groups and names no item of a host that they must not see, because a problem or a calculated value would tell of it.

// editable reports whether the caller may change a host. One that is not visible, or may only be seen, does not exist here.
func (c *configurator) editable(ctx context.Context, name string) error {
	who := access.From(ctx)
	if who.SeesAllHosts() {
		return nil
	}
	h, ok := c.server.cache.Snapshot().Host(name)
	if !ok || who.OnHost(h.Groups) < model.Editor {
		return api.NotFound("there is no host of this name that you may change")
	}
	return nil
}

// limits is what a limited caller may do, at one moment.
type limits struct {
	who      *access.Identity
	snapshot *confcache.Snapshot
	visible  api.Visible
	// template returns a template's name.
	template func(model.TemplateID) string
	// host is the technical name of the host that the document is of.
	host string
}

// limit refuses a document of a host that goes beyond what the caller may do, and returns it as it is to be taken. It is nothing for those who
// see all hosts.
func (c *configurator) limit(ctx context.Context, text []byte) ([]byte, error) {
	who := access.From(ctx)
	if who.SeesAllHosts() {
		return text, nil
	}
	s := c.server.cache.Snapshot()
	l := &limits{who: who, snapshot: s, visible: api.VisibleHosts(who, s.Hosts()), template: c.server.templateName}
	document, err := l.read(text)
	if err != nil {
		return nil, err
	}
	// What was looked at is what is taken: another reader might understand the same text in another way.
	text, err = json.Marshal(document)
	if err != nil {
		return nil, err
	}
	x, err := c.draft(ctx, text, l.host)
	if err != nil {
		return nil, err
	}
	return spread(text, true), l.compiled(x)
}

// limitOn is limit for a trial on a host, of which the document must be.
func (c *configurator) limitOn(ctx context.Context, text []byte, host string) ([]byte, error) {
	if access.From(ctx).SeesAllHosts() {
		return text, nil
	}
	if err := c.editable(ctx, host); err != nil {
		return nil, err
	}
	return c.limit(ctx, text)
}

func denied(format string, args ...any) error {
	return &api.Error{Status: http.StatusUnprocessableEntity, Code: "beyond_rights", Message: fmt.Sprintf(format, args...)}
}

// read checks the text of a document.
func (l *limits) read(text []byte) (map[string]any, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, api.BadRequest("the document is no JSON, which it must be for people who may change only some hosts: " + err.Error())
	}
	export, _ := document["zabbix_export"].(map[string]any)
	hosts, _ := export["hosts"].([]any)
	if len(hosts) != 1 || len(document) != 1 {
		return nil, api.BadRequest("the document is not of one host")
	}
	for part := range export {
		switch part {
		case "version", "date", "hosts", "triggers", "graphs":
		case "groups", "host_groups": // groups are named by their hosts
			delete(export, part)
		default:
			return nil, denied("the document has %.40q, which concerns more than one host", part)
		}
	}
	host, _ := hosts[0].(map[string]any)
	l.host, _ = host["host"].(string)
	if err := l.groups(host); err != nil {
		return nil, err
	}
	return document, l.walk(export, false)
}

// groups checks that a host comes into no group, and leaves none, in which the caller may not change hosts.
func (l *limits) groups(host map[string]any) error {
	var before, after []string
	if h, ok := l.snapshot.Host(l.host); ok {
		if l.who.OnHost(h.Groups) < model.Editor {
			return api.NotFound("there is no host of this name that you may change")
		}
		before = h.Groups
	}
	list, _ := host["groups"].([]any)
	for _, one := range list {
		group, _ := one.(map[string]any)
		name, _ := group["name"].(string)
		after = append(after, name)
	}
	for _, name := range slices.Concat(before, after) {
		if slices.Contains(before, name) != slices.Contains(after, name) && l.who.OnHost([]string{name}) < model.Editor {
			return denied("a host cannot be put into or taken out of a host group whose hosts you may not change")
		}
	}
	if l.who.OnHost(after) < model.Editor {
		return denied("the host would be in no host group whose hosts you may change")
	}
	return nil
}

// templates checks that only templates are linked that a visible host has: what they hold was looked at then.
func (l *limits) templates(value any) error {
	list, _ := value.([]any)
	for _, one := range list {
		linked, _ := one.(map[string]any)
		name, _ := linked["name"].(string)
		if !l.linked(name) {
			return denied("the template %.100q is linked to no host that you may see; ask somebody who may change all hosts to link it first", name)
		}
	}
	return nil
}

func (l *limits) linked(template string) bool {
	for h := range l.snapshot.Hosts() {
		if !l.visible.Has(h.ID) {
			continue
		}
		if slices.ContainsFunc(h.Templates, func(id model.TemplateID) bool { return l.template(id) == template }) {
			return true
		}
	}
	return false
}

// mayRefer reports whether an item of a host may be named.
func (l *limits) mayRefer(host string) bool {
	if host == "" || host == l.host || host == "{HOST.HOST}" || host == "{HOST.HOST1}" {
		return true
	}
	h, ok := l.snapshot.Host(host)
	return ok && l.visible.Has(h.ID)
}

// walk looks at all texts of a document. prototype is true inside discovery rules.
func (l *limits) walk(node any, prototype bool) error {
	switch node := node.(type) {
	case []any:
		for _, one := range node {
			if err := l.walk(one, prototype); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, value := range node {
			// Bodies of prototypes and rules are kept as texts, and their reader takes "Group" for "group".
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return denied("the document has a field %.40q; names of fields have small letters, digits and underscores only", name)
			}
			if err := l.member(node, name, value, prototype); err != nil {
				return err
			}
			if err := l.walk(value, prototype || name == "discovery_rules"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *limits) member(of map[string]any, name string, value any, prototype bool) error {
	switch name {
	case "group_links", "group_prototypes":
		return l.prototypeGroups(value)
	case "templates": // of the host, of hosts that discovery makes, of an override
		return l.templates(value)
	case "item": // of a graph
		item, _ := value.(map[string]any)
		if host, ok := item["host"].(string); ok && !l.mayRefer(host) {
			return denied("a graph names an item of a host that you may not see")
		}
	}
	text, ok := value.(string)
	if !ok {
		return nil
	}
	_, macro := of["macro"]
	switch {
	case name == "expression" || name == "recovery_expression" || name == "params" && of["type"] == "CALCULATED":
		return l.expression(text, prototype)
	case name == "value" && macro && makesExpressions(text):
		return denied("the value of the macro %v holds an expression, which only people who may change all hosts may set", of["macro"])
	}
	// Expressions stand in names, operational data and tags too.
	for rest := text; ; {
		at := strings.Index(rest, "{?")
		if at < 0 {
			return nil
		}
		rest = rest[at+2:]
		if err := l.expression(rest, true); err != nil {
			return err
		}
	}
}

// makesExpressions reports whether the value of a macro can become an expression, or a part of one, where the macro stands in a text.
func makesExpressions(value string) bool {
	if strings.HasPrefix(value, "?") || len(expr.Hosts(value)) > 0 {
		return true
	}
	for i := range len(value) {
		if value[i] == '{' && (i+1 == len(value) || !strings.ContainsRune("$#ABCDEFGHIJKLMNOPQRSTUVWXYZ", rune(value[i+1]))) {
			return true
		}
	}
	return false
}

func (l *limits) prototypeGroups(value any) error {
	list, _ := value.([]any)
	for _, one := range list {
		link, _ := one.(map[string]any)
		if group, ok := link["group"].(map[string]any); ok {
			link = group
		}
		if name, _ := link["name"].(string); l.who.OnHost([]string{name}) < model.Editor {
			return denied("discovery would make hosts in a host group whose hosts you may not change")
		}
	}
	return nil
}

// expression checks what an expression names. In a prototype, values of macros are not known: they may stand in parameters of keys and in
// strings only, where they name nothing.
func (l *limits) expression(text string, prototype bool) error {
	for _, host := range expr.Hosts(text) {
		if !l.mayRefer(host) {
			return denied("the expression %.200q names an item of a host that you may not see", text)
		}
	}
	if bare := unquoted(text); prototype && (strings.Contains(bare, "{#") || strings.Contains(bare, "{$")) {
		return denied("the expression %.200q has a macro outside of strings and of parameters of keys, where only people who may change all hosts may put one: its value is not known now", text)
	}
	return nil
}

// unquoted is a text without what stands in quotes and brackets.
func unquoted(text string) string {
	var b strings.Builder
	quoted, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// compiled checks triggers and calculated items as they would be, with their macros expanded.
func (l *limits) compiled(x *drafted) error {
	check := func(text string) error {
		e, err := expr.ParseFormula(text)
		if err != nil {
			return nil // it is never evaluated
		}
		for _, ref := range e.Refs {
			if !l.mayRefer(ref.Host) {
				return denied("the expression %.200q names an item of a host that you may not see", text)
			}
		}
		return nil
	}
	for t := range x.Triggers() {
		if t.TemplateID != 0 {
			continue
		}
		for _, text := range []string{t.Expression, t.Recovery} {
			if err := check(text); err != nil {
				return err
			}
		}
	}
	items := x.Items(x.host.ID)
	for i := range items {
		if item := &items[i]; item.Type == model.Calculated && item.TemplateID == 0 {
			if err := check(item.Params); err != nil {
				return err
			}
		}
	}
	return nil
}
