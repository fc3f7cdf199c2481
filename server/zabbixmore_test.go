package server

import (
	"fmt"
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
