package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rpc sends one call of Zabbix's JSON-RPC with a token in the header and returns result and error.
func (p *permissions) rpc(method, params, token string) (result json.RawMessage, failure string) {
	p.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s,"id":7}`, method, p.ids.Replace(params))
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.http+"/api_jsonrpc.php", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json-rpc")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var a struct {
		Result json.RawMessage
		Error  *struct {
			Code          int
			Message, Data string
		}
		ID int
	}
	if err := json.Unmarshal(text, &a); err != nil || a.ID != 7 {
		p.t.Fatalf("%s %s is answered %d %s: %v", method, params, answer.StatusCode, text, err)
	}
	if a.Error != nil {
		return nil, fmt.Sprintf("%d %s %s", a.Error.Code, a.Error.Message, a.Error.Data)
	}
	return a.Result, ""
}

// mustRPC decodes the result of a call.
func (p *permissions) mustRPC(method, params, token string, into any) {
	p.t.Helper()
	result, failure := p.rpc(method, params, token)
	if failure != "" {
		p.t.Fatalf("%s %s: %s", method, params, failure)
	}
	if err := json.Unmarshal(result, into); err != nil {
		p.t.Fatalf("%s %s is answered %s: %v", method, params, result, err)
	}
}

// signIn signs in as Zabbix's clients do.
func (p *permissions) signIn(name string) string {
	p.t.Helper()
	var session string
	p.mustRPC("user.login", fmt.Sprintf(`{"username":%q,"password":%q}`, name, testPassword), "", &session)
	return session
}

// grafana is what Grafana's Zabbix plugin 6.6 asks a server of release 7.0, written down from its source. HOST, ITEM, GROUP, TRIGGER and
// PROBLEM stand for ids of the foreign host; shows says that the answer names that host.
var grafana = []struct {
	method, params string
	shows          bool
}{
	{"hostgroup.get", `{"output":["name","groupid"],"sortfield":"name","with_hosts":true}`, false},
	{"host.get", `{"output":["hostid","name","host"],"sortfield":"name","groupids":["GROUP"],"selectTags":"extend"}`, true},
	{"item.get", `{"output":["itemid","name","key_","value_type","hostid","status","state","units","valuemapid","delay"],"sortfield":"name","webitems":true,"filter":{"value_type":[0,3]},"selectHosts":["hostid","name","host"],"selectTags":"extend","monitored":true,"hostids":["HOST"]}`, true},
	{"item.get", `{"itemids":["ITEM"],"output":["itemid","name","key_","value_type","hostid","status","state"],"webitems":true,"selectHosts":["hostid","name"]}`, true},
	{"history.get", `{"output":"extend","history":0,"itemids":["ITEM"],"sortfield":"clock","sortorder":"ASC","time_from":FROM,"time_till":UNTIL}`, false},
	{"trend.get", `{"output":"extend","trend":0,"itemids":["ITEM"],"time_from":FROM,"time_till":UNTIL}`, false},
	{"valuemap.get", `{"output":"extend","selectMappings":"extend"}`, false},
	{"problem.get", `{"output":"extend","selectAcknowledges":"extend","selectSuppressionData":"extend","selectTags":"extend","source":"0","object":"0","sortfield":["eventid"],"sortorder":"DESC","evaltype":"0","recent":true,"severities":[3,4,5],"limit":1001,"search":{"name":"*"},"searchWildcardsEnabled":true,"time_from":FROM,"time_till":UNTIL,"symptom":false}`, true},
	{"trigger.get", `{"output":"extend","triggerids":["TRIGGER"],"expandDescription":true,"expandData":true,"expandComment":true,"monitored":true,"skipDependent":true,"selectHostGroups":["name","groupid"],"selectHosts":["hostid","name","host","maintenance_status"],"selectItems":["name","key_","lastvalue"],"selectLastEvent":"extend","selectTags":"extend","preservekeys":"1"}`, true},
	{"trigger.get", `{"output":["triggerid"],"groupids":["GROUP"],"expandDescription":true,"monitored":true,"filter":{"value":1},"min_severity":2,"withLastEventUnacknowledged":true,"lastChangeSince":FROM,"lastChangeTill":UNTIL,"countOutput":true}`, false},
	{"event.get", `{"output":"extend","hostids":["HOST"],"selectHosts":["hostid","name"],"selectAcknowledges":"extend","sortfield":"eventid","sortorder":"DESC","limit":10,"value":1}`, true},
	{"event.get", `{"output":"extend","eventids":["PROBLEM"],"select_acknowledges":"extend","selectTags":"extend"}`, true},
	{"usermacro.get", `{"output":"extend","hostids":["HOST"]}`, false},
	{"usermacro.get", `{"output":"extend","globalmacro":true}`, false},
	{"proxy.get", `{"output":["proxyid","name"]}`, false},
	{"service.get", `{"output":"extend"}`, false},
	{"user.get", `{"output":["userid","username"]}`, false},
}

func newZabbix(t *testing.T) *permissions {
	p := newPermissions(t)
	admin := p.signIn("administrator")
	var groups []struct{ GroupID, Name string }
	p.mustRPC("hostgroup.get", `{"filter":{"name":"Foreign"}}`, admin, &groups)
	var triggers []struct{ TriggerID string }
	p.mustRPC("trigger.get", `{"hostids":"HOST"}`, admin, &triggers)
	if len(groups) != 1 || len(triggers) != 1 {
		t.Fatalf("groups %v, triggers %v", groups, triggers)
	}
	host, item, problem := p.ids.Replace("HOST"), p.ids.Replace("ITEM"), p.ids.Replace("PROBLEM")
	p.ids = strings.NewReplacer("HOST", host, "ITEM", item, "PROBLEM", problem, "GROUP", groups[0].GroupID, "TRIGGER", triggers[0].TriggerID,
		"FROM", p.ids.Replace("FROM"), "UNTIL", p.ids.Replace("UNTIL"))
	return p
}

// TestZabbix_grafana sends what Grafana's plugin sends, as somebody who sees the foreign host, and as somebody who must not.
func TestZabbix_grafana(t *testing.T) {
	p := newZabbix(t)
	admin, limited := p.signIn("viewer"), p.signIn("limited-viewer")
	for _, call := range grafana {
		result, failure := p.rpc(call.method, call.params, admin)
		if failure != "" || call.shows && !bytes.Contains(result, []byte(foreign)) {
			t.Errorf("%s %s: %s %s", call.method, call.params, result, failure)
		}
		result, failure = p.rpc(call.method, call.params, limited)
		if failure != "" || bytes.Contains(result, []byte(foreign)) || bytes.Contains(result, []byte(`"Foreign"`)) {
			t.Errorf("as limited: %s %s: %s %s", call.method, call.params, result, failure)
		}
	}
	var values []struct{ ItemID, Clock, Value, NS string }
	p.mustRPC("history.get", grafana[4].params, admin, &values)
	if len(values) != 1 || values[0].Value != "42.5" || values[0].Clock == "" || values[0].NS == "" {
		t.Errorf("history: %+v", values)
	}
	p.mustRPC("history.get", `{"history":0,"itemids":["ITEM"],"sortfield":"clock","sortorder":"DESC","limit":1}`, admin, &values)
	if len(values) != 1 || values[0].Value != "42.5" {
		t.Errorf("newest value: %+v", values)
	}
	// Of two values of one second the newest is the one that came last.
	now := time.Now().Unix() + 2
	p.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":%q,"key":"temperature","value":"43","clock":%d,"ns":1},{"host":%q,"key":"temperature","value":"44","clock":%d,"ns":2}]}`, foreign, now, foreign, now))
	p.mustRPC("history.get", `{"history":0,"itemids":["ITEM"],"sortfield":"clock","sortorder":"DESC","limit":1}`, admin, &values)
	if len(values) != 1 || values[0].Value != "44" || values[0].NS != "2" {
		t.Errorf("newest value of a second: %+v", values)
	}
	p.mustRPC("history.get", grafana[4].params, limited, &values)
	if len(values) != 0 {
		t.Errorf("values of a foreign item: %+v", values)
	}
}

