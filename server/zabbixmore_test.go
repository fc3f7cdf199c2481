package server

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestZabbix_maintenance sends what community.zabbix's zabbix_maintenance does: look for the name, make it, change it, delete it.
func TestZabbix_maintenance(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	since := time.Now().Add(-time.Hour).Truncate(time.Minute).Unix()
	create := fmt.Sprintf(`{"hosts":[{"hostid":"HOST"}],"groups":[],"name":"Upgrade","maintenance_type":"0","active_since":"%d","active_till":"%d","description":"Created by Ansible","timeperiods":[{"timeperiod_type":"0","start_date":"%d","period":"7200"}],"tags":[{"tag":"service","operator":0,"value":"db"}],"tags_evaltype":2}`, since, since+7200, since)
	if _, failure := p.rpc("maintenance.create", create, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("a maintenance of a foreign host: %s", failure)
	}
	var made struct{ MaintenanceIDs []string }
	p.mustRPC("maintenance.create", create, editor, &made)
	if _, failure := p.rpc("maintenance.create", create, editor); !strings.Contains(failure, "already exists") {
		t.Errorf("the same again: %s", failure)
	}
	var list []struct {
		MaintenanceID, Name, Description string
		Type                             string `json:"maintenance_type"`
		Since                            string `json:"active_since"`
		Hosts                            []struct{ HostID string }
		TimePeriods                      []struct {
			Type   string `json:"timeperiod_type"`
			Period string
			Start  string `json:"start_date"`
		}
		Tags []struct{ Tag, Operator, Value string }
	}
	get := `{"filter":{"name":["Upgrade"]},"output":"extend","selectHosts":"extend","selectHostGroups":"extend","selectTags":"extend","selectTimeperiods":"extend"}`
	p.mustRPC("maintenance.get", get, editor, &list)
	want := fmt.Sprintf("[{%s Upgrade Created by Ansible 0 %d [{%s}] [{0 7200 %d}] [{service 0 db}]}]", made.MaintenanceIDs[0], since, p.ids.Replace("HOST"), since)
	if got := fmt.Sprint(list); got != want {
		t.Errorf("maintenance:\n got %s\nwant %s", got, want)
	}
	var hosts []struct {
		Status string `json:"maintenance_status"`
		ID     string `json:"maintenanceid"`
	}
	p.mustRPC("host.get", `{"hostids":"HOST","output":["maintenance_status","maintenanceid"]}`, editor, &hosts)
	if len(hosts) != 1 || hosts[0].Status != "1" || hosts[0].ID != made.MaintenanceIDs[0] {
		t.Errorf("the host in maintenance: %+v", hosts)
	}
	p.mustRPC("maintenance.get", get, limited, &list)
	if len(list) != 0 {
		t.Errorf("somebody who does not see the host sees %v", list)
	}
	update := fmt.Sprintf(`{"maintenanceid":%q,"maintenance_type":1,"tags":[],"timeperiods":[{"timeperiod_type":3,"every":2,"dayofweek":5,"start_time":79200,"period":3600}]}`, made.MaintenanceIDs[0])
	if _, failure := p.rpc("maintenance.update", update, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("change a foreign maintenance: %s", failure)
	}
	p.mustRPC("maintenance.update", update, editor, new(any))
	p.mustRPC("maintenance.get", get, editor, &list)
	if len(list) != 1 || list[0].Type != "1" || list[0].TimePeriods[0].Type != "3" {
		t.Errorf("changed: %+v", list)
	}
	if _, failure := p.rpc("maintenance.create", `{"name":"x","active_since":1,"active_till":2,"timeperiods":[{"period":3600,"colour":1}],"hosts":[{"hostid":"HOST"}]}`, editor); !strings.Contains(failure, `"/1/timeperiods/1": unexpected parameter "colour"`) {
		t.Errorf("an unknown member: %s", failure)
	}
	if _, failure := p.rpc("maintenance.delete", fmt.Sprintf(`[%q]`, made.MaintenanceIDs[0]), limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("delete a foreign maintenance: %s", failure)
	}
	p.mustRPC("maintenance.delete", fmt.Sprintf(`[%q]`, made.MaintenanceIDs[0]), editor, new(any))
	p.mustRPC("maintenance.get", get, editor, &list)
	if len(list) != 0 {
		t.Errorf("after deletion: %+v", list)
	}
}

