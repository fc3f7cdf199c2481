package confcache

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

func TestCollect(t *testing.T) {
	shared := &model.Collect{HTTP: &model.HTTPRequest{URL: "http://127.0.0.1/"}}
	s := newSource()
	s.global = []model.Macro{{Name: "{$TOKEN}", Value: "t0"}, {Name: "{$LIMIT}", Value: "10s"}, {Name: "{$COMMUNITY}", Value: "public"}}
	item := func(id model.ItemID, key string, c *model.Collect, timeout string) model.ItemConfig {
		return model.ItemConfig{Item: model.Item{ID: id, HostID: 1, Key: key, Type: model.HTTPAgent, Delay: "1m", Enabled: true, Collect: c}, TimeoutText: timeout}
	}
	s.put(model.HostConfig{
		Host: model.Host{
			ID: 1, Host: "web", Name: "Web", Enabled: true, IPMI: &model.IPMIAccess{Password: "{$TOKEN}"},
			Interfaces: []model.Interface{
				{Type: model.AgentInterface, Main: true, Address: "web.example", IP: "10.0.0.1", DNS: "web.example", Port: "10050"},
				{Type: model.SNMPInterface, Main: true, Address: "10.0.0.1", Port: "161", SNMP: &model.SNMPAccess{Community: "{$COMMUNITY}"}},
			},
		},
		Items: []model.ItemConfig{
			item(1, "plain", shared, ""),
			item(2, "net.tcp.service[http,{HOST.CONN},{HOST.PORT}]", nil, ""),
			item(3, "http", &model.Collect{HTTP: &model.HTTPRequest{
				URL: "http://{HOST.IP}/{HOST.HOST}", Headers: []model.Pair{{Name: "Authorization", Value: "Bearer {$TOKEN}"}}, Posts: "{not a macro}",
			}}, "{$LIMIT}"),
			item(4, "unknown", &model.Collect{Username: "{$NOBODY}"}, ""),
			item(5, "long", nil, "11m"),
		},
	})
	c := New(s, Options{})
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	snapshot := c.Snapshot()
	get := func(id model.ItemID) *model.Item {
		i, ok := snapshot.Item(id)
		if !ok {
			t.Fatalf("no item %d", id)
		}
		return i
	}
	if get(1).Collect != shared {
		t.Error("settings without macros are not shared")
	}
	if got := get(2).CheckKey(); got != "net.tcp.service[http,web.example,10050]" || get(2).Key != "net.tcp.service[http,{HOST.CONN},{HOST.PORT}]" {
		t.Errorf("keys %q and %q", got, get(2).Key)
	}
	want := &model.Collect{Timeout: 10 * time.Second, HTTP: &model.HTTPRequest{
		URL: "http://10.0.0.1/web", Headers: []model.Pair{{Name: "Authorization", Value: "Bearer t0"}}, Posts: "{not a macro}",
	}}
	if got := get(3).Collect; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %+v", got, got.HTTP)
	}
	if get(4).Enabled || get(5).Enabled {
		t.Error("an item with an unknown macro or a time limit that cannot be is enabled")
	}
	h, _ := snapshot.HostByID(1)
	if h.IPMI.Password != "t0" || h.Interfaces[1].SNMP.Community != "public" {
		t.Errorf("access %+v, %+v", h.IPMI, h.Interfaces[1].SNMP)
	}
}

