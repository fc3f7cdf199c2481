package event

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/expr"
	"tidemark/internal/macrofunc"
	"tidemark/model"
)

const (
	// unknownText stands for a macro without a value, as in Zabbix.
	unknownText = "*UNKNOWN*"
	// maxNameBytes bounds names and operational data, maxTagBytes tag names and values.
	maxNameBytes = 2048
	maxTagBytes  = 255
	// maxMacros bounds the macros of one text.
	maxMacros = 100
)

// describe fills an event with what its trigger says: host, severity, name, operational data, tags.
func (l *Log) describe(ctx context.Context, e *model.Event) {
	t, ok := l.options.Objects.TriggerByID(e.TriggerID)
	if !ok {
		e.Name = "trigger " + strconv.FormatUint(uint64(e.TriggerID), 10)
		return
	}
	e.HostID, e.Severity = t.HostID, t.Severity
	n := l.namer(t, e)
	name := t.EventName
	if name == "" {
		name = t.Name
	}
	e.OpData = cut(n.expand(ctx, t.OpData, 0), maxNameBytes)
	e.Name = cut(n.expand(ctx, name, 0), maxNameBytes)
	for _, tag := range t.Tags {
		e.Tags = append(e.Tags, model.Tag{
			Name: cut(n.expand(ctx, tag.Name, 0), maxTagBytes), Value: cut(n.expand(ctx, tag.Value, 0), maxTagBytes),
		})
	}
}

// namer returns what expands the macros of an event of a trigger.
func (l *Log) namer(t *model.Trigger, e *model.Event) *namer {
	n := &namer{log: l, trigger: t, event: e}
	if parsed, err := expr.Parse(t.Expression); err == nil {
		for i := range parsed.Program.Funcs {
			n.refs = append(n.refs, parsed.Refs[parsed.Program.Funcs[i].Ref])
		}
	}
	return n
}

// cut shortens a text to a number of bytes at the start of a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// namer expands the macros of one event. refs[i] is the item of the expression's function i+1.
type namer struct {
	log     *Log
	trigger *model.Trigger
	event   *model.Event
	refs    []expr.Ref
	// later says that the event was recorded before, perhaps long ago; raw that values come as stored: for a macro function.
	later, raw bool
}

// expand replaces the macros of a text. Macros that are not known stay as they are.
func (n *namer) expand(ctx context.Context, text string, depth int) string {
	var b strings.Builder
	for count := 0; count < maxMacros && b.Len() < 2*maxNameBytes; count++ {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			break
		}
		end := macrofunc.End(text[open:])
		if end < 0 {
			break
		}
		b.WriteString(text[:open])
		b.WriteString(n.macro(ctx, text[open:open+end+1], depth))
		text = text[open+end+1:]
	}
	b.WriteString(text)
	return b.String()
}

// macro returns the value of one macro, given with its braces.
func (n *namer) macro(ctx context.Context, macro string, depth int) string {
	body := macro[1 : len(macro)-1]
	if strings.HasPrefix(body, "{") {
		return n.function(ctx, macro)
	}
	if expression, ok := strings.CutPrefix(body, "?"); ok {
		return n.expression(ctx, expression, depth)
	}
	index := 1
	if last := len(body) - 1; last > 0 && body[last] >= '1' && body[last] <= '9' {
		index, body = int(body[last]-'0'), body[:last]
	}
	kind, _, _ := strings.Cut(body, ".")
	switch kind {
	case "HOST", "HOSTNAME", "ITEM":
		return n.ofItem(ctx, macro, body, index)
	case "TRIGGER":
		return n.ofTrigger(macro, body)
	case "EVENT":
		return n.ofEvent(macro, body)
	}
	return macro
}

// function computes {{MACRO}.function(parameters)}. Of an item's value the function gets what is stored, without its unit, as in Zabbix.
func (n *namer) function(ctx context.Context, macro string) string {
	call, end := macrofunc.Parse(macro, 0)
	if end != len(macro) {
		return macro
	}
	inner := *n
	inner.raw = true
	value := inner.macro(ctx, call.Macro, 0)
	if value == call.Macro {
		return macro
	}
	out, err := call.Apply(value)
	if err != nil {
		return unknownText
	}
	return out
}

// expression evaluates {?…}. An empty host (//key) is that of the first function. Macros within it may not bring in other hosts than those that the
// text and the trigger's expression name: their values come from outside.
func (n *namer) expression(ctx context.Context, expression string, depth int) string {
	if n.log.options.Expressions == nil || depth > 0 {
		return unknownText
	}
	named := expr.Hosts(expression)
	expression = n.expand(ctx, expression, depth+1)
	if len(n.refs) > 0 {
		expression = strings.ReplaceAll(expression, "(//", "(/"+n.refs[0].Host+"/")
	}
	if parsed, err := expr.Parse(expression); err == nil && slices.ContainsFunc(parsed.Refs, func(r expr.Ref) bool { return !n.mayRead(r.Host, named) }) {
		return unknownText
	}
	text, err := n.log.options.Expressions.EvaluateText(ctx, expression, n.event.At)
	if err != nil {
		return unknownText
	}
	return text
}

