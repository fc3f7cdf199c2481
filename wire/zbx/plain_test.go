package zbx

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// slowRows walks rows without the way for plain ones.
func slowRows(data []byte) ([]Row, error) {
	var rows []Row
	s := scanner{b: data}
	if len(data) == 0 {
		return nil, nil
	}
	if s.peek() != '[' {
		return nil, s.fail("'['")
	}
	for first := true; ; {
		more, err := s.next(&first, ']')
		if err != nil || !more {
			return rows, err
		}
		var row Row
		if err := row.decode(&s); err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

// checkPlain compares both ways through rows, and both ways over the array that holds them.
func checkPlain(t interface{ Fatalf(string, ...any) }, data []byte) {
	want, wantErr := slowRows(bytes.Clone(data))
	rows := NewRows(bytes.Clone(data))
	var got []Row
	for row := (Row{}); rows.Next(&row); {
		got = append(got, row)
	}
	if !reflect.DeepEqual(rows.Err(), wantErr) {
		t.Fatalf("%q: error %v, want %v", data, rows.Err(), wantErr)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: rows\n%+v, want\n%+v", data, got, want)
	}
	if len(data) == 0 || data[0] != '[' {
		return
	}
	fast, slow := scanner{b: data}, scanner{b: data}
	gotErr, wantErr := fast.skipRows(1), slow.skip(1)
	if (gotErr == nil) != (wantErr == nil) || gotErr == nil && fast.p != slow.p {
		t.Fatalf("%q: skipped to %d with %v, want %d with %v", data, fast.p, gotErr, slow.p, wantErr)
	}
}

func TestRows_plainEqualsDecode(t *testing.T) {
	numbers := []string{
		"0", "1", "007", "999999999", "1000000000", "2147483647", "2147483648", "999999999999999999", "18446744073709551615",
		"18446744073709551616", "-1", "1e3", "1.5", "", `"12"`, "null", "true", "[1]", `{"a":[2]}`,
	}
	texts := []string{
		`""`, `"1.25"`, `"a b"`, `"ü"`, `"\u00fc\n"`, `"\x"`, "\"a\tb\"", "12.5", "null", "[]", `"` + strings.Repeat("n", MaxNameBytes) + `"`,
		`"` + strings.Repeat("n", MaxNameBytes+1) + `"`, `"open`,
	}
	names := []string{"id", "itemid", "value", "clock", "ns", "host", "key", "state", "lastlogsize", "i\\u0064", "unknown"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom([]string{"[", "[", "[", " [", "", "{"}).Draw(t, "begin"))
		for n := range rapid.IntRange(0, 4).Draw(t, "rows") {
			if n > 0 {
				b.WriteString(rapid.SampledFrom([]string{",", ",", ", ", ""}).Draw(t, "comma"))
			}
			b.WriteString("{")
			for m := range rapid.IntRange(0, 6).Draw(t, "members") {
				if m > 0 {
					b.WriteString(",")
				}
				name := rapid.SampledFrom(names).Draw(t, "name")
				values := numbers
				if name == "value" || name == "host" || name == "key" || name == "unknown" {
					values = texts
				}
				fmt.Fprintf(&b, `"%s"%s%s`, name, rapid.SampledFrom([]string{":", ":", ":", " : "}).Draw(t, "colon"), rapid.SampledFrom(values).Draw(t, "value"))
			}
			b.WriteString("}")
		}
		b.WriteString(rapid.SampledFrom([]string{"]", "]", "]", " ]", ""}).Draw(t, "end"))
		checkPlain(t, []byte(b.String()))
	})
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte(`[{"id":1,"itemid":2,"value":"3","clock":4,"ns":5},{"host":"h","key":"k","value":"v","clock":4,"ns":5}]`))
	f.Add([]byte(`[{"id":1,"value":"\n"},{"clock":99999999999,"ns":"5"} , {"ns":`))
	f.Fuzz(func(t *testing.T, b []byte) { checkPlain(t, b) })
}

func BenchmarkRequest(b *testing.B) {
	body := []byte(`{"request":"agent data","data":[`)
	for i := range 1000 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":%d,"itemid":%d,"value":"%d.25","clock":1796069000,"ns":%d}`, i+5000, i+70000, i*9, i*999_983)
	}
	body = append(body, `],"session":"0123456789abcdef0123456789abcdef","host":"load-0001","version":"6.0"}`...)
	b.ReportAllocs()
	for b.Loop() {
		r, err := DecodeRequest(body)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		rows := NewRows(r.Data)
		for row := (Row{}); rows.Next(&row); {
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}
