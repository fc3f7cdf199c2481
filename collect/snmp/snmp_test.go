package snmp

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"tidemark/collect/poller"
	"tidemark/model"
)

// device is a fake of versions 1 and 2c.
type device struct {
	address string
	// most is how many variables it answers at once; more are not answered, or with tooBig.
	most   int
	tooBig bool

	mu       sync.Mutex
	values   map[string]gosnmp.SnmpPDU
	requests int
}

func startDevice(t *testing.T, values ...gosnmp.SnmpPDU) *device {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &device{address: pc.LocalAddr().String(), values: map[string]gosnmp.SnmpPDU{}}
	for _, v := range values {
		d.values[v.Name] = v
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buffer := make([]byte, 65535)
		for {
			n, from, err := pc.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := d.answer(buffer[:n]); answer != nil {
				_, _ = pc.WriteTo(answer, from)
			}
		}
	}()
	return d
}

func (d *device) answer(request []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &gosnmp.GoSNMP{}
	p, err := g.SnmpDecodePacket(request)
	if err != nil || p.Community != "public" {
		return nil
	}
	d.requests++
	asked := p.Variables
	kind := p.PDUType
	repetitions := p.MaxRepetitions
	p.PDUType, p.Variables, p.Error, p.ErrorIndex = gosnmp.GetResponse, nil, gosnmp.NoError, 0
	if d.most > 0 && len(asked) > d.most {
		if !d.tooBig {
			return nil
		}
		p.Error = gosnmp.TooBig
		asked = nil
	}
	for i, v := range asked {
		switch kind {
		case gosnmp.GetRequest:
			value, ok := d.values[v.Name]
			switch {
			case ok:
				p.Variables = append(p.Variables, value)
			case p.Version == gosnmp.Version1:
				p.Error, p.ErrorIndex = gosnmp.NoSuchName, uint8(i+1)
				p.Variables = asked
				out, _ := p.MarshalMsg()
				return out
			default:
				p.Variables = append(p.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.NoSuchInstance})
			}
		default:
			n := 1
			if kind == gosnmp.GetBulkRequest {
				n = int(repetitions)
			}
			p.Variables = append(p.Variables, d.next(v.Name, n)...)
			if len(p.Variables) == 0 || p.Version == gosnmp.Version1 && p.Variables[0].Type == gosnmp.EndOfMibView {
				p.Error, p.ErrorIndex, p.Variables = gosnmp.NoSuchName, 1, asked
			}
		}
	}
	out, err := p.MarshalMsg()
	if err != nil {
		panic(err)
	}
	return out
}

// next returns the variables behind an OID.
func (d *device) next(oid string, n int) []gosnmp.SnmpPDU {
	var names []string
	for name := range d.values {
		if compareOIDs(name[1:], oid[1:]) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(compareOIDs(a[1:], b[1:]), cmp.Compare(a, b)) })
	var out []gosnmp.SnmpPDU
	for _, name := range names[:min(n, len(names))] {
		out = append(out, d.values[name])
	}
	if len(out) < n {
		out = append(out, gosnmp.SnmpPDU{Name: oid, Type: gosnmp.EndOfMibView})
	}
	return out
}

func (d *device) task(access model.SNMPAccess, oid string) *poller.Task {
	return &poller.Task{
		Item: &model.Item{Key: oid, Type: model.SNMPAgent, Collect: &model.Collect{SNMPOID: oid}}, Address: d.address,
		Interface: &model.Interface{Type: model.SNMPInterface, SNMP: &access},
	}
}

func (d *device) ask(t *testing.T, c *Checker, access model.SNMPAccess, oids ...string) []string {
	t.Helper()
	tasks, results := make([]*poller.Task, len(oids)), make([]poller.Result, len(oids))
	for i, oid := range oids {
		tasks[i] = d.task(access, oid)
	}
	c.Check(t.Context(), tasks, results)
	out := make([]string, len(oids))
	for i, r := range results {
		out[i] = fmt.Sprintf("%s%s", [...]string{"nothing ", "", "! ", "? "}[r.Outcome], r.Text)
	}
	return out
}

func octets(name, text string) gosnmp.SnmpPDU {
	return gosnmp.SnmpPDU{Name: name, Type: gosnmp.OctetString, Value: []byte(text)}
}