// TestZabbix_tokens makes a token as zabbix_token and zabbix_utils do, and lets it in.
func TestZabbix_tokens(t *testing.T) {
	p := newZabbix(t)
	admin, viewer := p.signIn("administrator"), p.signIn("viewer")
	var made struct{ TokenIDs []string }
	p.mustRPC("token.create", `{"name":"script","expires_at":0,"status":"0","description":""}`, viewer, &made)
	var texts []struct{ TokenID, Token string }
	p.mustRPC("token.generate", fmt.Sprintf(`[%q]`, made.TokenIDs[0]), viewer, &texts)
	if len(texts) != 1 || texts[0].TokenID != made.TokenIDs[0] {
		t.Fatalf("generated: %+v", texts)
	}
	p.mustRPC("host.get", `{}`, texts[0].Token, new(any))
	first := texts[0].Token
	p.mustRPC("token.generate", fmt.Sprintf(`[%q]`, made.TokenIDs[0]), viewer, &texts)
	if _, failure := p.rpc("host.get", `{}`, first); !strings.Contains(failure, "re-login") {
		t.Errorf("the text before: %s", failure)
	}
	if _, failure := p.rpc("token.create", `{"name":"another"}`, texts[0].Token); !strings.Contains(failure, "No permissions") {
		t.Errorf("a token that makes tokens: %s", failure)
	}
	if _, failure := p.rpc("token.delete", fmt.Sprintf(`[%q]`, made.TokenIDs[0]), p.signIn("limited-viewer")); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("delete somebody else's token: %s", failure)
	}
	var tokens []struct{ TokenID, Name, UserID string }
	p.mustRPC("token.update", fmt.Sprintf(`{"tokenid":%q,"name":"script 2"}`, made.TokenIDs[0]), admin, new(any))
	p.mustRPC("token.get", `{"output":["tokenid","name","userid"]}`, viewer, &tokens)
	if len(tokens) != 1 || tokens[0].Name != "script 2" {
		t.Errorf("own tokens: %+v", tokens)
	}
	p.mustRPC("token.get", `{}`, p.signIn("limited-viewer"), &tokens)
	if len(tokens) != 0 {
		t.Errorf("tokens of others: %+v", tokens)
	}
	p.mustRPC("token.delete", fmt.Sprintf(`[%q]`, made.TokenIDs[0]), admin, new(any))
	if _, failure := p.rpc("host.get", `{}`, texts[0].Token); !strings.Contains(failure, "re-login") {
		t.Errorf("a deleted token: %s", failure)
	}
}

// TestZabbix_accounts sends what zabbix_user, zabbix_usergroup and zabbix_user_role do.
func TestZabbix_accounts(t *testing.T) {
	p := newZabbix(t)
	admin := p.signIn("administrator")
	var roles []struct{ RoleID, Name string }
	p.mustRPC("role.get", `{"filter":{"name":"viewer"},"output":"extend"}`, admin, &roles)
	var made struct{ UsrGrpIDs, UserIDs []string }
	p.mustRPC("usergroup.create", `{"name":"Readers","gui_access":"0","hostgroup_rights":[{"permission":2,"id":"GROUP"}]}`, admin, &made)
	if _, failure := p.rpc("usergroup.create", `{"name":"Readers"}`, admin); !strings.Contains(failure, "already exists") {
		t.Errorf("the same again: %s", failure)
	}
	group := made.UsrGrpIDs[0]
	p.mustRPC("user.create", fmt.Sprintf(`{"username":"reader","passwd":%q,"roleid":%q,"usrgrps":[{"usrgrpid":%q}]}`, testPassword, roles[0].RoleID, group), admin, &made)
	reader := p.signIn("reader")
	var hosts []struct{ Host string }
	p.mustRPC("host.get", `{"output":["host"]}`, reader, &hosts)
	if len(hosts) != 1 || hosts[0].Host != foreign {
		t.Errorf("the reader sees %+v", hosts)
	}
	var groups []struct {
		Name   string
		Rights []struct{ ID, Permission string } `json:"hostgroup_rights"`
		Users  []struct{ Username string }
	}
	p.mustRPC("usergroup.get", fmt.Sprintf(`{"usrgrpids":[%q],"selectHostGroupRights":"extend","selectUsers":["username"]}`, group), admin, &groups)
	if want := fmt.Sprintf("[{Readers [{%s 2}] [{reader}]}]", p.ids.Replace("GROUP")); fmt.Sprint(groups) != want {
		t.Errorf("groups: %v, want %s", groups, want)
	}
	if _, failure := p.rpc("user.create", `{"username":"more","roleid":"4"}`, reader); !strings.Contains(failure, "No permissions to call") {
		t.Errorf("a viewer who makes users: %s", failure)
	}
	p.mustRPC("user.update", fmt.Sprintf(`{"userid":%q,"usrgrps":[]}`, made.UserIDs[0]), admin, new(any))
	p.mustRPC("host.get", `{}`, reader, &hosts)
	if len(hosts) != 0 {
		t.Errorf("without groups the reader sees %+v", hosts)
	}
	p.mustRPC("user.delete", fmt.Sprintf(`[%q]`, made.UserIDs[0]), admin, new(any))
	p.mustRPC("usergroup.delete", fmt.Sprintf(`[%q]`, group), admin, new(any))
}

