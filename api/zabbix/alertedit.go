package zabbix

import (
	"net"
	"slices"
	"strconv"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/alert/media"
)

// mediaMembers are what calls and exports of media types have, by the calls' name.
var mediaMembers = map[string]string{
	"type": "type", "status": "status", "smtp_server": "smtp_server", "smtp_port": "smtp_port", "smtp_helo": "smtp_helo", "smtp_email": "smtp_email", "smtp_security": "smtp_security",
	"smtp_authentication": "smtp_authentication", "username": "username", "passwd": "password", "message_format": "message_format", "exec_path": "script_name", "script": "script",
	"timeout": "timeout", "process_tags": "process_tags", "show_event_menu": "show_event_menu", "event_menu_url": "event_menu_url", "event_menu_name": "event_menu_name",
	"maxsessions": "max_sessions", "maxattempts": "attempts", "attempt_interval": "attempt_interval",
}

// mediaExport is a media type as exports have it, as far as it can be changed by calls.
func mediaExport(m *alert.Media) object {
	out := object{"name": m.Name, "status": formatBool(m.Disabled), "attempt_interval": wholeSeconds(m.RetryEvery.Or(0))}
	if m.RetryEvery == 0 {
		delete(out, "attempt_interval")
	}
	if m.Sessions > 0 {
		out["max_sessions"] = formatInt(m.Sessions)
	}
	if m.Attempts > 0 {
		out["attempts"] = formatInt(m.Attempts)
	}
	switch {
	case m.Mail != nil:
		host, port, _ := net.SplitHostPort(m.Mail.Server)
		security := map[string]string{"": "1", media.StartTLS: "1", media.TLS: "2"}[m.Mail.Security]
		out["type"], out["smtp_server"], out["smtp_port"], out["smtp_email"], out["smtp_helo"] = "0", host, port, m.Mail.From, m.Mail.Hello
		out["smtp_security"], out["message_format"], out["username"] = cmpOr(security, "0"), formatBool(m.Mail.HTML), m.Mail.User
		out["smtp_authentication"] = formatBool(m.Mail.User != "")
	case m.Script != nil:
		out["type"], out["script_name"] = "1", m.Script.Name
		var parameters []object
		for i, value := range m.Script.Arguments {
			parameters = append(parameters, object{"name": formatInt(i), "value": value})
		}
		out["parameters"] = parameters
	case m.Zabbix != nil:
		out["type"], out["script"], out["process_tags"] = "4", m.Zabbix.Script, formatBool(m.Zabbix.Tags)
		if m.Zabbix.Timeout != 0 {
			out["timeout"] = wholeSeconds(m.Zabbix.Timeout.Or(0))
		}
		var parameters []object
		for name, value := range m.Zabbix.Parameters {
			parameters = append(parameters, object{"name": name, "value": value})
		}
		out["parameters"] = parameters
		if m.Zabbix.Menu != nil {
			out["show_event_menu"], out["event_menu_name"], out["event_menu_url"] = "1", m.Zabbix.Menu.Name, m.Zabbix.Menu.URL
		}
	}
	return out
}

// mediaMost bounds attempts and sessions of a media type.
const mediaMost = 100

// fillMedia sets what is given of a media type, in the form of exports.
func (p *params) fillMedia(into object) error {
	for member, of := range mediaMembers {
		if _, ok := p.get(member); ok {
			into[of] = p.text(member)
		}
	}
	for member, least := range map[string]int64{"maxsessions": 0, "maxattempts": 1} {
		if p.number(member, 1, mediaMost) < least {
			p.fail(member, "a number from 1 to "+strconv.Itoa(mediaMost)+" is expected")
		}
	}
	if given, ok := p.children("parameters"); ok {
		parameters := []object{}
		for _, one := range given {
			parameters = append(parameters, object{"name": cmpOr(one.text("name"), one.text("sortorder")), "value": one.text("value")})
			p.keep(one.done())
		}
		into["parameters"] = parameters
	}
	if given, ok := p.children("message_templates"); ok {
		templates := []object{}
		for _, one := range given {
			templates = append(templates, object{
				"event_source": one.text("eventsource"), "operation_mode": one.text("recovery"), "subject": one.text("subject"), "message": one.text("message"),
			})
			p.keep(one.done())
		}
		into["message_templates"] = templates
	}
	for _, member := range []string{"smtp_verify_peer", "smtp_verify_host"} {
		p.number(member, 0, 1) // certificates are verified always
	}
	p.accept("description", "provider", "content_type")
	return p.done()
}

// readMedia makes a media type of an export.
func readMedia(export object) (*alert.Media, error) {
	text, err := encodeJSON(object{"zabbix_export": object{"version": "7.0", "media_types": []any{export}}})
	if err != nil {
		return nil, err
	}
	config, remarks, err := alert.ImportZabbix(text)
	if err != nil {
		return nil, invalidParams("%v", err)
	}
	if len(config.Media) != 1 {
		return nil, invalidParams(`Invalid parameter "/type": %s.`, remarks[0])
	}
	return &config.Media[0], nil
}

