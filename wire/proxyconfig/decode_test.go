package proxyconfig

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"tidemark/model"
)

// What a server encodes is what a proxy decodes.
func TestDecode(t *testing.T) {
	sent := testConfiguration()
	sent.Regexps = []model.GlobalRegexp{
		{Name: "Errors", Expressions: []model.GlobalExpression{
			{Expression: "a,b", Type: model.AnyIncluded, Delimiter: ","}, {Expression: "^x", Type: model.ResultFalse, Delimiter: ",", CaseSensitive: true},
		}},
		{Name: "Other", Expressions: []model.GlobalExpression{{Expression: "y", Type: model.Included, Delimiter: ","}}},
	}
	sent.Discovery = []Rule{{ID: 1 << 60, Name: "Office", Ranges: "10.0.0.0/24", Delay: "60", Checks: []Check{
		{ID: 9, Type: "tcp", Ports: "22,80-90"},
		{ID: 10, Type: "icmp"},
		{ID: 11, Type: "agent", Key: "system.uname", Ports: "10050"},
		{ID: 12, Type: "snmp", Key: "1.3.6", Ports: "161", SNMP: &model.SNMPAccess{
			Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthProtocol: "SHA512", AuthPassphrase: "a", PrivProtocol: "AES256C", PrivPassphrase: "p", Context: "c",
		}},
	}}}
	body, err := Encode(nil, sent, func(id model.ItemID) (uint64, uint64) { return uint64(id) * 10, 1 })
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(body)
	if err != nil || len(got.Hosts) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !reflect.DeepEqual(got.Regexps, sent.Regexps) {
		t.Errorf("global regular expressions %+v", got.Regexps)
	}
	if !reflect.DeepEqual(got.Discovery, sent.Discovery) {
		t.Errorf("rules of network discovery %+v", got.Discovery)
	}
	h := got.Hosts[0]
	if h.Host.Host != "db1" || h.Host.Name != "Database" || !h.Host.Enabled || len(h.Host.Interfaces) != 2 || h.Host.IPMI != nil {
		t.Errorf("host %+v", h.Host)
	}
	for i, want := range sent.Hosts[0].Interfaces {
		have := h.Host.Interfaces[i]
		want.Ref = have.Ref
		if !reflect.DeepEqual(have, want) {
			t.Errorf("interface %d is %+v with %+v, want %+v with %+v", i, have, have.SNMP, want, want.SNMP)
		}
	}
	if ids := got.Interfaces[7]; !reflect.DeepEqual(ids, []uint64{7001, 7002}) {
		t.Errorf("ids of interfaces %v", ids)
	}
	if !reflect.DeepEqual(got.TLS, []model.HostTLS{{HostID: 7, Connect: model.PSK, Accept: model.PSK, Identity: "i", Key: model.Secret("0123456789abcdef")}}) {
		t.Errorf("TLS settings %+v", got.TLS)
	}
	items := map[string]model.ItemConfig{}
	for _, i := range h.Items {
		items[i.Key] = i
	}
	if i := items["dep"]; i.MasterKey != "web" || !reflect.DeepEqual(i.Steps, sent.Hosts[0].Items[0].Steps) {
		t.Errorf("dependent item %+v", i)
	}
	web, want := items["web"], *sent.Hosts[0].Items[1].Collect
	want.Timeout, want.InterfaceRef, want.HTTP.FollowRedirects = 0, "7001", false
	if web.TimeoutText != "5s" || !reflect.DeepEqual(*web.Collect, want) {
		t.Errorf("HTTP item %+v, %+v, want %+v", web.Collect, web.Collect.HTTP, want)
	}
	if i := items["snmp"]; i.Collect.SNMPOID != "1.3.6" || i.Collect.InterfaceRef != "7002" || i.TimeoutText != "" {
		t.Errorf("SNMP item %+v", i)
	}
	if i := items["rule"]; i.ValueType != model.Binary || !got.Rules[i.ID] {
		t.Errorf("item of a rule %+v", i)
	}
	if got.Logs[4] != (LogPosition{40, 1}) {
		t.Errorf("positions of logs %+v", got.Logs)
	}
}

