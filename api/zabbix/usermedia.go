package zabbix

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/model"
)

// alwaysPeriod is how Zabbix says that messages are wanted at any time, allSeverities that those of every severity are.
const (
	alwaysPeriod  = "1-7,00:00-24:00"
	allSeverities = 1<<(model.Disaster+1) - 1
)

// receiverOf is the receiver that has a user's name: the addresses of the user.
func receiverOf(config *alert.Config, user string) *alert.Receiver {
	for i := range config.Receivers {
		if strings.EqualFold(config.Receivers[i].Name, user) {
			return &config.Receivers[i]
		}
	}
	return nil
}

// shownMedias are the addresses of a user.
func (c *call) shownMedias(u *model.User) any {
	shown := []any{}
	r := receiverOf(c.options.Objects.Alerting(), u.Name)
	if r == nil {
		return shown
	}
	for i := range r.Media {
		m := &r.Media[i]
		bits := allSeverities
		if len(m.Severities) > 0 {
			bits = 0
			for _, s := range m.Severities {
				bits |= 1 << s
			}
		}
		when, err := m.When.MarshalText()
		period := string(when)
		if err != nil || period == "" {
			period = alwaysPeriod
		}
		shown = append(shown, map[string]any{
			"mediaid": stableID(uint64(u.ID), "media "+strconv.Itoa(i)), "userid": formatID(u.ID), "mediatypeid": mediaTypeID(&alert.Media{Name: m.Media}),
			"sendto": []string{m.To}, "active": formatBool(m.Disabled), "severity": formatInt(bits), "period": period,
		})
	}
	return shown
}

// readMedias reads the addresses of a user; false when none are given. Releases before 5.2 called them user_medias.
func (c *call) readMedias(p *params) (all []alert.ReceiverMedia, given bool, err error) {
	known := c.options.Objects.Alerting().Media
	for _, member := range []string{"medias", "user_medias"} {
		list, ok := p.children(member)
		given = given || ok
		for _, one := range list {
			one.require("mediatypeid")
			one.require("sendto")
			id, to := one.text("mediatypeid"), one.texts("sendto")
			i := slices.IndexFunc(known, func(m alert.Media) bool { return mediaTypeID(&m) == id })
			if i < 0 {
				return nil, true, errNotAllowed
			}
			m := alert.ReceiverMedia{Media: known[i].Name, Disabled: one.number("active", 0, 1) == 1}
			bits := one.number("severity", allSeverities, allSeverities)
			for s := range model.Disaster + 1 {
				if bits != allSeverities && bits>>s&1 == 1 {
					m.Severities = append(m.Severities, alert.Severity(s))
				}
			}
			m.Disabled = m.Disabled || bits == 0
			if period := one.text("period"); period != "" && period != alwaysPeriod && m.When.UnmarshalText([]byte(period)) != nil {
				one.fail("period", "a time period is expected")
			}
			one.accept("mediaid", "userid")
			if err := one.done(); err != nil {
				return nil, true, err
			}
			for _, address := range to {
				m.To = address
				all = append(all, m)
			}
		}
	}
	return all, given, nil
}

// receiverChange is what becomes of the receivers with the names of users, which have the users' addresses.
type receiverChange struct {
	put  []alert.Receiver
	gone []string
	old  []*alert.Receiver // of put and then of gone; nil for new ones
}

// add replaces the addresses of a user. Whom an action tells keeps one: it cannot be left without.
func (r *receiverChange) add(config *alert.Config, user string, media []alert.ReceiverMedia) {
	old := receiverOf(config, user)
	if len(media) == 0 {
		if old != nil {
			r.gone, r.old = append(r.gone, old.Name), append(r.old, old)
		}
		return
	}
	next := alert.Receiver{Name: user, Media: media}
	if old != nil {
		next.Name, next.Origin = old.Name, old.Origin
	}
	r.put, r.old = append(r.put, next), slices.Insert(r.old, len(r.put), old)
}

// apply makes the changes or, with check, says whether they can be made.
func (r *receiverChange) apply(c *call, check bool) error {
	if len(r.put)+len(r.gone) == 0 {
		return nil
	}
	return notAllowed(c.options.Objects.PutReceivers(c.ctx, r.put, r.gone, check))
}

// tell tells the audit log.
func (r *receiverChange) tell(c *call) {
	for i := range r.put {
		access.Changed(c.ctx, "receiver "+r.put[i].Name, r.old[i], r.put[i])
	}
	for i, name := range r.gone {
		access.Changed(c.ctx, "receiver "+name, r.old[len(r.put)+i], nil)
	}
}

// getAuthentication says how people sign in, which cannot be changed by calls.
func getAuthentication(c *call) ([]byte, error) {
	o := c.output("output")
	if err := c.done(); err != nil {
		return nil, err
	}
	all := map[string]string{"authentication_type": "0", "http_auth_enabled": "0", "ldap_auth_enabled": "0", "saml_auth_enabled": "0", "passwd_min_length": "10", "passwd_check_rules": "8", "mfa_status": "0"}
	for name := range all {
		if o.given && !o.has(name) {
			delete(all, name)
		}
	}
	return encodeJSON(all)
}

