package alert

import (
	"context"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/alert/media"
	"tidemark/model"
)

const (
	// unknownText stands for a macro without a value, as in Zabbix.
	unknownText = "*UNKNOWN*"
	// maxMacros bounds the macros of one text.
	maxMacros = 1000
	dateForm  = "2006.01.02"
	timeForm  = "15:04:05"
)

// texts expands the macros of the messages of one occasion.
type texts struct {
	alerter *Alerter
	o       *occasion
	base    func(string) string
	// known are macros that were expanded before: one occasion may have many receivers.
	known map[string]string
	// updates reads what was done to the problem.
	updates func() ([]model.ProblemUpdate, error)
}

func (a *Alerter) newTexts(ctx context.Context, o *occasion) *texts {
	id := o.escalation.Problem.ID
	return &texts{
		alerter: a, o: o, base: a.options.Names.Macros(ctx, &o.escalation.Problem), known: make(map[string]string),
		updates: func() ([]model.ProblemUpdate, error) { return a.options.Store.ProblemUpdates(ctx, id) },
	}
}

// host is the visible name of the event's host.
func (t *texts) host() string {
	if h, ok := t.alerter.options.Objects.HostByID(t.o.escalation.Problem.HostID); ok {
		if h.Name != "" {
			return h.Name
		}
		return h.Host
	}
	return ""
}

// fill expands a text for one receiver.
func (t *texts) fill(text Text, target model.AlertTarget, asHTML bool) (subject, body string) {
	own := map[string]string{"{ALERT.SENDTO}": target.To}
	value := func(macro string) string {
		if v, ok := own[macro]; ok {
			return v
		}
		return t.macro(macro)
	}
	subject = strings.TrimSpace(expand(text.Subject, media.MaxSubjectBytes, value))
	own["{ALERT.SUBJECT}"] = subject
	if asHTML {
		plain := value
		value = func(macro string) string { return html.EscapeString(plain(macro)) }
	}
	return subject, strings.TrimSpace(expand(text.Message, maxTextBytes, value))
}

// expand replaces the macros of a text, and cuts the result to a number of bytes.
func expand(text string, limit int, value func(string) string) string {
	var b strings.Builder
	for count := 0; count < maxMacros && b.Len() < limit; count++ {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			break
		}
		end := closing(text[open:])
		if end < 0 {
			break
		}
		b.WriteString(text[:open])
		b.WriteString(value(text[open : open+end+1]))
		text = text[open+end+1:]
	}
	b.WriteString(text)
	return cut(b.String(), limit)
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

