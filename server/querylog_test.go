package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/query/querylog"
)

// TestServer_queryLog asks for values and finds the query in the log of a stopped server, and nothing else there.
func TestServer_queryLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := run(t, dir)
	r.importExport()
	r.sender("4711", time.Now().Unix()-2)
	r.problem(true)
	if got := r.query(`temperature{host="web-1"}`); got != "4711" {
		t.Fatalf("the server answers %s", got)
	}
	r.stop()
	name := filepath.Join(dir, querylog.FileName)
	entries, err := querylog.Read(name)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		if len(e.Items) == 0 || e.Range.From >= e.Range.To {
			t.Errorf("an entry says %+v", e)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil || strings.Contains(string(text), "4711") || strings.Contains(string(text), "temperature") {
		t.Errorf("the log holds a value or a name: %s, %v", text, err)
	}
}
