package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// parts is a session that edits what hosts and templates have in their documents.
type parts struct {
	*permissions
	viewer, editor, limited string
	// template is the id of one that is linked to the foreign host, with a rule that has two prototypes.
	template string
}

const noObject = "No permissions to referred object"

func newParts(t *testing.T) *parts {
	p := &parts{permissions: newZabbix(t)}
	p.viewer, p.editor, p.limited = p.signIn("viewer"), p.signIn("editor"), p.signIn("limited-editor")
	var made struct{ GroupIDs, TemplateIDs []string }
	p.make("templategroup.create", `{"name":"Templates/Parts"}`, &made)
	p.make("template.create", fmt.Sprintf(`{"host":"Parts","groups":[{"groupid":%q}]}`, made.GroupIDs[0]), &made)
	p.template = made.TemplateIDs[0]
	return p
}

func (p *parts) make(method, params string, into any) {
	p.t.Helper()
	p.mustRPC(method, params, p.editor, into)
}

func (p *parts) refused(method, params, session, want string) {
	p.t.Helper()
	if _, failure := p.rpc(method, params, session); !strings.Contains(failure, want) {
		p.t.Errorf("%s %s: %q, want %q", method, params, failure, want)
	}
}

// shows compares an answer with what is expected, as JSON whose objects have their members in order.
func (p *parts) shows(method, params, session, want string) {
	p.t.Helper()
	var got any
	p.mustRPC(method, params, session, &got)
	text, err := json.Marshal(got)
	if err != nil {
		p.t.Fatal(err)
	}
	if string(text) != want {
		p.t.Errorf("%s %s:\n got %s\nwant %s", method, params, text, want)
	}
}

// made returns the id in the answer of a call that makes or changes something.
func (p *parts) made(method, params string) string {
	p.t.Helper()
	var answer map[string][]string
	p.make(method, params, &answer)
	for _, list := range answer {
		if len(list) == 1 && list[0] != "" && list[0] != "0" {
			return list[0]
		}
	}
	p.t.Fatalf("%s %s is answered %v, want one id", method, params, answer)
	return ""
}

// TestZabbix_valueMaps does what zabbix_valuemap does, on a host and on a template.
func TestZabbix_valueMaps(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	for _, owner := range []string{host, p.template} {
		create := fmt.Sprintf(`{"hostid":%q,"name":"Door","mappings":[{"value":"0","newvalue":"closed"},{"type":3,"value":"1-5","newvalue":"ajar"},{"type":5,"newvalue":"open"}]}`, owner)
		p.refused("valuemap.create", create, p.viewer, "needs the role editor")
		p.refused("valuemap.create", create, p.limited, noObject)
		p.refused("valuemap.create", fmt.Sprintf(`{"hostid":%q,"name":"Door"}`, owner), p.editor, `the parameter "mappings" is missing`)
		p.refused("valuemap.create", fmt.Sprintf(`{"hostid":%q,"name":"Door","mappings":[{"newvalue":"x"}]}`, owner), p.editor, `the parameter "value" is missing`)
		id := p.made("valuemap.create", create)
		p.refused("valuemap.create", create, p.editor, `Value map "Door" already exists.`)
		get := fmt.Sprintf(`{"output":["name","hostid"],"valuemapids":[%q],"selectMappings":"extend"}`, id)
		p.shows("valuemap.get", get, p.viewer, fmt.Sprintf(`[{"hostid":%q,"mappings":[{"newvalue":"closed","type":"0","value":"0"},{"newvalue":"ajar","type":"3","value":"1-5"},{"newvalue":"open","type":"5","value":""}],"name":"Door","valuemapid":%q}]`, owner, id))
		p.shows("valuemap.get", get, p.limited, "[]")
		p.refused("valuemap.update", fmt.Sprintf(`{"valuemapid":%q,"mappings":[]}`, id), p.editor, "cannot be empty")
		p.refused("valuemap.update", fmt.Sprintf(`{"valuemapid":%q,"name":"Gate"}`, id), p.editor, "keeps its name")
		p.refused("valuemap.update", fmt.Sprintf(`{"valuemapid":%q}`, id), p.limited, noObject)
		p.made("valuemap.update", fmt.Sprintf(`{"valuemapid":%q,"mappings":[{"value":"1","newvalue":"open"}]}`, id))
		item := p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Door","key_":"door","type":2,"value_type":3,"valuemapid":%q}`, owner, id))
		p.shows("item.get", fmt.Sprintf(`{"itemids":[%q],"output":["valuemapid"],"selectValueMap":["name"]}`, item), p.editor,
			fmt.Sprintf(`[{"itemid":%q,"valuemap":{"name":"Door","valuemapid":%q},"valuemapid":%q}]`, item, id, id))
		p.refused("valuemap.delete", fmt.Sprintf(`[%q]`, id), p.limited, noObject)
		p.made("valuemap.delete", fmt.Sprintf(`[%q]`, id))
		p.shows("item.get", fmt.Sprintf(`{"itemids":[%q],"output":["valuemapid"]}`, item), p.editor, fmt.Sprintf(`[{"itemid":%q,"valuemapid":"0"}]`, item))
		p.shows("valuemap.get", get, p.editor, "[]")
		p.refused("valuemap.delete", fmt.Sprintf(`[%q]`, id), p.editor, noObject)
	}
}

