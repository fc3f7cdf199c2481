package zbx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tidemark/model"
)

func TestFrame_roundTrips(t *testing.T) {
	var w FrameWriter
	for _, body := range [][]byte{nil, []byte("{}"), bytes.Repeat([]byte(`{"id":1},`), 50_000)} {
		for name, frame := range map[string][]byte{
			"plain":      AppendFrame(nil, body),
			"compressed": w.AppendCompressed(nil, body),
			"large":      append(AppendHeader(nil, Header{Flags: FlagLarge, BodyBytes: uint64(len(body))}), body...),
		} {
			var fr FrameReader
			for range 2 {
				_, got, err := fr.Read(iotest.HalfReader(bytes.NewReader(frame)))
				if err != nil || !bytes.Equal(got, body) {
					t.Fatalf("%s frame of %d bytes: %d bytes, %v", name, len(body), len(got), err)
				}
			}
		}
	}
}

func TestFrameReader_refuses(t *testing.T) {
	var w FrameWriter
	good := w.AppendCompressed(nil, bytes.Repeat([]byte("a"), 2000))
	short := bytes.Clone(good)
	short[9]-- // claims one byte less than there is
	long := bytes.Clone(good)
	long[9]++
	broken := bytes.Clone(good)
	broken[20] ^= 0xFF
	bomb := w.AppendCompressed(nil, make([]byte, 4<<20))
	for name, test := range map[string]struct {
		frame  []byte
		reason string
	}{
		"no magic":         {[]byte("GET / HTTP/1.1\r\n\r\n"), ReasonMagic},
		"short no magic":   {[]byte("GET"), ReasonMagic},
		"flags":            {[]byte("ZBXD\x02\x00\x00\x00\x00\x00\x00\x00\x00"), ReasonFlags},
		"unknown flag":     {[]byte("ZBXD\x09\x00\x00\x00\x00\x00\x00\x00\x00"), ReasonFlags},
		"cut header":       {[]byte("ZBXD\x01\x01"), ReasonTruncated},
		"cut body":         {[]byte("ZBXD\x01\x05\x00\x00\x00\x00\x00\x00\x00abc"), ReasonTruncated},
		"too long":         {AppendHeader(nil, Header{BodyBytes: DefaultMaxBodyBytes + 1}), ReasonTooLarge},
		"4 GiB":            {AppendHeader(nil, Header{BodyBytes: 1<<32 - 1}), ReasonTooLarge},
		"2^63 large":       {AppendHeader(nil, Header{Flags: FlagLarge, BodyBytes: 1 << 63}), ReasonTooLarge},
		"inflated too big": {AppendHeader(nil, Header{Flags: FlagCompressed, BodyBytes: 100, InflatedBytes: 1 << 31}), ReasonTooLarge},
		"ratio":            {bomb, ReasonTooLarge},
		"claims less":      {short, ReasonZlib},
		"claims more":      {long, ReasonZlib},
		"damaged":          {broken, ReasonZlib},
	} {
		var fr FrameReader
		_, _, err := fr.Read(bytes.NewReader(test.frame))
		var fe *FrameError
		if !errors.As(err, &fe) || fe.Reason != test.reason {
			t.Errorf("%s: %v, expected a frame error %s", name, err, test.reason)
		}
	}
	var fr FrameReader
	if _, _, err := fr.Read(strings.NewReader("")); err != io.EOF {
		t.Errorf("empty connection: %v, expected EOF", err)
	}
}

func TestFrameReader_takesMemoryAsBytesArrive(t *testing.T) {
	frame := append(AppendHeader(nil, Header{BodyBytes: 100 << 20}), make([]byte, 100_000)...)
	var reserved int
	fr := FrameReader{Reserve: func(n int) error { reserved += n; return nil }}
	if _, _, err := fr.Read(bytes.NewReader(frame)); err == nil {
		t.Fatal("a cut frame was read")
	}
	if reserved > 300_000 {
		t.Errorf("100,000 bytes of a body took %d bytes", reserved)
	}
	fr.Reserve = func(n int) error { return &ReserveError{Bytes: n} }
	_, _, err := fr.Read(bytes.NewReader(frame))
	var re *ReserveError
	if !errors.As(err, &re) {
		t.Errorf("no memory: %v, expected the error of Reserve", err)
	}
}