func (c *call) putMedia(made []alert.Media) ([]byte, error) {
	before := c.options.Objects.Alerting().Media
	if err := c.options.Objects.ApplyAlerting(c.ctx, &alert.Config{Media: made}); err != nil {
		return nil, err
	}
	ids := []string{}
	for i := range made {
		var old any
		if at := slices.IndexFunc(before, func(m alert.Media) bool { return m.Name == made[i].Name }); at >= 0 {
			old = mediaExport(&before[at])
		}
		access.Changed(c.ctx, "media type "+made[i].Name, old, mediaExport(&made[i]))
		ids = append(ids, mediaTypeID(&made[i]))
	}
	return encodeJSON(map[string]any{"mediatypeids": ids})
}

// changeAlerting reads the objects of a call that changes alerting and then puts what they made, while nobody else changes it. Alerting
// concerns the hosts of everybody.
func (c *call) changeAlerting(read func(p *params, known *alert.Config) error, put func() ([]byte, error)) ([]byte, error) {
	given, err := c.objects()
	if err != nil {
		return nil, err
	}
	if c.visible != nil {
		return nil, errNotAllowed
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	known, seen := c.options.Objects.Alerting(), make(map[string]bool)
	for _, p := range given {
		p.once(seen, "mediatypeid", "actionid")
		if err := read(p, known); err != nil {
			return nil, err
		}
	}
	return put()
}

// named finds an object by its id, for a call that changes it and keeps its name.
func named[T any](p *params, member string, all []T, id, name func(*T) string) (*T, error) {
	p.require(member)
	text := p.text(member)
	for i := range all {
		if id(&all[i]) == text {
			return &all[i], p.keepsName("name", name(&all[i]))
		}
	}
	return nil, errNotAllowed
}

// unused fails for the name of a new object that another one has, one that is there or one of the same call.
func unused[T any](p *params, what string, known, made []T, name func(*T) string) error {
	p.require("name")
	text := p.text("name")
	same := func(one T) bool { return name(&one) == text }
	if slices.ContainsFunc(known, same) || slices.ContainsFunc(made, same) {
		return invalidParams("%s %q already exists.", what, text)
	}
	return p.failed
}

func mediaName(m *alert.Media) string { return m.Name }

func createMediaTypes(c *call) ([]byte, error) {
	var made []alert.Media
	return c.changeAlerting(func(p *params, known *alert.Config) error {
		p.require("type")
		if err := unused(p, "Media type", known.Media, made, mediaName); err != nil {
			return err
		}
		export := object{"name": p.text("name")}
		if err := p.fillMedia(export); err != nil {
			return err
		}
		m, err := readMedia(export)
		if err == nil {
			made = append(made, *m)
		}
		return err
	}, func() ([]byte, error) { return c.putMedia(made) })
}

func updateMediaTypes(c *call) ([]byte, error) {
	var changed []alert.Media
	return c.changeAlerting(func(p *params, known *alert.Config) error {
		old, err := named(p, "mediatypeid", known.Media, mediaTypeID, mediaName)
		if err != nil {
			return err
		}
		m, err := c.changedMedia(p, old)
		if err == nil {
			changed = append(changed, *m)
		}
		return err
	}, func() ([]byte, error) { return c.putMedia(changed) })
}

// changedMedia is a media type with what is given. What calls do not have, such as secrets and the interval of groups, stays.
func (c *call) changedMedia(p *params, known *alert.Media) (*alert.Media, error) {
	if known.Mail == nil && known.Script == nil && known.Zabbix == nil {
		return nil, invalidParams("Media type %q is no one of Zabbix; change it on the page.", known.Name)
	}
	export := mediaExport(known)
	_, templates := p.get("message_templates")
	if err := p.fillMedia(export); err != nil {
		return nil, err
	}
	next, err := readMedia(export)
	if err != nil {
		return nil, err
	}
	m := *known
	m.Disabled, m.Mail, m.Script, m.Zabbix = next.Disabled, next.Mail, next.Script, next.Zabbix
	m.Attempts, m.Sessions, m.RetryEvery = next.Attempts, next.Sessions, next.RetryEvery
	if m.Zabbix != nil && known.Zabbix != nil {
		m.Zabbix.Allow = known.Zabbix.Allow
	}
	if m.Mail != nil && known.Mail != nil {
		m.Mail.CAFile = known.Mail.CAFile
	}
	if templates {
		m.Problem, m.Recovery, m.Update = next.Problem, next.Recovery, next.Update
	}
	m.Secrets = make(map[string]string)
	for name, value := range known.Secrets { // hidden: they keep what is stored
		m.Secrets[name] = value
	}
	for name, value := range next.Secrets {
		if value != "" {
			m.Secrets[name] = value
		}
	}
	return &m, nil
}

// deleteAlerting deletes objects of alerting by their ids.
func deleteAlerting[T any](c *call, kind, answer string, all []T, id, name func(*T) string) ([]byte, error) {
	if c.visible != nil {
		return nil, errNotAllowed
	}
	return deleteNamed(c, removal[T]{
		answer: answer, what: kind, id: id, name: name, all: func() ([]T, error) { return all, nil },
		remove: func(names []string) error { return c.options.Objects.DeleteAlerting(c.ctx, kind, names) },
	})
}

func deleteMediaTypes(c *call) ([]byte, error) {
	return deleteAlerting(c, "media", "mediatypeids", c.options.Objects.Alerting().Media, mediaTypeID, mediaName)
}

func deleteActions(c *call) ([]byte, error) {
	return deleteAlerting(c, "action", "actionids", c.options.Objects.Alerting().Actions, actionID, actionName)
}
