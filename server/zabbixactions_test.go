package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestZabbix_actions sends what zabbix_user, zabbix_mediatype and zabbix_action of community.zabbix do: people with addresses, then who is told of what.
func TestZabbix_actions(t *testing.T) {
	p := newZabbix(t)
	admin := p.signIn("administrator")
	var media struct{ MediaTypeIDs []string }
	p.mustRPC("mediatype.create", `{"name":"Mail","type":0,"smtp_server":"127.0.0.1","smtp_email":"z@example.com"}`, admin, &media)
	var made struct{ UserIDs, UsrGrpIDs, ActionIDs []string }
	p.mustRPC("usergroup.create", `{"name":"Night"}`, admin, &made)
	group := made.UsrGrpIDs[0]
	user := func(name, medias string) string {
		p.mustRPC("user.create", fmt.Sprintf(`{"username":%q,"passwd":%q,"roleid":"1","usrgrps":[{"usrgrpid":%q}],"medias":%s}`, name, testPassword, group, medias), admin, &made)
		return made.UserIDs[0]
	}
	ada := user("ada", fmt.Sprintf(`[{"mediatypeid":%q,"sendto":["ada@example.com","a@example.com"],"active":"0","severity":"48","period":"1-5,09:00-18:00"}]`, media.MediaTypeIDs[0]))
	user("bob", fmt.Sprintf(`[{"mediatypeid":%q,"sendto":"bob@example.com"}]`, media.MediaTypeIDs[0]))
	carl := user("carl", "[]")
	var users []map[string]json.RawMessage
	p.mustRPC("user.get", `{"output":["username"],"filter":{"username":"ada"},"getAccess":true,"selectMedias":"extend","selectUsrgrps":"extend"}`, admin, &users)
	if text := string(users[0]["medias"]); strings.Count(text, `"severity":"48"`) != 2 || !strings.Contains(text, `"sendto":["a@example.com"]`) || !strings.Contains(text, `"period":"1-5,09:00-18:00"`) {
		t.Errorf("addresses: %s", text)
	}

	filter := `{"evaltype":3,"formula":"A and (B or C)","conditions":[
		{"conditiontype":0,"operator":0,"value":"GROUP","formulaid":"A"},{"conditiontype":4,"operator":5,"value":"3","formulaid":"B"},{"conditiontype":26,"operator":2,"value":"db","value2":"service","formulaid":"C"}]}`
	operations := fmt.Sprintf(`[{"operationtype":0,"esc_step_from":1,"esc_step_to":0,"esc_period":"0","opmessage":{"default_msg":"0","subject":"S {EVENT.NAME}","message":"M","mediatypeid":%q},
		"opmessage_grp":[{"usrgrpid":%q}],"opmessage_usr":[{"userid":%q}],"opconditions":[{"conditiontype":14,"operator":0,"value":"0"}]}]`, media.MediaTypeIDs[0], group, ada)
	create := fmt.Sprintf(`{"name":"Tell them","eventsource":0,"status":0,"esc_period":"10m","pause_suppressed":"1","pause_symptoms":"1","notify_if_canceled":"1","filter":%s,"operations":%s,
		"recovery_operations":[{"operationtype":11,"opmessage":{"default_msg":"1","mediatypeid":"0"}}],"update_operations":[{"operationtype":12,"opmessage":{"default_msg":"1"}}]}`, filter, operations)
	if _, failure := p.rpc("action.create", create, p.signIn("limited-editor")); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("an action by a limited editor: %s", failure)
	}
	p.mustRPC("action.create", create, admin, &made)
	if _, failure := p.rpc("action.create", create, admin); !strings.Contains(failure, "already exists") {
		t.Errorf("the same again: %s", failure)
	}
	for _, a := range p.server.alerter.Config().Actions {
		if got := fmt.Sprint(a.Conditions, a.Operations, a.Recovery, a.Update); got != "[{A host_group equals Foreign } {B severity at_least average } {C tag_value contains db service}] "+
			"[{1 -1 0 not_acknowledged [ada bob] [Mail] false {S {EVENT.NAME} M}}] [{0 0 0  [] [] true { }}] [{0 0 0  [] [] true { }}]" {
			t.Errorf("the action: %s", got)
		}
	}
	get := `{"output":["name","esc_period","status"],"selectFilter":"extend","selectOperations":"extend","selectRecoveryOperations":"extend","selectUpdateOperations":"extend","filter":{"name":["Tell them"]}}`
	var actions []map[string]json.RawMessage
	p.mustRPC("action.get", get, admin, &actions)
	for member, want := range map[string]string{
		"filter":              p.ids.Replace(`{"conditions":[{"conditiontype":"0","formulaid":"A","operator":"0","value":"GROUP","value2":""},{"conditiontype":"4","formulaid":"B","operator":"5","value":"3","value2":""},{"conditiontype":"26","formulaid":"C","operator":"2","value":"db","value2":"service"}],"eval_formula":"A and (B or C)","evaltype":"3","formula":"A and (B or C)"}`),
		"recovery_operations": `[{"evaltype":"0","operationid":"1","operationtype":"11","opmessage":{"default_msg":"1","mediatypeid":"0","message":"","subject":""},"opmessage_grp":[],"opmessage_usr":[]}]`,
		"esc_period":          `"600s"`,
	} {
		if got := string(actions[0][member]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", member, got, want)
		}
	}
	if text := string(actions[0]["operations"]); !strings.Contains(text, `"esc_step_to":"0"`) || strings.Count(text, "userid") != 2 {
		t.Errorf("operations: %s", text)
	}
	// What was read can be sent back.
	id := made.ActionIDs[0]
	p.mustRPC("action.update", fmt.Sprintf(`{"actionid":%q,"filter":%s,"operations":%s}`, id, actions[0]["filter"], actions[0]["operations"]), admin, new(any))
	again := actions
	p.mustRPC("action.get", get, admin, &again)
	if fmt.Sprint(again) != fmt.Sprint(actions) {
		t.Errorf("sent back:\n got %s\nwant %s", again, actions)
	}
	for want, sent := range map[string]string{
		"has no address":                       fmt.Sprintf(`{"actionid":%q,"operations":[{"operationtype":0,"opmessage_usr":[{"userid":%q}]}]}`, id, carl),
		"media type of kind command":           fmt.Sprintf(`{"actionid":%q,"operations":[{"operationtype":1,"opcommand":{}}]}`, id),
		"value must be one of 0, 1, 2":         fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":99,"value":"x"}]}}`, id),
		`conditions/1": the parameter "value"`: fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":3,"operator":2}]}}`, id),
		`conditions/1/value": cannot be empty`: fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":25,"operator":2,"value":""}]}}`, id),
		"1/value2\": cannot be empty":          fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":26,"operator":2,"value":"db"}]}}`, id),
		"No permissions to referred object":    fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":1,"value":"999"}]}}`, id),
		`unexpected parameter "colour"`:        fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"colour":1}}`, id),
		"eventsource":                          `{"name":"Discovery","eventsource":1,"operations":[]}`,
		`the parameter "evaltype" is missing`:  fmt.Sprintf(`{"actionid":%q,"filter":{}}`, id),
		"conditions\": at most 50":             fmt.Sprintf(`{"actionid":%q,"filter":{"evaltype":0,"conditions":[{"conditiontype":1,"value":"x"}%s]}}`, id, strings.Repeat(`,{"conditiontype":1,"value":"x"}`, 50)),
		"operations\": at most 50":             fmt.Sprintf(`{"actionid":%q,"operations":[{}%s]}`, id, strings.Repeat(",{}", 50)),
	} {
		method := "action.update"
		if strings.Contains(sent, "eventsource") {
			method = "action.create"
		}
		if _, failure := p.rpc(method, sent, admin); !strings.Contains(failure, want) {
			t.Errorf("%s %s: %s, want %s", method, sent, failure, want)
		}
	}
	if _, failure := p.rpc("user.update", fmt.Sprintf(`{"userid":%q,"medias":[]}`, ada), admin); !strings.Contains(failure, "Tell them") {
		t.Errorf("whom an action tells lost every address: %s", failure)
	}
	p.mustRPC("action.delete", fmt.Sprintf(`[%q]`, id), admin, new(any))
	p.mustRPC("user.update", fmt.Sprintf(`{"userid":%q,"medias":[]}`, ada), admin, new(any))
	var alerts []any
	p.mustRPC("alert.get", `{"output":"extend","eventids":["1"],"selectMediatypes":"extend"}`, p.signIn("limited-viewer"), &alerts)
}

// TestZabbix_templateContents makes, changes and deletes items and triggers of a template as zabbix_item and zabbix_trigger do.
func TestZabbix_templateContents(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	var made struct{ GroupIDs, TemplateIDs, ItemIDs, TriggerIDs []string }
	p.mustRPC("templategroup.create", `{"name":"Ours"}`, editor, &made)
	p.mustRPC("template.create", fmt.Sprintf(`{"host":"Ours by API","groups":[{"groupid":%q}]}`, made.GroupIDs[0]), editor, &made)
	template := made.TemplateIDs[0]
	item := fmt.Sprintf(`{"hostid":%q,"name":"Load","key_":"load","type":2,"value_type":0,"history":"7d","tags":[{"tag":"a","value":"b"}],"preprocessing":[{"type":1,"params":"2"}]}`, template)
	if _, failure := p.rpc("item.create", item, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("an item of a template by somebody who sees only some hosts: %s", failure)
	}
	p.mustRPC("item.create", item, editor, &made)
	id := made.ItemIDs[0]
	p.mustRPC("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Part","key_":"part","type":18,"value_type":0,"master_itemid":%q}`, template, id), editor, &made)
	part := made.ItemIDs[0]
	if _, failure := p.rpc("item.create", item, editor); !strings.Contains(failure, "already exists on the template") {
		t.Errorf("the same again: %s", failure)
	}
	want := `[map[history:7d hostid:` + template + ` itemid:` + id + ` key_:load name:Load]]`
	for _, get := range []string{
		`{"filter":{"name":"Load","host":"Ours by API"},"output":["name","key_","hostid","history"]}`,
		fmt.Sprintf(`{"templateids":%q,"search":{"key_":"load"},"output":["name","key_","hostid","history"]}`, template),
		fmt.Sprintf(`{"hostids":[%q],"filter":{"key_":"load"},"output":["name","key_","hostid","history"]}`, template),
		fmt.Sprintf(`{"itemids":%q,"output":["name","key_","hostid","history"]}`, id),
		`{"templated":true,"filter":{"key_":"load"},"output":["name","key_","hostid","history"]}`,
	} {
		var items []map[string]string
		p.mustRPC("item.get", get, editor, &items)
		if got := fmt.Sprint(items); got != want {
			t.Errorf("item.get %s:\n got %s\nwant %s", get, got, want)
		}
		p.mustRPC("item.get", get, limited, &items)
		if len(items) != 0 {
			t.Errorf("item.get %s by somebody who may not see the template: %v", get, items)
		}
	}
	p.mustRPC("trigger.create", `{"description":"Much","expression":"last(/Ours by API/load)>10","priority":4,"tags":[{"tag":"x"}]}`, editor, &made)
	trigger := made.TriggerIDs[0]
	p.mustRPC("trigger.create", fmt.Sprintf(`{"description":"More","expression":"last(/Ours by API/load)>20","priority":5,"dependencies":[{"triggerid":%q}]}`, trigger), editor, &made)
	var triggers []struct{ TriggerID, Description, Priority string }
	p.mustRPC("trigger.get", `{"filter":{"description":"Much","host":"Ours by API"},"output":["description","priority"],"selectTags":"extend","selectDependencies":"extend"}`, editor, &triggers)
	if got := fmt.Sprint(triggers); got != "[{"+trigger+" Much 4}]" {
		t.Errorf("triggers: %s", got)
	}

	// A host that is linked has them at once, and keeps them in step.
	p.mustRPC("host.update", fmt.Sprintf(`{"hostid":"HOST","templates":[{"templateid":%q}]}`, template), editor, new(any))
	var items []map[string]string
	p.mustRPC("item.get", `{"hostids":"HOST","filter":{"key_":"load"},"output":["name","templateid"]}`, editor, &items)
	if len(items) != 1 || items[0]["templateid"] != id || items[0]["name"] != "Load" {
		t.Errorf("the item of the host: %v", items)
	}
	p.mustRPC("item.update", fmt.Sprintf(`{"itemid":%q,"name":"Load now","status":1}`, id), editor, new(any))
	p.mustRPC("item.get", `{"hostids":"HOST","filter":{"key_":"load"},"output":["name","status"]}`, editor, &items)
	if len(items) != 1 || items[0]["name"] != "Load now" || items[0]["status"] != "1" {
		t.Errorf("the item of the host after a change of the template's: %v", items)
	}
	p.mustRPC("trigger.update", fmt.Sprintf(`{"triggerid":%q,"priority":2}`, trigger), editor, &made)
	p.mustRPC("trigger.get", `{"hostids":"HOST","filter":{"description":"Much"},"output":["description","priority"]}`, editor, &triggers)
	if len(triggers) != 1 || triggers[0].Priority != "2" {
		t.Errorf("the trigger of the host: %v", triggers)
	}
	var list []any
	p.mustRPC("trigger.delete", fmt.Sprintf(`[%q]`, made.TriggerIDs[0]), editor, new(any))
	p.mustRPC("trigger.get", fmt.Sprintf(`{"templateids":%q}`, template), editor, &list)
	if len(list) != 1 {
		t.Errorf("triggers of the template after deletion: %v", list)
	}
	p.mustRPC("item.delete", fmt.Sprintf(`[%q,%q]`, id, part), editor, new(any))
	p.mustRPC("item.get", fmt.Sprintf(`{"templateids":%q}`, template), editor, &list)
	if len(list) != 0 {
		t.Errorf("items of the template after deletion of the one that others are made of: %v", list)
	}
	// Ids of hosts and templates differ, so that a host is not taken for a template.
	p.mustRPC("item.get", `{"templateids":"HOST"}`, editor, &list)
	if len(list) != 0 {
		t.Errorf("a host's id as that of a template: %v", list)
	}
	if _, failure := p.rpc("usermacro.create", fmt.Sprintf(`{"hostid":%q,"macro":"{$A}","value":"1"}`, template), editor); !strings.Contains(failure, "template.update") {
		t.Errorf("a macro of a template: %s", failure)
	}
}

