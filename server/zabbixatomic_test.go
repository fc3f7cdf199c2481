package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestZabbix_allOrNothing ends calls of several objects on two hosts with a mistake in the last one, found by the call or by the import, and looks
// that nothing of the others was changed.
func TestZabbix_allOrNothing(t *testing.T) {
	p := newParts(t)
	var groups []struct{ GroupID string }
	p.make("hostgroup.get", `{"output":["groupid"],"filter":{"name":"Own"}}`, &groups)
	second := p.made("host.create", fmt.Sprintf(`{"host":"second","groups":[{"groupid":%q}],"interfaces":[{"type":1,"main":1,"useip":1,"ip":"127.0.0.1","dns":"","port":"10050"}]}`, groups[0].GroupID))
	hosts := []string{p.ids.Replace("HOST"), second}
	made := make(map[string][]string)
	for i, host := range hosts {
		name := []string{foreign, "second"}[i]
		add := func(kind, params string) {
			made[kind] = append(made[kind], p.made(kind+".create", fmt.Sprintf(params, host)))
		}
		add("item", `{"hostid":%q,"name":"Load","key_":"load","type":2,"value_type":0}`)
		made["trigger"] = append(made["trigger"], p.made("trigger.create", fmt.Sprintf(`{"description":"Load","expression":"last(/%s/load)>5"}`, name)))
		add("discoveryrule", `{"hostid":%q,"name":"Disks","key_":"disks","type":2}`)
		add("httptest", `{"hostid":%q,"name":"Shop","steps":[{"name":"in","url":"http://127.0.0.1:1/in"}]}`)
		add("usermacro", `{"hostid":%q,"macro":"{$LIMIT}","value":"1"}`)
		add("valuemap", `{"hostid":%q,"name":"Door","mappings":[{"value":"0","newvalue":"closed"}]}`)
		rule := made["discoveryrule"][i]
		made["itemprototype"] = append(made["itemprototype"], p.made("itemprototype.create", fmt.Sprintf(`{"ruleid":%q,"hostid":%q,"name":"Use","key_":"use[{#DISK}]","type":2,"value_type":0}`, rule, host)))
		made["triggerprototype"] = append(made["triggerprototype"], p.made("triggerprototype.create", fmt.Sprintf(`{"description":"Full {#DISK}","expression":"last(/%s/use[{#DISK}])>90"}`, name)))
	}
	state := func() string {
		t.Helper()
		var text strings.Builder
		for _, get := range []string{"host.get", "item.get", "trigger.get", "discoveryrule.get", "httptest.get", "usermacro.get", "valuemap.get", "itemprototype.get", "triggerprototype.get", "template.get"} {
			output := map[string]string{"item.get": `["name","key_","status"]`, "trigger.get": `["description","expression","status"]`}[get] // without what values change
			if output == "" {
				output = `"extend"`
			}
			var rows []json.RawMessage
			p.make(get, `{"output":`+output+`}`, &rows)
			for _, row := range rows {
				fmt.Fprintf(&text, "%s %s\n", get, row)
			}
		}
		return text.String()
	}
	id := map[string]string{"item": "itemid", "trigger": "triggerid", "discoveryrule": "itemid", "httptest": "httptestid", "usermacro": "hostmacroid", "valuemap": "valuemapid", "itemprototype": "itemid", "triggerprototype": "triggerid"}
	good := map[string]string{"usermacro": `"value":"2"`, "valuemap": `"mappings":[{"value":"1","newvalue":"open"}]`}
	folder := p.made("templategroup.create", `{"name":"Templates/Some"}`)
	before := state()
	for kind, ids := range made {
		change := good[kind]
		if change == "" {
			change = `"status":1`
		}
		pair := fmt.Sprintf(`[{%q:%q,%s},{%q:%q,%%s}]`, id[kind], ids[0], change, id[kind], ids[1])
		p.refused(kind+".update", fmt.Sprintf(pair, `"colour":1`), p.editor, `Invalid parameter "/2": unexpected parameter "colour"`)
		p.refused(kind+".update", fmt.Sprintf(`[{%q:%q,%s},{%q:"999999",%s}]`, id[kind], ids[0], change, id[kind], change), p.editor, noObject)
		p.refused(kind+".update", fmt.Sprintf(`[{%q:%q,%s},{%q:%q,%s}]`, id[kind], ids[0], change, id[kind], ids[0], change), p.editor, fmt.Sprintf(`Invalid parameter "/2": value (%s)=(%s) already exists.`, id[kind], ids[0]))
		p.refused(kind+".delete", fmt.Sprintf(`[%q,"999999"]`, ids[0]), p.editor, noObject)
	}
	// What only the import finds.
	p.refused("item.create", fmt.Sprintf(`[{"hostid":%q,"name":"A","key_":"a","type":2,"value_type":0},{"hostid":%q,"name":"B","key_":"b[","type":2,"value_type":0}]`, hosts[0], hosts[1]), p.editor, "b[")
	p.refused("item.create", fmt.Sprintf(`[{"hostid":%q,"name":"A","key_":"a","type":2,"value_type":0},{"hostid":%q,"name":"B","key_":"a","type":2,"value_type":0}]`, hosts[0], hosts[0]), p.editor, "already exists")
	p.refused("trigger.update", fmt.Sprintf(`[{"triggerid":%q,"status":1},{"triggerid":%q,"expression":"last(/second/load)>>5"}]`, made["trigger"][0], made["trigger"][1]), p.editor, `Invalid parameter "/2/expression": incorrect expression`)
	p.refused("host.create", fmt.Sprintf(`[{"host":"third","groups":[{"groupid":%q}]},{"host":"a/b","groups":[{"groupid":%q}]}]`, groups[0].GroupID, groups[0].GroupID), p.editor, "a/b")
	p.refused("host.update", fmt.Sprintf(`[{"hostid":%q,"description":"x","status":1},{"hostid":%q,"interfaces":[{"type":1,"main":1,"useip":1,"ip":"","dns":"x","port":"10050"}]}]`, hosts[0], hosts[1]), p.editor, `Interface with DNS "x" cannot have empty IP address.`)
	p.refused("hostinterface.create", fmt.Sprintf(`{"hostid":%q,"type":1,"main":0,"useip":0,"ip":"127.0.0.1","dns":"","port":"10050"}`, hosts[1]), p.editor, `Interface with IP "127.0.0.1" cannot have empty DNS name`)
	p.refused("host.create", fmt.Sprintf(`{"host":"third","groups":[{"groupid":%q}],"interfaces":[{"type":1,"main":1,"useip":1,"ip":"","dns":"","port":"10050"}]}`, groups[0].GroupID), p.editor, "IP and DNS cannot be empty")
	p.refused("template.create", fmt.Sprintf(`[{"host":"T1","groups":[{"groupid":%q}]},{"host":"T2"}]`, folder), p.editor, `the parameter "groups" is missing`)
	p.refused("template.create", fmt.Sprintf(`[{"host":"T1","groups":[{"groupid":%q}]},{"host":"T1","groups":[{"groupid":%q}]}]`, folder, folder), p.editor, `Template with the same name "T1" already exists.`)
	// Items that belong to scenarios and rules are not deleted by themselves.
	var own []struct{ ItemID string }
	p.make("item.get", `{"output":["itemid"],"hostids":"HOST","search":{"key_":"web.test.fail"}}`, &own)
	p.refused("item.delete", fmt.Sprintf(`[%q,%q]`, made["item"][0], own[0].ItemID), p.editor, noObject)
	p.refused("item.delete", fmt.Sprintf(`[%q,%q]`, made["item"][0], made["discoveryrule"][0]), p.editor, noObject)
	after := state()
	for line := range strings.Lines(before) {
		if !strings.Contains(after, line) {
			t.Errorf("refused calls changed %s", line)
		}
	}
	if len(after) != len(before) {
		t.Errorf("refused calls made something:\n%s", after)
	}
	if audit := p.must("GET", "/api/audit?limit=1&search=ended+by", "", p.login("administrator")); !strings.Contains(audit, `"entries":[]`) {
		t.Errorf("the audit log has changes of refused calls: %s", audit)
	}
	for kind, ids := range made {
		change := good[kind]
		if change == "" {
			change = `"status":1`
		}
		p.make(kind+".update", fmt.Sprintf(`[{%q:%q,%s},{%q:%q,%s}]`, id[kind], ids[0], change, id[kind], ids[1], change), new(any))
	}
	steps := fmt.Sprintf(`{"httptestid":%q,"steps":[{"httpstepid":STEP,"name":"a","no":1},{"httpstepid":STEP,"name":"b","no":2}]}`, made["httptest"][0])
	var scenario []struct{ Steps []struct{ HTTPStepID string } }
	p.make("httptest.get", fmt.Sprintf(`{"httptestids":[%q],"selectSteps":["name"]}`, made["httptest"][0]), &scenario)
	p.refused("httptest.update", strings.ReplaceAll(steps, "STEP", `"`+scenario[0].Steps[0].HTTPStepID+`"`), p.editor, "value (httpstepid)=")
	p.refused("httptest.update", fmt.Sprintf(`{"httptestid":%q,"steps":[{"name":"a","url":"http://x"},{"name":"a","url":"http://y"}]}`, made["httptest"][0]), p.editor, `"/1/steps/2": value (name)=(a) already exists`)
	for _, kind := range []string{"triggerprototype", "itemprototype", "discoveryrule", "trigger", "item", "httptest", "usermacro", "valuemap"} {
		p.make(kind+".delete", fmt.Sprintf(`[%q,%q]`, made[kind][0], made[kind][1]), new(any))
		p.shows(kind+".get", fmt.Sprintf(`{"%ss":[%q,%q]}`, id[kind], made[kind][0], made[kind][1]), p.editor, "[]")
	}
}