// TestZabbix_lists asks for the lists that playbooks look into, as somebody who sees all and somebody who does not.
func TestZabbix_lists(t *testing.T) {
	p := newZabbix(t)
	viewer, editor, limited := p.signIn("viewer"), p.signIn("editor"), p.signIn("limited-editor")
	for _, call := range []struct{ method, params string }{
		{"proxy.get", `{"output":"extend","selectInterface":"extend","filter":{"name":["none"]}}`},
		{"templategroup.get", `{"output":["groupid"],"filter":{"name":["Templates"]}}`},
		{"graph.get", `{"output":"extend","hostids":["HOST"],"selectGraphItems":"extend"}`},
		{"discoveryrule.get", `{"output":"extend","hostids":["HOST"],"selectItems":"extend"}`},
		{"usergroup.get", `{"output":"extend"}`},
		{"role.get", `{"output":"extend"}`},
	} {
		for _, session := range []string{viewer, limited} {
			p.mustRPC(call.method, call.params, session, new([]any))
		}
	}
	for _, method := range []string{"action.get", "mediatype.get"} {
		p.mustRPC(method, `{"output":"extend"}`, editor, new([]any))
		if _, failure := p.rpc(method, `{"output":"extend"}`, limited); !strings.Contains(failure, "No permissions to referred object") {
			t.Errorf("%s as limited: %s", method, failure)
		}
	}
}

