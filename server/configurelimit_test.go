package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// ownDocument is the document of the own host with a change.
func ownDocument(t *testing.T, p *permissions, session string, change func(host map[string]any)) string {
	t.Helper()
	var d struct {
		Document struct {
			Export map[string]any `json:"zabbix_export"`
		} `json:"document"`
	}
	if err := json.Unmarshal([]byte(p.must("GET", "/api/configuration/hosts/own-host", "", session)), &d); err != nil {
		t.Fatal(err)
	}
	change(d.Document.Export["hosts"].([]any)[0].(map[string]any))
	text, err := json.Marshal(map[string]any{"zabbix_export": d.Document.Export})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPermissions_limitedEditor lets an editor of some host groups change the hosts of these, and refuses what would reach others.
func TestPermissions_limitedEditor(t *testing.T) {
	p := newPermissions(t)
	editor := p.session("limited-editor")
	put := func(change func(host map[string]any)) (int, string) {
		return p.call("PUT", "/api/configuration/hosts/own-host", ownDocument(t, p, editor, change), editor, "")
	}
	member := func(name string, value any) func(map[string]any) {
		return func(host map[string]any) { host[name] = value }
	}
	list := func(one ...any) []any { return one }
	type object = map[string]any
	trigger := func(expression, event string) func(map[string]any) {
		return func(host map[string]any) {
			item := host["items"].([]any)[0].(map[string]any)
			item["triggers"] = list(object{"name": "Tried", "event_name": event, "expression": expression, "priority": "HIGH"})
		}
	}
	calculated := func(formula string) func(map[string]any) {
		return func(host map[string]any) {
			host["items"] = append(host["items"].([]any), object{"name": "Sum", "type": "CALCULATED", "key": "sum", "params": formula, "value_type": "FLOAT"})
		}
	}
	with := func(changes ...func(map[string]any)) func(map[string]any) {
		return func(host map[string]any) {
			for _, change := range changes {
				change(host)
			}
		}
	}
	macros := func(pairs ...string) func(map[string]any) {
		var all []any
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, object{"macro": pairs[i], "value": pairs[i+1]})
		}
		return member("macros", all)
	}
	for name, change := range map[string]func(map[string]any){
		"a foreign group":                    member("groups", list(object{"name": "Own"}, object{"name": "Foreign"})),
		"only a foreign group":               member("groups", list(object{"name": "Foreign"})),
		"a foreign item in a trigger":        trigger("last(/own-host/temperature)>last(/foreign-7f3a/temperature)", ""),
		"a foreign item with spaces":         trigger("last( /foreign-7f3a/temperature)>1", ""),
		"a foreign item in an event's name":  trigger("last(/own-host/temperature)>100", "x {?last(/foreign-7f3a/temperature)}"),
		"a macro in an event's name":         trigger("last(/own-host/temperature)>100", "x {?last{$A}}"),
		"a foreign item in a formula":        calculated("last(//temperature)+last(/foreign-7f3a/temperature)"),
		"items of all hosts":                 calculated("sum(last_foreach(/*/temperature))"),
		"a reference in a macro":             macros("{$A}", "last(/foreign-7f3a/temperature)"),
		"the begin of an expression's macro": macros("{$A}", "{"),
		"a reference in pieces":              with(macros("{$A}", "last(", "{$B}", "/foreign-7f3a/temperature)"), trigger("{$A}{$B}>1 or last(/own-host/temperature)>100", "")),
		"a template that no own host has":    member("templates", list(object{"name": "Tidemark server"})),
		"a prototype's bare macro": member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "trigger_prototypes": list(
			object{"name": "P", "expression": "last(/own-host/temperature)>{#X}"})})),
		"hosts in a foreign group by discovery": member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "host_prototypes": list(
			object{"host": "{#X}", "name": "{#X}", "group_links": list(object{"group": object{"name": "Foreign"}})})})),
		"hosts in a foreign group by a field in large letters": member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "host_prototypes": list(
			object{"host": "{#X}", "name": "{#X}", "group_links": list(object{"name": "Own", "Group": object{"name": "Foreign"}})})})),
		"a template that no own host has by discovery": member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "host_prototypes": list(
			object{"host": "{#X}", "name": "{#X}", "group_links": list(object{"group": object{"name": "Own"}}), "templates": list(object{"name": "Tidemark server"})})})),
		"a template that no own host has by an override": member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "overrides": list(
			object{"name": "O", "step": "1", "operations": list(object{"operationobject": "HOST_PROTOTYPE", "templates": list(object{"name": "Tidemark server"})})})})),
	} {
		status, text := put(change)
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, "beyond_rights") {
			t.Errorf("%s: %d %s, want it refused", name, status, text)
		}
	}
	for name, change := range map[string]func(map[string]any){
		"a trigger of its own":       trigger("last(/own-host/temperature)>{$MOST}", "too warm {?last(/own-host/temperature)}"),
		"macros and a calculated":    with(macros("{$MOST}", "12", "{$PATH}", "/var/log (old)"), calculated("last(//temperature)*2")),
		"a group below the own one":  member("groups", list(object{"name": "Own"}, object{"name": "Own/Below"})),
		"a discovery rule":           member("discovery_rules", list(object{"name": "R", "type": "TRAP", "key": "r", "item_prototypes": list(object{"name": "I {#X}", "type": "TRAP", "key": "i[{#X}]", "value_type": "FLOAT"})})),
		"what it had in a last look": func(map[string]any) {},
	} {
		if name == "a trigger of its own" {
			change = with(macros("{$MOST}", "12"), change)
		}
		if status, text := put(change); status != http.StatusOK {
			t.Errorf("%s: %d %s, want it taken", name, status, text)
		}
	}
	made := func(group string) string {
		return fmt.Sprintf(`{"zabbix_export":{"version":"7.0","hosts":[{"host":"made","name":"made","groups":[{"name":%q}]}]}}`, group)
	}
	for _, path := range []string{"/api/configuration/hosts", "/api/configuration/plan?kind=host&exact=true&create=true"} {
		if status, text := p.call("POST", path, made("Foreign"), editor, ""); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: made in a foreign group: %d %s", path, status, text)
		}
	}
	if status, text := p.call("POST", "/api/configuration/hosts", strings.Replace(made("Own"), `"made"`, `"foreign-7f3a"`, 1), editor, ""); status != http.StatusNotFound {
		t.Errorf("a foreign host made again: %d %s", status, text)
	}
	p.must("POST", "/api/configuration/hosts", made("Own"), editor)
	p.must("DELETE", "/api/configuration/hosts/made", "", editor)
	if status, _ := p.call("DELETE", "/api/configuration/hosts/foreign-7f3a", "", editor, ""); status != http.StatusNotFound {
		t.Errorf("the foreign host deleted: %d", status)
	}
	var configuration struct {
		Groups []string `json:"host_groups"`
	}
	if err := json.Unmarshal([]byte(p.must("GET", "/api/configuration", "", editor)), &configuration); err != nil || slices.Contains(configuration.Groups, "Foreign") || !slices.Contains(configuration.Groups, "Own") {
		t.Errorf("groups: %v %v", configuration.Groups, err)
	}
}

