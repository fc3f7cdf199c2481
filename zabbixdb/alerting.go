package zabbixdb

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// alerts is what actions need of the other tables.
type alerts struct {
	*Source
	out *Settings
	// Names by id; users only those who can be told.
	users, groups, hosts, media map[int64]string
	members                     map[int64][]row
	messages                    map[int64]row
	toUsers, toGroups           map[int64][]row
	tests                       map[int64][]row // the conditions of operations
}

const (
	sourceTriggers    = "0"
	opMessage         = "0"
	opInvolved        = "11"
	opUpdated         = "12"
	anyTime           = "1-7,00:00-24:00"
	severityCount     = 6
	allSeverities     = 1<<severityCount - 1
	smsMedia, scripts = "2", "1"
)

// alerting reads media types, those of users, maintenances and actions.
func (s *Source) alerting(ctx context.Context, out *Settings) error {
	a := &alerts{Source: s, out: out, users: make(map[int64]string), groups: make(map[int64]string), hosts: make(map[int64]string), media: make(map[int64]string), messages: make(map[int64]row)}
	if err := a.mediaTypes(ctx); err != nil {
		return err
	}
	for _, names := range []struct {
		into  map[int64]string
		query string
	}{
		{a.hosts, "SELECT hostid AS id, host AS name FROM hosts WHERE status IN (0,1,3)"},
		{a.groups, "SELECT groupid AS id, name FROM hstgrp"},
	} {
		if err := s.each(ctx, names.query, func(r row) error { names.into[r.id("id")] = r["name"]; return nil }); err != nil {
			return err
		}
	}
	config := object{}
	for _, part := range []struct {
		name string
		read func(context.Context) ([]object, error)
	}{{"receivers", a.receivers}, {"maintenances", a.maintenances}, {"actions", a.actions}} {
		list, err := part.read(ctx)
		if err != nil {
			return err
		}
		config.putList(part.name, list)
	}
	if len(config) == 0 {
		return nil
	}
	var err error
	out.Alerting, err = json.Marshal(config)
	return err
}

// mediaTypes makes an export of the media types that a user or an operation names.
func (a *alerts) mediaTypes(ctx context.Context) error {
	parameters, err := a.grouped(ctx, "mediatypeid", "SELECT * FROM media_type_param ORDER BY mediatype_paramid")
	if err != nil {
		return err
	}
	texts, err := a.grouped(ctx, "mediatypeid", "SELECT * FROM media_type_message ORDER BY mediatype_messageid")
	if err != nil {
		return err
	}
	used, err := a.grouped(ctx, "mediatypeid", "SELECT mediatypeid FROM media UNION SELECT mediatypeid FROM opmessage WHERE mediatypeid IS NOT NULL")
	if err != nil {
		return err
	}
	var list []object
	err = a.each(ctx, "SELECT * FROM media_type ORDER BY mediatypeid", func(r row) error {
		id := r.id("mediatypeid")
		if len(used[id]) == 0 {
			a.leave("media types that nobody uses", 1, "no user has an address of them, and no action names them")
			return nil
		}
		a.media[id] = r["name"]
		list = append(list, mediaType(r, parameters[id], texts[id]))
		return nil
	})
	if err != nil || len(list) == 0 {
		return err
	}
	a.out.MediaTypes, err = json.Marshal(object{"zabbix_export": object{"version": a.Version(), "media_types": list}})
	return err
}

