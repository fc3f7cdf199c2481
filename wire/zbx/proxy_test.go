package zbx

import (
	"slices"
	"testing"
)

// What a proxy encodes is what a server decodes.
func TestProxyRequest(t *testing.T) {
	p := ProxyRequest{Name: ProxyData, Host: "p", Session: "0123456789abcdef0123456789abcdef", Version: "6.0.0"}
	b := p.Begin(nil)
	b = p.AddInterface(b, 7, 2, "no \"route\"")
	b = p.AddInterface(b, 8, 1, "")
	b = p.Add(b, &Row{Has: HasItemID | HasClock | HasNS | HasValue, ID: 5, ItemID: 3, Clock: 9, NS: 1, Value: []byte("v")})
	b = p.Add(b, &Row{Has: HasItemID | HasLastLogSize | HasMTime, ID: 6, ItemID: 3, LastLogSize: 44, MTime: 2})
	found := []ProxyFind{
		{At: 8, Rule: 1 << 60, Check: 77, IP: "10.0.0.1", DNS: "a", Port: 22, Value: "\"v\""},
		{At: 8, Rule: 1 << 60, Check: 78, IP: "10.0.0.1", DNS: "a", Down: true},
		{At: 9, Rule: 1 << 60, IP: "10.0.0.1", DNS: "a"},
	}
	for i := range found {
		b = p.AddFind(b, &found[i])
	}
	b = p.AddAgent(b, &ProxiedAgent{At: 10, Host: "new", IP: "127.0.0.1", Port: 10050, Metadata: "Linux", Connection: 2})
	b = p.End(b, 12_000_000_003, true)
	want := `{"request":"proxy data","host":"p","session":"0123456789abcdef0123456789abcdef",` +
		`"interface availability":[{"interfaceid":7,"available":2,"error":"no \"route\""},{"interfaceid":8,"available":1,"error":""}],` +
		`"history data":[{"id":5,"itemid":3,"value":"v","clock":9,"ns":1},{"id":6,"itemid":3,"lastlogsize":44,"mtime":2}],` +
		`"discovery data":[{"clock":8,"drule":1152921504606846976,"dcheck":77,"ip":"10.0.0.1","dns":"a","port":22,"value":"\"v\""},` +
		`{"clock":8,"drule":1152921504606846976,"dcheck":78,"ip":"10.0.0.1","dns":"a","status":1},{"clock":9,"drule":1152921504606846976,"dcheck":null,"ip":"10.0.0.1","dns":"a"}],` +
		`"auto registration":[{"clock":10,"host":"new","ip":"127.0.0.1","dns":"","port":"10050","host_metadata":"Linux","flags":0,"tls_accepted":2}],` +
		`"version":"6.0.0","more":1,"clock":12,"ns":3}`
	if string(b) != want {
		t.Fatalf("found\n%s\nwant\n%s", b, want)
	}
	r, err := DecodeRequest(b)
	if err != nil || r.More != 1 || r.Clock != 12 || r.History == nil || r.Availability == nil || r.Registrations == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if list, err := DecodeFinds(r.Finds, 3); err != nil || !slices.Equal(list, found) {
		t.Errorf("found %+v, %v", list, err)
	}
	if _, err := DecodeFinds(r.Finds, 2); err == nil {
		t.Error("more rows than the limit are read")
	}
	if list, err := DecodeFinds([]byte(`[{"clock":"8","drule":"3","dcheck":null,"ip":"::1","port":"22","status":"1"}]`), 9); err != nil || list[0] != (ProxyFind{At: 8, Rule: 3, IP: "::1", Port: 22, Down: true}) {
		t.Errorf("texts for numbers: %+v, %v", list, err)
	}
	p.Name = ProxyConfig
	if b := p.End(p.Begin(nil), 1, false); string(b) != `{"request":"proxy config","host":"p","session":"0123456789abcdef0123456789abcdef","version":"6.0.0"}` {
		t.Errorf("%s", b)
	}
}

func FuzzDecodeFinds(f *testing.F) {
	f.Add([]byte(`[{"clock":8,"drule":3,"dcheck":4,"ip":"10.0.0.1","dns":"","port":22,"value":"x","status":1},{"clock":8,"drule":3,"ip":"10.0.0.1"}]`))
	f.Add([]byte(`[null,{"port":"99999999999999999999"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := DecodeFinds(text, 5)
		if len(list) > 5 || err != nil && list != nil {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
