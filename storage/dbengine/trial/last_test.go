package trial

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReport_Save(t *testing.T) {
	data := t.TempDir()
	if l, err := ReadLast(data); l != nil || err != nil {
		t.Fatalf("without a trial: %+v, %v", l, err)
	}
	at := time.UnixMilli(1_790_000_000_123)
	for _, codec := range []string{"lz4", "zstd:3"} { // the later one counts
		r := &Report{Candidates: []Candidate{{Codec: codec, Ratio: 2.5}}, Recommended: Recommended{Codec: codec, Text: "take it"}, Rounds: 5}
		if err := r.Save(data, at); err != nil {
			t.Fatal(err)
		}
		l, err := ReadLast(data)
		if err != nil || l.At != at.UnixMilli() || !reflect.DeepEqual(l.Report, *r) {
			t.Fatalf("read %+v, %v; expected %+v", l, err, r)
		}
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if err := (&Report{}).Save(filepath.Join(data, "none"), at); err == nil || !strings.Contains(err.Error(), "keep the report") {
		t.Errorf("into a folder that is not there: %v", err)
	}
	for _, text := range []string{"", "{", `{"at":0}`, `{"at":1,"candidates":[` + strings.Repeat("{},", 64) + "{}]}", strings.Repeat(" ", maxLastBytes+1)} {
		if err := os.WriteFile(filepath.Join(data, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLast(data); err == nil || !strings.Contains(err.Error(), "try codecs again") {
			t.Errorf("%.20q is read with %v", text, err)
		}
	}
}

func FuzzDecodeLast(f *testing.F) {
	f.Add([]byte(`{"at":1790000000123,"candidates":[{"codec":"zstd:3","ratio":2.5}],"rounds":5}`))
	f.Add([]byte(`{"at":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeLast(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := decodeLast(again); err != nil || second.At != l.At || len(second.Candidates) != len(l.Candidates) {
			t.Fatalf("written again it is %s: %v", bytes.TrimSpace(again), err)
		}
	})
}