// TestZabbix_regexps does what zabbix_regexp does.
func TestZabbix_regexps(t *testing.T) {
	p := newParts(t)
	create := `{"name":"Letters","test_string":"abc","expressions":[{"expression":"^[a-z]+$","expression_type":3,"case_sensitive":1},{"expression":"x;y","expression_type":1,"exp_delimiter":","}]}`
	p.refused("regexp.create", create, p.viewer, "needs the role editor")
	p.refused("regexp.create", create, p.limited, noObject)
	p.refused("regexp.create", `{"name":"Letters"}`, p.editor, `the parameter "expressions" is missing`)
	p.refused("regexp.create", `{"name":"Letters","expressions":[{"expression":"(","expression_type":3}]}`, p.editor, `Invalid parameter "/1/expressions/1/expression": `)
	p.refused("regexp.create", `{"name":"Letters","expressions":[{"expression":"a","expression_type":9}]}`, p.editor, "a number from 0 to 4")
	id := p.made("regexp.create", create)
	p.refused("regexp.create", create, p.editor, `Regular expression "Letters" already exists.`)
	get := fmt.Sprintf(`{"output":"extend","regexpids":%q,"selectExpressions":["expression","expression_type"]}`, id)
	p.shows("regexp.get", get, p.viewer, fmt.Sprintf(`[{"expressions":[{"expression":"^[a-z]+$","expression_type":"3"},{"expression":"x;y","expression_type":"1"}],"name":"Letters","regexpid":%q,"test_string":"abc"}]`, id))
	p.refused("regexp.update", fmt.Sprintf(`{"regexpid":%q,"name":"Digits"}`, id), p.editor, "keeps its name")
	p.made("regexp.update", fmt.Sprintf(`{"regexpid":%q,"test_string":"xyz"}`, id))
	p.shows("regexp.get", fmt.Sprintf(`{"output":["test_string"],"regexpids":%q}`, id), p.editor, fmt.Sprintf(`[{"regexpid":%q,"test_string":"xyz"}]`, id))
	p.refused("regexp.delete", fmt.Sprintf(`[%q]`, id), p.limited, noObject)
	p.made("regexp.delete", fmt.Sprintf(`[%q]`, id))
	p.refused("regexp.delete", fmt.Sprintf(`[%q]`, id), p.editor, noObject)
	var defaults []struct{ RegexpID string }
	p.make("regexp.get", `{"output":["name"],"filter":{"name":"File systems for discovery"}}`, &defaults)
	p.refused("regexp.delete", fmt.Sprintf(`[%q]`, defaults[0].RegexpID), p.editor, "comes with the program")
	p.made("regexp.update", fmt.Sprintf(`{"regexpid":%q,"test_string":"zfs"}`, defaults[0].RegexpID))
	p.made("regexp.delete", fmt.Sprintf(`[%q]`, defaults[0].RegexpID))
}