// TestZabbix_people is sign-in and what roles may do.
func TestZabbix_people(t *testing.T) {
	p := newZabbix(t)
	if _, failure := p.rpc("user.login", `{"username":"viewer","password":"wrong password"}`, ""); !strings.HasPrefix(failure, "-32500 Application error. Incorrect user name or password") {
		t.Errorf("a wrong password: %s", failure)
	}
	session := p.signIn("viewer")
	var who struct{ UserID, Username, SessionID string }
	p.mustRPC("user.checkAuthentication", fmt.Sprintf(`{"sessionid":%q}`, session), "", &who)
	if who.Username != "viewer" || who.SessionID != session || who.UserID == "" {
		t.Errorf("who: %+v", who)
	}
	for _, change := range []string{"event.acknowledge", "host.delete", "host.create", "host.update", "configuration.import", "configuration.export"} {
		if _, failure := p.rpc(change, `{}`, session); !strings.HasPrefix(failure, "-32500 Application error. No permissions to call") {
			t.Errorf("%s as viewer: %s", change, failure)
		}
	}
	var done bool
	if p.mustRPC("user.logout", `[]`, session, &done); !done {
		t.Error("not signed out")
	}
	if _, failure := p.rpc("host.get", `{}`, session); failure != "-32602 Invalid params. Session terminated, re-login, please." {
		t.Errorf("after sign-out: %s", failure)
	}
	if _, failure := p.rpc("host.get", `{}`, ""); failure != "-32602 Invalid params. Not authorized." {
		t.Errorf("without sign-in: %s", failure)
	}
	if _, failure := p.rpc("event.acknowledge", `{"eventids":["PROBLEM"],"action":6,"message":"seen"}`, p.signIn("limited-operator")); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("a foreign problem: %s", failure)
	}
	p.mustRPC("event.acknowledge", `{"eventids":["PROBLEM"],"action":6,"message":"seen"}`, p.signIn("operator"), new(any))
	var events []struct {
		Acknowledged string
		Acknowledges []struct{ Message, Username string }
	}
	p.mustRPC("event.get", `{"eventids":"PROBLEM","selectAcknowledges":"extend"}`, p.signIn("operator"), &events)
	if len(events) != 1 || events[0].Acknowledged != "1" || len(events[0].Acknowledges) != 1 || events[0].Acknowledges[0].Username != "operator" || events[0].Acknowledges[0].Message != "seen" {
		t.Errorf("events: %+v", events)
	}
}

