package compat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/pgtest"
)

// alertedHost is a host with a template of two trapper items, each with a trigger.
const alertedHost = `zabbix_export:
  version: '6.0'
  groups: [{uuid: 0b6f8a52c9a14c0c8d4d0f3e5b7a9c11, name: Compat}]
  templates:
    - uuid: 3c1f1b1a6f3d4c6c9f0c9be7a1a2b3c4
      template: Two triggers
      name: Two triggers
      groups: [{name: Compat}]
      items:
        - {uuid: 5c1f1b1a6f3d4c6c9f0c9be7a1a2b3c5, name: one, type: TRAP, key: one, delay: '0', value_type: FLOAT,
           triggers: [{uuid: 6c1f1b1a6f3d4c6c9f0c9be7a1a2b3c6, expression: 'last(/Two triggers/one)>5', name: One is high, priority: HIGH}]}
        - {uuid: 7c1f1b1a6f3d4c6c9f0c9be7a1a2b3c7, name: two, type: TRAP, key: two, delay: '0', value_type: FLOAT,
           triggers: [{uuid: 8c1f1b1a6f3d4c6c9f0c9be7a1a2b3c8, expression: 'last(/Two triggers/two)>5', name: Two is high, priority: HIGH}]}
  hosts:
    - host: both
      name: both
      groups: [{name: Compat}]
      templates: [{name: Two triggers}]
`

// hook takes alerts and keeps their subjects.
type hook struct {
	mu       sync.Mutex
	subjects []string
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subjects = append(h.subjects, string(text))
}

func (h *hook) count(subject string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.subjects {
		if strings.Contains(s, subject) {
			n++
		}
	}
	return n
}

// problems returns the names of the open problems.
func (s *server) problems() []string {
	var answer struct{ Problems []struct{ Name string } }
	if err := s.tryGet("/api/problems", nil, &answer); err != nil {
		return nil
	}
	var names []string
	for _, p := range answer.Problems {
		names = append(names, p.Name)
	}
	return names
}

// TestConfigurationInPostgres keeps values and configuration in PostgreSQL: a value becomes a problem and an alert, a kill of the server loses nothing, and
// a kill of PostgreSQL is said, survived, and ends by itself without an alert that is lost or sent twice.
func TestConfigurationInPostgres(t *testing.T) {
	c, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	taken := &hook{}
	receiver := httptest.NewServer(taken)
	t.Cleanup(receiver.Close)
	config := filepath.Join(t.TempDir(), "tidemark.yaml")
	text := fmt.Sprintf("storage: {engine: postgres, dsn: %q}\nconfiguration: {engine: postgres}\n", c.DSN("postgres"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServerWith(t, "--config", config)
	s.send(http.MethodPost, "/api/import", alertedHost)
	s.send(http.MethodPut, "/api/alerting", fmt.Sprintf(`{"url":"https://page.example",
		"media":[{"name":"hook","group_wait":"1s","group_interval":"1s","webhook":{"url":%q,"body":{"subject":"{ALERT.SUBJECT}"},"allow":["127.0.0.0/8"]},"secrets":{"KEY":"canary"}}],
		"receivers":[{"name":"all","media":[{"media":"hook","to":"x"}]}],
		"actions":[{"name":"tell","operations":[{"receivers":["all"]}]}]}`, receiver.URL))
	tell := func(key string) {
		t.Helper()
		answer := exchange(t, s, `{"request":"sender data","data":[{"host":"both","key":"`+key+`","value":"7"}]}`)
		if !strings.Contains(answer, "processed: 1; failed: 0") {
			t.Fatalf("the sender is answered %s", answer)
		}
	}
	tell("one")
	s.until("the first alert is there", func() bool { return taken.count("One is high") == 1 })

	s.restart()
	if got := s.problems(); len(got) != 1 || got[0] != "One is high" {
		t.Errorf("problems after a kill of the server: %v", got)
	}
	if !strings.Contains(s.send(http.MethodGet, "/api/alerting", ""), `"tell"`) || s.hostID("both") == "" {
		t.Error("the configuration is not there after a kill of the server")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data", "config.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("config.db: %v, expected none", err)
	}

	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	tell("two")
	away := func() bool {
		resp, err := http.Get("http://" + s.http + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return bytes.Contains(body, []byte("\ntidemark_confdb_away 1\n"))
	}
	s.until("the server says that its configuration is away", away)
	var answer any
	if err := s.tryGet("/api/problems", nil, &answer); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "cannot be reached; it is tried again") {
		t.Errorf("problems without PostgreSQL: %v", err)
	}
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	s.until("the second alert is there", func() bool { return taken.count("Two is high") == 1 })
	s.until("the server says that its configuration is there", func() bool { return !away() })
	s.until("both problems are there", func() bool { return len(s.problems()) == 2 })
	s.restart()
	if one, two := taken.count("One is high"), taken.count("Two is high"); one != 1 || two != 1 {
		t.Errorf("%d and %d alerts, expected one of each problem", one, two)
	}
	if got := s.problems(); len(got) != 2 {
		t.Errorf("problems in the end: %v", got)
	}
	s.stop()
}
