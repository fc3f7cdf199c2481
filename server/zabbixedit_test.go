package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestZabbix_itemsAndTriggers makes, changes and deletes items and triggers as community.zabbix and scripts do.
func TestZabbix_itemsAndTriggers(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	create := `{"hostid":"HOST","name":"Load","key_":"load","type":2,"value_type":0,"units":"B","history":"7d","tags":[{"tag":"a","value":"b"}],
		"preprocessing":[{"type":"1","params":"8","error_handler":"0","error_handler_params":""},{"type":5,"params":"(.*)\n\\1","error_handler":2,"error_handler_params":"0"}]}`
	if _, failure := p.rpc("item.create", create, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("an item of a foreign host: %s", failure)
	}
	var items struct{ ItemIDs []string }
	p.mustRPC("item.create", create, editor, &items)
	if _, failure := p.rpc("item.create", create, editor); !strings.Contains(failure, "already exists on the host") {
		t.Errorf("the same item again: %s", failure)
	}
	p.mustRPC("item.create", fmt.Sprintf(`[{"hostid":"HOST","name":"Half","key_":"half","type":18,"value_type":"0","master_itemid":%q},{"hostid":"HOST","name":"Other","key_":"other","type":2,"value_type":3}]`, items.ItemIDs[0]), editor, &items)
	if len(items.ItemIDs) != 2 {
		t.Fatalf("items: %v", items)
	}
	half := items.ItemIDs[0]
	for params, want := range map[string]string{
		`{"hostid":"HOST","name":"x","key_":"x","type":2}`:                          `the parameter "value_type" is missing`,
		`{"hostid":"HOST","name":"x","key_":"x","type":1,"value_type":0}`:           `"/1/type"`,
		`{"hostid":"HOST","name":"x","key_":"x","type":2,"value_type":0,"color":1}`: `unexpected parameter "color"`,
	} {
		if _, failure := p.rpc("item.create", params, editor); !strings.Contains(failure, want) {
			t.Errorf("%s: %s, want %q", params, failure, want)
		}
	}
	var got []map[string]any
	p.mustRPC("item.update", fmt.Sprintf(`{"itemid":%q,"name":"A half","status":1}`, half), editor, &items)
	p.mustRPC("item.get", fmt.Sprintf(`{"itemids":%q,"output":["name","status","type","key_"]}`, half), editor, &got)
	if fmt.Sprint(got) != fmt.Sprintf("[map[itemid:%s key_:half name:A half status:1 type:18]]", half) {
		t.Errorf("the item: %v", got)
	}
	if _, failure := p.rpc("item.update", fmt.Sprintf(`{"itemid":%q,"key_":"whole"}`, half), editor); !strings.Contains(failure, "the key stays") {
		t.Errorf("another key: %s", failure)
	}

	var triggers struct{ TriggerIDs []string }
	host := foreign
	trigger := fmt.Sprintf(`{"description":"Load is high","expression":"last(/%s/load)>5","priority":4,"manual_close":1,"tags":[{"tag":"scope","value":"x"}],"comments":"why","event_name":"Load {ITEM.VALUE}"}`, host)
	p.mustRPC("trigger.create", trigger, editor, &triggers)
	high := triggers.TriggerIDs[0]
	if _, failure := p.rpc("trigger.create", trigger, editor); !strings.Contains(failure, "already exists on") {
		t.Errorf("the same trigger again: %s", failure)
	}
	if _, failure := p.rpc("trigger.create", trigger, limited); !strings.Contains(failure, "does not exist or you have no access") {
		t.Errorf("a trigger on a foreign host: %s", failure)
	}
	p.mustRPC("trigger.create", fmt.Sprintf(`{"description":"Both","expression":"last(/%s/load)>5 and last(/%s/other)>5","recovery_mode":2,"dependencies":[{"triggerid":%q}]}`, host, host, high), editor, &triggers)
	both := triggers.TriggerIDs[0]
	p.mustRPC("trigger.update", fmt.Sprintf(`{"triggerid":%q,"priority":2,"status":1}`, high), editor, &triggers)
	if triggers.TriggerIDs[0] != high {
		t.Errorf("the trigger became %v", triggers.TriggerIDs)
	}
	p.mustRPC("trigger.get", fmt.Sprintf(`{"triggerids":[%q,%q],"output":["description","priority","status","recovery_mode","manual_close"],"selectDependencies":["triggerid"],"selectTags":"extend","sortfield":"triggerid","preservekeys":true}`, high, both), editor, new(any))
	var list []struct {
		Description, Priority, Status string
		Close                         string                       `json:"manual_close"`
		Dependencies                  []struct{ TriggerID string } `json:"dependencies"`
	}
	p.mustRPC("trigger.get", fmt.Sprintf(`{"triggerids":[%q,%q],"output":"extend","selectDependencies":["triggerid"],"sortfield":"description"}`, high, both), editor, &list)
	want := fmt.Sprintf("[{Both 0 0 0 [{%s}]} {Load is high 2 1 1 []}]", high)
	if fmt.Sprint(list) != want {
		t.Errorf("triggers: %v, want %s", list, want)
	}
	p.mustRPC("trigger.delete", fmt.Sprintf(`[%q,%q]`, both, high), editor, new(json.RawMessage))
	p.mustRPC("item.delete", fmt.Sprintf(`[%q]`, half), editor, new(json.RawMessage))
	var count string
	if p.mustRPC("item.get", fmt.Sprintf(`{"itemids":%q,"countOutput":true}`, half), editor, &count); count != "0" {
		t.Errorf("%s items are left", count)
	}
	if p.mustRPC("trigger.get", fmt.Sprintf(`{"triggerids":[%q,%q],"countOutput":true}`, both, high), editor, &count); count != "0" {
		t.Errorf("%s triggers are left", count)
	}
}

