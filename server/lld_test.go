package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/api/rest"
)

const discoveryFile = `{"zabbix_export":{"version":"6.0","groups":[{"name":"Tests"}],"hosts":[{"host":"sw","name":"Switch","groups":[{"name":"Tests"}],
"items":[{"name":"All","key":"all","type":"TRAP","value_type":"TEXT","history":"0"}],
"discovery_rules":[{"name":"Ports","key":"ports","type":"DEPENDENT","master_item":{"key":"all"},"lifetime":"0",
"preprocessing":[{"type":"JSONPATH","parameters":["$.ports"]}],
"item_prototypes":[{"name":"Port {#P}","key":"port[{#P}]","type":"DEPENDENT","master_item":{"key":"all"},"value_type":"FLOAT",
 "preprocessing":[{"type":"JSONPATH","parameters":["$.values['{#P}']"]}],
 "trigger_prototypes":[{"name":"Port {#P} is busy","expression":"last(/sw/port[{#P}])>10","priority":"HIGH"}]}],
"host_prototypes":[{"host":"sw-port-{#P}","name":"Port {#P}","group_links":[{"group":{"name":"Tests"}}],"group_prototypes":[{"name":"Ports {#P}"}],"tags":[{"tag":"port","value":"{#P}"}]}]}]}]}}`

// wait polls until f holds.
func wait(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 1200 {
		if f() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("waited a minute for %s", what)
}

// TestDiscovery_story takes one payload through a dependent rule to items, triggers, hosts, values of the new items and a problem.
func TestDiscovery_story(t *testing.T) {
	r := run(t, t.TempDir())
	r.importText(discoveryFile)
	send := func(value string) {
		t.Helper()
		text, _ := json.Marshal(value)
		answer := r.send(fmt.Sprintf(`{"request":"sender data","data":[{"host":"sw","key":"all","value":%s}]}`, text))
		if !strings.Contains(answer, "processed: 1; failed: 0") {
			t.Fatalf("the sender is answered %s", answer)
		}
	}
	var rules rest.DiscoveryRuleList
	rule := func() rest.DiscoveryRule {
		r.get("/api/discovery", &rules)
		for _, x := range rules.Rules {
			if x.Key == "ports" {
				return x
			}
		}
		t.Fatalf("no rule among %+v", rules)
		return rest.DiscoveryRule{}
	}
	if x := rule(); x.State != "unknown" || x.Host != "sw" || x.Type != 18 {
		t.Errorf("the rule before its first value: %+v", x)
	}
	send(`{"ports":[{"{#P}":"a"},{"{#P}":"b"}],"values":{"a":1,"b":2}}`)
	wait(t, "two ports", func() bool { x := rule(); return x.State == "ok" && x.Items == 2 && x.Triggers == 2 && x.Hosts == 2 })
	var items rest.ItemList
	wait(t, "a value of a discovered item", func() bool {
		send(`{"ports":[{"{#P}":"a"},{"{#P}":"b"}],"values":{"a":1,"b":20}}`)
		r.get("/api/items?search=port%5Bb%5D", &items)
		return len(items.Items) == 1 && items.Items[0].Last != nil && items.Items[0].Last.Value.V == "20"
	})
	if by := items.Items[0].DiscoveredBy; by != rule().ID {
		t.Errorf("the item is discovered by %q, want %q", by, rule().ID)
	}
	var problems rest.ProblemList
	wait(t, "the problem", func() bool {
		r.get("/api/problems?open=true", &problems)
		return len(problems.Problems) == 1 && problems.Problems[0].Name == "Port b is busy"
	})
	var hosts rest.HostList
	r.get("/api/hosts?group=Ports%20b", &hosts)
	if len(hosts.Hosts) != 1 || hosts.Hosts[0].Host != "sw-port-b" || hosts.Hosts[0].DiscoveredBy == "" || hosts.Hosts[0].Tags[0].Value != "b" {
		t.Errorf("hosts %+v", hosts)
	}
	var full rest.DiscoveryRule
	r.get("/api/discovery/"+rule().ID, &full)
	if len(full.Objects) != 6 {
		t.Errorf("objects %+v, want 6", full.Objects)
	}

	send(`{"ports":[{"{#P}":"a"}`) // broken: nothing changes, and the rule says why
	wait(t, "the error", func() bool {
		x := rule()
		return x.State == "error" && x.Items == 2 && strings.Contains(x.Error, "JSONPath")
	})
	send(`{"ports":[{"{#P}":"a"}],"values":{"a":1}}`)
	wait(t, "port b to go", func() bool { x := rule(); return x.State == "ok" && x.Items == 1 && x.Triggers == 1 && x.Hosts == 1 })
	wait(t, "the end of the problem", func() bool { r.get("/api/problems?open=true", &problems); return len(problems.Problems) == 0 })
	if a, err := http.Get(r.http + "/api/discovery/1"); err != nil || a.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown rule: %v %v", a, err)
	}
}
