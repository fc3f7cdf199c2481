package alert

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

const (
	scriptTimeout = 30 * time.Second
	// maxScriptTimeout is Zabbix's limit.
	maxScriptTimeout = time.Minute
	// maxMacroBytes bounds one value that is kept with an alert for its script.
	maxMacroBytes = 8 << 10
	// maxEventTags bounds the tags of one event.
	maxEventTags = 200
	// hostMacro is kept with every alert for a script: user macros are looked up for that host.
	hostMacro = "{HOST.ID}"
	// pageMacro is what Zabbix's own media types take for the address of the page.
	pageMacro = "{$ZABBIX.URL}"
)

// sender makes the sender of a webhook in JavaScript.
func (z *ZabbixWebhook) sender(m *Media, o *Options) (media.Sender, error) {
	allow, err := prefixes(z.Allow)
	if err != nil {
		return nil, err
	}
	limit := z.Timeout.Or(m.Timeout.Or(scriptTimeout))
	if limit < time.Second || limit > maxScriptTimeout {
		return nil, fmt.Errorf("timeout is %s, expected 1s to %s", limit, maxScriptTimeout)
	}
	if z.Menu != nil {
		if err := z.Menu.check(); err != nil {
			return nil, err
		}
	}
	s := &media.JavaScript{
		Source: z.Script, Parameters: maps.Clone(z.Parameters), Timeout: limit, Allow: allow, Tags: z.Tags,
		Secrets: slices.Sorted(maps.Values(m.Secrets)), Runner: o.Scripts,
	}
	slices.Reverse(s.Secrets) // of two that begin alike the longer is hidden first
	return s, s.Check()
}

func (e *EventMenu) check() error {
	switch {
	case e.Name == "" || len(e.Name) > maxNameBytes:
		return fmt.Errorf("menu: the name has %d bytes, expected 1 to %d", len(e.Name), maxNameBytes)
	case e.URL == "" || len(e.URL) > 2048:
		return fmt.Errorf("menu: the url has %d bytes, expected 1 to 2048", len(e.URL))
	case !strings.Contains(e.URL, "{EVENT.TAGS."):
		return errors.New("menu: the url has no {EVENT.TAGS.name}, so that it would be the same for every problem")
	}
	return nil
}

// macros are the macros of the parameters that have to be asked when an alert is made. The others are known when it is sent: the tags that
// earlier messages added, secrets, user macros.
func (z *ZabbixWebhook) macros() []string {
	list := []string{hostMacro}
	for _, name := range slices.Sorted(maps.Keys(z.Parameters)) {
		expand(z.Parameters[name], maxTextBytes, func(macro string) string {
			later := []string{"{ALERT.", "{SECRET.", "{EVENT.TAGS", "{$"}
			if !slices.ContainsFunc(later, func(prefix string) bool { return strings.HasPrefix(macro, prefix) }) && !slices.Contains(list, macro) {
				list = append(list, macro)
			}
			return ""
		})
	}
	return list[:min(len(list), maxMacros)]
}

// values are the values of macros, for a script. What is not known is left out and stays as it is, as in Zabbix.
func (t *texts) values(list []string, host model.HostID) map[string]string {
	out := make(map[string]string, len(list))
	for _, macro := range list {
		if v := t.macro(macro); v != macro {
			out[macro] = cut(v, maxMacroBytes)
		}
	}
	out[hostMacro] = strconv.FormatUint(uint64(host), 10)
	return out
}

// surroundings is what senders' macros need besides the alert.
type surroundings struct {
	zone    *time.Location
	objects Objects
	// url is the address of the page.
	url string
}

func (a *Alerter) surroundings() surroundings {
	return surroundings{zone: a.options.Zone, objects: a.options.Objects, url: a.plan.url}
}

// userMacro returns the value of a user macro for the host of an alert. The address of the page needs no macro of that name.
func (s surroundings) userMacro(alert *model.Alert, macro string) string {
	host, _ := strconv.ParseUint(alert.Macros[hostMacro], 10, 64)
	if v, ok := s.objects.UserMacro(model.HostID(host), macro); ok {
		return v
	}
	if macro == pageMacro && s.url != "" {
		return s.url
	}
	return macro
}

// addTags adds the tags that a script returned to the problem of a lane: to the stored event, to the open problem, and to all that will be told of it.
func (a *Alerter) addTags(l *lane, tags []model.Tag) {
	id := l.key.problem
	a.pending.tags[id] = mergeTags(a.pending.tags[id], tags)
	a.options.Problems.AddTags(id, tags)
	for _, action := range a.plan.actions {
		if e := a.escalations[escalationKey{action.Name, id}]; e != nil {
			e.Problem.Tags = mergeTags(e.Problem.Tags, tags)
		}
	}
	for _, alert := range l.waiting {
		alert.Tags = mergeTags(alert.Tags, tags)
		a.pending.alerts[alert.ID] = alert
	}
}

// mergeTags returns tags with others added that are not among them.
func mergeTags(tags, more []model.Tag) []model.Tag {
	out := slices.Clip(tags)
	for _, tag := range more {
		if len(out) < maxEventTags && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// Link leads from a problem to where it is dealt with.
type Link struct{ Name, URL string }

// Links returns the links of problems, one list for each: those of enabled media types whose tags the problem has.
func (a *Alerter) Links(problems []model.Problem) [][]Link {
	a.mu.Lock()
	var menus []*EventMenu
	for i := range a.config.Media {
		if m := &a.config.Media[i]; !m.Disabled && m.Zabbix != nil && m.Zabbix.Menu != nil {
			menus = append(menus, m.Zabbix.Menu)
		}
	}
	a.mu.Unlock()
	out := make([][]Link, len(problems))
	if len(menus) == 0 {
		return out
	}
	for i := range problems {
		for _, menu := range menus {
			if link, ok := menu.link(&problems[i].Event); ok && !slices.Contains(out[i], link) {
				out[i] = append(out[i], link)
			}
		}
	}
	return out
}

// link makes the link of an event; false when it does not have all the tags, or when the result is no address of a page.
func (e *EventMenu) link(event *model.Event) (Link, bool) {
	known := true
	value := func(macro string) string {
		body := macro[1 : len(macro)-1]
		if body == "EVENT.ID" {
			return strconv.FormatUint(uint64(event.ID), 10)
		}
		name, ok := strings.CutPrefix(body, "EVENT.")
		if !ok || !strings.HasPrefix(name, "TAGS.") {
			return macro
		}
		v, _ := tagMacro(name, event.Tags)
		known = known && v != unknownText
		return v
	}
	link := Link{Name: expand(e.Name, maxNameBytes, value), URL: expand(e.URL, 2048, value)}
	u, err := url.Parse(link.URL)
	return link, known && err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
