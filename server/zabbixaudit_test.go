package server

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestZabbix_audit keeps all that a call changed: in several steps of one host, and of several objects when one of them ends the call.
func TestZabbix_audit(t *testing.T) {
	p := newZabbix(t)
	editor := p.signIn("editor")
	entry := func(search string) string {
		return p.must("GET", "/api/audit?limit=1&search="+search, "", p.login("administrator"))
	}
	p.mustRPC("host.update", `{"hostid":"HOST","status":1,"macros":[{"macro":"{$AUDITED}","value":"v1"},{"macro":"{$HIDDEN}","value":"hunter2","type":1}]}`, editor, new(any))
	if text := entry("host.update"); !strings.Contains(text, "{$AUDITED}") || !strings.Contains(text, `"enabled":false`) || strings.Contains(text, "hunter2") {
		t.Errorf("host.update: %s", text)
	}
	if _, failure := p.rpc("regexp.create", `[{"name":"first","expressions":[{"expression":"a","expression_type":"3"}]},{"name":"second"}]`, editor); !strings.Contains(failure, "expressions") {
		t.Errorf("regexp.create: %s", failure)
	}
	if text := entry("regexp.create"); !strings.Contains(text, `"entries":[]`) {
		t.Errorf("a call of which the second half failed changed something: %s", text)
	}
	if _, failure := p.rpc("host.delete", `["HOST","999999"]`, editor); !strings.Contains(failure, "No permissions") {
		t.Errorf("host.delete: %s", failure)
	}
	if text := entry("host.delete"); !strings.Contains(text, `"entries":[]`) {
		t.Errorf("a call that changed nothing: %s", text)
	}
}

// TestAudit_import has what an import changed of each host as it was and is, and not the rest of it.
func TestAudit_import(t *testing.T) {
	p := newZabbix(t)
	admin := p.login("administrator")
	changed := strings.ReplaceAll(twoHosts, `"name":"Temperature of foreign-7f3a"`, `"name":"Warmth"`)
	const was, is = `{"items":[{"key":"temperature","name":"Temperature of foreign-7f3a"}]}`, `{"items":[{"key":"temperature","name":"Warmth"}]}`
	newest := func() (out struct {
		Object        string
		Before, After json.RawMessage
	},
	) {
		var list struct{ Entries []json.RawMessage }
		if err := json.Unmarshal([]byte(p.must("GET", "/api/audit?limit=1&search=host+foreign-7f3a", "", admin)), &list); err != nil || len(list.Entries) != 1 {
			t.Fatal(err, list)
		}
		if err := json.Unmarshal(list.Entries[0], &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	p.must("POST", "/api/import", changed, admin)
	got := newest()
	var before, after map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(got.Before, &before), json.Unmarshal(got.After, &after)); err != nil {
		t.Fatal(err)
	}
	const host = "host foreign-7f3a"
	if !strings.Contains(got.Object, host) || strings.Contains(got.Object, "own-host") || string(before[host]) != was || string(after[host]) != is {
		t.Errorf("the audit log has %s: %s, %s", got.Object, got.Before, got.After)
	}
	p.must("POST", "/api/import", twoHosts, admin)
	source, _ := json.Marshal(changed)
	p.mustRPC("configuration.import", `{"format":"json","source":`+string(source)+`,"rules":{"items":{"createMissing":true,"updateExisting":true},"hosts":{"createMissing":true,"updateExisting":true}}}`, p.signIn("administrator"), new(any))
	if got := newest(); got.Object != host || string(got.Before) != was || string(got.After) != is { // JSON-RPC has an entry for each object
		t.Errorf("the audit log has %s: %s, %s", got.Object, got.Before, got.After)
	}
}

// TestAudit_objects names hosts and proxies by their names, with how it was before and is now.
func TestAudit_objects(t *testing.T) {
	p := newPermissions(t)
	p.loginAll()
	admin := p.session("administrator")
	f := func(method, path, body, search string, want ...string) {
		t.Helper()
		p.must(method, p.ids.Replace(path), body, admin)
		text := p.must("GET", "/api/audit?limit=1&search="+search, "", admin)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s %s: the audit log has %s, want %s", method, path, text, w)
			}
		}
	}
	p.must("POST", "/api/proxies", `{"name":"branch-1"}`, admin)
	f("PUT", "/api/hosts/HOST/proxy", `{"proxy":"branch-1"}`, "proxy+of", "proxy of host "+foreign, `"before":{"proxy":""}`, `"after":{"proxy":"branch-1"}`)
	if text := p.must("GET", p.ids.Replace("/api/hosts/HOST"), "", admin); !strings.Contains(text, `"proxy":"branch-1"`) {
		t.Errorf("a host that a proxy asks: %s", text)
	}
	if text := p.must("GET", "/api/configuration", "", admin); !strings.Contains(text, `"proxies":["branch-1"]`) {
		t.Errorf("the configuration lacks the proxy: %s", text)
	}
	var d struct{ Document json.RawMessage }
	document := "/api/configuration/hosts/" + foreign
	if err := json.Unmarshal([]byte(p.must("GET", document, "", admin)), &d); err != nil || !strings.Contains(string(d.Document), `"proxy":{"name":"branch-1"}`) {
		t.Fatalf("the document of a host that a proxy asks: %v %s", err, d.Document)
	}
	p.must("PUT", document, strings.Replace(string(d.Document), `"proxy":{"name":"branch-1"}`, `"description":"near"`, 1), admin)
	if text := p.must("GET", p.ids.Replace("/api/hosts/HOST"), "", admin); strings.Contains(text, "branch-1") {
		t.Errorf("a host whose document names no proxy any more: %s", text)
	}
	p.must("PUT", document, string(d.Document), admin)
	f("PUT", "/api/hosts/HOST/proxy", `{"proxy":""}`, "proxy+of", "proxy of host "+foreign, `"before":{"proxy":"branch-1"}`, `"after":{"proxy":""}`)
	f("PUT", "/api/network-discovery", `{"rules":[{"name":"Office","ranges":"127.0.0.1","disabled":true,"checks":[{"type":"icmp"}]}]}`, "network-discovery", "network discovery", "Office")
	f("DELETE", "/api/network-discovery/rule/Office", "", "network-discovery", "rule Office", "127.0.0.1")
	f("POST", "/api/check-now", `{"host":"`+foreign+`"}`, "check-now", "host "+foreign, "all items")
}