// TestPermissions_editableHosts lists for an editor of some host groups the hosts of these, and not those that may only be seen.
func TestPermissions_editableHosts(t *testing.T) {
	p := newPermissions(t)
	p.must("PUT", "/api/user_groups/Owners", `{"grants":[{"host_group":"Own","role":"editor"},{"host_group":"Foreign","role":"viewer"}]}`, p.session("administrator"))
	f := func(query, session string, want ...string) {
		t.Helper()
		var list struct {
			Hosts []struct{ Host string }
		}
		if err := json.Unmarshal([]byte(p.must("GET", "/api/hosts"+query, "", p.session(session))), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range list.Hosts {
			got = append(got, h.Host)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s as %s: %v, want %v", query, session, got, want)
		}
	}
	f("", "limited-editor", "own-host", "foreign-7f3a")
	f("?editable=true", "limited-editor", "own-host")
	f("?editable=true", "viewer")
	f("?editable=true", "editor", "own-host", "foreign-7f3a")
}

func FuzzUnquoted(f *testing.F) {
	f.Add("last(/h/k)+sum(last_foreach( /*/k?[group=\"G\"]))")
	f.Fuzz(func(t *testing.T, text string) {
		if out := unquoted(text); len(out) > len(text) {
			t.Errorf("%q is longer than %q", out, text)
		}
	})
}
