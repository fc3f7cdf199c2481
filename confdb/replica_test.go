package confdb

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), text)
}

// waitsWith waits until the session of the configuration waits for the replica behind a statement, and returns its process.
func waitsWith(t *testing.T, c *pgtest.Cluster, statement string) (pid string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := c.SQL("postgres", `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name LIKE 'tidemark configuration%' AND lower(query) LIKE '`+statement+`%'`)
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("no session waits for the replica with %q", statement)
		}
	}
}

// TestReplica_endedWait: a change whose wait for the replica of PostgreSQL somebody ends is answered when the replica has it, not before.
func TestReplica_endedWait(t *testing.T) {
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	said := &lines{}
	d, err := Open(t.Context(), t.TempDir(), Options{DSN: c.DSN("postgres"), Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	cancel := func(pid string) {
		t.Helper()
		if _, err := c.SQL("postgres", "SELECT pg_cancel_backend("+pid+")"); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, statement string
		change          func() error
	}{
		{"a transaction", "commit", func() error {
			return d.SetGlobalMacros(t.Context(), []model.Macro{{Name: "{$A}", Value: "1"}})
		}},
		{"a statement alone", "update meta", func() error { return d.ResetEvaluated(t.Context(), 7) }},
	} {
		before := said.count("ended by somebody")
		resume, err := pgtest.Stall(c.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- test.change() }()
		cancel(waitsWith(t, c, test.statement))
		const behind = "select pg_logical_emit_message"
		cancel(waitsWith(t, c, behind))
		for end := time.Now().Add(time.Minute); said.count("ended by somebody") < before+2; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the log says %s", test.name, said)
			}
		}
		waitsWith(t, c, behind)
		select {
		case err := <-done:
			t.Fatalf("%s: answered before the replica has it: %v", test.name, err)
		default:
		}
		if err := resume(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: no answer although no replica is waited for", test.name)
		}
	}
	if lsn, err := d.Evaluated(t.Context()); err != nil || lsn != 7 {
		t.Errorf("evaluated up to %d, %v", lsn, err)
	}
}