var table = []gosnmp.SnmpPDU{
	octets(".1.3.6.1.2.1.1.5.0", "db\"1\\\x00"),
	{Name: ".1.3.6.1.2.1.1.3.0", Type: gosnmp.TimeTicks, Value: uint32(12345)},
	octets(".1.3.6.1.2.1.2.2.1.2.1", "lo"), octets(".1.3.6.1.2.1.2.2.1.2.2", "eth0"), octets(".1.3.6.1.2.1.2.2.1.2.10", "eth1"),
	octets(".1.3.6.1.2.1.2.2.1.6.2", "\x00\x1b\xff"),
	{Name: ".1.3.6.1.2.1.2.2.1.8.2", Type: gosnmp.Integer, Value: -3},
	{Name: ".1.3.6.1.2.1.2.2.1.10.2", Type: gosnmp.Counter32, Value: uint32(4294967295)},
	{Name: ".1.3.6.1.2.1.2.2.1.10.10", Type: gosnmp.Counter64, Value: uint64(18446744073709551615)},
	{Name: ".1.3.6.1.2.1.4.20.1.1.0", Type: gosnmp.IPAddress, Value: "10.0.0.1"},
	{Name: ".1.3.6.1.2.1.1.2.0", Type: gosnmp.ObjectIdentifier, Value: ".1.3.6.1.4.1"},
}