func mediaType(r row, parameters, texts []row) object {
	o := object{
		"name": r["name"], "type": orZero(r["type"]), "status": orZero(r["status"]), "max_sessions": r["maxsessions"], "attempts": r["maxattempts"],
		"attempt_interval": r["attempt_interval"],
	}
	o.put("smtp_server", r["smtp_server"], "")
	o.put("smtp_port", r["smtp_port"], "")
	o.put("smtp_helo", r["smtp_helo"], "")
	o.put("smtp_email", r["smtp_email"], "")
	o.put("smtp_security", r["smtp_security"], "")
	o.put("smtp_authentication", r["smtp_authentication"], "")
	o.put("username", r["username"], "")
	o.put("password", r["passwd"], "")
	o["content_type"] = orZero(r["content_type"] + r["message_format"])
	o.put("script_name", r["exec_path"], "")
	o.put("script", r["script"], "")
	o.put("timeout", r["timeout"], "")
	for _, name := range []string{"process_tags", "show_event_menu", "event_menu_url", "event_menu_name"} {
		o.put(name, r[name], "")
	}
	var list []object
	if r["type"] == scripts { // before 6.4, one a line
		for line := range strings.Lines(r["exec_params"]) {
			list = append(list, object{"name": "", "value": strings.TrimRight(line, "\r\n")})
		}
	}
	for _, p := range parameters {
		list = append(list, object{"name": p["name"], "value": p["value"]})
	}
	o.putList("parameters", list)
	list = nil
	for _, t := range texts {
		if orZero(t["eventsource"]) == sourceTriggers {
			list = append(list, object{"event_source": "0", "operation_mode": orZero(t["recovery"]), "subject": t["subject"], "message": t["message"]})
		}
	}
	o.putList("message_templates", list)
	return o
}

// receivers are the users who have an address.
func (a *alerts) receivers(ctx context.Context) ([]object, error) {
	var err error
	if a.members, err = a.grouped(ctx, "usrgrpid", "SELECT * FROM users_groups ORDER BY id"); err != nil {
		return nil, err
	}
	rows, err := a.grouped(ctx, "userid", "SELECT * FROM media ORDER BY mediaid")
	if err != nil {
		return nil, err
	}
	var list []object
	err = a.each(ctx, `SELECT u.* FROM users u WHERE NOT EXISTS (SELECT 1 FROM users_groups m JOIN usrgrp g ON g.usrgrpid = m.usrgrpid
		WHERE m.userid = u.userid AND g.users_status = 1) ORDER BY u.userid`, func(r row) error {
		var media []object
		for _, m := range rows[r.id("userid")] {
			media = append(media, a.address(r["username"], m)...)
		}
		if len(media) > 0 {
			a.users[r.id("userid")] = r["username"]
			list = append(list, object{"name": r["username"], "media": media})
		}
		return nil
	})
	return list, err
}

// address makes a user's medium; one with several addresses becomes several.
func (a *alerts) address(user string, m row) []object {
	var severities []string
	bits := m.num("severity")
	for i := range severityCount {
		if bits&(1<<i) != 0 && bits != allSeverities {
			severities = append(severities, strings.ReplaceAll(strings.ToLower(severityNames[i]), "_", " "))
		}
	}
	off := m["active"] == "1" || bits&allSeverities == 0
	when := m["period"]
	if strings.Contains(when, "{$") {
		a.out.remark("receiver "+user, "an address is switched off because its time is the macro "+when+"; write the time in its place")
		off, when = true, ""
	}
	if when == anyTime {
		when = ""
	}
	var list []object
	for to := range strings.FieldsFuncSeq(m["sendto"], func(r rune) bool { return r == '\n' || r == '\r' }) {
		o := object{"media": a.media[m.id("mediatypeid")], "to": strings.TrimSpace(to)}
		if len(severities) > 0 {
			o["severities"] = severities
		}
		o.put("when", when, "")
		if off {
			o["disabled"] = true
		}
		list = append(list, o)
	}
	return list
}

// actions are those for problems.
func (a *alerts) actions(ctx context.Context) ([]object, error) {
	conditions, err := a.grouped(ctx, "actionid", "SELECT * FROM conditions ORDER BY conditionid")
	if err != nil {
		return nil, err
	}
	operations, err := a.grouped(ctx, "actionid", "SELECT * FROM operations ORDER BY operationid")
	if err != nil {
		return nil, err
	}
	if a.toUsers, err = a.grouped(ctx, "operationid", "SELECT * FROM opmessage_usr ORDER BY opmessage_usrid"); err != nil {
		return nil, err
	}
	if a.toGroups, err = a.grouped(ctx, "operationid", "SELECT * FROM opmessage_grp ORDER BY opmessage_grpid"); err != nil {
		return nil, err
	}
	if a.tests, err = a.grouped(ctx, "operationid", "SELECT * FROM opconditions ORDER BY opconditionid"); err != nil {
		return nil, err
	}
	if err := a.each(ctx, "SELECT * FROM opmessage", func(r row) error { a.messages[r.id("operationid")] = r; return nil }); err != nil {
		return nil, err
	}
	var list []object
	err = a.each(ctx, "SELECT * FROM actions ORDER BY actionid", func(r row) error {
		if orZero(r["eventsource"]) != sourceTriggers {
			a.leave("actions for discovery, autoregistration, internal events and services", 1, "actions here are for problems; discovery and registration link templates by rules of their own")
			return nil
		}
		if o := a.action(r, conditions[r.id("actionid")], operations[r.id("actionid")]); o != nil {
			list = append(list, o)
		}
		return nil
	})
	return list, err
}