// TestZabbix_updates does all that event.acknowledge does, and reads it back.
func TestZabbix_updates(t *testing.T) {
	p := newZabbix(t)
	operator := p.signIn("operator")
	call := func(rest string) string {
		_, failure := p.rpc("event.acknowledge", `{"eventids":"PROBLEM",`+rest+`}`, operator)
		return failure
	}
	for params, want := range map[string]string{
		`"action":0`:                      `"/action": value must be one of`,
		`"action":128`:                    "cause and symptom",
		`"action":18`:                     "not both",
		`"action":4`:                      `"/message": cannot be empty`,
		`"action":8`:                      `the parameter "severity" is missing`,
		`"action":32`:                     `the parameter "suppress_until" is missing`,
		`"action":32,"suppress_until":50`: "must be in the future",
	} {
		if got := call(params); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", params, got, want)
		}
	}
	if got := call(`"action":46,"message":"known","severity":5,"suppress_until":0`); got != "" {
		t.Fatal(got)
	}
	var events []struct {
		Severity, Suppressed, Acknowledged string
		Data                               []struct {
			UserID string
			Until  string `json:"suppress_until"`
		} `json:"suppression_data"`
		Acknowledges []struct {
			Action, Message string
			Old             string `json:"old_severity"`
			New             string `json:"new_severity"`
		}
	}
	get := func(method, filter string) string {
		p.mustRPC(method, `{"eventids":"PROBLEM","output":"extend","selectAcknowledges":"extend","selectSuppressionData":"extend"`+filter+`}`, operator, &events)
		return fmt.Sprint(events)
	}
	if got := get("problem.get", `,"suppressed":true`); !strings.HasPrefix(got, "[{5 1 1 [{") || !strings.HasSuffix(got, " 0}] [{46 known 4 5}]}]") {
		t.Errorf("problem.get: %s", got)
	}
	if got := get("problem.get", `,"suppressed":false`); got != "[]" {
		t.Errorf("not suppressed ones: %s", got)
	}
	if got := call(`"action":81`); got != "" { // unsuppress, unacknowledge, close
		t.Fatal(got)
	}
	if got := get("event.get", ""); !strings.HasPrefix(got, "[{5 0 0 [] [{81 ") {
		t.Errorf("event.get: %s", got)
	}
	if got := call(`"action":1`); !strings.Contains(got, "Cannot close problem: event is not in PROBLEM state.") {
		t.Errorf("closed again: %s", got)
	}
}