// zabbixTables are as a server of Zabbix sends them: macros unexpanded, templates beside hosts, steps in any order.
const zabbixTables = `{"globalmacro":{"fields":["globalmacroid","macro","value"],"data":[[1,"{$G}","g"]]},
"hosts":{"fields":["hostid","host","status","name","tls_connect","tls_accept","tls_psk_identity","tls_psk"],
"data":[[10,"h1",0,"Host 1",1,3,"id","00112233445566778899aabbccddeeff"],[20,"T1",3,"T1",1,1,"",""],[21,"T0",3,"T0",1,1,"",""]]},
"hosts_templates":{"fields":["hosttemplateid","hostid","templateid"],"data":[[1,10,20],[2,20,21]]},
"hostmacro":{"fields":["hostmacroid","hostid","macro","value"],"data":[[1,21,"{$M}","far"],[2,20,"{$M}","near"],[3,10,"{$H}","own"]]},
"interface":{"fields":["interfaceid","hostid","main","type","useip","ip","dns","port"],"data":[[5,10,1,1,1,"127.0.0.1","","{$PORT}"]]},
"items":{"fields":["itemid","type","hostid","key_","delay","status","value_type","flags","interfaceid","master_itemid","timeout"],
"data":[[100,2,10,"trap[{$M}]","0",0,4,0,null,null,"3s"],[101,18,10,"rule","0",0,4,1,null,100,"3s"],[102,0,10,"proto","1m",0,3,2,5,null,"3s"]]},
"item_preproc":{"fields":["item_preprocid","itemid","step","type","params","error_handler","error_handler_params"],
"data":[[1,100,2,21,"return 1;\nx",0,""],[2,100,1,5,"a\nb",1,""]]},
"config":{"fields":["configid","autoreg_tls_accept"],"data":[[1,2]]},
"config_autoreg_tls":{"fields":["autoreg_tlsid","tls_psk_identity","tls_psk"],"data":[[1,"new","00112233445566778899aabbccddeeff"]]},
"drules":{"fields":["druleid","name","iprange","delay"],"data":[[1,"Office","10.0.0.1-9","{$D}"]]},
"dchecks":{"fields":["dcheckid","druleid","type","key_","snmp_community","ports","uniq"],"data":[[5,1,12,"","","0",0],[6,1,11,"1.3.6","{$C}","161",1],[7,9,8,"","","22",0],[8,1,99,"","","1",0]]}}`

func TestDecode_zabbix(t *testing.T) {
	got, err := Decode([]byte(zabbixTables))
	if err != nil || len(got.Hosts) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	h := got.Hosts[0]
	if want := []model.Macro{{Name: "{$M}", Value: "near"}, {Name: "{$M}", Value: "far"}}; !reflect.DeepEqual(h.TemplateMacros, want) {
		t.Errorf("macros of templates %+v, want %+v", h.TemplateMacros, want)
	}
	if len(h.Host.Macros) != 1 || len(got.Global) != 1 || len(h.Items) != 2 {
		t.Errorf("%+v", got)
	}
	want := []Rule{{ID: 1, Name: "Office", Ranges: "10.0.0.1-9", Delay: "{$D}", Checks: []Check{
		{ID: 5, Type: "icmp"},
		{ID: 6, Type: "snmp", Key: "1.3.6", Ports: "161", Unique: true, SNMP: &model.SNMPAccess{Version: "SNMPV2", Community: "{$C}", SecurityLevel: "NOAUTHNOPRIV", AuthProtocol: "MD5", PrivProtocol: "DES"}},
		{ID: 8, Type: "99", Ports: "1"},
	}}}
	if !reflect.DeepEqual(got.Discovery, want) {
		t.Errorf("rules of network discovery %+v", got.Discovery)
	}
	steps := h.Items[0].Steps
	if len(steps) != 2 || len(steps[0].Params) != 2 || steps[0].OnFail != model.FailDiscard || !reflect.DeepEqual(steps[1].Params, []string{"return 1;\nx"}) {
		t.Errorf("steps %+v", steps)
	}
	if h.Items[1].MasterKey != "trap[{$M}]" || !got.Rules[101] {
		t.Errorf("rule %+v", h.Items[1])
	}
	if len(got.TLS) != 2 || got.TLS[1].HostID != 0 || got.TLS[1].Accept != model.PSK || len(got.TLS[1].Key) != 16 {
		t.Errorf("TLS settings %+v", got.TLS)
	}
}

func TestDecode_errors(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if _, err := Decode([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	f(`[`, "read the configuration")
	f(`{"response":"failed","info":"proxy \"x\" not found"}`, `proxy "x" not found`)
	f(`{}`, "no table of hosts")
	f(`{"hosts":{"fields":["hostid","host"],"data":[[1]]}}`, "1 columns, expected 2")
	f(`{"hosts":{"fields":["hostid","host"],"data":[[0,"a"]]}}`, "expected an id")
	f(`{"hosts":{"fields":["hostid","host"],"data":[[1,"a"],[1,"b"]]}}`, "twice")
	f(`{"hosts":{"fields":["hostid","host"],"data":[[1,{}]]}}`, "expected a number or a text")
	f(`{"hosts":{"fields":["hostid","host"],"data":[[1,"a"]]},"items":{"fields":["itemid","hostid","value_type"],"data":[[1,1,9]]}}`, "values of type 9")
	var refused *RefusedError
	if _, err := Decode([]byte(`{"response":"failed","info":"no"}`)); !errors.As(err, &refused) || refused.Info != "no" {
		t.Errorf("a refusal is %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(zabbixTables))
	body, err := Encode(nil, testConfiguration(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	web, _ := webConfiguration()
	if body, err = Encode(nil, web, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"hosts":{"fields":null,"data":[[]]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Decode(body)
		if (got == nil) == (err == nil) {
			t.Errorf("%v, %v", got, err)
		}
		if err != nil {
			return
		}
		ids := map[model.ItemID]bool{}
		for _, h := range got.Hosts {
			for _, i := range h.Items {
				if i.ID == 0 || ids[i.ID] || i.HostID != h.Host.ID || i.Collect == nil {
					t.Errorf("item %+v of host %d", i.Item, h.Host.ID)
				}
				ids[i.ID] = true
			}
		}
	})
}