// An item knows the secret macros of all that it is collected by, so that reasons with their values can be shown with the macros instead.
func TestCollect_secrets(t *testing.T) {
	s := newSource()
	names := []string{"KEY", "PARAMS", "STEP", "FAIL", "URL", "HEADER", "USER", "SNMP", "IPMI", "DELAY", "FORM"}
	for _, n := range names {
		s.global = append(s.global, model.Macro{Name: "{$" + n + "}", Value: "of " + n, Secret: true})
	}
	s.global = append(s.global, model.Macro{Name: "{$OPEN}", Value: "o"})
	item := func(id model.ItemID, kind model.ItemType, i model.Item) model.ItemConfig {
		i.ID, i.HostID, i.Type, i.Enabled = id, 1, kind, true
		if i.Key == "" {
			i.Key = "k" + strconv.Itoa(int(id))
		}
		return model.ItemConfig{Item: i}
	}
	s.put(model.HostConfig{
		Host: model.Host{
			ID: 1, Host: "h", Name: "h", Enabled: true, IPMI: &model.IPMIAccess{Password: "{$IPMI}"},
			Interfaces: []model.Interface{{Type: model.SNMPInterface, Main: true, Address: "10.0.0.1", SNMP: &model.SNMPAccess{Community: "{$SNMP}"}}},
		},
		Items: []model.ItemConfig{
			item(1, model.Trapper, model.Item{Key: "k[{$KEY},{$OPEN}]"}),
			item(2, model.Calculated, model.Item{Params: `last(//k)+{$PARAMS}+{$PARAMS}`}),
			item(3, model.Trapper, model.Item{Steps: []model.Step{{Type: model.StepRegex, Params: []string{"{$STEP}", "{$OPEN}"}, FailValue: "{$FAIL}"}}}),
			item(4, model.HTTPAgent, model.Item{Collect: &model.Collect{
				Username: "{$USER}", HTTP: &model.HTTPRequest{URL: "http://x/{$URL}", Headers: []model.Pair{{Name: "a", Value: "{$HEADER}"}}},
			}}),
			item(5, model.SNMPAgent, model.Item{}),
			item(6, model.Trapper, model.Item{Delay: "{$DELAY}"}),
			item(7, model.WebTest, model.Item{Collect: &model.Collect{Web: &model.WebScenario{
				Steps: []model.WebStep{{Name: "a", TimeoutText: "5s", Form: []model.Pair{{Name: "p", Value: "{$FORM}"}}}},
			}}}),
			item(8, model.Trapper, model.Item{Params: "{$OPEN}"}),
		},
	})
	c := New(s, Options{})
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range [][]string{nil, {"KEY"}, {"PARAMS"}, {"FAIL", "STEP"}, {"USER", "URL", "HEADER"}, {"SNMP", "IPMI"}, {"DELAY"}, {"FORM"}, nil} {
		i, ok := c.Snapshot().Item(model.ItemID(id))
		if !ok {
			continue
		}
		var got []string
		if i.Collect != nil {
			for _, m := range i.Collect.Secrets {
				got = append(got, strings.Trim(m.Name, "{$}"))
				if m.Value != "of "+got[len(got)-1] {
					t.Errorf("item %d: %+v", id, m)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("item %d has the secrets %v, want %v", id, got, want)
		}
	}
	for _, fault := range c.Snapshot().Faults(1) {
		if strings.Contains(fault.Reason, "of ") {
			t.Errorf("a fault shows a secret: %+v", fault)
		}
	}
	if n := len(c.Snapshot().Faults(1)); n != 1 {
		t.Errorf("%d faults, want that of the delay", n)
	}
}

// The value of a secret macro in a key is for who asks for the item; people see the macro. Agents that name the item by what they were asked for, and
// senders that name it as it was written, reach it.
func TestCollect_secretInKey(t *testing.T) {
	s := newSource()
	s.global = []model.Macro{{Name: "{$TOKEN}", Value: "s3cret", Secret: true}, {Name: "{$OPEN}", Value: "o"}}
	item := func(id model.ItemID, key string, kind model.ItemType) model.ItemConfig {
		return model.ItemConfig{Item: model.Item{ID: id, HostID: 1, Key: key, Type: kind, Delay: "1m", Enabled: true}}
	}
	dependent := item(4, "dep", model.Dependent)
	dependent.MasterKey = "a[{$TOKEN},{$OPEN}]"
	expression := `last(/h/a[{$TOKEN},{$OPEN}])="{$TOKEN}" and last(/h/b["{$TOKEN:x}"])>0`
	s.put(model.HostConfig{
		Host: model.Host{ID: 1, Host: "h", Name: "h", Enabled: true, Interfaces: []model.Interface{{Type: model.AgentInterface, Main: true, Address: "10.0.0.1"}}},
		Items: []model.ItemConfig{
			item(1, "a[{$TOKEN},{$OPEN}]", model.ActiveAgent), item(2, `b["{$TOKEN:x}"]`, model.Trapper), item(3, "c[{$TOKEN},{HOST.CONN}]", model.SimpleCheck),
			dependent, item(5, "d[{$OPEN}]", model.Trapper), item(6, "d[s3cret]", model.Trapper), item(7, "d[{$TOKEN}]", model.Trapper), item(8, "e[{$NONE}]", model.Trapper),
		},
		Triggers: []model.Trigger{
			{ID: 1, HostID: 1, Name: "n", Expression: expression, Recovery: "last(/h/d[{$OPEN}])=1", Enabled: true},
			{ID: 2, HostID: 1, Name: "m", Expression: "last(/h/d[{$OPEN}])=1", Enabled: true},
		},
	})
	c := New(s, Options{})
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	snapshot := c.Snapshot()
	f := func(id model.ItemID, shown, asked string, others ...string) {
		t.Helper()
		i, _ := snapshot.Item(id)
		if i.Key != shown || i.CheckKey() != asked {
			t.Errorf("item %d is shown as %q and asked for as %q, want %q and %q", id, i.Key, i.CheckKey(), shown, asked)
		}
		for _, key := range append(others, shown) {
			byBytes, ok := snapshot.ItemByKeyBytes(1, []byte(key))
			if of, has := snapshot.ItemOf("h", key); !ok || byBytes.ID != id || !has || of.ID != id {
				t.Errorf("%q: item %+v, %+v; want %d", key, byBytes, of, id)
			}
		}
	}
	f(1, "a[{$TOKEN},o]", "a[s3cret,o]", "a[s3cret,o]", "a[{$TOKEN},{$OPEN}]")
	f(2, `b["{$TOKEN:x}"]`, `b["s3cret"]`, `b["s3cret"]`)
	f(3, "c[{$TOKEN},{HOST.CONN}]", "c[s3cret,10.0.0.1]")
	f(5, "d[o]", "d[o]", "d[{$OPEN}]")
	f(6, "d[s3cret]", "d[s3cret]")
	f(7, "d[{$TOKEN}]", "d[s3cret]")
	f(8, "e[{$NONE}]", "e[{$NONE}]")
	if _, ok := snapshot.ItemByKey(1, "a[s3cret,o]"); ok {
		t.Error("expressions reach an item by the value of a secret macro in its key")
	}
	if i, _ := snapshot.Item(1); len(i.Collect.KeySecrets) != 1 || i.Collect.KeySecrets[0] != (model.Macro{Name: "{$TOKEN}", Value: "s3cret", Secret: true}) {
		t.Errorf("secret macros of the key: %+v", i.Collect.KeySecrets)
	}
	if i, _ := snapshot.Item(4); i.MasterID != 1 || !i.Enabled {
		t.Errorf("the dependent item %+v has not its master", i)
	}
	for _, fault := range snapshot.Faults(1) {
		if fault.Object != "e[{$NONE}]" || fault.Reason != "macro {$NONE} is not defined" {
			t.Errorf("fault %+v", fault)
		}
	}
	trigger, _ := snapshot.Trigger(1)
	if want := `last(/h/a[{$TOKEN},o])="s3cret" and last(/h/b["{$TOKEN:x}"])>0`; trigger.Expression != want {
		t.Errorf("expression %q, want %q", trigger.Expression, want)
	}
	shown, recovery := trigger.Shown()
	if want := `last(/h/a[{$TOKEN},o])="{$TOKEN}" and last(/h/b["{$TOKEN:x}"])>0`; shown != want || recovery != "last(/h/d[o])=1" {
		t.Errorf("shown are %q and %q, want %q", shown, recovery, want)
	}
	if trigger, _ = snapshot.Trigger(2); trigger.ShownExpression != "" || trigger.ShownRecovery != "" {
		t.Errorf("an expression without secrets is kept twice: %+v", trigger)
	}
}