// TestZabbix_globals changes global macros, media types and actions as playbooks do.
func TestZabbix_globals(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	for _, method := range []string{"usermacro.createglobal", "mediatype.create"} {
		if _, failure := p.rpc(method, `{"macro":"{$A}","value":"1","name":"x","type":0}`, limited); !strings.Contains(failure, "No permissions to referred object") && !strings.Contains(failure, "unexpected parameter") {
			t.Errorf("%s by a limited editor: %s", method, failure)
		}
	}
	var macros struct{ GlobalMacroIDs []string }
	p.mustRPC("usermacro.createglobal", `[{"macro":"{$LIMIT}","value":"5","description":"why"},{"macro":"{$KEY}","value":"word","type":1}]`, editor, &macros)
	if _, failure := p.rpc("usermacro.createglobal", `{"macro":"{$LIMIT}","value":"5"}`, editor); !strings.Contains(failure, "already exists") {
		t.Errorf("the same macro: %s", failure)
	}
	limit := macros.GlobalMacroIDs[0]
	p.mustRPC("usermacro.updateglobal", fmt.Sprintf(`{"globalmacroid":%q,"value":"6"}`, limit), editor, new(any))
	var got []map[string]string
	p.mustRPC("usermacro.get", `{"globalmacro":true,"output":["macro","value"],"filter":{"macro":["{$LIMIT}","{$KEY}"]},"sortfield":"macro"}`, editor, &got)
	if len(got) != 2 || got[0]["value"] != "" || got[1]["value"] != "6" {
		t.Errorf("macros: %v", got)
	}
	p.mustRPC("usermacro.deleteglobal", fmt.Sprintf(`[%q]`, limit), editor, new(any))
	if text := p.must("GET", "/api/audit?search=macros", "", p.session("administrator")); strings.Contains(text, "word") {
		t.Errorf("the audit log has the value of a secret: %s", text)
	}

	var media struct{ MediaTypeIDs []string }
	p.mustRPC("mediatype.create", `[{"name":"Mail of Ansible","type":0,"smtp_server":"127.0.0.1","smtp_port":2525,"smtp_email":"zabbix@example.com","maxattempts":5,"smtp_authentication":1,"username":"u","passwd":"top secret word"},
		{"name":"Hook","type":"4","script":"return 'OK';","timeout":"10s","parameters":[{"name":"URL","value":"https://example.com/{EVENT.ID}"},{"name":"token","value":"top secret word"}],
		"message_templates":[{"eventsource":0,"recovery":0,"subject":"P {EVENT.NAME}","message":"m"},{"eventsource":0,"recovery":1,"subject":"R","message":"r"}]}]`, editor, &media)
	mail, hook := media.MediaTypeIDs[0], media.MediaTypeIDs[1]
	if _, failure := p.rpc("mediatype.create", `{"name":"Hook","type":4,"script":"return 1"}`, editor); !strings.Contains(failure, "already exists") {
		t.Errorf("the same media type: %s", failure)
	}
	if _, failure := p.rpc("mediatype.create", `{"name":"SMS","type":2}`, editor); !strings.Contains(failure, "not supported") {
		t.Errorf("a modem: %s", failure)
	}
	p.mustRPC("mediatype.update", fmt.Sprintf(`[{"mediatypeid":%q,"status":1,"smtp_server":"127.0.0.2"},{"mediatypeid":%q,"maxsessions":3}]`, mail, hook), editor, &media)
	got = nil
	p.mustRPC("mediatype.get", fmt.Sprintf(`{"mediatypeids":[%q,%q],"output":["name","status","maxattempts","maxsessions","smtp_server"],"sortfield":"name"}`, mail, hook), editor, &got)
	want := fmt.Sprintf("[map[maxattempts:10 maxsessions:3 mediatypeid:%s name:Hook smtp_server: status:0] map[maxattempts:5 maxsessions:4 mediatypeid:%s name:Mail of Ansible smtp_server:127.0.0.2:2525 status:1]]", hook, mail)
	if fmt.Sprint(got) != want {
		t.Errorf("media types:\n got %v\nwant %s", got, want)
	}
	for _, m := range p.server.alerter.Config().Media {
		if m.Name == "Hook" && (m.Problem.Subject != "P {EVENT.NAME}" || m.Zabbix.Parameters["token"] != "{SECRET.token}" || m.Secrets["token"] == "") {
			t.Errorf("the webhook: %+v", m)
		}
	}
	if text := p.must("GET", "/api/audit?search=media", "", p.session("administrator")); strings.Contains(text, "top secret word") {
		t.Errorf("the audit log has a secret: %s", text)
	}

	p.must("PUT", "/api/alerting", `{"receivers":[{"name":"ops","media":[{"media":"Hook","to":"x"}]}],"actions":[{"name":"Tell","operations":[{"receivers":["ops"]}]}]}`, editor)
	var actions []struct{ ActionID, Status string }
	get := `{"filter":{"name":"Tell"},"output":["status"]}`
	p.mustRPC("action.get", get, editor, &actions)
	p.mustRPC("action.update", fmt.Sprintf(`{"actionid":%q,"status":1,"esc_period":"5m","pause_suppressed":0}`, actions[0].ActionID), editor, new(any))
	if _, failure := p.rpc("action.update", fmt.Sprintf(`{"actionid":%q,"operations":[{"operationtype":0,"opmessage_usr":[{"userid":"999"}]}]}`, actions[0].ActionID), editor); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("operations: %s", failure)
	}
	p.mustRPC("action.get", get, editor, &actions)
	if len(actions) != 1 || actions[0].Status != "1" {
		t.Errorf("actions: %v", actions)
	}
	p.mustRPC("action.delete", fmt.Sprintf(`[%q]`, actions[0].ActionID), editor, new(any))
	if p.mustRPC("action.get", get, editor, &actions); len(actions) != 0 {
		t.Errorf("an action is left: %v", actions)
	}
	p.must("DELETE", "/api/alerting/receiver/ops", "", editor)
	p.mustRPC("mediatype.delete", fmt.Sprintf(`[%q,%q]`, mail, hook), editor, new(any))
}

