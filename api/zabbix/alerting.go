package zabbix

import (
	"slices"
	"strconv"
	"time"

	"tidemark/alert"
)

func actionID(a *alert.Action) string { return stableID(0, "action "+a.Name) }

func mediaTypeID(m *alert.Media) string { return stableID(0, "media "+m.Name) }

var actionKind = kind[alert.Action]{
	name: "action", id: "actionid",
	fields: []field[alert.Action]{
		{name: "actionid", number: true, get: actionID},
		{name: "name", get: func(a *alert.Action) string { return a.Name }},
		{name: "eventsource", number: true, get: func(*alert.Action) string { return "0" }},
		{name: "status", number: true, get: func(a *alert.Action) string { return status(!a.Disabled) }},
		{name: "esc_period", get: func(a *alert.Action) string { return wholeSeconds(a.StepDuration.Or(time.Hour)) }},
		{name: "pause_suppressed", number: true, get: func(a *alert.Action) string { return formatBool(!a.SendSuppressed) }},
		{name: "notify_if_canceled", number: true, get: func(a *alert.Action) string { return formatBool(!a.QuietCancel) }},
		{name: "pause_symptoms", number: true, get: func(*alert.Action) string { return "1" }}, // Zabbix's default: there are no symptoms here
	},
}

func wholeSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }

// getActions lists the actions for problems, which are the only ones that tell people.
func getActions(c *call) ([]byte, error) {
	ids, source := c.ids("actionids"), c.ids("eventsource")
	if c.visible != nil {
		return nil, errNotAllowed // they name hosts, groups and people of all
	}
	var rows []alert.Action
	for _, a := range c.options.Objects.Alerting().Actions {
		if ids.hasText(actionID(&a)) && source.has(0) {
			rows = append(rows, a)
		}
	}
	k := actionKind
	k.selects = actionSelects()
	return answer(c, &k, rows)
}

// The types of media; the numbers are Zabbix's.
var mediaTypeKind = kind[alert.Media]{
	name: "media type", id: "mediatypeid",
	fields: []field[alert.Media]{
		{name: "mediatypeid", number: true, get: mediaTypeID},
		{name: "name", get: func(m *alert.Media) string { return m.Name }},
		{name: "type", number: true, get: func(m *alert.Media) string {
			switch {
			case m.Mail != nil:
				return "0"
			case m.Script != nil:
				return "1"
			}
			return "4"
		}},
		{name: "status", number: true, get: func(m *alert.Media) string { return status(!m.Disabled) }},
		{name: "maxsessions", number: true, get: func(m *alert.Media) string { atOnce, _, _ := m.Effort(); return formatInt(atOnce) }},
		{name: "maxattempts", number: true, get: func(m *alert.Media) string { _, tries, _ := m.Effort(); return formatInt(tries) }},
		{name: "attempt_interval", get: func(m *alert.Media) string { _, _, wait := m.Effort(); return wholeSeconds(wait) }},
		{name: "smtp_server", get: func(m *alert.Media) string {
			if m.Mail == nil {
				return ""
			}
			return m.Mail.Server
		}},
		{name: "smtp_email", get: func(m *alert.Media) string {
			if m.Mail == nil {
				return ""
			}
			return m.Mail.From
		}},
		{name: "description", get: func(*alert.Media) string { return "" }},
	},
}

// getMediaTypes lists media types without their secrets.
func getMediaTypes(c *call) ([]byte, error) {
	ids := c.ids("mediatypeids")
	if c.visible != nil {
		return nil, errNotAllowed
	}
	rows := slices.DeleteFunc(slices.Clone(c.options.Objects.Alerting().Media), func(m alert.Media) bool { return !ids.hasText(mediaTypeID(&m)) })
	k := mediaTypeKind
	k.selects = []selection[alert.Media]{
		{"selectActions", "actions", func(c *call, o output, m *alert.Media) any {
			return pickAll(o, &actionKind, slices.DeleteFunc(slices.Clone(c.options.Objects.Alerting().Actions), func(a alert.Action) bool {
				return !slices.ContainsFunc(a.Operations, func(op alert.Operation) bool { return slices.Contains(op.Media, m.Name) })
			}))
		}},
	}
	return answer(c, &k, rows)
}