// TestZabbix_scenarios does what zabbix_httptest and scripts with web scenarios do, on a host and on a template.
func TestZabbix_scenarios(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	for _, owner := range []string{host, p.template} {
		create := fmt.Sprintf(`{"hostid":%q,"name":"Shop, login","delay":"2m","retries":2,"authentication":1,"http_user":"eve","http_password":"hunter2","variables":[{"name":"{user}","value":"eve"}],
			"steps":[{"name":"out","no":2,"url":"http://127.0.0.1:1/out","retrieve_mode":1},{"name":"in","no":1,"url":"http://127.0.0.1:1/in","posts":[{"name":"a","value":"b"}],"status_codes":"200","follow_redirects":0}],
			"tags":[{"tag":"class","value":"web"}]}`, owner)
		p.refused("httptest.create", create, p.viewer, "needs the role editor")
		p.refused("httptest.create", create, p.limited, noObject)
		p.refused("httptest.create", fmt.Sprintf(`{"hostid":%q,"name":"Shop","steps":[]}`, owner), p.editor, "cannot be empty")
		p.refused("httptest.create", fmt.Sprintf(`{"hostid":%q,"name":"Shop","steps":[{"name":"in"}]}`, owner), p.editor, `the parameter "url" is missing`)
		p.refused("httptest.create", fmt.Sprintf(`{"hostid":%q,"name":"Shop","retries":11,"steps":[{"name":"in","url":"http://x"}]}`, owner), p.editor, "a number from 0 to 10")
		id := p.made("httptest.create", create)
		p.refused("httptest.create", create, p.editor, `Web scenario "Shop, login" already exists.`)
		get := fmt.Sprintf(`{"output":["name","delay","retries","authentication","http_user","http_password","variables","verify_peer"],"httptestids":[%q],"selectSteps":["name","no","url","posts","follow_redirects"],"selectTags":"extend"}`, id)
		var steps []struct{ Steps []struct{ HTTPStepID string } }
		p.make("httptest.get", get, &steps)
		in, out := steps[0].Steps[0].HTTPStepID, steps[0].Steps[1].HTTPStepID
		p.shows("httptest.get", get, p.editor, fmt.Sprintf(`[{"authentication":"1","delay":"2m","http_password":"","http_user":"eve","httptestid":%q,"name":"Shop, login","retries":"2","steps":[`+
			`{"follow_redirects":"0","httpstepid":%q,"name":"in","no":"1","posts":[{"name":"a","value":"b"}],"url":"http://127.0.0.1:1/in"},{"follow_redirects":"1","httpstepid":%q,"name":"out","no":"2","posts":"","url":"http://127.0.0.1:1/out"}],`+
			`"tags":[{"tag":"class","value":"web"}],"variables":[{"name":"{user}","value":"eve"}],"verify_peer":"0"}]`, id, in, out))
		if owner == host { // addresses and variables may hold secrets
			p.shows("httptest.get", fmt.Sprintf(`{"output":["variables","http_user"],"httptestids":[%q],"selectSteps":["name","url"]}`, id), p.viewer,
				fmt.Sprintf(`[{"http_user":"","httptestid":%q,"steps":[{"httpstepid":%q,"name":"in","url":""},{"httpstepid":%q,"name":"out","url":""}],"variables":[]}]`, id, in, out))
		}
		p.shows("httptest.get", get, p.limited, "[]")
		p.refused("httptest.update", fmt.Sprintf(`{"httptestid":%q,"status":1}`, id), p.limited, noObject)
		p.refused("httptest.update", fmt.Sprintf(`{"httptestid":%q,"name":"Other"}`, id), p.editor, "the name stays")
		p.refused("httptest.update", fmt.Sprintf(`{"httptestid":%q,"steps":[{"httpstepid":"7","name":"in"}]}`, id), p.editor, noObject)
		p.made("httptest.update", fmt.Sprintf(`{"httptestid":%q,"status":1,"steps":[{"httpstepid":%q,"required":"Hello"}]}`, id, in))
		p.shows("httptest.get", fmt.Sprintf(`{"output":["status"],"httptestids":[%q],"selectSteps":["url","required"]}`, id), p.editor,
			fmt.Sprintf(`[{"httptestid":%q,"status":"1","steps":[{"httpstepid":%q,"required":"Hello","url":"http://127.0.0.1:1/in"}]}]`, id, in))
		if owner == p.template {
			p.make("host.update", fmt.Sprintf(`{"hostid":"HOST","templates":[{"templateid":%q}]}`, p.template), new(any))
			var inherited []struct{ HTTPTestID, TemplateID string }
			p.make("httptest.get", `{"output":["templateid"],"hostids":"HOST"}`, &inherited)
			if len(inherited) != 1 || inherited[0].TemplateID != id {
				t.Errorf("web scenarios of the linked host: %v, want one of %s", inherited, id)
			}
			p.refused("httptest.update", fmt.Sprintf(`{"httptestid":%q,"status":0}`, inherited[0].HTTPTestID), p.editor, "change it on its template")
		}
		p.refused("httptest.delete", fmt.Sprintf(`[%q]`, id), p.limited, noObject)
		p.made("httptest.delete", fmt.Sprintf(`[%q]`, id))
		p.shows("httptest.get", fmt.Sprintf(`{"hostids":%q}`, owner), p.editor, "[]")
	}
	if audit := p.must("GET", "/api/audit?search=httptest", "", p.login("administrator")); strings.Contains(audit, "hunter2") || !strings.Contains(audit, "Shop, login") {
		t.Errorf("the audit log: %s", audit)
	}
}