// TestZabbix_macrosInKeys changes and deletes an item whose key was written with a macro: item.get tells it with the value, scripts name it by either.
func TestZabbix_macrosInKeys(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	p.made("usermacro.create", fmt.Sprintf(`{"hostid":%q,"macro":"{$DOOR}","value":"8080"}`, host))
	item := p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Door","key_":"door[{$DOOR}]","type":2,"value_type":0}`, host))
	part := p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Width","key_":"width[{$DOOR}]","type":18,"master_itemid":%q,"value_type":0}`, host, item))
	shows := func(want string) {
		t.Helper()
		p.shows("item.get", fmt.Sprintf(`{"itemids":[%q,%q],"output":["key_","name"],"sortfield":"name"}`, item, part), p.editor, want)
	}
	shows(`[{"itemid":"` + item + `","key_":"door[8080]","name":"Door"},{"itemid":"` + part + `","key_":"width[8080]","name":"Width"}]`)
	p.made("item.update", fmt.Sprintf(`{"itemid":%q,"key_":"door[8080]","name":"Gate"}`, item))
	p.made("item.update", fmt.Sprintf(`{"itemid":%q,"key_":"width[{$DOOR}]","name":"Wide"}`, part))
	p.refused("item.update", fmt.Sprintf(`{"itemid":%q,"key_":"door[8081]"}`, item), p.editor, "the key stays")
	shows(`[{"itemid":"` + item + `","key_":"door[8080]","name":"Gate"},{"itemid":"` + part + `","key_":"width[8080]","name":"Wide"}]`)
	p.made("item.delete", fmt.Sprintf(`[%q]`, item))
	shows(`[]`)
}

// TestZabbix_macrosInTriggers makes, changes and deletes triggers with macros in their names and expressions, of which one depends on another.
func TestZabbix_macrosInTriggers(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	p.made("usermacro.create", fmt.Sprintf(`{"hostid":%q,"macro":"{$MAX}","value":"5"}`, host))
	p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Load","key_":"load","type":2,"value_type":0}`, host))
	high := p.made("trigger.create", fmt.Sprintf(`{"description":"Load over {$MAX}","expression":"last(/%s/load)>{$MAX}"}`, foreign))
	other := p.made("trigger.create", fmt.Sprintf(`{"description":"Load over {$MAX}","expression":"min(/%s/load,5m)>{$MAX}","dependencies":[{"triggerid":%q}]}`, foreign, high))
	if high == "" || other == "" || high == other {
		t.Fatalf("the triggers are %q and %q", high, other)
	}
	p.refused("trigger.create", fmt.Sprintf(`{"description":"Load over {$MAX}","expression":"last(/%s/load)>{$MAX}"}`, foreign), p.editor, "already exists")
	if id := p.made("trigger.create", fmt.Sprintf(`{"description":"Of some values","expression":"avg(/%s/load,#{$MAX})>{$MAX}"}`, foreign)); id == "" {
		t.Error("a trigger over as many values as a macro says has no id")
	}
	p.made("trigger.update", fmt.Sprintf(`{"triggerid":%q,"priority":4}`, other))
	p.shows("trigger.get", fmt.Sprintf(`{"triggerids":[%q],"output":["priority"],"selectDependencies":["triggerid"]}`, other), p.editor,
		fmt.Sprintf(`[{"dependencies":[{"triggerid":%q}],"priority":"4","triggerid":%q}]`, high, other))
	p.made("trigger.delete", fmt.Sprintf(`[%q]`, high))
	p.shows("trigger.get", fmt.Sprintf(`{"triggerids":[%q,%q],"output":["triggerid"],"selectDependencies":["triggerid"]}`, high, other), p.editor, fmt.Sprintf(`[{"dependencies":[],"triggerid":%q}]`, other))
}
