package snmptrap

import (
	"context"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"tidemark/model"
)

// sink keeps what comes.
type sink struct {
	mu   sync.Mutex
	rows map[model.ItemID][]string
}

func (s *sink) Put(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range b.Items {
		s.rows[id] = append(s.rows[id], string(b.Bytes(i)))
	}
	b.Finish(nil)
	b.Free()
	return nil
}

func (s *sink) wait(t *testing.T, id model.ItemID, n int) []string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		rows := s.rows[id]
		s.mu.Unlock()
		if len(rows) >= n {
			return rows
		}
		select {
		case <-deadline:
			t.Fatalf("item %d has %d traps, want %d", id, len(rows), n)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestListener(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{rows: map[model.ItemID][]string{}}
	l := New(Options{Sink: s})
	home := netip.MustParseAddr("127.0.0.1")
	three := model.SNMPAccess{Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthProtocol: "SHA256", AuthPassphrase: "authpassphrase", PrivProtocol: "AES128", PrivPassphrase: "privpassphrase"}
	l.Apply([]Target{
		{Address: home, Access: model.SNMPAccess{Version: "SNMPV2", Community: "public"}, Items: []Item{{ID: 1, Matcher: regexp.MustCompile("linkDown")}, {ID: 2, Matcher: regexp.MustCompile("2c")}}, Fallback: 3},
		{Address: home, Access: three, Items: []Item{{ID: 4}}},
		{Address: netip.MustParseAddr("10.0.0.1"), Access: model.SNMPAccess{Version: "SNMPV2", Community: "public"}, Items: []Item{{ID: 5}}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, socket) }()
	at := socket.LocalAddr().(*net.UDPAddr)
	sender := func(change func(*gosnmp.GoSNMP)) *gosnmp.GoSNMP {
		g := &gosnmp.GoSNMP{Target: "127.0.0.1", Port: uint16(at.Port), Community: "public", Version: gosnmp.Version2c, Timeout: time.Minute}
		change(g)
		if err := g.Connect(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		return g
	}
	trap := gosnmp.SnmpTrap{Variables: []gosnmp.SnmpPDU{
		{Name: ".1.3.6.1.6.3.1.1.4.1.0", Type: gosnmp.ObjectIdentifier, Value: ".1.3.6.1.6.3.1.1.5.3"},
		{Name: ".1.3.6.1.2.1.2.2.1.2.3", Type: gosnmp.OctetString, Value: "linkDown"},
	}}
	send := func(g *gosnmp.GoSNMP, trap gosnmp.SnmpTrap) {
		t.Helper()
		if _, err := g.SendTrap(trap); err != nil {
			t.Fatal(err)
		}
	}
	// Refused ones first: what comes behind them shows that they were passed over.
	send(sender(func(g *gosnmp.GoSNMP) { g.Community = "wrong" }), trap)
	plain := sender(func(*gosnmp.GoSNMP) {})
	if _, err := plain.Conn.Write([]byte("no trap")); err != nil {
		t.Fatal(err)
	}
	send(plain, trap)
	got := s.wait(t, 1, 1)[0]
	for _, want := range []string{"ZBXTRAP 127.0.0.1", "notificationtype               TRAP", "version                        2c", ".1.3.6.1.6.3.1.1.4.1.0", "type=6   value=OID: .1.3.6.1.6.3.1.1.5.3", `value=STRING: "linkDown"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	s.wait(t, 2, 1)
	inform := trap
	inform.IsInform = true
	send(plain, inform) // It waits for the answer.
	s.wait(t, 1, 2)
	one := sender(func(g *gosnmp.GoSNMP) { g.Version = gosnmp.Version1 })
	send(one, gosnmp.SnmpTrap{Enterprise: ".1.3.6.1.4.1.8072", AgentAddress: "127.0.0.1", GenericTrap: 6, SpecificTrap: 17, Variables: trap.Variables[:1]})
	if got := s.wait(t, 3, 1)[0]; !strings.Contains(got, "specifictrap                   17") {
		t.Errorf("version 1: %s", got)
	}
	secure := sender(func(g *gosnmp.GoSNMP) {
		g.Version, g.SecurityModel, g.MsgFlags = gosnmp.Version3, gosnmp.UserSecurityModel, gosnmp.AuthPriv
		g.SecurityParameters = &gosnmp.UsmSecurityParameters{
			UserName: "u", AuthoritativeEngineID: "\x80\x00\x1f\x88\x04test", AuthoritativeEngineBoots: 1, AuthoritativeEngineTime: 1,
			AuthenticationProtocol: gosnmp.SHA256, AuthenticationPassphrase: "authpassphrase", PrivacyProtocol: gosnmp.AES, PrivacyPassphrase: "privpassphrase",
		}
	})
	send(secure, trap)
	if got := s.wait(t, 4, 1)[0]; !strings.Contains(got, "version                        3") {
		t.Errorf("version 3: %s", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := l.refused.Get(); n != 2 {
		t.Errorf("%d traps were refused, want 2", n)
	}
	if len(s.rows[5]) > 0 || len(s.rows[1]) != 2 || len(s.rows[4]) != 1 {
		t.Errorf("rows %v", s.rows)
	}
}

func TestKeyPattern(t *testing.T) {
	f := func(key, pattern string, fallback, ok bool) {
		t.Helper()
		p, fb, k := KeyPattern(key)
		if p != pattern || fb != fallback || k != ok {
			t.Errorf("%s: %q, %t, %t", key, p, fb, k)
		}
	}
	f("snmptrap.fallback", "", true, true)
	f("snmptrap", "", false, true)
	f("snmptrap[]", "", false, true)
	f("snmptrap[linkUp|linkDown]", "linkUp|linkDown", false, true)
	f(`snmptrap["a,b"]`, "a,b", false, true)
	f("snmptraps", "", false, false)
	f("other", "", false, false)
}

func FuzzFind(f *testing.F) {
	l := New(Options{})
	home := netip.MustParseAddr("127.0.0.1")
	l.Apply([]Target{
		{Address: home, Access: model.SNMPAccess{Version: "SNMPV2", Community: "public"}, Items: []Item{{ID: 1}}},
		{Address: home, Access: model.SNMPAccess{Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHNOPRIV", AuthPassphrase: "authpassphrase"}, Items: []Item{{ID: 1}}},
	})
	f.Add([]byte("\x30\x26\x02\x01\x01\x04\x06public\xa7\x19\x02\x01\x01\x02\x01\x00\x02\x01\x00\x30\x0e\x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x03\x00\x05\x00"))
	f.Add([]byte("\x30\x3e\x02\x01\x03\x30\x11\x02\x04\x01\x02\x03\x04\x02\x03\x00\xff\xe3\x04\x01\x05\x02\x01\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, text := l.find(packet{data, netip.AddrPortFrom(home, 1), time.Unix(0, 0)}, nil)
		if len(text) > maxTextBytes {
			t.Errorf("%d bytes of text", len(text))
		}
	})
}