func TestDecodeRequest_anyOrder(t *testing.T) {
	body := ` {"data":[{"id":1,"itemid":"5","value":"a"}],"x":{"y":[1,2,{"z":null}]},"host":"h\u00e9\ud83d\ude00","port":"10050","config_revision":7,` +
		`"variant":2,"version":"7.0.3","hostinterface":"if","request":"agent data","request":"second","tidemark":1,"declare":[]}` + "\x00"
	r, err := DecodeRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Name) != AgentData || string(r.Host) != "hé😀" || r.Port != 10050 || r.ConfigRevision != 7 || r.Variant != 2 ||
		string(r.Version) != "7.0.3" || string(r.Interface) != "if" || r.Tidemark != 1 || r.Declare == nil ||
		string(r.Data) != `[{"id":1,"itemid":"5","value":"a"}]` {
		t.Errorf("decoded %+v", r)
	}
}

func TestDecodeRequest_refuses(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	for _, body := range []string{
		"", "x", "[]", "{", `{"a"`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"`, `{"a":tru}`,
		`{"a":[1,]}`, `{"a":[1}`, `{"data":[{"value":"\q"}]}`, `{"a":1} x`, `{a:1}`, `{"a":+}`, deep, `{"host":"` + strings.Repeat("h", MaxNameBytes+1) + `"}`,
	} {
		_, err := DecodeRequest([]byte(body))
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%.40q: %v, expected a syntax error", body, err)
		}
	}
}

func rowsOf(t *testing.T, data string) []Row {
	t.Helper()
	rows := NewRows([]byte(data))
	var all []Row
	for row := (Row{}); rows.Next(&row); {
		all = append(all, row)
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", data, rows.Err())
	}
	return all
}

func TestRows_fields(t *testing.T) {
	all := rowsOf(t, `[ {"host":"h","key":"k[\"a\"]","value":"a\nb\u0041\\","id":"12","clock":1796023782,"ns":"387603018"} ,
		{"itemid":18446744073709551615,"value":3.25,"state":1,"lastlogsize":37,"mtime":5,"timestamp":9,"source":"s","severity":4,"eventid":77},{"value":true},{"value":null}]`)
	if len(all) != 4 {
		t.Fatalf("%d rows", len(all))
	}
	a := all[0]
	if a.Bad != "" || a.Has != HasHost|HasKey|HasValue|HasClock|HasNS || string(a.Key) != `k["a"]` || string(a.Value) != "a\nbA\\" || a.ID != 12 || a.Clock != 1796023782 || a.NS != 387603018 {
		t.Errorf("first row %+v", a)
	}
	b := all[1]
	if b.Bad != "" || b.ItemID != 1<<64-1 || string(b.Value) != "3.25" || !b.Unsupported || b.LastLogSize != 37 || b.MTime != 5 ||
		b.Timestamp != 9 || string(b.Source) != "s" || b.Severity != 4 || b.EventID != 77 || b.Has&(HasLastLogSize|HasMTime) != HasLastLogSize|HasMTime {
		t.Errorf("second row %+v", b)
	}
	if string(all[2].Value) != "true" || all[3].Has&HasValue != 0 {
		t.Errorf("third and fourth row %+v %+v", all[2], all[3])
	}
}

func TestRows_badRowsDoNotEndTheWalk(t *testing.T) {
	all := rowsOf(t, `[1,{"clock":2147483648},{"clock":-1},{"ns":1000000000},{"itemid":"x"},{"itemid":18446744073709551616},{"value":{"a":1}},{"value":[]},{"clock":1.5},{"value":"ok"}]`)
	for i, row := range all {
		if good := i == len(all)-1; (row.Bad == "") != good {
			t.Errorf("row %d: bad is %q", i, row.Bad)
		}
	}
	if len(all) != 10 {
		t.Errorf("%d rows, expected 10", len(all))
	}
	if len(rowsOf(t, "[]")) != 0 || len(rowsOf(t, "")) != 0 {
		t.Error("rows from an empty array")
	}
}