// TestZabbix_hosts makes, changes, exports and deletes a host.
func TestZabbix_hosts(t *testing.T) {
	p := newZabbix(t)
	editor, limited := p.signIn("editor"), p.signIn("limited-editor")
	create := `{"host":"web 1","groups":[{"groupid":"GROUP"}],"interfaces":[{"type":1,"main":1,"useip":1,"ip":"127.0.0.1","dns":"","port":"10050"}],"tags":[{"tag":"a","value":"b"}],"macros":[{"macro":"{$A}","value":"1"}]}`
	if _, failure := p.rpc("host.create", create, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("a host in a foreign group: %s", failure)
	}
	var made struct{ HostIDs []string }
	p.mustRPC("host.create", create, editor, &made)
	if _, failure := p.rpc("host.create", create, editor); !strings.Contains(failure, "already exists") {
		t.Errorf("the same host again: %s", failure)
	}
	id := made.HostIDs[0]
	var hosts []struct {
		Host, Status, Name string
		Interfaces         []struct{ IP, Port, Type, Main string }
		Tags               []struct{ Tag, Value string }
		Macros             []struct{ Macro, Value string }
		HostGroups         []struct{ Name string }
		ParentTemplates    []struct{ Host string }
	}
	get := fmt.Sprintf(`{"hostids":%q,"selectInterfaces":"extend","selectTags":"extend","selectMacros":"extend","selectHostGroups":["name"],"selectParentTemplates":["host"]}`, id)
	p.mustRPC("host.get", get, editor, &hosts)
	if got := fmt.Sprintf("%+v", hosts); got != `[{Host:web 1 Status:0 Name:web 1 Interfaces:[{IP:127.0.0.1 Port:10050 Type:1 Main:1}] Tags:[{Tag:a Value:b}] Macros:[{Macro:{$A} Value:1}] HostGroups:[{Name:Foreign}] ParentTemplates:[]}]` {
		t.Errorf("the host: %s", got)
	}
	var templates []struct{ TemplateID string }
	p.mustRPC("template.get", `{"filter":{"host":"Linux by Zabbix agent"}}`, editor, &templates)
	update := fmt.Sprintf(`{"hostid":%q,"status":1,"templates":[{"templateid":%q}]}`, id, templates[0].TemplateID)
	if _, failure := p.rpc("host.update", update, limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("change a foreign host: %s", failure)
	}
	for face, want := range map[string]string{
		`"ip":"300.1.1.1","port":"10050"`: `/interfaces/1/ip": an IP address is expected`,
		`"ip":"127.0.0.1","port":"99999"`: `/interfaces/1/port": value must be one of 0-65535`,
	} {
		faces := `"interfaces":[{"type":1,"main":1,"useip":1,"dns":"",` + face + `}]`
		if _, failure := p.rpc("host.create", `{"host":"web 2","groups":[{"groupid":"GROUP"}],`+faces+`}`, editor); !strings.Contains(failure, `"/1`+want) {
			t.Errorf("make a host with %s: %s", face, failure)
		}
		if _, failure := p.rpc("host.update", fmt.Sprintf(`{"hostid":%q,%s}`, id, faces), editor); !strings.Contains(failure, want) {
			t.Errorf("give a host %s: %s", face, failure)
		}
	}
	const wrongMacro = `"macros":[{"macro":"bad","value":"1"}]`
	for method, params := range map[string]string{
		"host.create": `{"host":"web 2","groups":[{"groupid":"GROUP"}],` + wrongMacro + `}`, "host.update": fmt.Sprintf(`{"hostid":%q,%s}`, id, wrongMacro),
	} {
		if _, failure := p.rpc(method, params, editor); !strings.Contains(failure, `macros/1/macro": incorrect syntax near "bad"`) {
			t.Errorf("%s with a wrong macro: %s", method, failure)
		}
	}
	p.mustRPC("host.update", update, editor, new(any))
	p.mustRPC("host.get", get, editor, &hosts)
	if hosts[0].Status != "1" || fmt.Sprint(hosts[0].ParentTemplates) != "[{Linux by Zabbix agent}]" {
		t.Errorf("the changed host: %+v", hosts)
	}
	var text string
	p.mustRPC("configuration.export", fmt.Sprintf(`{"format":"yaml","options":{"hosts":[%q]}}`, id), editor, &text)
	if !strings.Contains(text, "web 1") {
		t.Errorf("export: %s", text)
	}
	if _, failure := p.rpc("host.delete", fmt.Sprintf(`[%q]`, id), limited); !strings.Contains(failure, "No permissions to referred object") {
		t.Errorf("delete a foreign host: %s", failure)
	}
	p.mustRPC("host.delete", fmt.Sprintf(`[%q]`, id), editor, new(any))
	p.mustRPC("host.get", get, editor, &hosts)
	if len(hosts) != 0 {
		t.Errorf("after deletion: %+v", hosts)
	}
	source, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	p.mustRPC("configuration.import", fmt.Sprintf(`{"format":"yaml","source":%s,"rules":{"hosts":{"createMissing":true,"updateExisting":true}}}`, source), editor, new(bool))
	p.mustRPC("host.get", `{"filter":{"host":["web 1"]}}`, editor, &hosts)
	if len(hosts) != 1 {
		t.Errorf("after the import: %+v", hosts)
	}
	audit := p.must("GET", "/api/audit?search=api_jsonrpc", "", p.login("administrator"))
	for _, method := range []string{"host.create", "host.update", "host.delete", "configuration.import"} {
		if !strings.Contains(audit, "POST /api_jsonrpc.php "+method) {
			t.Errorf("the audit log does not have %s: %s", method, audit)
		}
	}
}