func TestChecker(t *testing.T) {
	d := startDevice(t, table...)
	two := model.SNMPAccess{Version: "SNMPV2", Community: "public"}
	one := model.SNMPAccess{Version: "SNMPV1", Community: "public"}
	for name, access := range map[string]model.SNMPAccess{"v1": one, "v2c": two, "v2c, one at a time": {Version: "SNMPV2", Community: "public", Single: true}} {
		t.Run(name, func(t *testing.T) {
			c := New(Options{})
			defer c.Close()
			f := func(oid, want string) {
				t.Helper()
				if got := d.ask(t, c, access, oid)[0]; got != want {
					t.Errorf("%s: %q, want %q", oid, got, want)
				}
			}
			f("1.3.6.1.2.1.1.5.0", `db"1\`)
			f("get[.1.3.6.1.2.1.1.3.0]", "12345")
			f("1.3.6.1.2.1.2.2.1.6.2", "00 1B FF")
			f("1.3.6.1.2.1.2.2.1.8.2", "-3")
			f("1.3.6.1.2.1.2.2.1.10.2", "4294967295")
			f("1.3.6.1.2.1.4.20.1.1.0", "10.0.0.1")
			f("1.3.6.1.2.1.1.2.0", ".1.3.6.1.4.1")
			f("walk[1.3.6.1.2.1.1]", ".1.3.6.1.2.1.1.2.0 = OID: .1.3.6.1.4.1\n.1.3.6.1.2.1.1.3.0 = 12345\n.1.3.6.1.2.1.1.5.0 = STRING: \"db\\\"1\\\\\"")
			f("walk[.1.3.6.1.2.1.2.2.1.6, .1.3.6.1.2.1.2.2.1.8]", ".1.3.6.1.2.1.2.2.1.6.2 = Hex-STRING: 00 1B FF \n.1.3.6.1.2.1.2.2.1.8.2 = INTEGER: -3")
			f("walk[1.3.9]", "! the device has nothing at .1.3.9")
			f("discovery[{#NAME},1.3.6.1.2.1.2.2.1.2,{#MAC},1.3.6.1.2.1.2.2.1.6]",
				`[{"{#NAME}":"lo","{#SNMPINDEX}":"1"},{"{#MAC}":"00 1B FF","{#NAME}":"eth0","{#SNMPINDEX}":"2"},{"{#NAME}":"eth1","{#SNMPINDEX}":"10"}]`)
			f("discovery[{#NAME},1.3.9]", "[]")
			f(`1.3.6.1.2.1.2.2.1.10["index","1.3.6.1.2.1.2.2.1.2","eth0"]`, "4294967295")
			f(`1.3.6.1.2.1.2.2.1.10["index","1.3.6.1.2.1.2.2.1.2","eth9"]`, `! no row of .1.3.6.1.2.1.2.2.1.2 has the value "eth9"`)
			f("IF-MIB::ifDescr.1", `! "IF-MIB::ifDescr.1" is no OID; expected numbers such as .1.3.6.1.2.1.1.5.0 (names of MIBs are not read)`)
			got := d.ask(t, c, access, "1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.1.99.0", "bad", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.98.0")
			if got[0] != "12345" || !strings.HasPrefix(got[1], "! the device ") || !strings.HasPrefix(got[2], "! ") || got[3] != ".1.3.6.1.4.1" || !strings.HasPrefix(got[4], "! ") {
				t.Errorf("together: %q", got)
			}
		})
	}
}

// A dynamic index that moved is found again.
func TestChecker_dynamic(t *testing.T) {
	d := startDevice(t, table...)
	c := New(Options{})
	defer c.Close()
	access := model.SNMPAccess{Version: "SNMPV2", Community: "public"}
	const oid = `1.3.6.1.2.1.2.2.1.10["index","1.3.6.1.2.1.2.2.1.2","eth0"]`
	d.ask(t, c, access, oid)
	d.mu.Lock()
	before := d.requests
	d.mu.Unlock()
	if got := d.ask(t, c, access, oid)[0]; got != "4294967295" {
		t.Error(got)
	}
	d.mu.Lock()
	if n := d.requests - before; n != 1 {
		t.Errorf("%d requests for an index that is known", n)
	}
	d.values[".1.3.6.1.2.1.2.2.1.2.2"], d.values[".1.3.6.1.2.1.2.2.1.2.10"] = octets(".1.3.6.1.2.1.2.2.1.2.2", "eth1"), octets(".1.3.6.1.2.1.2.2.1.2.10", "eth0")
	d.mu.Unlock()
	if got := d.ask(t, c, access, oid)[0]; got != "18446744073709551615" {
		t.Error(got)
	}
}

// A device that answers few variables at once is asked for few; one request each shows that it is remembered.
func TestChecker_small(t *testing.T) {
	for _, tooBig := range []bool{false, true} {
		d := startDevice(t, table...)
		d.mu.Lock()
		d.most, d.tooBig = 4, tooBig
		d.mu.Unlock()
		c := New(Options{Timeout: 100 * time.Millisecond})
		defer c.Close()
		var oids, want []string
		for range 4 {
			oids = append(oids, "1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.1.2.0")
			want = append(want, "12345", ".1.3.6.1.4.1")
		}
		access := model.SNMPAccess{Version: "SNMPV2", Community: "public"}
		for range 2 {
			if got := d.ask(t, c, access, oids...); !slices.Equal(got, want) {
				t.Errorf("too big %t: %q", tooBig, got)
			}
		}
		c.mu.Lock()
		if size := c.sizes[d.address]; size < 1 || size > 4 {
			t.Errorf("too big %t: %d variables at once are remembered", tooBig, size)
		}
		c.mu.Unlock()
	}
}

func TestChecker_unreachable(t *testing.T) {
	d := startDevice(t, table...)
	c := New(Options{Timeout: 50 * time.Millisecond})
	defer c.Close()
	if got := d.ask(t, c, model.SNMPAccess{Version: "SNMPV2", Community: "wrong"}, "1.3.6.1.2.1.1.3.0", "walk[1.3]"); !strings.HasPrefix(got[0], "? device") || !strings.Contains(got[1], "did not answer in time") {
		t.Errorf("%q", got)
	}
	for want, access := range map[string]model.SNMPAccess{
		"version": {Version: "SNMPV4"}, "security name": {Version: "SNMPV3"}, "security level": {Version: "SNMPV3", SecurityName: "u", SecurityLevel: "x"},
		"authentication protocol": {Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHNOPRIV", AuthProtocol: "x"},
		"fewer than 8":            {Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHNOPRIV", AuthPassphrase: "short"},
		"privacy protocol":        {Version: "SNMPV3", SecurityName: "u", SecurityLevel: "AUTHPRIV", AuthPassphrase: "longenough", PrivProtocol: "x"},
	} {
		if got := d.ask(t, c, access, "1.3")[0]; !strings.HasPrefix(got, "! ") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", access, got, want)
		}
	}
}

func TestParseOID(t *testing.T) {
	for text, want := range map[string]string{
		"": "has no SNMP OID", "walk[]": "is no OID", "discovery[{#A}]": "expected pairs", "discovery[A,1.3]": "expected a macro", "get[1,2]": "expected an OID",
		"1.3.": "", "1..3": "is no OID", "1.4294967296": "is no OID", "walk[1.3,1.4]": "", `1.3["index","x","y"]`: "is no OID", "other[1]": "expected an OID",
		strings.Repeat("1.", 600) + "1": "is no OID", "walk[" + strings.Repeat("1,", 300) + "1]": "at most 128",
	} {
		_, err := parseOID(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseOID(f *testing.F) {
	for _, seed := range []string{"1.3.6", "walk[1.3]", "discovery[{#A},1.3]", `1.3["index","1.3","x"]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseOID(text)
		if err == nil && (len(q.oids) == 0 || len(q.oids) > 2*maxOIDs) {
			t.Errorf("%q: %+v", text, q)
		}
	})
}