func TestStrings_surrogates(t *testing.T) {
	for text, want := range map[string]string{
		`\ud83d\ude00`: "😀", `\ud83dx`: "\uFFFDx", `\ude00`: "\uFFFD", `\ud83d\u0041`: "\uFFFDA", `\/\b\f\r\t`: "/\b\f\r\t", `é`: "é", "raw\ttab": "raw\ttab",
	} {
		all := rowsOf(t, `[{"value":"`+text+`"}]`)
		if string(all[0].Value) != want {
			t.Errorf("%s: %q, expected %q", text, all[0].Value, want)
		}
	}
}

func TestRows_allocateNothing(t *testing.T) {
	row := `{"id":1,"itemid":500021,"value":"a \"quoted\" value","clock":1796023786,"ns":4054475},`
	text := []byte("[" + strings.Repeat(row, 100) + `{"id":2}]`)
	work := make([]byte, len(text))
	n := testing.AllocsPerRun(20, func() {
		copy(work, text)
		rows := NewRows(work)
		for r := (Row{}); rows.Next(&r); {
			if r.Bad != "" {
				t.Fatal(r.Bad)
			}
		}
	})
	if n != 0 {
		t.Errorf("101 rows cost %v allocations", n)
	}
}

func TestDeclarations(t *testing.T) {
	d := NewDeclarations([]byte(`[{"key":"vfs.fs.size[/,used]","type":"unsigned","units":"B","name":"Used","interval_ms":1000,"labels":{"fsname":"/","a":"1","fsname":"2"}},{"type":"float"},{"key":"k","type":"blob"},7,{"key":"k","interval_ms":"x"},{"key":"log","type":"log"}]`))
	var got []Declaration
	for c := (Declaration{}); d.Next(&c); {
		got = append(got, c)
	}
	if d.Err() != nil || len(got) != 6 {
		t.Fatalf("%d declarations, %v", len(got), d.Err())
	}
	a := got[0]
	if a.Bad != "" || a.Key != "vfs.fs.size[/,used]" || a.Type != model.Uint || a.Units != "B" || a.Name != "Used" || a.Interval != time.Second ||
		len(a.Labels) != 2 || a.Labels[0] != (model.Label{Name: "a", Value: "1"}) || a.Labels.Get("fsname") != "/" {
		t.Errorf("declaration %+v", a)
	}
	for i := 1; i < 5; i++ {
		if got[i].Bad == "" {
			t.Errorf("declaration %d is taken: %+v", i, got[i])
		}
	}
	if got[5].Bad != "" || got[5].Type != model.LogEntry {
		t.Errorf("declaration of a log %+v", got[5])
	}
}

func TestInfo_exactForm(t *testing.T) {
	got := string(AppendDataAnswer(nil, Counts{2, 1, 3}, 2190*time.Microsecond))
	if want := `{"response":"success","info":"processed: 2; failed: 1; total: 3; seconds spent: 0.002190"}`; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	a, err := DecodeAnswer([]byte(got))
	if err != nil || !a.Success || !a.HasCounts || a.Counts != (Counts{2, 1, 3}) {
		t.Errorf("decoded %+v, %v", a, err)
	}
}