// TestZabbix_rules does what zabbix_discoveryrule, zabbix_itemprototype and zabbix_triggerprototype do, on a host and on a template.
func TestZabbix_rules(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	names := map[string]string{host: foreign, p.template: "Parts"}
	for _, owner := range []string{host, p.template} {
		create := fmt.Sprintf(`{"hostid":%q,"name":"Disks","key_":"disks","type":2,"lifetime":"3d","trapper_hosts":"127.0.0.1","filter":{"evaltype":1,"conditions":[{"macro":"{#DISK}","value":"^sd","operator":8}]},
			"lld_macro_paths":[{"lld_macro":"{#DISK}","path":"$.disk"}],"preprocessing":[{"type":12,"params":"$.all","error_handler":0,"error_handler_params":""}],
			"overrides":[{"name":"no sda","step":1,"stop":1,"filter":{"evaltype":0,"conditions":[{"macro":"{#DISK}","value":"sda"}]},"operations":[{"operationobject":0,"operator":2,"value":"use","opdiscover":{"discover":1},"optag":[{"tag":"a","value":"b"}]}]}]}`, owner)
		p.refused("discoveryrule.create", create, p.viewer, "needs the role editor")
		p.refused("discoveryrule.create", create, p.limited, noObject)
		p.refused("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Disks","type":2}`, owner), p.editor, `the parameter "key_" is missing`)
		p.refused("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Disks","key_":"disks","type":2,"value_type":3}`, owner), p.editor, `unexpected parameter "value_type"`)
		rule := p.made("discoveryrule.create", create)
		p.refused("discoveryrule.create", create, p.editor, `An LLD rule with key "disks" already exists`)
		p.shows("discoveryrule.get", fmt.Sprintf(`{"output":["key_","type","lifetime","hostid","trapper_hosts"],"itemids":[%q],"selectFilter":"extend","selectLLDMacroPaths":"extend","selectPreprocessing":"extend","selectOverrides":"extend"}`, rule), p.editor,
			fmt.Sprintf(`[{"filter":{"conditions":[{"formulaid":"A","macro":"{#DISK}","operator":"8","value":"^sd"}],"eval_formula":"","evaltype":"1","formula":""},"hostid":%q,"itemid":%q,"key_":"disks","lifetime":"3d",`+
				`"lld_macro_paths":[{"lld_macro":"{#DISK}","path":"$.disk"}],"overrides":[{"filter":{"conditions":[{"formulaid":"A","macro":"{#DISK}","operator":"8","value":"sda"}],"eval_formula":"","evaltype":"0","formula":""},`+
				`"name":"no sda","operations":[{"opdiscover":{"discover":"1"},"operationobject":"0","operator":"2","optag":[{"tag":"a","value":"b"}],"value":"use"}],"step":"1","stop":"1"}],`+
				`"preprocessing":[{"error_handler":"0","error_handler_params":"","params":"$.all","type":"12"}],"trapper_hosts":"127.0.0.1","type":"2"}]`, owner, rule))
		p.refused("discoveryrule.update", fmt.Sprintf(`{"itemid":%q,"key_":"drives"}`, rule), p.editor, "the key stays")
		p.refused("discoveryrule.update", fmt.Sprintf(`{"itemid":%q,"status":1}`, rule), p.limited, noObject)
		p.made("discoveryrule.update", fmt.Sprintf(`{"itemid":%q,"name":"All disks","filter":{"evaltype":0,"conditions":[]},"overrides":[]}`, rule))
		p.shows("discoveryrule.get", fmt.Sprintf(`{"output":["name","lifetime"],"itemids":[%q],"selectOverrides":"extend"}`, rule), p.editor, fmt.Sprintf(`[{"itemid":%q,"lifetime":"3d","name":"All disks","overrides":[]}]`, rule))

		p.shows("discoveryrule.get", fmt.Sprintf(`{"output":["state","error"],"itemids":[%q]}`, rule), p.viewer, fmt.Sprintf(`[{"error":"","itemid":%q,"state":"0"}]`, rule))
		item := p.itemPrototypes(rule, owner)
		p.triggerPrototypes(rule, names[owner], item)
		if owner == p.template {
			p.inheritedPrototypes(rule, item)
		}
		p.refused("discoveryrule.delete", fmt.Sprintf(`[%q]`, rule), p.limited, noObject)
		p.made("discoveryrule.delete", fmt.Sprintf(`[%q]`, rule))
		p.shows("discoveryrule.get", fmt.Sprintf(`{"itemids":[%q]}`, rule), p.editor, "[]")
		p.shows("itemprototype.get", fmt.Sprintf(`{"itemids":[%q]}`, item), p.editor, "[]")
	}
}

