package confdb

import (
	"reflect"
	"testing"

	"tidemark/model"
)

func TestItemExtras(t *testing.T) {
	f := func(kind model.ItemType, extra string, want model.ItemConfig) {
		t.Helper()
		fields := itemFields{kind: kind, extra: extra}
		var got model.ItemConfig
		if err := fields.extras(&got); err != nil {
			t.Errorf("%s: %v", extra, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %+v, want %+v %+v", extra, got, got.Collect, want, want.Collect)
		}
	}
	f(model.PassiveAgent, "", model.ItemConfig{})
	f(model.PassiveAgent, `{"inventory_link":"OS"}`, model.ItemConfig{})
	f(model.PassiveAgent, `{"interface_ref":"if2","timeout":"10s"}`, model.ItemConfig{Item: model.Item{Collect: &model.Collect{InterfaceRef: "if2"}}, TimeoutText: "10s"})
	f(model.Calculated, `{"params":"last(//a)"}`, model.ItemConfig{Item: model.Item{Params: "last(//a)"}})
	f(model.Dependent, `{"master_item":{"key":"m"}}`, model.ItemConfig{MasterKey: "m"})
	f(model.SNMPAgent, `{"snmp_oid":"walk[1.3]"}`, model.ItemConfig{Item: model.Item{Collect: &model.Collect{SNMPOID: "walk[1.3]"}}})
	f(model.Script, `{"params":"return 1","parameters":[{"name":"a","value":"b"}]}`, model.ItemConfig{Item: model.Item{
		Params: "return 1", Collect: &model.Collect{Parameters: []model.Pair{{Name: "a", Value: "b"}}},
	}})
	defaults := &model.HTTPRequest{Method: "GET", PostType: "RAW", StatusCodes: "200", FollowRedirects: true, Retrieve: "BODY"}
	f(model.HTTPAgent, "", model.ItemConfig{Item: model.Item{Collect: &model.Collect{HTTP: defaults}}})
	f(model.HTTPAgent, `{"url":"http://a","status_codes":"","follow_redirects":"NO","allow_traps":"YES","headers":[{"name":"A","value":"b"}],"verify_peer":"YES","authtype":"BASIC","username":"u","password":"p"}`,
		model.ItemConfig{Item: model.Item{Trapping: true, Collect: &model.Collect{AuthType: "BASIC", Username: "u", Password: "p", HTTP: &model.HTTPRequest{
			URL: "http://a", Method: "GET", PostType: "RAW", Retrieve: "BODY", Headers: []model.Pair{{Name: "A", Value: "b"}}, VerifyPeer: true,
		}}}})
	var i model.ItemConfig
	if err := (&itemFields{kind: model.HTTPAgent, extra: `{"headers":"x"}`}).extras(&i); err == nil {
		t.Error("headers that are no list are taken")
	}
}

func TestUnpackInterfaces_access(t *testing.T) {
	got, err := unpackInterfaces(`{"interfaces":[{"type":"SNMP","ip":"10.0.0.1","dns":"sw","port":"1161","interface_ref":"if1",
		"details":{"version":"SNMPV3","securityname":"u","securitylevel":"AUTHPRIV","authprotocol":"SHA256","authpassphrase":"a","privpassphrase":"b","bulk":"NO","max_repetitions":"25"}},
		{"type":"SNMP","ip":"10.0.0.1","default":"NO","details":{"community":"c"}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Interface{
		{Type: model.SNMPInterface, Main: true, Ref: "if1", Address: "10.0.0.1", IP: "10.0.0.1", DNS: "sw", Port: "1161", SNMP: &model.SNMPAccess{
			Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthProtocol: "SHA256", AuthPassphrase: "a", PrivProtocol: "DES", PrivPassphrase: "b", Single: true, MaxRepetitions: 25,
		}},
		{Type: model.SNMPInterface, Address: "10.0.0.1", IP: "10.0.0.1", Port: "161", SNMP: &model.SNMPAccess{
			Version: "SNMPV2", Community: "c", SecurityLevel: "NOAUTHNOPRIV", AuthProtocol: "MD5", PrivProtocol: "DES",
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	access, err := unpackIPMI(`{"ipmi_username":"admin","ipmi_password":"x","inventory_mode":"AUTOMATIC"}`)
	if err != nil || !reflect.DeepEqual(access, &model.IPMIAccess{Username: "admin", Password: "x"}) {
		t.Errorf("%+v, %v", access, err)
	}
	if access, err := unpackIPMI(`{"inventory_mode":"AUTOMATIC"}`); access != nil || err != nil {
		t.Errorf("%+v, %v", access, err)
	}
}