// action makes one action; nil when a condition cannot be, because without it the action would be for more.
func (a *alerts) action(r row, conditions, operations []row) object {
	path := "action " + r["name"]
	o := object{"name": r["name"]}
	if r["status"] == "1" {
		o["disabled"] = true
	}
	tests, formula, ok := a.conditions(path, r["formula"], conditions)
	if !ok {
		return nil
	}
	o.putList("conditions", tests)
	switch r["evaltype"] {
	case "1":
		o["evaluation"] = "and"
	case "2":
		o["evaluation"] = "or"
	case "3":
		o["evaluation"], o["formula"] = "formula", formula
	}
	o.put("step_duration", a.duration(path, r["esc_period"]), "")
	if orZero(r["pause_suppressed"]) == "0" {
		o["send_suppressed"] = true
	}
	if orZero(r["notify_if_canceled"]) == "0" {
		o["quiet_cancel"] = true
	}
	kinds := [3][]object{{}, {}, {}}
	for _, op := range operations {
		if made := a.operation(path, op); made != nil {
			kind := min(max(op.num("recovery"), 0), 2)
			kinds[kind] = append(kinds[kind], made)
		}
	}
	o["operations"], o["recovery"] = kinds[0], kinds[1]
	o.putList("update", kinds[2])
	return o
}

// duration is a time as alerting files have it; empty for Zabbix's "as the action has it".
func (a *alerts) duration(path, text string) string {
	if strings.Contains(text, "{$") {
		a.out.remark(path, "the time of a step is the macro "+text+"; an hour is used, write the time in its place")
		return ""
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n == 0 {
			return ""
		}
		return text + "s"
	}
	return text
}

// operation makes one operation; nil for those that send nothing.
func (a *alerts) operation(path string, r row) object {
	id, o := r.id("operationid"), object{}
	switch orZero(r["operationtype"]) {
	case opInvolved, opUpdated:
		o["involved"] = true
	case opMessage:
		var names []string
		seen := make(map[string]bool)
		add := func(user int64) {
			if name := a.users[user]; name != "" && !seen[name] {
				names, seen[name] = append(names, name), true
			}
		}
		for _, to := range a.toUsers[id] {
			add(to.id("userid"))
		}
		for _, to := range a.toGroups[id] {
			for _, m := range a.members[to.id("usrgrpid")] {
				add(m.id("userid"))
			}
		}
		if len(names) == 0 {
			a.out.remark(path, "an operation is not taken: none of its users has an address")
			return nil
		}
		o["receivers"] = names
	default:
		a.leave("operations that run commands", 1, "make a media type of kind command for those that run on agents, and name it in the action")
		return nil
	}
	if orZero(r["recovery"]) == "0" {
		a.steps(path, r, o)
	}
	m := a.messages[id]
	if m.id("mediatypeid") != 0 {
		o["media"] = []string{a.media[m.id("mediatypeid")]}
	}
	if orZero(m["default_msg"]) == "0" {
		o.put("subject", m["subject"], "")
		o.put("message", m["message"], "")
	}
	return o
}

// steps sets what only operations of problems have.
func (a *alerts) steps(path string, r row, o object) {
	o["from"] = max(r.num("esc_step_from"), 1)
	o["to"] = r.num("esc_step_to")
	if r.num("esc_step_to") == 0 {
		o["to"] = -1
	}
	o.put("duration", a.duration(path, r["esc_period"]), "")
	for _, c := range a.tests[r.id("operationid")] {
		if c["conditiontype"] == "14" {
			o["if"] = "not_acknowledged"
			if c["value"] == "1" {
				o["if"] = "acknowledged"
			}
		}
	}
}
