package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// replay calls methods one after the other, as a client does; HOST and GROUP in parameters stand for ids. Each must be taken.
func (p *parts) replay(calls ...[2]string) {
	p.t.Helper()
	for _, one := range calls {
		if _, failure := p.rpc(one[0], p.ids.Replace(one[1]), p.editor); failure != "" {
			p.t.Errorf("%s %s: %s", one[0], one[1], failure)
		}
	}
}

// TestZabbix_playbookHost makes and changes a host as community.zabbix's zabbix_host does: interfaces with empty details, SNMP, inventory, IPMI, a
// proxy that it names again, and then reads all of it back.
func TestZabbix_playbookHost(t *testing.T) {
	p := newParts(t)
	agent := `{"type":1,"main":1,"useip":1,"ip":"127.0.0.1","dns":"","port":"10050","details":{}}`
	snmp := `{"type":2,"main":1,"useip":0,"ip":"","dns":"switch.example","port":"161","details":{"version":3,"bulk":0,"securityname":"ops","securitylevel":2,"authprotocol":1,"authpassphrase":"first pass","privprotocol":1,"privpassphrase":"second pass"}}`
	id := p.made("host.create", p.ids.Replace(fmt.Sprintf(`{"host":"switch","name":"Switch","interfaces":[%s,%s],"groups":[{"groupid":"GROUP"}],"status":0,"description":"in the hall","tls_connect":1,"tls_accept":1,"macros":[{"macro":"{$PORT}","value":"1","description":"of the uplink"}],"tags":[{"tag":"site","value":"a"}],"ipmi_authtype":2,"ipmi_privilege":4,"ipmi_username":"root","ipmi_password":"third pass"}`, agent, snmp)))
	p.replay(
		[2]string{"host.get", `{"filter":{"host":"switch"}}`},
		[2]string{"host.get", `{"output":"extend","selectInventory":"hostid","selectParentTemplates":["name"],"filter":{"host":"switch"}}`},
		[2]string{"hostgroup.get", fmt.Sprintf(`{"output":["groupid"],"hostids":%q}`, id)},
		[2]string{"template.get", fmt.Sprintf(`{"output":"extend","hostids":%q}`, id)},
		[2]string{"host.update", fmt.Sprintf(`{"hostid":%q,"groups":[{"groupid":"GROUP"}],"status":0,"monitored_by":0}`, id)},
		[2]string{"host.update", fmt.Sprintf(`{"hostid":%q,"templates":[],"templates_clear":[]}`, id)},
		[2]string{"host.update", fmt.Sprintf(`{"hostid":%q,"inventory_mode":0}`, id)},
		[2]string{"host.update", fmt.Sprintf(`{"hostid":%q,"inventory":{"os":"Linux","tag":"rack 4"}}`, id)},
		[2]string{"host.update", fmt.Sprintf(`{"hostid":%q,"inventory":{"tag":""}}`, id)},
		[2]string{"usermacro.get", fmt.Sprintf(`{"output":"extend","selectSteps":"extend","hostids":[%q],"filter":{"macro":"{$PORT}"}}`, id)},
	)
	get := fmt.Sprintf(`{"output":["description","inventory_mode","tls_connect","tls_accept","ipmi_authtype","ipmi_privilege","ipmi_username","ipmi_password"],"hostids":%q,"selectInventory":["os","tag"],"selectMacros":["macro","description"]}`, id)
	shown := `[{"description":"in the hall","hostid":%q,"inventory":{"os":"Linux","tag":""},"inventory_mode":"0","ipmi_authtype":"2","ipmi_password":"","ipmi_privilege":"4","ipmi_username":%q,"macros":[{"description":"of the uplink","hostmacroid":%q,"macro":"{$PORT}"}],"tls_accept":"1","tls_connect":"1"}]`
	var macros []struct{ HostMacroID, Description string }
	p.mustRPC("usermacro.get", fmt.Sprintf(`{"hostids":%q}`, id), p.editor, &macros)
	p.shows("host.get", get, p.editor, fmt.Sprintf(shown, id, "root", macros[0].HostMacroID))
	p.shows("host.get", get, p.viewer, fmt.Sprintf(shown, id, "", macros[0].HostMacroID))
	p.shows("hostinterface.get", fmt.Sprintf(`{"output":["type","details"],"hostids":%q}`, id), p.editor, fmt.Sprintf(
		`[{"details":[],"interfaceid":%q,"type":"1"},{"details":{"authpassphrase":"","authprotocol":"1","bulk":"0","contextname":"","max_repetitions":"10","privpassphrase":"","privprotocol":"1","securitylevel":"2","securityname":"ops","version":"3"},"interfaceid":%q,"type":"2"}]`,
		p.faces(id)[0], p.faces(id)[1]))
	p.keepsPassphrases(id)
	for params, want := range map[string]string{
		`"tls_connect":2,"tls_psk_identity":"a","tls_psk":"123456789abcdef123456789abcdef12"`: "tidemark host tls",
		`"inventory":{"colour":"red"}`:       "unexpected parameter",
		`"ipmi_authtype":3`:                  "value must be one of",
		`"proxyid":"999999"`:                 noObject,
		`"monitored_by":2,"proxy_groupid":1`: "no groups of proxies",
	} {
		p.refused("host.update", fmt.Sprintf(`{"hostid":%q,%s}`, id, params), p.editor, want)
		p.refused("host.create", p.ids.Replace(`{"host":"other","groups":[{"groupid":"GROUP"}],`+params+`}`), p.editor, want)
	}
	p.refused("host.create", p.ids.Replace(`{"host":"switch","groups":[{"groupid":"GROUP"}]}`), p.editor, "already exists")
	p.refused("host.create", p.ids.Replace(`{"groups":[{"groupid":"GROUP"}]}`), p.editor, `"host" is missing`)
	p.refused("host.create", `{"host":"other"}`, p.editor, `"groups" is missing`)
	audit := p.must("GET", "/api/audit?limit=1000", "", p.login("administrator"))
	for _, secret := range []string{"first pass", "second pass", "third pass"} {
		if strings.Contains(audit, secret) {
			t.Errorf("the audit log has %q", secret)
		}
	}
}

