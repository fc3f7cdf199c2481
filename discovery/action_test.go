package discovery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

func fit(t *testing.T, e HostEvent, actions ...Action) *Outcome {
	t.Helper()
	set, err := CompileActions(actions)
	if err != nil {
		t.Fatal(err)
	}
	out := &Outcome{}
	set.Fit(&e, out)
	return out
}

// agents is an action on agents with some conditions.
func agents(evaluation string, conditions ...ActionCondition) Action {
	return Action{Name: "a", Event: FromAgents, Evaluation: evaluation, Conditions: conditions, Operations: []ActionOperation{{Type: "add_host"}}}
}

func TestActions_conditions(t *testing.T) {
	agent := HostEvent{Source: FromAgents, Host: "db-1", Metadata: "Linux postgres", Proxy: "branch", IP: "10.0.0.7"}
	f := func(e HostEvent, want bool, evaluation string, conditions ...ActionCondition) {
		t.Helper()
		a := agents(evaluation, conditions...)
		a.Event = e.Source
		if got := fit(t, e, a).Change != nil; got != want {
			t.Errorf("%+v of %q over %+v: %t, want %t", conditions, evaluation, e, got, want)
		}
	}
	c := func(field, operator, value string) ActionCondition { return ActionCondition{field, operator, value} }
	f(agent, true, "")
	f(agent, true, "", c("metadata", "contains", "Linux"))
	f(agent, false, "", c("metadata", "contains", "linux"))
	f(agent, true, "", c("metadata", "matches", "(?i)^linux"))
	f(agent, false, "", c("metadata", "not_matches", "(?i)^linux"))
	f(agent, true, "", c("metadata", "not_contains", "Windows"))
	f(agent, true, "", c("host_name", "equals", "db-1"), c("proxy", "", "branch"))
	f(agent, false, "", c("host_name", "not_equals", "db-1"))
	f(agent, true, "", c("ip", "", "10.0.0.0/24"))
	f(agent, false, "", c("ip", "not_equals", "10.0.0.1-9"))
	// The same field is joined by or, different ones by and, unless something else is asked for.
	f(agent, true, "", c("metadata", "contains", "zz"), c("metadata", "contains", "Linux"))
	f(agent, false, "and", c("metadata", "contains", "zz"), c("metadata", "contains", "Linux"))
	f(agent, true, "or", c("metadata", "contains", "zz"), c("host_name", "", "db-1"))
	f(agent, false, "", c("metadata", "contains", "zz"), c("host_name", "", "db-1"))
	f(agent, true, "A and not B", c("metadata", "contains", "Linux"), c("host_name", "", "db-2"))
	service := HostEvent{Source: FromNetwork, IP: "10.0.0.7", Rule: "Office", Check: "ssh", Service: "ssh", Port: 2222, Object: "service", Status: "up", Value: "7", For: time.Hour}
	f(service, true, "", c("rule", "", "Office"), c("service", "", "ssh"), c("port", "", "22,2000-3000"), c("object", "", "service"), c("status", "", "up"))
	f(service, false, "", c("port", "not_equals", "22,2000-3000"))
	f(service, true, "", c("uptime", "greater_equal", "30m"))
	f(service, false, "", c("uptime", "less_equal", "30m"))
	f(service, false, "", c("downtime", "greater_equal", "30m"))
	f(service, true, "", c("value", "greater_equal", "6.5"), c("check", "", "ssh"))
	f(service, false, "", c("value", "less_equal", "6.5"))
	down := service
	down.Status = "lost"
	f(down, true, "", c("downtime", "greater_equal", "30m"))
}