func TestChecksAnswer_forms(t *testing.T) {
	c := Check{Key: `log[/a,"b"]`, ItemID: 7, Delay: "1m;10s/1-5", DelaySeconds: 60, LastLogSize: 37, MTime: 1, Timeout: "3s"}
	for version, want := range map[string]string{
		"":      `{"response":"success","data":[{"key":"log[/a,\"b\"]","delay":60,"lastlogsize":37,"mtime":1}]}`,
		"6.0":   `{"response":"success","data":[{"key":"log[/a,\"b\"]","itemid":7,"delay":"1m;10s/1-5","lastlogsize":37,"mtime":1}]}`,
		"7.0.3": `{"response":"success","data":[{"key":"log[/a,\"b\"]","itemid":7,"delay":"1m;10s/1-5","lastlogsize":37,"mtime":1,"timeout":"3s"}]}`,
	} {
		a := ChecksAnswer{Form: FormOf([]byte(version))}
		got := a.End(a.Add(a.Begin(nil), &c))
		if string(got) != want {
			t.Errorf("version %q: %s, expected %s", version, got, want)
		}
	}
	a := ChecksAnswer{Form: FormTimeout, WithRevision: true, Revision: 9, Tidemark: 1}
	got, err := DecodeAnswer(a.End(a.Add(a.Add(a.Begin(nil), &c), &c)))
	if err != nil || !got.Success || got.ConfigRevision != 9 || got.Tidemark != 1 || len(got.Checks) != 2 || got.Checks[1].Delay != c.Delay || got.Checks[1].Key != c.Key {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestDataRequest_readsBack(t *testing.T) {
	d := DataRequest{Name: AgentData, Host: "h\"1", Session: "s", Version: "7.0.0", Variant: 2, Tidemark: 1}
	b := d.Begin(nil)
	b = d.Declare(b, &Declaration{Key: "k", Type: model.Uint, Units: "B", Interval: time.Second, Labels: model.Labels{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}})
	b = d.Add(b, &Row{Has: HasKey | HasValue | HasClock | HasNS, ID: 1, Key: []byte("k"), Value: []byte("1\x01\xff"), Clock: 5, NS: 6})
	b = d.Add(b, &Row{Has: HasItemID | HasLastLogSize, ItemID: 9, LastLogSize: 3, Unsupported: true})
	b = d.End(b)
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	r, err := DecodeRequest(b)
	if err != nil || string(r.Host) != `h"1` || r.Tidemark != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	rows := rowsOf(t, string(r.Data))
	if len(rows) != 2 || string(rows[0].Value) != "1\x01\uFFFD" || rows[0].Clock != 5 || rows[1].ItemID != 9 || !rows[1].Unsupported {
		t.Errorf("rows %+v", rows)
	}
	var c Declaration
	if ds := NewDeclarations(r.Declare); !ds.Next(&c) || c.Key != "k" || c.Interval != time.Second || len(c.Labels) != 2 {
		t.Errorf("declaration %+v", c)
	}
	for _, empty := range [][]byte{d.End(d.Begin(nil)), d.End(d.Declare(d.Begin(nil), &c)), AppendActiveChecks(nil, &r), AppendHeartbeat(nil, &r)} {
		if !json.Valid(empty) {
			t.Errorf("no JSON: %s", empty)
		}
	}
}

func TestDecodeText(t *testing.T) {
	for body, want := range map[string]TextRequest{
		"h:k:v\n":                          {TextValue, []byte("h"), []byte("k"), []byte("v")},
		`h:k["a:]",b[:]]:1:2`:              {TextValue, []byte("h"), []byte(`k["a:]",b[:]]`), []byte("1:2")},
		"ZBX_GET_ACTIVE_CHECKS\nhost\n":    {Form: TextActiveChecks, Host: []byte("host")},
		"ZBX_GET_ACTIVE_CHECKS\nhost\r\n ": {Form: TextActiveChecks, Host: []byte("host")},
		"h:k":                              {}, ":k:v": {}, "h::v": {}, "{}:a:b": {}, "<req>:a:b": {}, "": {}, "GET / HTTP/1.1\r\nHost: a:1\r\n": {},
	} {
		got := DecodeText([]byte(body))
		if got.Form != want.Form || !bytes.Equal(got.Host, want.Host) || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) {
			t.Errorf("%q: %q, expected %q", body, got, want)
		}
	}
}