// itemPrototypes makes prototypes of a rule, changes and deletes one, and returns the id of the other.
func (p *parts) itemPrototypes(rule, owner string) string {
	p.t.Helper()
	create := fmt.Sprintf(`{"ruleid":%q,"hostid":%q,"name":"Use of {#DISK}","key_":"use[{#DISK}]","type":2,"value_type":0,"units":"%%","discover":1,"tags":[{"tag":"disk","value":"{#DISK}"}]}`, rule, owner)
	p.refused("itemprototype.create", create, p.viewer, "needs the role editor")
	p.refused("itemprototype.create", create, p.limited, noObject)
	p.refused("itemprototype.create", strings.Replace(create, rule, "999999", 1), p.editor, noObject)
	p.refused("itemprototype.create", strings.Replace(create, `"value_type":0`, `"value_type":9`, 1), p.editor, "a number from 0 to 5")
	p.refused("itemprototype.create", strings.Replace(create, "use[{#DISK}]", "use", 1), p.editor, `Invalid parameter "/1/key_": must contain at least one low-level discovery macro.`)
	item := p.made("itemprototype.create", create)
	p.refused("itemprototype.create", create, p.editor, "already exists")
	part := p.made("itemprototype.create", fmt.Sprintf(`{"ruleid":%q,"hostid":%q,"name":"Part of {#DISK}","key_":"part[{#DISK}]","type":18,"value_type":3,"master_itemid":%q}`, rule, owner, item))
	p.shows("itemprototype.get", fmt.Sprintf(`{"output":["name","key_","type","value_type","units","discover","hostid","ruleid"],"itemids":[%q],"selectTags":"extend","selectDiscoveryRule":["key_"]}`, item), p.editor,
		fmt.Sprintf(`[{"discover":"1","discoveryRule":{"itemid":%q,"key_":"disks"},"hostid":%q,"itemid":%q,"key_":"use[{#DISK}]","name":"Use of {#DISK}","ruleid":%q,"tags":[{"tag":"disk","value":"{#DISK}"}],"type":"2","units":"%%","value_type":"0"}]`,
			rule, owner, item, rule))
	p.shows("itemprototype.get", fmt.Sprintf(`{"output":["master_itemid"],"discoveryids":[%q],"filter":{"key_":"part[{#DISK}]"}}`, rule), p.editor, fmt.Sprintf(`[{"itemid":%q,"master_itemid":%q}]`, part, item))
	p.shows("itemprototype.get", fmt.Sprintf(`{"itemids":[%q]}`, item), p.limited, "[]")
	p.refused("itemprototype.update", fmt.Sprintf(`{"itemid":%q,"key_":"x[{#DISK}]"}`, item), p.editor, "the key stays")
	p.refused("itemprototype.update", fmt.Sprintf(`{"itemid":%q,"discover":0}`, item), p.limited, noObject)
	p.made("itemprototype.update", fmt.Sprintf(`{"itemid":%q,"discover":0,"history":"7d"}`, item))
	p.shows("itemprototype.get", fmt.Sprintf(`{"output":["discover","history","name"],"itemids":[%q]}`, item), p.editor, fmt.Sprintf(`[{"discover":"0","history":"7d","itemid":%q,"name":"Use of {#DISK}"}]`, item))
	p.refused("itemprototype.delete", fmt.Sprintf(`[%q]`, part), p.limited, noObject)
	p.made("itemprototype.delete", fmt.Sprintf(`[%q]`, part))
	p.shows("itemprototype.get", fmt.Sprintf(`{"output":["itemid"],"discoveryids":[%q]}`, rule), p.editor, fmt.Sprintf(`[{"itemid":%q}]`, item))
	return item
}