func TestActions_operations(t *testing.T) {
	e := HostEvent{Source: FromNetwork, IP: "10.0.0.7", DNS: "r1.example", Object: "host", Status: "up"}
	out := fit(
		t, e, Action{Name: "2", Event: FromNetwork, Operations: []ActionOperation{
			{Type: "add_group", Group: "Routers"},
			{Type: "add_group", Group: "Routers"},
			{Type: "link_template", Template: "Router"},
			{Type: "unlink_template", Template: "Old"},
			{Type: "remove_group", Group: "New"},
			{Type: "enable_host"},
			{Type: "set_inventory_mode", Mode: "automatic"},
			{Type: "add_tag", Tag: "site", Value: "hq"},
			{Type: "set_interface", Interface: &ActionInterface{Type: "snmp", SNMP: &SNMP{Version: "SNMPV1", Community: "c"}}},
			{Type: "set_interface", Interface: &ActionInterface{Type: "jmx", UseDNS: true}},
			{Type: "set_psk", Identity: "i", PSK: strings.Repeat("ab", 16)},
		}}, Action{Name: "1", Event: FromNetwork, Operations: []ActionOperation{{Type: "disable_host"}, {Type: "add_group", Group: "First"}}},
		Action{Name: "off", Event: FromNetwork, Disabled: true, Operations: []ActionOperation{{Type: "remove_host"}}},
		Action{Name: "agents", Event: FromAgents, Operations: []ActionOperation{{Type: "add_group", Group: "Agents"}}},
	)
	c := out.Change
	if !slices.Equal(out.Names, []string{"1", "2"}) || !slices.Equal(c.AddGroups, []string{"First", "Routers"}) || !slices.Equal(c.LinkTemplates, []string{"Router"}) ||
		!slices.Equal(c.DropTemplates, []string{"Old"}) || !slices.Equal(c.RemoveGroups, []string{"New"}) || !c.Make || c.Delete || c.Enabled == nil || !*c.Enabled ||
		c.InventoryMode != "AUTOMATIC" || c.Tags[0] != (model.Tag{Name: "site", Value: "hq"}) {
		t.Errorf("%+v %+v", out, c)
	}
	if i := c.Interfaces; len(i) != 2 || i[0].Type != model.SNMPInterface || i[0].Address != "10.0.0.7" || i[0].Port != "161" || i[0].SNMP.Version != "SNMPV1" || i[1].Address != "r1.example" || i[1].Port != "12345" {
		t.Errorf("%+v", i)
	}
	if out.TLS == nil || out.TLS.Identity != "i" || len(out.TLS.Key) != 16 {
		t.Errorf("%+v", out.TLS)
	}
	if c := fit(t, e, Action{Name: "x", Event: FromNetwork, Operations: []ActionOperation{{Type: "remove_host"}}}).Change; !c.Delete || c.Make {
		t.Errorf("%+v", c)
	}
	if c := fit(t, e, Action{Name: "x", Event: FromNetwork, Operations: []ActionOperation{{Type: "unlink_template", Template: "T"}}}).Change; c.Make {
		t.Errorf("what takes a template away makes a host: %+v", c)
	}
}

func TestActions_mistakes(t *testing.T) {
	f := func(a Action, want string) {
		t.Helper()
		if _, err := CompileActions([]Action{a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", a, err, want)
		}
	}
	with := func(o ...ActionOperation) Action { return Action{Name: "a", Event: FromAgents, Operations: o} }
	when := func(field, operator, value string) Action { return agents("", ActionCondition{field, operator, value}) }
	f(Action{Name: "a", Event: "x"}, `event "x"`)
	f(Action{Event: FromAgents}, "has no name")
	f(with(), "0 operations")
	f(with(ActionOperation{Type: "x"}), `type "x"`)
	f(with(ActionOperation{Type: "add_group"}), "add_group has no group")
	f(with(ActionOperation{Type: "link_template"}), "link_template has no template")
	f(with(ActionOperation{Type: "set_inventory_mode", Mode: "x"}), `mode "x"`)
	f(with(ActionOperation{Type: "remove_host"}), "network discovery only")
	f(with(ActionOperation{Type: "set_interface"}), "has no interface")
	f(with(ActionOperation{Type: "set_interface", Interface: &ActionInterface{Type: "x"}}), `type "x"`)
	f(with(ActionOperation{Type: "set_interface", Interface: &ActionInterface{Type: "agent", Port: "0"}}), `port "0"`)
	f(with(ActionOperation{Type: "set_psk", Identity: "i", PSK: "ab"}), "hexadecimal digits")
	f(when("rule", "", "x"), `field "rule"`)
	f(when("x", "", "x"), `field "x"`)
	f(when("metadata", "like", "x"), `operator "like"`)
	f(when("metadata", "matches", "("), "regular expression")
	f(when("metadata", "greater_equal", "1"), "compares numbers")
	f(when("ip", "", "x"), "range")
	f(when("ip", "contains", "10.0.0.1"), `operator "contains"`)
	f(agents("A and", ActionCondition{"metadata", "", "x"}), "expected the id of a condition")
	if _, err := CompileActions([]Action{agents(""), agents("")}); err == nil {
		t.Error("two actions of one name are taken")
	}
}
