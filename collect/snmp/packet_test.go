package snmp

import (
	"strings"
	"testing"

	"github.com/gosnmp/gosnmp"
)

// TestAppendGet has the library read requests, with the names as cleanOID makes them.
func TestAppendGet(t *testing.T) {
	for _, size := range []int{1, 4, 40, 128} {
		var list []byte
		var names []string
		for i := range size {
			oid := []string{"1.3.6.1.2.1.1.5.0", " .1.3.6.1.4.1.4294967295.128.127.16384.2097152.268435456. ", "2.999.1", "0.39", "1.0.8802"}[i%5]
			one, ok := appendOID(nil, oid)
			if !ok {
				t.Fatalf("%q is not written", oid)
			}
			list = append(append(list, tagSequence, byte(len(one)+2)), append(one, tagNull, 0)...)
			name, err := cleanOID(oid)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		for version := range byte(2) {
			for _, community := range []string{"", "public", strings.Repeat("c", 200), strings.Repeat("c", 300)} {
				packet := appendGet(nil, version, community, 1<<31-1, list)
				got, err := (&gosnmp.GoSNMP{}).SnmpDecodePacket(packet)
				if err != nil {
					t.Fatalf("%d variables, version %d: %v", size, version, err)
				}
				if byte(got.Version) != version || got.Community != community || got.RequestID != 1<<31-1 || got.PDUType != gosnmp.GetRequest || len(got.Variables) != size {
					t.Errorf("%d variables, version %d: %+v", size, version, got)
				}
				for i, v := range got.Variables {
					if v.Name != names[i] {
						t.Errorf("name %q, want %q", v.Name, names[i])
					}
				}
				if string(variablesOf(packet)) != string(list) {
					t.Error("the variables of a request are not found again")
				}
			}
		}
	}
	for _, oid := range []string{"", ".", "1", "1..3", "1.40", "3.1", "1.3.4294967296", "1.3.99999999999999999999", "1.a", "1.3 .4", "get[1.3]", "1.3." + strings.Repeat("4294967295.", 30) + "1"} {
		if _, ok := appendOID(nil, oid); ok {
			t.Errorf("%q is written", oid)
		}
	}
}

// FuzzAnswer reads answers as the library does, wherever it does not leave them to it.
func FuzzAnswer(f *testing.F) {
	for _, v := range table {
		p := &gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: "public", PDUType: gosnmp.GetResponse, RequestID: 77, Variables: []gosnmp.SnmpPDU{v}}
		packet, err := p.MarshalMsg()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
	}
	f.Add([]byte("\x30\x1e\x02\x01\x01\x04\x00\xa2\x17\x02\x01\x05\x02\x01\x00\x02\x01\x00\x30\x0c\x30\x0a\x06\x03\x2b\x06\x01\x46\x03\x00\xff\x01"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		version, id, status, variables, ok := answerOf(packet)
		if !ok || version < 0 || version > 1 {
			return
		}
		var values []string
		for len(variables) > 0 {
			var one []byte
			if one, variables, ok = inside(variables, tagSequence); !ok {
				return
			}
			name, one, ok := inside(one, tagOID)
			if !ok {
				return
			}
			if _, ok = appendDotted(nil, name); !ok {
				return
			}
			tag, body, _, ok := element(one)
			if !ok {
				return
			}
			text, what := appendValue(nil, tag, body)
			if what == unsure {
				return
			}
			if what != asValue {
				text = nil
			}
			values = append(values, string(text))
		}
		got, err := (&gosnmp.GoSNMP{}).SnmpDecodePacket(append([]byte{}, packet...))
		if err != nil || len(got.Variables) != len(values) {
			return // The library is stricter; such an answer it would not give.
		}
		if int64(got.RequestID) != int64(uint32(id)) && id >= 0 && id < 1<<31 || int64(got.Error) != status && status >= 0 && status < 256 {
			t.Errorf("id %d, status %d; want %d, %d", id, status, got.RequestID, got.Error)
		}
		for i := range got.Variables {
			if want, fault := plainValue(&got.Variables[i]); string(want) != values[i] && fault == "" {
				t.Errorf("%q, want %q in %x", values[i], want, packet)
			}
		}
	})
}
