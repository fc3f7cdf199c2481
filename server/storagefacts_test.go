package server

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/trial"
)

// TestServer_storageFacts asks a server for what kinds of values take, and for the last trial, before and after there is something to say.
func TestServer_storageFacts(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r := run(t, data)
	var classes storageClasses
	var last lastTrial
	r.get("/api/storage/classes", &classes)
	r.get("/api/storage/trial", &last)
	if len(classes.Classes) != 0 || last.Trial != nil {
		t.Fatalf("an empty store: %+v, %+v", classes, last)
	}
	db := r.server.engine.(*dbengine.DB)
	b := model.NewBatch()
	for n := range int64(100) {
		at := (time.Now().Unix() - 200 + n) * int64(time.Second)
		b.AppendUint(1<<20, at, 5)
		b.AppendFloat(1<<20+1, at, float64(n*n%97)/7)
		b.AppendString(1<<20+2, at, model.Text, "a line")
		b.AppendString(1<<20+3, at, model.Character, "another")
	}
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.ClosePair(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.get("/api/storage/classes", &classes)
	want := map[string]uint64{"steady": 100, "float": 100, "text": 200}
	got := map[string]uint64{}
	for i, c := range classes.Classes {
		got[c.Class] = c.Values
		if c.Bytes <= 0 || i > 0 && c.Bytes > classes.Classes[i-1].Bytes {
			t.Errorf("%+v", classes.Classes)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("classes %v, expected %v", got, want)
	}
	report := &trial.Report{Candidates: []trial.Candidate{{Codec: "zstd:3", Ratio: 9}}, Recommended: trial.Recommended{Codec: "zstd:3", Text: "20 % less"}, Rounds: 5}
	if err := report.Save(data, time.Unix(1_790_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	r.get("/api/storage/trial", &last)
	if last.Trial == nil || last.Trial.At != 1_790_000_000_000 || !reflect.DeepEqual(last.Trial.Report, *report) {
		t.Errorf("the last trial is %+v", last.Trial)
	}
	if err := os.WriteFile(filepath.Join(data, trial.FileName), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	last = lastTrial{}
	r.get("/api/storage/trial", &last)
	if last.Trial != nil || !strings.Contains(last.Problem, "remove trial.json") {
		t.Errorf("of a damaged report it says %+v", last)
	}
}