// faces are the ids of a host's interfaces.
func (p *parts) faces(host string) (ids []string) {
	p.t.Helper()
	var list []struct{ InterfaceID string }
	p.mustRPC("hostinterface.get", fmt.Sprintf(`{"hostids":%q}`, host), p.editor, &list)
	for _, one := range list {
		ids = append(ids, one.InterfaceID)
	}
	return ids
}

// keepsPassphrases gives an SNMP interface back as it was answered, which is without its passphrases: they must stay.
func (p *parts) keepsPassphrases(host string) {
	p.t.Helper()
	face := p.faces(host)[1]
	p.made("hostinterface.update", fmt.Sprintf(`{"interfaceid":%q,"details":{"version":3,"securityname":"ops","securitylevel":2,"authprotocol":1,"authpassphrase":"","privprotocol":1,"privpassphrase":""}}`, face))
	var text string
	p.mustRPC("configuration.export", fmt.Sprintf(`{"format":"json","options":{"hosts":[%q]}}`, host), p.editor, &text)
	if !json.Valid([]byte(text)) || !strings.Contains(text, "first pass") || !strings.Contains(text, "second pass") {
		p.t.Errorf("the export has lost the passphrases or is no JSON: %s", text)
	}
}

// TestZabbix_playbookLookups sends what the other modules of community.zabbix look up and make first.
func TestZabbix_playbookLookups(t *testing.T) {
	p := newParts(t)
	p.editor = p.signIn("administrator")
	host := p.ids.Replace("HOST")
	p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Load","key_":"load","type":2,"value_type":0}`, host))
	rule := p.made("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Disks","key_":"disks","type":2}`, host))
	p.made("itemprototype.create", fmt.Sprintf(`{"hostid":%q,"ruleid":%q,"name":"{#D}","key_":"disk[{#D}]","type":2,"value_type":3}`, host, rule))
	var named []struct{ Host string }
	p.mustRPC("host.get", fmt.Sprintf(`{"output":["host"],"hostids":%q}`, host), p.editor, &named)
	own := named[0].Host
	for _, one := range []struct{ method, params string }{
		{"discoveryrule.get", `{"output":["name"],"filter":{"name":"Disks","host":%[1]q}}`},
		{"itemprototype.get", `{"output":["name"],"filter":{"name":"{#D}","host":%[1]q,"discoveryids":[%[2]q]}}`},
	} {
		var rows []any
		p.mustRPC(one.method, fmt.Sprintf(one.params, own, rule), p.editor, &rows)
		if len(rows) != 1 {
			t.Errorf("%s finds %v, want one", one.method, rows)
		}
		p.shows(one.method, fmt.Sprintf(one.params, "Parts", rule), p.editor, "[]")
	}
	expression := func(key string) string {
		return fmt.Sprintf(`{"description":"Full","expression":"last(/%s/disk[{#D}])>1 and last(/%s/%s)>1"}`, own, own, key)
	}
	p.refused("triggerprototype.create", expression("absent"), p.editor, `Incorrect item key "absent"`)
	p.made("triggerprototype.create", expression("load"))
	p.refused("proxy.get", `{"output":["colour"]}`, p.editor, "value must be one of")
	p.refused("hostprototype.get", `{"output":["colour"]}`, p.editor, "value must be one of")
	p.refused("usergroup.create", `{"name":"Night","tag_filters":[{"groupid":"1","tag":"a"}]}`, p.editor, "tag_filters")
	p.refused("usergroup.create", `{"name":"Night","gui_access":2}`, p.editor, "gui_access")
	p.refused("action.create", `{"name":"New agents","eventsource":2,"filter":{"evaltype":"0","conditions":[{"conditiontype":22,"value":"web","operator":2}]},"operations":[{"operationtype":2}],"status":0}`, p.editor, "eventsource")
	p.refused("trigger.get", `{"applicationids":["1"]}`, p.editor, "applicationids")
	p.replay(
		[2]string{"triggerprototype.get", fmt.Sprintf(`{"filter":{"description":"Full","host":%q,"templated":false,"templateid":0},"selectDependencies":"extend","selectTags":"extend"}`, own)},
		[2]string{"httptest.get", fmt.Sprintf(`{"filter":{"name":"Shop","host":%q}}`, own)},
		[2]string{"usergroup.create", `{"name":"Day","gui_access":0,"debug_mode":0,"users_status":0,"tag_filters":[],"hostgroup_rights":[],"templategroup_rights":[]}`},
		[2]string{"mediatype.create", `{"status":"0","type":"0","name":"Post","description":"","maxsessions":"1","maxattempts":"3","attempt_interval":"10s","smtp_server":"127.0.0.1","smtp_port":"25","smtp_helo":"localhost","smtp_email":"z@example.com","smtp_security":"0","smtp_authentication":"0","smtp_verify_host":"0","smtp_verify_peer":"0","message_format":"1"}`},
		[2]string{"proxy.get", `{"output":["proxyid","name","local_port","allowed_addresses","custom_timeouts"]}`},
		[2]string{"configuration.importcompare", `{"format":"json","source":"{\"zabbix_export\":{\"version\":\"7.0\",\"host_groups\":[{\"name\":\"From a file\"}]}}","rules":{"host_groups":{"createMissing":true},"valueMaps":{"createMissing":true,"updateExisting":false}}}`},
	)
	p.refused("configuration.importcompare", `{"format":"json","source":"{\"zabbix_export\":{\"version\":\"7.0\",\"host_groups\":[{\"name\":\"From a file\"}]}}","rules":{"host_groups":{"createMissing":false}}}`, p.editor, "value must be true")
}

// TestZabbix_grafanaQueries sends the queries of Grafana's plugin with all the parameters that its source gives them.
func TestZabbix_grafanaQueries(t *testing.T) {
	p := newParts(t)
	const trigger = `"output":"extend","expandDescription":true,"expandData":true,"expandComment":true,"monitored":true,"skipDependent":true,"selectLastEvent":"extend","selectHostGroups":["name","groupid"],"selectHosts":["hostid","name","host","maintenance_status","description","proxyid"],"selectItems":["itemid","name","key_","lastvalue","value_type"]`
	const events = `"output":"extend","source":"0","object":"0","sortfield":["eventid"],"sortorder":"DESC","evaltype":"0","groupids":["GROUP"],"hostids":["HOST"],"selectTags":"extend","severities":[1,2],"tags":[{"tag":"a","value":"b","operator":"0"}],"limit":10,"time_from":1,"time_till":2000000000,"search":{"name":["*disk*"]},"searchWildcardsEnabled":true,"searchByAny":true,"symptom":false`
	p.replay(
		[2]string{"hostgroup.get", `{"output":["name","groupid"],"sortfield":"name","with_hosts":true}`},
		[2]string{"host.get", `{"output":["hostid","name","host","tags"],"sortfield":"name","groupids":["GROUP"],"selectTags":"extend","evaltype":0,"tags":[{"tag":"a","value":"b","operator":1}]}`},
		[2]string{"item.get", `{"output":["itemid","name","key_","value_type","hostid","status","state","units","valuemapid","delay"],"sortfield":"name","webitems":true,"filter":{"value_type":[0,3]},"selectHosts":["hostid","name","host"],"hostids":["HOST"],"applicationids":null,"selectTags":"extend","tags":[{"tag":"a","value":"","operator":"1"}],"evaltype":2}`},
		[2]string{"usermacro.get", `{"output":"extend","hostmacroids":["1"],"selectHosts":["hostid","name"]}`},
		[2]string{"usermacro.get", `{"output":"extend","globalmacro":true}`},
		[2]string{"history.get", `{"output":"extend","history":"0","itemids":["1"],"sortfield":"clock","sortorder":"ASC","time_from":1,"time_till":2,"limit":5}`},
		[2]string{"trend.get", `{"output":"extend","trend":"0","itemids":["1"],"sortfield":"clock","sortorder":"ASC","time_from":1,"time_till":2}`},
		[2]string{"trend.get", `{"output":["itemid","clock","value_avg"],"itemids":["1"],"time_from":1,"time_till":2}`},
		[2]string{"problem.get", `{` + events + `,"selectAcknowledges":"extend","selectSuppressionData":"extend","recent":"true","acknowledged":false}`},
		[2]string{"event.get", `{` + events + `,"selectAcknowledges":"extend","selectSuppressionData":["maintenanceid","suppress_until"],"value":"1","applicationids":[]}`},
		[2]string{"event.get", `{"output":"extend","time_from":1,"time_till":2,"objectids":["1"],"selectHosts":"extend","selectAcknowledges":"extend","value":["0","1"],"limit":5,"sortfield":"clock","sortorder":"DESC"}`},
		[2]string{"event.get", `{"output":"extend","eventids":["1"],"preservekeys":true,"selectTags":"extend","selectAcknowledges":"extend","sortfield":"clock","sortorder":"DESC"}`},
		[2]string{"trigger.get", `{` + trigger + `,"triggerids":["1"],"expandExpression":true,"preservekeys":"1"}`},
		[2]string{"trigger.get", `{` + trigger + `,"groupids":["GROUP"],"hostids":["HOST"],"applicationids":[],"filter":{"value":[0,1]},"maintenance":true,"lastChangeSince":1,"lastChangeTill":2}`},
		[2]string{"trigger.get", `{` + trigger + `,"hostids":["HOST"],"min_severity":1,"filter":{"value":1},"countOutput":true,"withLastEventUnacknowledged":true,"tags":[],"evaltype":0}`},
		[2]string{"alert.get", `{"eventids":["1"],"output":["alertid","eventid","message","clock","error"],"selectUsers":"extend"}`},
		[2]string{"proxy.get", `{"output":["proxyid","name"]}`},
		[2]string{"valuemap.get", `{"output":"extend","selectMappings":"extend"}`},
		[2]string{"user.get", `{"output":["userid","username","name","surname"],"userids":["1"]}`},
		[2]string{"service.get", `{"output":"extend","serviceids":null}`},
		[2]string{"sla.get", `{"output":"extend"}`},
		[2]string{"script.get", `{"output":"extend"}`},
	)
}
