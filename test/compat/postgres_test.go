package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/test/launch"
	"tidemark/wire/zbx"
)

// TestPostgres keeps values in PostgreSQL: they are in Zabbix's tables, and a kill of the server loses none.
func TestPostgres(t *testing.T) {
	db := launch.Postgres(t)
	config := filepath.Join(t.TempDir(), "tidemark.yaml")
	text := fmt.Sprintf("storage:\n  engine: postgres\n  dsn: %q\n", db.DSN("postgres"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServerWith(t, "--config", config)
	s.importHost("pg", item("TRAP", "float", "FLOAT", "0"), item("TRAP", "text", "TEXT", "0"))
	from := time.Now().Unix() - 1000
	rows := make([]string, 0, 1000)
	for i := range 500 {
		rows = append(rows, fmt.Sprintf(`{"host":"pg","key":"float","value":"%d.25","clock":%d,"ns":1}`, i, from+int64(i)),
			fmt.Sprintf(`{"host":"pg","key":"text","value":"line %d","clock":%d,"ns":1}`, i, from+int64(i)))
	}
	answer := exchange(t, s, `{"request":"sender data","data":[`+strings.Join(rows, ",")+`]}`)
	if !strings.Contains(answer, "processed: 1000; failed: 0") {
		t.Fatalf("the sender is answered %s", answer)
	}
	s.restart()
	if got := s.values("pg", "float"); len(got) != 500 || got[499].text != "499.25" {
		t.Errorf("after a kill %d values, want 500", len(got))
	}
	s.until("PostgreSQL has the values", func() bool {
		out, err := db.SQL("postgres", "select (select count(*) from history), (select count(*) from history_text)")
		return err == nil && out == "500|500"
	})
	s.purge("pg", "float")
	if got := s.values("pg", "float"); len(got) != 0 {
		t.Errorf("after its history was deleted the item has %d values", len(got))
	}
	if got := s.values("pg", "text"); len(got) != 500 {
		t.Errorf("the other item has %d values, want 500", len(got))
	}
	s.restart()
	if got := s.values("pg", "float"); len(got) != 0 {
		t.Errorf("after a kill the deleted history has %d values", len(got))
	}
}

// purge deletes the history of an item, which is asked for twice.
func (s *server) purge(host, key string) {
	s.t.Helper()
	var answer struct {
		Token  string
		Purged bool
	}
	body := map[string]string{"host": host, "key": key}
	for range 2 {
		text, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(s.send(http.MethodPost, "/api/purge", string(text))), &answer); err != nil {
			s.t.Fatal(err)
		}
		body["token"], body["confirm"] = answer.Token, key
	}
	if !answer.Purged {
		s.t.Fatal("the history is not deleted")
	}
}

// exchange sends one request in the agent protocol and returns the answer.
func exchange(t *testing.T, s *server, body string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.trapper)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(zbx.AppendFrame(nil, []byte(body))); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
