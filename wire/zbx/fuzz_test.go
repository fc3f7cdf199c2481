package zbx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
)

func FuzzFrame(f *testing.F) {
	var w FrameWriter
	f.Add(AppendFrame(nil, []byte(`{"request":"sender data"}`)))
	f.Add(w.AppendCompressed(nil, []byte(`{"request":"sender data"}`)))
	f.Add(append(AppendHeader(nil, Header{Flags: FlagLarge, BodyBytes: 2}), "{}"...))
	f.Add([]byte("ZBXD\x01\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reserved := 0
		fr := FrameReader{MaxBodyBytes: 1 << 20, MaxInflatedBytes: 1 << 20, Reserve: func(n int) error { reserved += n; return nil }}
		h, body, err := fr.Read(bytes.NewReader(b))
		if reserved > 4*(firstReadBytes+len(b))+1<<20 {
			t.Fatalf("%d bytes took %d", len(b), reserved)
		}
		if err != nil {
			return
		}
		want := h.BodyBytes
		if h.Compressed() {
			want = h.InflatedBytes
		}
		if uint64(len(body)) != want {
			t.Fatalf("body of %d bytes, header says %d", len(body), want)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"request":"sender data","data":[{"host":"h","key":"k","value":"1","clock":1,"ns":2}],"clock":3,"ns":4}`))
	f.Add([]byte(`{"request":"agent data","data":[{"id":1,"itemid":5,"value":"\ud83d\ude00"}],"session":"641f","host":"a","version":"6.0"}`))
	f.Add([]byte(`{"request":"active checks","host":"a","config_revision":0,"tidemark":1}`))
	f.Add([]byte(`{"declare":[{"key":"k","type":"log","labels":{"a":"b"}}],"data":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		valid := json.Valid(b) && len(bytes.TrimSpace(b)) > 0 && bytes.TrimSpace(b)[0] == '{'
		r, err := DecodeRequest(bytes.Clone(b))
		if err != nil {
			if valid && len(b) < MaxNameBytes && bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) < MaxDepth {
				t.Fatalf("valid JSON is refused: %v", err)
			}
			return
		}
		rows := NewRows(r.Data)
		for row := (Row{}); rows.Next(&row); {
			if row.Clock >= 1<<31 || row.NS >= maxNanos {
				t.Fatalf("row %+v", row)
			}
		}
		if rows.Err() != nil {
			t.Fatalf("rows of a checked request: %v", rows.Err())
		}
		d := NewDeclarations(r.Declare)
		for c := (Declaration{}); d.Next(&c); {
			if c.Bad == "" && c.Key == "" {
				t.Fatal("declaration without key")
			}
		}
		if d.Err() != nil {
			t.Fatalf("declarations of a checked request: %v", d.Err())
		}
	})
}

// FuzzRows walks rows that no DecodeRequest has checked.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`[{"value":"\u0041\ud83d","clock":"1"},2]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows := NewRows(bytes.Clone(b))
		for row := (Row{}); rows.Next(&row); {
			_ = row
		}
		d := NewDeclarations(bytes.Clone(b))
		for c := (Declaration{}); d.Next(&c); {
			_ = c
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"response":"success","data":[{"key":"k","itemid":1,"delay":"5s","lastlogsize":0,"mtime":0}]}`))
	f.Add([]byte(`{"response":"success","info":"processed: 1; failed: 0; total: 1; seconds spent: 0.1"}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = DecodeAnswer(b)
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("h:k[\"a:b\"]:v\n"))
	f.Add([]byte("ZBX_GET_ACTIVE_CHECKS\nh\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := DecodeText(b)
		if r.Form == TextValue && (len(r.Host) == 0 || len(r.Key) == 0) {
			t.Fatalf("%q", r)
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add("a\"\\\n\x01é😀\xff")
	f.Fuzz(func(t *testing.T, text string) {
		b := AppendString(nil, text)
		var viaJSON string
		if err := json.Unmarshal(b, &viaJSON); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := string([]rune(text)); viaJSON != want {
			t.Fatalf("%q became %q", text, viaJSON)
		}
		s := scanner{b: b}
		got, err := s.str()
		if err != nil || string(got) != viaJSON {
			t.Fatalf("%q became %q, %v", text, got, err)
		}
	})
}

func BenchmarkAgentData(b *testing.B) {
	var text []byte
	d := DataRequest{Name: AgentData, Host: "load-0001", Session: "0123456789abcdef0123456789abcdef", Version: "6.0"}
	text = d.Begin(text)
	const rowCount = 1000
	for i := range rowCount {
		text = d.Add(text, &Row{Has: HasItemID | HasValue | HasClock | HasNS, ID: uint64(i + 1), ItemID: uint64(500_000 + i), Value: fmt.Append(nil, float64(i)*1.37), Clock: 1796023786, NS: uint32(i)})
	}
	text = d.End(text)
	work := make([]byte, len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	cpu := cpuSeconds()
	for b.Loop() {
		copy(work, text)
		r, err := DecodeRequest(work)
		if err != nil {
			b.Fatal(err)
		}
		rows := NewRows(r.Data)
		for row := (Row{}); rows.Next(&row); {
			if row.Bad != "" {
				b.Fatal(row.Bad)
			}
		}
	}
	b.ReportMetric(float64(b.N)*rowCount/(cpuSeconds()-cpu), "values/cpu-s")
}

// cpuSeconds is the processor time of this process so far: unlike the wall clock it does not count what others take.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
