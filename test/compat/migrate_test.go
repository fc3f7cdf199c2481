package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/test/launch"
)

// TestMigrate carries the values of a server from the embedded engine to PostgreSQL, within PostgreSQL from plain tables to partitions, and back.
func TestMigrate(t *testing.T) {
	dsn := launch.Postgres(t).DSN("postgres")
	config := filepath.Join(t.TempDir(), "tidemark.yaml")
	text := fmt.Sprintf("storage:\n  engine: postgres\n  mode: plain\n  dsn: %q\n", dsn)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	embedded := []string{"--disk-space", "1GiB"}
	s := startServerWith(t, embedded...)
	s.importHost("mover", item("TRAP", "float", "FLOAT", "0"), item("TRAP", "text", "TEXT", "0"))
	from := time.Now().Unix() - 12*3600
	rows := make([]string, 0, 1000)
	for i := range int64(500) {
		rows = append(rows, fmt.Sprintf(`{"host":"mover","key":"float","value":"%d.25","clock":%d,"ns":1}`, i, from+60*i),
			fmt.Sprintf(`{"host":"mover","key":"text","value":"line %d","clock":%d,"ns":1}`, i, from+60*i))
	}
	if answer := exchange(t, s, `{"request":"sender data","data":[`+strings.Join(rows, ",")+`]}`); !strings.Contains(answer, "processed: 1000; failed: 0") {
		t.Fatalf("the sender is answered %s", answer)
	}
	floats, texts := fmt.Sprint(s.values("mover", "float")), fmt.Sprint(s.values("mover", "text"))
	same := func(where string) {
		t.Helper()
		if got := fmt.Sprint(s.values("mover", "float")); got != floats {
			t.Errorf("%s: %s\nexpected %s", where, got, floats)
		}
		if got := fmt.Sprint(s.values("mover", "text")); got != texts {
			t.Errorf("%s: %s\nexpected %s", where, got, texts)
		}
	}
	data := filepath.Join(s.dir, "data")
	if out, err := exec.Command(binary, "migrate", "--from", data, "--to", dsn).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use by another tidemark") {
		t.Errorf("while the server runs: %v %s", err, out)
	}
	s.stop()
	var report struct {
		Values uint64
		Done   bool
	}
	migrate := func(args ...string) {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--json")...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if args[0] == "migrate" {
			if err := json.Unmarshal(out, &report); err != nil || !report.Done || report.Values < 1000 {
				t.Fatalf("%v: %s, %v", args, out, err)
			}
		} else if !strings.Contains(string(out), `"state":"dropped"`) {
			t.Fatalf("%v: %s", args, out)
		}
	}
	migrate("migrate", "--from", data, "--to", dsn, "--mode", "plain")
	s.flags = []string{"--config", config}
	s.start()
	same("in PostgreSQL")
	migrate("store", "migrate", "--config", config, "--to", "partitions", "--drop-old")
	same("in partitions")
	if out, err := exec.Command(binary, "store", "housekeeping", "--http", s.http).CombinedOutput(); err != nil || !strings.Contains(string(out), "history_text_c") || !strings.Contains(string(out), "partitions") {
		t.Errorf("store housekeeping: %v\n%s", err, out)
	}
	s.stop()
	if err := os.RemoveAll(filepath.Join(data, "engine")); err != nil {
		t.Fatal(err)
	}
	migrate("migrate", "--from", dsn, "--to", data, "--disk-space", "1GiB")
	s.flags = embedded
	s.start()
	same("back in the embedded engine")
}