// TestZabbix_small calls what clients ask besides: scripts, groups, proxies, how people sign in.
func TestZabbix_small(t *testing.T) {
	p := newZabbix(t)
	admin, viewer := p.signIn("administrator"), p.signIn("viewer")
	f := func(token, method, params, want string) {
		t.Helper()
		result, failure := p.rpc(method, params, token)
		if got := string(result) + failure; !strings.Contains(got, want) {
			t.Errorf("%s %s: %s, want %s", method, params, got, want)
		}
	}
	f(viewer, "script.get", `{"hostids":["HOST"],"output":"extend"}`, "[]")
	f(viewer, "script.getscriptsbyhosts", `{"hostid":"7"}`, `{"7":[]}`)
	f(viewer, "script.getscriptsbyhosts", `["7","8"]`, `{"7":[],"8":[]}`)
	f(viewer, "script.getscriptsbyevents", `{"eventid":["5"]}`, `{"5":[]}`)
	f(viewer, "script.execute", `{"scriptid":"1","hostid":"7"}`, "needs the role operator")
	f(admin, "script.execute", `{"scriptid":"1","hostid":"7"}`, "No permissions to referred object")
	f(viewer, "authentication.get", `{"output":"extend"}`, `"authentication_type":"0"`)
	f(viewer, "trigger.get", `{"maintenance":true,"output":["triggerid"]}`, "[]")
	var made struct{ GroupIDs, ProxyIDs []string }
	p.mustRPC("templategroup.create", `{"name":"A"}`, admin, &made)
	f(admin, "templategroup.update", fmt.Sprintf(`{"groupid":%q,"name":"B"}`, made.GroupIDs[0]), made.GroupIDs[0])
	f(admin, "templategroup.get", `{"filter":{"name":"B"},"output":["name"]}`, `"name":"B"`)
	f(admin, "templategroup.propagate", fmt.Sprintf(`{"groups":[{"groupid":%q}],"permissions":true}`, made.GroupIDs[0]), made.GroupIDs[0])
	f(admin, "templategroup.delete", fmt.Sprintf(`[%q]`, made.GroupIDs[0]), made.GroupIDs[0])
	f(admin, "templategroup.delete", fmt.Sprintf(`[%q]`, made.GroupIDs[0]), "No permissions")
	f(viewer, "proxy.create", `{"name":"branch","operating_mode":"0"}`, "needs the role administrator")
	p.mustRPC("proxy.create", `{"name":"branch","operating_mode":"0"}`, admin, &made)
	f(admin, "proxy.create", `{"name":"branch","operating_mode":"0"}`, "already exists")
	f(admin, "proxy.create", `{"name":"other","operating_mode":"0","tls_accept":"2"}`, "tidemark proxies")
	f(admin, "proxy.update", fmt.Sprintf(`{"proxyid":%q,"description":"in the cellar"}`, made.ProxyIDs[0]), made.ProxyIDs[0])
	f(admin, "proxy.get", `{"filter":{"name":"branch"},"output":["description"]}`, "in the cellar")
	f(admin, "proxy.update", fmt.Sprintf(`{"proxyid":%q,"operating_mode":"1","address":"10.0.0.5","port":"10052"}`, made.ProxyIDs[0]), made.ProxyIDs[0])
	f(admin, "proxy.get", `{"output":["operating_mode","address","port"]}`, `"operating_mode":"1","address":"10.0.0.5","port":"10052"`)
	var rules struct{ DRuleIDs []string }
	const checks = `[{"type":"9","key_":"agent.hostname","ports":"10050","uniq":"1","host_source":"3"},{"type":"11","key_":".1.3.6.1.2.1.1.5.0","ports":"161","snmp_community":"secret"},{"type":"12","ports":"0"}]`
	f(viewer, "drule.create", `{"name":"Branch"}`, "needs the role administrator")
	p.mustRPC("drule.create", fmt.Sprintf(`{"name":"Branch","iprange":"10.0.0.1-9","delay":"1h","proxyid":%q,"status":"1","dchecks":%s}`, made.ProxyIDs[0], checks), admin, &rules)
	f(admin, "drule.create", fmt.Sprintf(`{"name":"Branch","iprange":"10.0.0.1-9","dchecks":%s}`, checks), "already exists")
	f(admin, "drule.create", fmt.Sprintf(`{"name":"Odd","iprange":"10.0.0.x","dchecks":%s}`, checks), "10.0.0.x")
	f(admin, "drule.get", `{"output":["name","status","proxyid"],"selectDChecks":["type","key_","uniq","host_source","snmp_community"]}`,
		fmt.Sprintf(`"name":"Branch","status":"1","proxyid":%q,"dchecks":[{"dcheckid":`, made.ProxyIDs[0]))
	f(admin, "drule.get", `{"selectDChecks":["type","key_","uniq","host_source"]}`, `"host_source":"3","key_":"agent.hostname","type":"9","uniq":"1"`)
	f(admin, "drule.get", `{"selectDChecks":"extend"}`, `"snmp_community":"********"`)
	f(admin, "proxy.delete", fmt.Sprintf(`[%q]`, made.ProxyIDs[0]), "works off rules of network discovery (Branch)")
	f(admin, "drule.update", fmt.Sprintf(`{"druleid":%q,"proxyid":"0","delay":"10m"}`, rules.DRuleIDs[0]), rules.DRuleIDs[0])
	f(admin, "drule.get", `{"output":["delay","proxy_hostid","status"]}`, `"delay":"10m"`)
	f(admin, "drule.delete", fmt.Sprintf(`[%q]`, rules.DRuleIDs[0]), rules.DRuleIDs[0])
	f(admin, "drule.delete", fmt.Sprintf(`[%q]`, rules.DRuleIDs[0]), "No permissions")
	f(admin, "proxy.delete", fmt.Sprintf(`[%q]`, made.ProxyIDs[0]), made.ProxyIDs[0])
	f(admin, "proxy.get", `{"countOutput":true}`, `"0"`)
}
