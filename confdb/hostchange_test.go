package confdb

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tidemark/model"
)

const twoTemplates = `zabbix_export: {version: '7.0', templates: [{template: A, items: [{key: a, type: TRAP}]}, {template: B, items: [{key: b, type: TRAP}]}]}`

func TestChangeHost(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	if _, err := d.Import(ctx, "file", []byte(twoTemplates), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := model.Interface{Type: model.AgentInterface, Main: true, IP: "10.0.0.7", Address: "10.0.0.7", Port: "10050"}
	snmp := model.Interface{Type: model.SNMPInterface, IP: "10.0.0.7", Address: "10.0.0.7", Port: "161", SNMP: &model.SNMPAccess{Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthProtocol: "SHA256", AuthPassphrase: "{$P}", PrivProtocol: "AES128", PrivPassphrase: "{$P}"}}
	off := false
	change := &model.HostChange{
		Make: true, Host: "r1", Name: "Router 1", LinkTemplates: []string{"A", "B", "Nowhere"}, AddGroups: []string{"Routers", "All"}, Enabled: &off, InventoryMode: "AUTOMATIC",
		Tags: []model.Tag{{Name: "site", Value: "hq"}}, Interfaces: []model.Interface{agent, snmp},
	}
	did, err := d.ChangeHost(ctx, change)
	if err != nil || !did.Made || did.Host != "r1" || !slices.Equal(did.Missing, []string{"Nowhere"}) {
		t.Fatalf("%+v %v", did, err)
	}
	h := hosts(t, d)["r1"]
	if h.Host.Name != "Router 1" || h.Host.Enabled || !h.Host.AutomaticInventory || len(h.Host.Templates) != 2 || len(h.Items) != 2 || !slices.Equal(h.Host.Groups, []string{"All", "Routers"}) || h.Host.Tags[0].Value != "hq" {
		t.Errorf("%+v", h.Host)
	}
	if i := h.Host.Interfaces; len(i) != 2 || i[0].Address != "10.0.0.7" || !i[0].Main || i[1].Type != model.SNMPInterface || !i[1].Main || i[1].SNMP.PrivProtocol != "AES128" || i[1].SNMP.SecurityName != "u" {
		t.Errorf("%+v", i)
	}
	// The same again writes nothing.
	again := *change
	again.HostID = did.HostID
	before, _, _, _ := d.Changes(ctx, 0)
	if did, err := d.ChangeHost(ctx, &again); err != nil || did.Made {
		t.Errorf("%+v %v", did, err)
	}
	if after, _, _, _ := d.Changes(ctx, 0); after != before {
		t.Errorf("the same again makes revision %d of %d", after, before)
	}
	// Names that are taken get a number.
	if did, err := d.ChangeHost(ctx, &model.HostChange{Make: true, Host: "r1", Name: "Router 1"}); err != nil || did.Host != "r1_2" {
		t.Errorf("%+v %v", did, err)
	}
	if h := hosts(t, d)["r1_2"]; h.Host.Name != "Router 1_2" || !slices.Equal(h.Host.Groups, []string{DiscoveredGroup}) {
		t.Errorf("%+v", h.Host)
	}
	on := true
	_, err = d.ChangeHost(ctx, &model.HostChange{HostID: did.HostID, Enabled: &on, DropTemplates: []string{"A"}, RemoveGroups: []string{"All", "Routers"}})
	if h = hosts(t, d)["r1"]; err != nil || !h.Host.Enabled || len(h.Items) != 1 || len(h.Host.Groups) != 1 {
		t.Errorf("%+v %v", h.Host, err)
	}
	if did, err := d.ChangeHost(ctx, &model.HostChange{HostID: did.HostID, Delete: true}); err != nil || !did.Deleted || hosts(t, d)["r1"] != nil {
		t.Errorf("%+v %v", did, err)
	}
	if _, err := d.ChangeHost(ctx, &model.HostChange{HostID: did.HostID}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a host that is gone: %v", err)
	}
	if _, err := d.ChangeHost(ctx, &model.HostChange{Make: true, Host: "ä"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad name: %v", err)
	}
}

func TestRegister_actions(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	if _, err := d.Import(ctx, "file", []byte(twoTemplates), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	f := func(metadata string, change *model.HostChange, made bool, groups, keys []string) {
		t.Helper()
		did, err := d.Register(ctx, Registration{Host: "a", Metadata: metadata, Interfaces: []Interface{{IP: "10.0.0.1"}}, Change: change})
		if err != nil || did.Made != made {
			t.Fatalf("%+v %v", did, err)
		}
		h := hosts(t, d)["a"]
		var have []string
		for _, i := range h.Items {
			have = append(have, i.Key)
		}
		if !slices.Equal(h.Host.Groups, groups) || !slices.Equal(have, keys) || h.Host.Metadata != metadata || len(h.Host.Interfaces) != 1 {
			t.Errorf("%v %v %+v", h.Host.Groups, have, h.Host)
		}
	}
	f("Linux", &model.HostChange{LinkTemplates: []string{"A"}}, true, []string{RegisteredGroup}, []string{"a"})
	f("Linux", &model.HostChange{LinkTemplates: []string{"B"}}, false, []string{RegisteredGroup}, []string{"a"}) // nothing new
	f("Linux db", &model.HostChange{LinkTemplates: []string{"B"}, AddGroups: []string{"DB"}}, false, []string{"DB", RegisteredGroup}, []string{"a", "b"})
}

func TestNetHosts(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	rule := model.AlertObject{Kind: "rule", Name: "r", Body: []byte(`{"name":"r","community":"hush"}`)}
	if err := d.PutDiscoveryObjects(ctx, []model.AlertObject{rule, {Kind: "action", Name: "a", Body: []byte("{}")}}, nil); err != nil {
		t.Fatal(err)
	}
	list, err := d.DiscoveryObjects(ctx)
	if err != nil || len(list) != 2 || string(list[1].Body) != string(rule.Body) {
		t.Errorf("%v %v", list, err)
	}
	var raw string
	if err := d.sql.QueryRowContext(ctx, "SELECT body FROM discovery_objects WHERE kind = 'rule'").Scan(&raw); err != nil || raw[:7] != "sealed:" {
		t.Errorf("stored as %q, %v", raw, err)
	}
	did, err := d.ChangeHost(ctx, &model.HostChange{Make: true, Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	up := model.NetHost{Rule: "r", Ident: "10.0.0.1", HostID: did.HostID, Up: true, ChangedAt: 5, Services: []model.NetService{{IP: "10.0.0.1", Check: "ssh", Port: 22, Up: true, ChangedAt: 5, Value: "v"}}}
	down := model.NetHost{Rule: "r", Ident: "10.0.0.2", ChangedAt: 6}
	for _, h := range []*model.NetHost{&up, &down, {Rule: "gone", Ident: "x"}} {
		if _, err := d.RecordNetHost(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.EndNetScan(ctx, "r", 9, 6); err != nil {
		t.Fatal(err)
	}
	found, at, err := d.NetHosts(ctx, "r")
	if err != nil || at != 9 || len(found) != 2 || found[0].HostID != did.HostID || found[0].Services[0] != up.Services[0] || found[1].Up {
		t.Errorf("%+v %d %v", found, at, err)
	}
	// The host goes, what was found stays; what is down goes at last, and all with its rule.
	if err := d.DeleteHost(ctx, did.HostID); err != nil {
		t.Fatal(err)
	}
	if err := d.EndNetScan(ctx, "r", 10, 7); err != nil {
		t.Fatal(err)
	}
	if found, _, err = d.NetHosts(ctx, "r"); err != nil || len(found) != 1 || found[0].HostID != 0 {
		t.Errorf("%+v %v", found, err)
	}
	if err := d.PutDiscoveryObjects(ctx, nil, []model.AlertObject{rule}); err != nil {
		t.Fatal(err)
	}
	if found, at, err = d.NetHosts(ctx, "r"); err != nil || len(found) != 0 || at != 0 {
		t.Errorf("%+v %d %v", found, at, err)
	}
	if found, _, _ := d.NetHosts(ctx, "gone"); len(found) != 0 {
		t.Errorf("a rule that is not there found %+v", found)
	}
}