// triggerPrototypes makes prototypes of a rule, changes and deletes them.
func (p *parts) triggerPrototypes(rule, host, item string) {
	p.t.Helper()
	create := fmt.Sprintf(`{"description":"{#DISK} is full","expression":"last(/%s/use[{#DISK}])>90","priority":4,"manual_close":1,"tags":[{"tag":"scope","value":"capacity"}]}`, host)
	p.refused("triggerprototype.create", create, p.viewer, "needs the role editor")
	hidden := noObject
	if host == foreign {
		hidden = "does not exist or you have no access to this host"
	}
	p.refused("triggerprototype.create", create, p.limited, hidden)
	p.refused("triggerprototype.create", fmt.Sprintf(`{"description":"x","expression":"last(/%s/temperature)>1"}`, host), p.editor, "must contain at least one item prototype")
	id := p.made("triggerprototype.create", create)
	p.refused("triggerprototype.create", create, p.editor, "already exists")
	get := `{"expandExpression":true,"output":["description","expression","priority","manual_close","ruleid"],"triggerids":[%q],"selectItems":["key_"],"selectTags":"extend"}`
	p.shows("triggerprototype.get", fmt.Sprintf(get, id), p.editor, fmt.Sprintf(`[{"description":"{#DISK} is full","expression":"last(/%s/use[{#DISK}])\u003e90","items":[{"itemid":%q,"key_":"use[{#DISK}]"}],"manual_close":"1","priority":"4","ruleid":%q,"tags":[{"tag":"scope","value":"capacity"}],"triggerid":%q}]`,
		host, item, rule, id))
	p.refused("triggerprototype.update", fmt.Sprintf(`{"triggerid":%q,"status":1}`, id), p.limited, noObject)
	same := p.made("triggerprototype.update", fmt.Sprintf(`{"triggerid":%q,"status":1,"discover":1}`, id))
	if same != id {
		p.t.Errorf("a trigger prototype that keeps name and expression has the id %s, was %s", same, id)
	}
	other := p.made("triggerprototype.create", fmt.Sprintf(`{"ruleid":%q,"description":"{#DISK} fills","expression":"last(/%s/use[{#DISK}])>80","dependencies":[{"triggerid":%q}]}`, rule, host, id))
	p.shows("triggerprototype.get", fmt.Sprintf(`{"output":["description"],"triggerids":[%q],"selectDependencies":["description"]}`, other), p.editor,
		fmt.Sprintf(`[{"dependencies":[{"description":"{#DISK} is full","triggerid":%q}],"description":"{#DISK} fills","triggerid":%q}]`, id, other))
	renamed := p.made("triggerprototype.update", fmt.Sprintf(`{"triggerid":%q,"description":"{#DISK} will be full"}`, other))
	p.shows("triggerprototype.get", fmt.Sprintf(`{"output":["triggerid"],"triggerids":[%q,%q]}`, other, renamed), p.editor, fmt.Sprintf(`[{"triggerid":%q}]`, renamed))
	id = p.made("triggerprototype.update", fmt.Sprintf(`{"triggerid":%q,"description":"{#DISK} is quite full"}`, id))
	p.shows("triggerprototype.get", fmt.Sprintf(`{"output":["description"],"triggerids":[%q],"selectDependencies":["description"]}`, renamed), p.editor,
		fmt.Sprintf(`[{"dependencies":[{"description":"{#DISK} is quite full","triggerid":%q}],"description":"{#DISK} will be full","triggerid":%q}]`, id, renamed))
	p.refused("triggerprototype.delete", fmt.Sprintf(`[%q]`, id), p.limited, noObject)
	p.made("triggerprototype.delete", fmt.Sprintf(`[%q]`, id))
	p.shows("triggerprototype.get", fmt.Sprintf(`{"output":["triggerid"],"discoveryids":[%q],"selectDependencies":"count"}`, rule), p.editor, fmt.Sprintf(`[{"dependencies":"0","triggerid":%q}]`, renamed))
}