// TestZabbix_sameHost makes hosts of one name by two callers at once: one of them makes it, and the other changes nothing of it.
func TestZabbix_sameHost(t *testing.T) {
	p := newZabbix(t)
	editor := p.signIn("editor")
	for i := range 10 {
		var made atomic.Int32
		var calls sync.WaitGroup
		for _, macro := range []string{"{$ONE}", "{$TWO}"} {
			calls.Go(func() {
				params := fmt.Sprintf(`{"host":"same %d","groups":[{"groupid":"GROUP"}],"macros":[{"macro":%q,"value":"1"}]}`, i, macro)
				_, failure := p.rpc("host.create", params, editor)
				switch {
				case failure == "":
					made.Add(1)
				case !strings.Contains(failure, "already exists"):
					t.Errorf("host.create: %s", failure)
				}
			})
		}
		calls.Wait()
		var hosts []struct{ Macros []struct{ Macro string } }
		p.mustRPC("host.get", fmt.Sprintf(`{"filter":{"host":"same %d"},"selectMacros":"extend"}`, i), editor, &hosts)
		if made.Load() != 1 || len(hosts) != 1 || len(hosts[0].Macros) != 1 {
			t.Fatalf("%d of two calls made the host, which is %+v", made.Load(), hosts)
		}
	}
}

// TestZabbix_recovery shows problems that are over.
func TestZabbix_recovery(t *testing.T) {
	p := newZabbix(t)
	admin := p.signIn("viewer")
	p.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":%q,"key":"temperature","value":"1","clock":%d}]}`, foreign, time.Now().Unix()+1))
	var problems []struct {
		EventID   string
		REventID  string `json:"r_eventid"`
		RClock    string `json:"r_clock"`
		ObjectID  string
		Name      string
		Severity  string
		Triggerid string
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		p.mustRPC("problem.get", `{"hostids":"HOST"}`, admin, &problems)
		if len(problems) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the problem does not end: %+v", problems)
		}
	}
	p.mustRPC("problem.get", `{"hostids":"HOST","recent":true}`, admin, &problems)
	if len(problems) != 1 || problems[0].REventID == "0" || problems[0].RClock == "0" || problems[0].Severity != "4" {
		t.Errorf("recent problems: %+v", problems)
	}
}