// TestZabbix_triggersTogether makes and renames several triggers in one call, also ones that depend on each other.
func TestZabbix_triggersTogether(t *testing.T) {
	p := newParts(t)
	var ids struct{ TriggerIDs []string }
	name := `{"description":"Warm","expression":"last(/` + foreign + `/temperature)>%d"}`
	p.make("trigger.create", "["+fmt.Sprintf(name, 20)+","+fmt.Sprintf(name, 30)+"]", &ids)
	if len(ids.TriggerIDs) != 2 || ids.TriggerIDs[0] == ids.TriggerIDs[1] {
		t.Fatalf("triggers of one name: %v", ids)
	}
	low, high := ids.TriggerIDs[0], ids.TriggerIDs[1]
	p.shows("trigger.get", fmt.Sprintf(`{"output":["expression"],"triggerids":[%q]}`, high), p.editor, fmt.Sprintf(`[{"expression":"last(/%s/temperature)\u003e30","triggerid":%q}]`, foreign, high))
	p.refused("trigger.create", "["+fmt.Sprintf(name, 40)+","+fmt.Sprintf(name, 40)+"]", p.editor, "already exists on")
	p.make("trigger.update", fmt.Sprintf(`[{"triggerid":%q,"description":"Hot"},{"triggerid":%q,"dependencies":[{"triggerid":%q}]}]`, high, low, high), &ids)
	p.shows("trigger.get", fmt.Sprintf(`{"output":["description"],"triggerids":[%q],"selectDependencies":["description"]}`, ids.TriggerIDs[1]), p.editor,
		fmt.Sprintf(`[{"dependencies":[{"description":"Hot","triggerid":%q}],"description":"Warm","triggerid":%q}]`, ids.TriggerIDs[0], ids.TriggerIDs[1]))
	p.make("trigger.update", fmt.Sprintf(`{"triggerid":%q,"description":"Very hot"}`, ids.TriggerIDs[0]), &ids)
	p.shows("trigger.get", `{"output":["description"],"filter":{"description":"Warm"},"selectDependencies":"count"}`, p.editor, fmt.Sprintf(`[{"dependencies":"1","description":"Warm","triggerid":%q}]`, low))
}