// inheritedPrototypes links the template to the foreign host and looks at what the host has of it.
func (p *parts) inheritedPrototypes(rule, item string) {
	p.t.Helper()
	p.make("host.update", fmt.Sprintf(`{"hostid":"HOST","templates":[{"templateid":%q}]}`, p.template), new(any))
	var rules []struct{ ItemID, TemplateID string }
	p.make("discoveryrule.get", `{"output":["templateid"],"hostids":"HOST","inherited":true}`, &rules)
	var items []struct{ ItemID, TemplateID string }
	p.make("itemprototype.get", `{"output":["templateid"],"hostids":"HOST","inherited":true}`, &items)
	var triggers []struct{ Expression string }
	p.make("triggerprototype.get", `{"output":["expression"],"hostids":"HOST","inherited":true}`, &triggers)
	if len(rules) != 1 || rules[0].TemplateID != rule || len(items) != 1 || items[0].TemplateID != item || len(triggers) != 1 || triggers[0].Expression != "last(/"+foreign+"/use[{#DISK}])>80" {
		p.t.Fatalf("the linked host has the rules %v, item prototypes %v and trigger prototypes %v", rules, items, triggers)
	}
	p.refused("discoveryrule.update", fmt.Sprintf(`{"itemid":%q,"status":1}`, rules[0].ItemID), p.editor, "change it on its template")
	p.refused("itemprototype.delete", fmt.Sprintf(`[%q]`, items[0].ItemID), p.editor, "change it on its template")
}
