package proxyconfig

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

func testConfiguration() *Configuration {
	host := &model.Host{
		ID: 7, Host: "db1", Name: "Database", Interfaces: []model.Interface{
			{Type: model.AgentInterface, Main: true, Ref: "if1", Address: "10.0.0.1", IP: "10.0.0.1", Port: "10050"},
			{Type: model.SNMPInterface, Main: true, Ref: "if2", Address: "db1", DNS: "db1", Port: "161", SNMP: &model.SNMPAccess{
				Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthProtocol: "SHA1", AuthPassphrase: "a", PrivProtocol: "AES128", PrivPassphrase: "p",
			}},
		},
	}
	items := []*model.Item{
		{ID: 3, HostID: 7, Type: model.Dependent, Key: "dep", ValueType: model.Text, MasterID: 2, Steps: []model.Step{
			{Type: model.StepRegex, Params: []string{"a", `\1`}, OnFail: model.FailSetValue, FailValue: "x"},
		}},
		{ID: 2, HostID: 7, Type: model.HTTPAgent, Key: "web", ValueType: model.Text, Delay: "30s", Collect: &model.Collect{
			Timeout: 5 * time.Second, AuthType: "BASIC", Username: "u", Password: "p", HTTP: &model.HTTPRequest{
				URL: "http://x/", Query: []model.Pair{{Name: "a", Value: "1"}}, Headers: []model.Pair{{Name: "H", Value: "v"}}, Method: "POST", PostType: "JSON",
				Posts: "{}", StatusCodes: "200", Retrieve: "BOTH", VerifyPeer: true,
			},
		}},
		{ID: 4, HostID: 7, Type: model.SNMPAgent, Key: "snmp", ValueType: model.Uint, Delay: "1m", RuleID: 0, Collect: &model.Collect{SNMPOID: "1.3.6"}},
		{ID: 5, HostID: 7, Type: model.Trapper, Key: "rule", ValueType: model.Text, RuleID: 9},
	}
	return &Configuration{Hosts: []Host{{Host: host, Items: items, TLS: model.HostTLS{Connect: model.PSK, Accept: model.PSK, Identity: "i", Key: model.Secret("0123456789abcdef")}}}}
}

// cellOf finds a column of the row with the id.
func cellOf(t *testing.T, body []byte, name string, id float64, column string) any {
	t.Helper()
	var all map[string]table
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(all[name].Fields, column)
	if at < 0 {
		t.Fatalf("table %s has no column %s", name, column)
	}
	for _, row := range all[name].Data {
		if len(row) != len(all[name].Fields) {
			t.Fatalf("table %s: %d columns in a row, %d fields", name, len(row), len(all[name].Fields))
		}
		if row[0] == id {
			return row[at]
		}
	}
	t.Errorf("table %s has no row %v", name, id)
	return nil
}

func TestEncode(t *testing.T) {
	body, err := Encode(nil, testConfiguration(), func(id model.ItemID) (uint64, uint64) { return uint64(id) * 10, 1 })
	if err != nil {
		t.Fatal(err)
	}
	f := func(table string, id float64, column string, want any) {
		t.Helper()
		if got := cellOf(t, body, table, id, column); got != want {
			t.Errorf("%s %v %s: %v, want %v", table, id, column, got, want)
		}
	}
	f("hosts", 7, "host", "db1")
	f("hosts", 7, "tls_connect", 2.0)
	f("hosts", 7, "tls_psk", "30313233343536373839616263646566")
	f("interface", 7001, "useip", 1.0)
	f("interface", 7002, "useip", 0.0)
	f("interface_snmp", 7002, "privprotocol", 1.0)
	f("items", 3, "master_itemid", 2.0)
	f("items", 2, "interfaceid", 7001.0)
	f("items", 4, "interfaceid", 7002.0)
	f("items", 2, "query_fields", `[{"a":"1"}]`)
	f("items", 2, "timeout", "5s")
	f("items", 2, "request_method", 1.0)
	f("items", 5, "flags", 1.0)
	f("items", 5, "delay", "0")
	f("item_rtdata", 4, "lastlogsize", 40.0)
	f("item_preproc", 3001, "params", "a\n\\1")
	f("item_preproc", 3001, "error_handler", 2.0)
	f("config", 1, "autoreg_tls_accept", 1.0)
	// Rows refer to earlier ones only.
	order := []string{`"hosts":`, `"interface":`, `"interface_snmp":`, `"items":`, `"item_rtdata":`, `"hstgrp":`, `"config":`}
	at := -1
	for _, name := range order {
		n := strings.Index(string(body), name)
		if n <= at {
			t.Errorf("table %s is not behind those before it", name)
		}
		at = n
	}
	if items := string(body[strings.Index(string(body), `"items":`):]); strings.Index(items, "[2,19,") > strings.Index(items, "[3,18,") {
		t.Error("the dependent item stands before its master")
	}
}

func TestInterfaceID(t *testing.T) {
	for _, at := range []struct {
		host model.HostID
		n    int
	}{{1, 0}, {1, 998}, {123456, 5}} {
		if host, n := OfInterfaceID(InterfaceID(at.host, at.n)); host != at.host || n != at.n {
			t.Errorf("interface %d of host %d becomes %d of %d", at.n, at.host, n, host)
		}
	}
	if host, _ := OfInterfaceID(0); host != 0 {
		t.Errorf("interface 0 is of host %d", host)
	}
}

// A key with secret macros goes as people see it, with the macros beside it, each once for a host.
func TestEncode_secretInKey(t *testing.T) {
	c := testConfiguration()
	secret := model.Macro{Name: "{$S}", Value: "s3cret", Secret: true}
	for id := range model.ItemID(2) {
		c.Hosts[0].Items = append(c.Hosts[0].Items, &model.Item{
			ID: 20 + id, HostID: 7, Type: model.Trapper, Key: "a[{$S},{HOST.CONN}]", ValueType: model.Uint, Delay: "1m",
			Collect: &model.Collect{Key: "a[s3cret,10.0.0.1]", KeySecrets: []model.Macro{secret}},
		})
	}
	body, err := Encode(nil, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key := cellOf(t, body, "items", 20, "key_"); key != "a[{$S},{HOST.CONN}]" {
		t.Errorf("key %v", key)
	}
	got, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	if macros := got.Hosts[0].Host.Macros; !slices.Equal(macros, []model.Macro{secret}) {
		t.Errorf("macros %+v, want %+v", macros, secret)
	}
}