// closing returns the place of the brace that closes the one text begins with, or −1. Quoted braces in {?…} and in functions do not count.
func closing(text string) int {
	depth, quoted := 0, false
	quotes := strings.HasPrefix(text, "{?") || strings.HasPrefix(text, "{{")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && quotes:
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// macro returns the value of a macro, given with its braces.
func (t *texts) macro(macro string) string {
	if v, ok := t.known[macro]; ok {
		return v
	}
	v := t.evaluate(macro)
	t.known[macro] = v
	return v
}

func (t *texts) evaluate(macro string) string {
	body := macro[1 : len(macro)-1]
	if strings.HasPrefix(body, "{") {
		return t.function(macro, body)
	}
	switch {
	case strings.HasPrefix(body, "EVENT."):
		if v, ok := t.event(strings.TrimPrefix(body, "EVENT.")); ok {
			return v
		}
	case strings.HasPrefix(body, "TRIGGER.HOSTGROUP.NAME"):
		if h, ok := t.alerter.options.Objects.HostByID(t.o.escalation.Problem.HostID); ok {
			return strings.Join(h.Groups, ", ")
		}
		return unknownText
	case body == "TRIGGER.TEMPLATE.NAME":
		return t.template()
	}
	now := time.Unix(0, t.o.now).In(t.alerter.options.Zone)
	switch body {
	case "ACTION.NAME":
		return t.o.action.Name
	case "DATE":
		return now.Format(dateForm)
	case "TIME":
		return now.Format(timeForm)
	case "TIMESTAMP":
		return strconv.FormatInt(now.Unix(), 10)
	case "TRIGGER.VALUE":
		return number(t.o.kind != model.AlertRecovery)
	case "TRIGGER.STATUS":
		return status(t.o.kind != model.AlertRecovery)
	case "ACK.MESSAGE", "ACK.DATE", "ACK.TIME":
		return t.updated(strings.TrimPrefix(body, "ACK."))
	case "USER.FULLNAME", "USER.USERNAME", "USER.NAME":
		return t.update(func(u *model.ProblemUpdate) string { return u.Author })
	}
	return t.base(macro)
}

func (t *texts) template() string {
	trigger, ok := t.alerter.options.Objects.TriggerByID(t.o.escalation.Problem.TriggerID)
	if !ok || trigger.TemplateID == 0 {
		return unknownText
	}
	return t.alerter.options.Objects.Template(trigger.TemplateID)
}

// event returns {EVENT.…} by what stands behind the dot. At a recovery {EVENT.*} tell of the problem and {EVENT.RECOVERY.*} of its end.
func (t *texts) event(name string) (string, bool) {
	o := t.o
	if rest, ok := strings.CutPrefix(name, "RECOVERY."); ok {
		if o.kind != model.AlertRecovery {
			return unknownText, true
		}
		return t.facts(rest, o.event, false)
	}
	if rest, ok := strings.CutPrefix(name, "UPDATE."); ok {
		return t.updated(rest), true
	}
	switch name {
	case "STATUS":
		return status(o.kind != model.AlertRecovery), true
	case "VALUE":
		return number(o.kind != model.AlertRecovery), true
	case "AGE":
		return age(o.now - o.escalation.Problem.At), true
	case "DURATION":
		if o.kind == model.AlertRecovery {
			return age(o.event.At - o.escalation.Problem.At), true
		}
		return age(o.now - o.escalation.Problem.At), true
	case "ACK.STATUS":
		if o.acknowledged {
			return "Yes", true
		}
		return "No", true
	case "ACK.HISTORY":
		return t.history(), true
	case "URL":
		return t.link(), true
	}
	return t.facts(name, &o.escalation.Problem, true)
}

// linkAround is how much before and after the problem's begin the linked chart shows.
const linkAround = 30 * time.Minute

// link is the address of the chart of the first item at the time of the problem, or of the problems when the item is not known.
func (t *texts) link() string {
	page := t.alerter.plan.url
	if page == "" {
		return ""
	}
	item := t.base("{ITEM.ID}")
	if _, err := strconv.ParseUint(item, 10, 64); err != nil {
		return page + "/problems?show=all"
	}
	at := time.Unix(0, t.o.escalation.Problem.At).UTC()
	shown := url.Values{"from": {at.Add(-linkAround).Format(time.RFC3339)}, "to": {at.Add(linkAround).Format(time.RFC3339)}}
	return page + "/items/" + item + "?" + shown.Encode()
}

// facts are the macros of one event.
func (t *texts) facts(name string, e *model.Event, problem bool) (string, bool) {
	at := time.Unix(0, e.At).In(t.alerter.options.Zone)
	switch name {
	case "ID", "PROBLEM.ID":
		return strconv.FormatUint(uint64(e.ID), 10), true
	case "NAME":
		return e.Name, true
	case "DATE":
		return at.Format(dateForm), true
	case "TIME":
		return at.Format(timeForm), true
	case "TIMESTAMP":
		return strconv.FormatInt(at.Unix(), 10), true
	case "SEVERITY":
		return e.Severity.String(), true
	case "NSEVERITY":
		return strconv.Itoa(int(e.Severity)), true
	case "OPDATA":
		return e.OpData, true
	case "STATUS":
		return status(problem), true
	case "VALUE":
		return number(problem), true
	case "SOURCE", "OBJECT":
		return "0", true
	}
	return tagMacro(name, e.Tags)
}

// tagMacro returns TAGS, TAGSJSON and TAGS.name.
func tagMacro(name string, tags []model.Tag) (string, bool) {
	switch {
	case name == "TAGS":
		var list []string
		for _, tag := range tags {
			if tag.Value == "" {
				list = append(list, tag.Name)
			} else {
				list = append(list, tag.Name+":"+tag.Value)
			}
		}
		return strings.Join(list, ", "), true
	case name == "TAGSJSON":
		type pair struct {
			Tag   string `json:"tag"`
			Value string `json:"value"`
		}
		list := make([]pair, 0, len(tags))
		for _, tag := range tags {
			list = append(list, pair{tag.Name, tag.Value})
		}
		text, err := json.Marshal(list)
		return string(text), err == nil
	case strings.HasPrefix(name, "TAGS."):
		want := strings.Trim(strings.TrimPrefix(name, "TAGS."), `"`)
		for _, tag := range tags {
			if tag.Name == want {
				return tag.Value, true
			}
		}
		return unknownText, true
	}
	return "", false
}

func (t *texts) update(of func(*model.ProblemUpdate) string) string {
	if t.o.update == nil {
		return unknownText
	}
	return of(t.o.update)
}

func (t *texts) updated(name string) string {
	switch name {
	case "STATUS":
		return number(t.o.update != nil)
	case "HISTORY":
		return t.history()
	case "SEVERITY":
		return t.o.escalation.Problem.Severity.String()
	case "NSEVERITY":
		return strconv.Itoa(int(t.o.escalation.Problem.Severity))
	}
	return t.update(func(u *model.ProblemUpdate) string {
		at := time.Unix(0, u.At).In(t.alerter.options.Zone)
		switch name {
		case "ACTION":
			return u.Words(t.alerter.options.Zone)
		case "MESSAGE":
			return u.Message
		case "DATE":
			return at.Format(dateForm)
		case "TIME":
			return at.Format(timeForm)
		case "TIMESTAMP":
			return strconv.FormatInt(at.Unix(), 10)
		}
		return unknownText
	})
}

// functions are the macro functions, for {{MACRO}.function(arguments)}.
var functions = regexp.MustCompile(`^\{(.*)\}\.(regsub|iregsub|fmtnum)\((.*)\)$`)

// function evaluates a macro function. What cannot be evaluated is *UNKNOWN*, as in Zabbix.
func (t *texts) function(macro, body string) string {
	parts := functions.FindStringSubmatch(body)
	if parts == nil {
		return macro
	}
	value := t.macro("{" + parts[1] + "}")
	arguments := splitArguments(parts[3])
	if parts[2] == "fmtnum" {
		digits, err := parseNumber(parts[3], 20)
		v, numberErr := strconv.ParseFloat(value, 64)
		if err != nil || numberErr != nil {
			return unknownText
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	if len(arguments) != 2 {
		return unknownText
	}
	pattern := arguments[0]
	if parts[2] == "iregsub" {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return unknownText
	}
	found := re.FindStringSubmatch(value)
	if found == nil {
		return ""
	}
	return groups.ReplaceAllStringFunc(arguments[1], func(group string) string {
		if i := int(group[1] - '0'); i < len(found) {
			return found[i]
		}
		return ""
	})
}

// groups are references to parts of a match.
var groups = regexp.MustCompile(`\\[0-9]`)

// splitArguments takes apart arguments that may be quoted.
func splitArguments(text string) []string {
	var list []string
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			list = append(list, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(list, strings.TrimSpace(b.String()))
}

func status(problem bool) string {
	if problem {
		return "PROBLEM"
	}
	return "OK"
}

func number(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// age writes a time span with its two greatest units.
func age(nanos int64) string {
	rest := max(nanos, 0) / int64(time.Second)
	var parts []string
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := rest / unit.seconds; n > 0 && len(parts) < 2 {
			parts = append(parts, strconv.FormatInt(n, 10)+unit.name)
			rest %= unit.seconds
		}
	}
	if parts == nil {
		return "0s"
	}
	return strings.Join(parts, " ")
}