// TestZabbix_editing sends what zabbix_host, zabbix_hostmacro, zabbix_group and zabbix_template do when they change what there is.
func TestZabbix_editing(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	must := func(method, params string, into any) { t.Helper(); p.mustRPC(method, params, editor, into) }
	refused := func(method, params, session, want string) {
		t.Helper()
		if _, failure := p.rpc(method, params, session); !strings.Contains(failure, want) {
			t.Errorf("%s %s: %q, want %q", method, params, failure, want)
		}
	}
	const foreignObject = "No permissions to referred object"
	var made struct {
		GroupIDs, HostIDs, TemplateIDs, InterfaceIDs, HostMacroIDs []string
	}
	must("hostgroup.create", `{"name":"Web"}`, &made)
	group := made.GroupIDs[0]
	refused("hostgroup.create", `{"name":"Web"}`, editor, "already exists")
	refused("hostgroup.create", `{"name":"Web 2"}`, limited, foreignObject)
	must("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Webs"}`, group), new(any))
	refused("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Own"}`, group), editor, "already exists")
	refused("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Mine"}`, group), limited, foreignObject)
	var mine []struct{ GroupID string }
	must("hostgroup.get", `{"filter":{"name":"Own"}}`, &mine)
	refused("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Moved"}`, mine[0].GroupID), editor, "names it; change that first")
	refused("hostgroup.delete", fmt.Sprintf(`[%q]`, mine[0].GroupID), editor, "names it; change that first")
	refused("hostgroup.delete", `["GROUP"]`, editor, "would be in no host group")
	refused("hostgroup.delete", fmt.Sprintf(`[%q]`, group), limited, foreignObject)
	refused("hostgroup.delete", `["999999"]`, editor, foreignObject)
	must("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Web"}`, group), new(any))

	must("host.update", fmt.Sprintf(`{"hostid":"HOST","name":"Shown as foreign-7f3a","groups":[{"groupid":"GROUP"},{"groupid":%q}],"tags":[{"tag":"env","value":"test"}],
		"macros":[{"macro":"{$PORT}","value":"8080"},{"macro":"{$PASSWORD}","value":"hunter2","type":1}],
		"interfaces":[{"type":1,"main":1,"useip":1,"ip":"127.0.0.1","dns":"","port":"10050"},{"type":2,"main":1,"useip":1,"ip":"127.0.0.1","dns":"","port":"161","details":{"version":2,"community":"{$COMMUNITY}"}}]}`, group), new(any))
	var hosts []struct {
		Name       string
		HostGroups []struct{ Name string }
		Tags       []struct{ Tag, Value string }
		Macros     []struct{ HostMacroID, Macro, Value, Type string }
		Interfaces []struct{ InterfaceID, Type, Port string }
		Items      string
	}
	get := `{"hostids":"HOST","output":["name"],"selectHostGroups":["name"],"selectTags":"extend","selectMacros":"extend","selectInterfaces":"extend","selectItems":"count"}`
	must("host.get", get, &hosts)
	h := hosts[0]
	if got := fmt.Sprintln(h.Name, h.HostGroups, h.Tags, len(h.Macros), len(h.Interfaces), h.Items); got != "Shown as foreign-7f3a [{Foreign} {Web}] [{env test}] 2 2 1\n" {
		t.Errorf("the changed host: %s", got)
	}
	for _, m := range h.Macros {
		if m.Macro == "{$PASSWORD}" && (m.Value != "" || m.Type != "1") {
			t.Errorf("a secret is shown: %+v", m)
		}
	}
	refused("host.update", `{"hostid":"HOST","host":"other"}`, editor, "technical name stays")
	refused("host.update", `{"hostid":"HOST","tags":[]}`, limited, foreignObject)
	refused("host.update", `{"hostid":"HOST","colour":1}`, editor, `unexpected parameter "colour"`)
	var own []struct{ HostID string }
	p.mustRPC("host.get", `{"filter":{"host":"own-host"}}`, limited, &own)
	refused("host.update", fmt.Sprintf(`{"hostid":%q,"groups":[{"groupid":%q}]}`, own[0].HostID, group), limited, foreignObject)
	p.mustRPC("host.update", fmt.Sprintf(`{"hostid":%q,"tags":[{"tag":"mine"}]}`, own[0].HostID), limited, new(any))

	must("usermacro.create", `{"hostid":"HOST","macro":"{$PATH}","value":"/"}`, &made)
	macro := made.HostMacroIDs[0]
	refused("usermacro.create", `{"hostid":"HOST","macro":"{$PATH}","value":"/"}`, editor, "already exists")
	refused("usermacro.update", fmt.Sprintf(`{"hostmacroid":%q,"value":"/x"}`, macro), limited, foreignObject)
	must("usermacro.update", fmt.Sprintf(`{"hostmacroid":%q,"value":"/x"}`, macro), new(any))
	var macros []struct{ Macro, Value string }
	must("usermacro.get", fmt.Sprintf(`{"hostmacroids":[%q]}`, macro), &macros)
	if fmt.Sprint(macros) != "[{{$PATH} /x}]" {
		t.Errorf("the macro: %v", macros)
	}
	must("usermacro.delete", fmt.Sprintf(`[%q]`, macro), new(any))

	must("hostinterface.create", `{"hostid":"HOST","type":1,"main":0,"useip":0,"ip":"","dns":"localhost","port":"10051"}`, &made)
	face := made.InterfaceIDs[0]
	refused("hostinterface.update", fmt.Sprintf(`{"interfaceid":%q,"port":"1"}`, face), limited, foreignObject)
	must("hostinterface.update", fmt.Sprintf(`{"interfaceid":%q,"port":"10052"}`, face), new(any))
	var faces []struct{ Port, DNS, UseIP string }
	must("hostinterface.get", fmt.Sprintf(`{"interfaceids":[%q]}`, face), &faces)
	if fmt.Sprint(faces) != "[{10052 localhost 0}]" {
		t.Errorf("the interface: %v", faces)
	}
	must("hostinterface.delete", fmt.Sprintf(`[%q]`, face), new(any))

	must("hostgroup.massremove", fmt.Sprintf(`{"groupids":[%q],"hostids":["HOST"]}`, group), new(any))
	must("host.massadd", fmt.Sprintf(`{"hosts":[{"hostid":"HOST"}],"groups":[{"groupid":%q}],"macros":[{"macro":"{$MORE}","value":"1"}]}`, group), new(any))
	must("host.massremove", `{"hostids":["HOST"],"macros":["{$MORE}"]}`, new(any))
	must("host.massupdate", `{"hosts":[{"hostid":"HOST"}],"status":1,"tags":[{"tag":"all"}]}`, new(any))
	refused("hostgroup.massremove", fmt.Sprintf(`{"groupids":[%q],"hostids":["HOST"]}`, group), limited, foreignObject)
	must("host.get", get, &hosts)
	if got := fmt.Sprint(hosts[0].HostGroups, hosts[0].Tags, len(hosts[0].Macros), len(hosts[0].Interfaces)); got != "[{Foreign} {Web}] [{all }] 2 2" {
		t.Errorf("after mass changes: %s", got)
	}
	must("hostgroup.update", fmt.Sprintf(`{"groupid":%q,"name":"Sites"}`, group), new(any))
	must("host.get", get, &hosts)
	if got := fmt.Sprint(hosts[0].HostGroups); got != "[{Foreign} {Sites}]" {
		t.Errorf("after a group has another name: %s", got)
	}
	var counts []struct{ GroupID, RowsCount string }
	must("host.get", fmt.Sprintf(`{"groupids":[%q],"countOutput":true,"groupCount":true}`, group), &counts)
	if got := fmt.Sprint(counts); got != fmt.Sprintf("[{%s 1}]", group) {
		t.Errorf("hosts by group: %s", got)
	}
	must("hostgroup.delete", fmt.Sprintf(`[%q]`, group), new(any))
	must("host.get", get, &hosts)
	if got := fmt.Sprint(hosts[0].HostGroups); got != "[{Foreign}]" {
		t.Errorf("after a group is deleted: %s", got)
	}
	audit := p.must("GET", "/api/audit?search=api_jsonrpc", "", p.login("administrator"))
	if strings.Contains(audit, "hunter2") {
		t.Errorf("the audit log has a secret: %s", audit)
	}
}

// TestZabbix_templates makes, compares, imports and deletes a template.
func TestZabbix_templates(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	var made struct{ GroupIDs, TemplateIDs []string }
	p.mustRPC("templategroup.create", `{"name":"Templates/Own"}`, editor, &made)
	create := fmt.Sprintf(`{"host":"Own template","groups":[{"groupid":%q}],"description":"of tests","macros":[{"macro":"{$A}","value":"1"}],"tags":[{"tag":"a","value":"b"}]}`, made.GroupIDs[0])
	if _, failure := p.rpc("template.create", create, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("as limited: %s", failure)
	}
	p.mustRPC("template.create", create, editor, &made)
	if _, failure := p.rpc("template.create", create, editor); !strings.Contains(failure, "already exists") {
		t.Errorf("the same again: %s", failure)
	}
	id := made.TemplateIDs[0]
	p.mustRPC("template.update", fmt.Sprintf(`{"templateid":%q,"name":"Own, shown"}`, id), editor, new(any))
	var text string
	p.mustRPC("configuration.export", fmt.Sprintf(`{"format":"yaml","options":{"templates":[%q]}}`, id), editor, &text)
	const rules = `{"templates":{"createMissing":true,"updateExisting":true},"items":{"createMissing":true,"updateExisting":true,"deleteMissing":true},"triggers":{"createMissing":true,"updateExisting":true,"deleteMissing":true},"discoveryRules":{"createMissing":true,"updateExisting":true,"deleteMissing":true},"graphs":{"createMissing":true,"updateExisting":true,"deleteMissing":true},"valueMaps":{"createMissing":true,"updateExisting":true,"deleteMissing":true},"templateLinkage":{"createMissing":true,"deleteMissing":true}}`
	params := func(text string) string { return fmt.Sprintf(`{"format":"yaml","source":%q,"rules":%s}`, text, rules) }
	result, failure := p.rpc("configuration.importcompare", params(text), editor)
	if failure != "" || string(result) != "[]" {
		t.Errorf("the same file compared: %s %s", result, failure)
	}
	longer := text + "      items:\n        - name: Added\n          key: added\n          type: TRAP\n"
	result, failure = p.rpc("configuration.importcompare", params(longer), editor)
	if failure != "" || !strings.Contains(string(result), `"items":{"added":[{"after":{"name":"added","owner":"Own template"}}]}`) {
		t.Errorf("a file with one item more compared: %s %s\n%s", result, failure, longer)
	}
	for _, step := range []struct{ text, want string }{{longer, "1"}, {text, "0"}} {
		p.mustRPC("configuration.import", params(step.text), editor, new(bool))
		p.mustRPC("configuration.export", fmt.Sprintf(`{"format":"yaml","options":{"templates":[%q]}}`, id), editor, &text)
		if got := fmt.Sprint(strings.Count(text, "key: added")); got != step.want {
			t.Errorf("items after the import: %s, want %s: %s", got, step.want, text)
		}
	}
	if _, failure := p.rpc("configuration.import", `{"format":"yaml","source":"x","rules":{"items":{"deleteMissing":true}}}`, editor); !strings.Contains(failure, "deleteMissing is for items, triggers") {
		t.Errorf("only one kind deleted: %s", failure)
	}
	p.mustRPC("template.delete", fmt.Sprintf(`[%q]`, id), editor, new(any))
	for _, method := range []string{"itemprototype.get", "triggerprototype.get"} {
		p.mustRPC(method, `{"output":"extend","hostids":["HOST"],"selectDiscoveryRule":"extend"}`, editor, new([]any))
	}
}

// TestZabbix_utils is a session as zabbix_utils 2 holds it: texts for ids, the token in the header but for the calls that need none, the kind
// application/json-rpc.
func TestZabbix_utils(t *testing.T) {
	p := newZabbix(t)
	send := func(method, params, token string) string {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc": "2.0", "method": %q, "params": %s, "id": "6a5b8c1e-0d0f-4c7b-9a43-1f7f1d2f9a10"}`, method, p.ids.Replace(params))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.http+"/api_jsonrpc.php", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Content-Type", "application/json-rpc")
		r.Header.Set("User-Agent", "zabbix_utils/2.0.2")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || !strings.HasSuffix(string(text), `,"id":"6a5b8c1e-0d0f-4c7b-9a43-1f7f1d2f9a10"}`) {
			t.Fatalf("%s: %s %v", method, text, err)
		}
		return string(text)
	}
	if got := send("apiinfo.version", `{}`, ""); !strings.Contains(got, `"result":"7.0.0"`) {
		t.Errorf("version: %s", got)
	}
	session := regexp.MustCompile(`"result":"([^"]+)"`).FindStringSubmatch(send("user.login", fmt.Sprintf(`{"username":"editor","password":%q}`, testPassword), ""))
	if session == nil {
		t.Fatal("not signed in")
	}
	for _, call := range []struct{ method, params, want string }{
		{"user.checkAuthentication", fmt.Sprintf(`{"sessionid":%q}`, session[1]), `"username":"editor"`},
		{"host.get", `{"output":["hostid","host"],"hostids":"HOST"}`, foreign},
		{"item.get", `{"hostids":["HOST"],"output":["itemid","key_"],"preservekeys":true}`, `"key_":"temperature"`},
		{"history.get", `{"itemids":["ITEM"],"history":0,"limit":1,"sortfield":"clock","sortorder":"DESC"}`, `"value":"42.5"`},
		{"host.get", `{"countOutput":true}`, `"result":"`},
		{"host.get", `{"colour":1}`, `"data":"Invalid parameter \"/\": unexpected parameter \"colour\"."`},
		{"nothing.get", `{}`, `"code":-32601`},
		{"maintenance.get", `{"output":"extend"}`, `"result":[]`},
		{"user.logout", `{}`, `"result":true`},
		{"host.get", `{}`, "re-login"},
	} {
		token := session[1]
		if call.method == "user.checkAuthentication" {
			token = ""
		}
		if got := send(call.method, call.params, token); !strings.Contains(got, call.want) {
			t.Errorf("%s %s: %.300s, want %s", call.method, call.params, got, call.want)
		}
	}
}