// mayRead reports whether an expression macro may read items of a host: one that it names, or the trigger's expression does.
func (n *namer) mayRead(host string, named []string) bool {
	return host == "" || slices.Contains(named, host) || slices.ContainsFunc(n.refs, func(r expr.Ref) bool { return r.Host == host })
}

// ofItem returns {HOST.*} and {ITEM.*} of a function's item.
func (n *namer) ofItem(ctx context.Context, macro, body string, index int) string {
	if index > len(n.refs) {
		return unknownText
	}
	ref := n.refs[index-1]
	objects := n.log.options.Objects
	if body == "HOST.HOST" || body == "HOSTNAME" {
		return ref.Host
	}
	if body == "HOST.NAME" || body == "HOST.ID" {
		host, ok := objects.HostByName(ref.Host)
		switch {
		case !ok:
			return unknownText
		case body == "HOST.ID":
			return strconv.FormatUint(uint64(host.ID), 10)
		case host.Name == "":
			return host.Host
		}
		return host.Name
	}
	item, ok := objects.ItemOf(ref.Host, ref.Key)
	if !ok {
		return unknownText
	}
	switch body {
	case "ITEM.NAME":
		return item.Name
	case "ITEM.KEY":
		return item.Key
	case "ITEM.ID":
		return strconv.FormatUint(uint64(item.ID), 10)
	case "ITEM.DESCRIPTION":
		return item.Description
	case "HOST.CONN", "HOST.IP", "HOST.DNS", "HOST.PORT":
		return n.address(ref.Host, item, body)
	case "ITEM.VALUE", "ITEM.LASTVALUE":
		return n.value(ctx, item, body == "ITEM.LASTVALUE")
	}
	return macro
}

// address returns where the host of an item is reached.
func (n *namer) address(name string, item *model.Item, body string) string {
	host, ok := n.log.options.Objects.HostByName(name)
	if !ok {
		return unknownText
	}
	at := host.InterfaceFor(item)
	if at == nil {
		return unknownText
	}
	text := map[string]string{"HOST.CONN": at.Address, "HOST.IP": at.IP, "HOST.DNS": at.DNS, "HOST.PORT": at.Port}[body]
	return cmp.Or(text, unknownText)
}

// value returns an item's value at the event's time, or its newest, with its units.
func (n *namer) value(ctx context.Context, item *model.Item, newest bool) string {
	if n.log.options.Values == nil {
		return unknownText
	}
	text, ok := n.valueText(ctx, item.ID, newest)
	if !ok {
		return unknownText
	}
	if n.raw {
		return text
	}
	if mapped, ok := item.ValueMap.Map(text, item.ValueType.Numeric()); ok {
		return mapped + " (" + text + ")"
	}
	if !item.ValueType.Numeric() {
		return text
	}
	return withUnits(text, item.Units)
}

func (n *namer) valueText(ctx context.Context, item model.ItemID, newest bool) (string, bool) {
	if n.later && !newest {
		return n.log.pastText(ctx, n.event, item)
	}
	at := n.event.At
	if newest {
		at = max(at, n.log.options.Now().Add(time.Hour).UnixNano())
	}
	return n.log.options.Values.LastText(ctx, item, at)
}

func (n *namer) ofTrigger(macro, body string) string {
	t := n.trigger
	switch body {
	case "TRIGGER.NAME":
		return t.Name
	case "TRIGGER.ID":
		return strconv.FormatUint(uint64(t.ID), 10)
	case "TRIGGER.SEVERITY":
		return t.Severity.String()
	case "TRIGGER.NSEVERITY":
		return strconv.Itoa(int(t.Severity))
	case "TRIGGER.EXPRESSION":
		expression, _ := t.Shown()
		return expression
	case "TRIGGER.EXPRESSION.RECOVERY":
		_, recovery := t.Shown()
		return recovery
	case "TRIGGER.DESCRIPTION", "TRIGGER.COMMENT":
		return t.Comments
	case "TRIGGER.URL":
		return t.URL
	case "TRIGGER.STATUS":
		return status(n.event.Problem)
	case "TRIGGER.VALUE":
		return value(n.event.Problem)
	}
	return macro
}

func (n *namer) ofEvent(macro, body string) string {
	e := n.event
	at := time.Unix(0, e.At).In(n.log.options.Zone)
	switch body {
	case "EVENT.ID":
		return strconv.FormatUint(uint64(e.ID), 10)
	case "EVENT.DATE":
		return at.Format("2006.01.02")
	case "EVENT.TIME":
		return at.Format("15:04:05")
	case "EVENT.TIMESTAMP":
		return strconv.FormatInt(at.Unix(), 10)
	case "EVENT.SEVERITY":
		return e.Severity.String()
	case "EVENT.NSEVERITY":
		return strconv.Itoa(int(e.Severity))
	case "EVENT.STATUS":
		return status(e.Problem)
	case "EVENT.VALUE":
		return value(e.Problem)
	case "EVENT.OPDATA":
		return e.OpData
	}
	return macro
}

func status(problem bool) string {
	if problem {
		return "PROBLEM"
	}
	return "OK"
}

func value(problem bool) string {
	if problem {
		return "1"
	}
	return "0"
}
