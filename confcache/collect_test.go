package confcache

import (
	"reflect"
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