// TestZabbix_secretMacro never shows what was secret when a global macro becomes a text.
func TestZabbix_secretMacro(t *testing.T) {
	p := newParts(t)
	id := p.made("usermacro.createglobal", `{"macro":"{$KEY}","value":"canary-77","type":1}`)
	p.refused("usermacro.updateglobal", fmt.Sprintf(`{"globalmacroid":%q,"type":0}`, id), p.editor, `the parameter "value" is missing`)
	admin := p.login("administrator")
	path := "/api/global-macros/%7B$KEY%7D"
	if status, text := p.call("PUT", path, `{"secret":false}`, admin, ""); status != 400 || !strings.Contains(text, "a value is missing") {
		t.Errorf("a secret that becomes a text without a value: %d %s", status, text)
	}
	p.must("PUT", path, `{"secret":true}`, admin)
	if text := p.must("GET", "/api/configuration", "", admin); !strings.Contains(text, `{"macro":"{$KEY}","secret":true}`) {
		t.Errorf("the macros: %s", text)
	}
	p.must("PUT", path, `{"value":"plain"}`, admin)
	if status, text := p.call("PUT", "/api/global-macros/KEY", `{"value":"x"}`, admin, ""); status != 400 || !strings.Contains(text, "expected the form {$NAME}") {
		t.Errorf("a name that is none: %d %s", status, text)
	}
	p.must("DELETE", path, "", admin)
	if status, _ := p.call("DELETE", path, "", admin, ""); status != 404 {
		t.Errorf("deleted twice: %d", status)
	}
	audit := p.must("GET", "/api/audit?search=global", "", admin)
	if strings.Contains(audit, "canary-77") || !strings.Contains(audit, "global macro {$KEY}") {
		t.Errorf("the audit log: %s", audit)
	}
}