var alertKind = kind[model.Alert]{
	name: "alert", id: "alertid",
	fields: []field[model.Alert]{
		{name: "alertid", number: true, get: func(a *model.Alert) string { return strconv.FormatUint(a.ID, 10) }},
		{name: "actionid", number: true, get: func(a *model.Alert) string { return actionID(&alert.Action{Name: a.Action}) }},
		{name: "eventid", number: true, get: func(a *model.Alert) string { return formatID(a.EventID) }},
		{name: "p_eventid", number: true, get: func(a *model.Alert) string {
			if a.EventID == a.ProblemID {
				return "0"
			}
			return formatID(a.ProblemID)
		}},
		{name: "clock", number: true, get: func(a *model.Alert) string { return seconds(a.CreatedAt) }},
		{name: "mediatypeid", number: true, get: func(a *model.Alert) string { return mediaTypeID(&alert.Media{Name: a.Media}) }},
		{name: "sendto", get: func(a *model.Alert) string { return a.To }},
		{name: "subject", get: func(a *model.Alert) string { return a.Subject }},
		{name: "message", get: func(a *model.Alert) string { return a.Body }},
		{name: "status", number: true, get: func(a *model.Alert) string { return alertStatus(a.State) }},
		{name: "retries", number: true, get: func(a *model.Alert) string { return formatInt(a.Attempts) }},
		{name: "error", get: func(a *model.Alert) string { return a.Error }},
		{name: "esc_step", number: true, get: func(a *model.Alert) string { return formatInt(a.Step) }},
		{name: "alerttype", number: true, get: func(*model.Alert) string { return "0" }},
	},
}

// alertStatus is Zabbix's number: waiting, sent, failed, or held back.
func alertStatus(s model.AlertState) string {
	switch s {
	case model.AlertSent:
		return "1"
	case model.AlertFailed:
		return "2"
	}
	return "0"
}

// maxAlerts bounds the messages that one call looks at.
const maxAlerts = 10_000

// getAlerts lists the newest messages about hosts that the caller may see.
func getAlerts(c *call) ([]byte, error) {
	ids, events, media, actions := c.ids("alertids"), c.ids("eventids"), c.ids("mediatypeids"), c.ids("actionids")
	hosts := c.ids("hostids")
	since, till := c.number("time_from", 0, math.MaxInt32*2), c.number("time_till", math.MaxInt32*2, math.MaxInt32*2)
	c.accept("eventobject", "eventsource")
	f := model.AlertFilter{Limit: maxAlerts}
	if len(events) == 1 {
		f.Problem = model.EventID(sortedIDs(events)[0])
	}
	if c.visible != nil || hosts != nil {
		for _, h := range c.hosts() {
			if hosts.has(uint64(h.ID)) {
				f.Hosts = append(f.Hosts, h.ID)
			}
		}
	}
	var rows []model.Alert
	if len(f.Hosts) > 0 || c.visible == nil && hosts == nil {
		list, err := c.options.Objects.Alerts(c.ctx, f)
		if err != nil {
			return nil, err
		}
		rows = list
	}
	rows = slices.DeleteFunc(rows, func(a model.Alert) bool {
		at := floorSeconds(a.CreatedAt)
		return !ids.has(a.ID) || events != nil && !events[uint64(a.EventID)] && !events[uint64(a.ProblemID)] || at < since || at > till ||
			!media.hasText(mediaTypeID(&alert.Media{Name: a.Media})) || !actions.hasText(actionID(&alert.Action{Name: a.Action}))
	})
	k := alertKind
	k.selects = []selection[model.Alert]{
		{"selectMediatypes", "mediatypes", func(c *call, o output, a *model.Alert) any {
			return pickAll(o, &mediaTypeKind, slices.DeleteFunc(slices.Clone(c.options.Objects.Alerting().Media), func(m alert.Media) bool { return m.Name != a.Media }))
		}},
		{"selectUsers", "users", func(c *call, o output, a *model.Alert) any {
			return pickAll(o, &userKind, slices.DeleteFunc(c.options.Access.Users(), func(u model.User) bool { return !strings.EqualFold(u.Name, a.Receiver) || !c.seesUser(&u) }))
		}},
	}
	return answer(c, &k, rows)
}

// scriptsBy answers for each host or event that was asked for that there are no scripts for people.
func scriptsBy(member string) func(*call) ([]byte, error) {
	return func(c *call) ([]byte, error) {
		ids, given := c.ids(member), c.list != nil
		if given {
			ids = c.listIDs()
		}
		c.accept("scriptid", "manualinput")
		if err := c.done(); err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return []byte("[]"), nil
		}
		none := make(map[string]json.RawMessage, len(ids))
		for id := range ids {
			none[strconv.FormatUint(id, 10)] = json.RawMessage("[]")
		}
		return encodeJSON(none)
	}
}

// executeScript refuses: there is no script that an id could name.
func executeScript(c *call) ([]byte, error) {
	c.require("scriptid")
	c.accept("hostid", "eventid", "manualinput")
	if err := c.done(); err != nil {
		return nil, err
	}
	return nil, errNotAllowed
}
