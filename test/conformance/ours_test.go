package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
	"tidemark/wire/zbx"
)

// patience is how long the run waits for something that must come.
const patience = 180 * time.Second

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// showLog shows a log when the test fails.
func showLog(t *testing.T, file string) {
	t.Cleanup(func() {
		if t.Failed() {
			content, _ := os.ReadFile(file)
			t.Logf("%s:\n%s", file, content[max(0, len(content)-4000):])
		}
	})
}

// server is ours.
type server struct {
	t             *testing.T
	http, trapper string
	process       *exec.Cmd
}

// startServer starts our server with the host, the items and the triggers; options are settings of the configuration file.
func startServer(t *testing.T, binary, options string) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{t: t, http: freeport.Address(t), trapper: freeport.Address(t)}
	config := filepath.Join(dir, "tidemark.yaml")
	if err := os.WriteFile(config, []byte(options), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	showLog(t, log.Name())
	s.process = exec.Command(binary, "server", "--data", filepath.Join(dir, "data"), "--http", s.http, "--trapper", s.trapper, "--config", config)
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	until(t, "our server is ready", func() bool {
		resp, err := http.Get("http://" + s.http + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	s.importObjects()
	return s
}

// stop ends the server, which writes what it still holds.
func (s *server) stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = s.process.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		s.t.Error("our server does not end")
		_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
		<-done
	}
	s.process = nil
}

// importObjects imports what objects makes in Zabbix.
func (s *server) importObjects() {
	s.t.Helper()
	var all []map[string]any
	for _, i := range append(items(), item{key: "nothing", valueType: float}) {
		m := map[string]any{"name": i.key, "type": "TRAP", "key": i.key, "delay": "0", "value_type": typeNames[i.valueType], "history": "90d"}
		if i.valueType == text || i.valueType == character {
			m["trends"] = "0"
		}
		var steps []map[string]any
		for _, p := range i.steps {
			steps = append(steps, map[string]any{"type": p.name, "parameters": p.parameters})
		}
		if steps != nil {
			m["preprocessing"] = steps
		}
		all = append(all, m)
	}
	var list []map[string]any
	for _, t := range triggers() {
		m := map[string]any{"name": t.name, "expression": t.expression, "priority": "AVERAGE"}
		switch t.mode {
		case recoveryExpression:
			m["recovery_mode"], m["recovery_expression"] = "RECOVERY_EXPRESSION", t.recovery
		case recoveryNone:
			m["recovery_mode"] = "NONE"
		}
		if t.multiple {
			m["type"] = "MULTIPLE"
		}
		list = append(list, m)
	}
	body, err := json.Marshal(map[string]any{"zabbix_export": map[string]any{
		"version": "6.0", "groups": []map[string]any{{"uuid": "0b6f8a52c9a14c0c8d4d0f3e5b7a9c11", "name": "Conformance"}},
		"hosts":    []map[string]any{{"host": "conf", "name": "conf", "groups": []map[string]any{{"name": "Conformance"}}, "items": all}},
		"triggers": list,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post("http://"+s.http+"/api/import", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"refused":`)) {
		s.t.Fatalf("import: %s, %v: %.2000s", resp.Status, err, answer)
	}
}

// get reads JSON from the REST API.
func (s *server) get(path string, query url.Values, into any) {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s, %v: %.500s", path, resp.Status, err, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		s.t.Fatal(err)
	}
}

// send sends rows to a server and returns its info line.
func send(t *testing.T, address string, rows []row) string {
	t.Helper()
	type data struct {
		Host  string `json:"host"`
		Key   string `json:"key"`
		Value string `json:"value"`
		Clock int64  `json:"clock"`
		NS    int64  `json:"ns"`
	}
	var all []data
	for _, r := range rows {
		all = append(all, data{"conf", r.key, r.value, r.at / 1e9, r.at % 1e9})
	}
	body, err := json.Marshal(map[string]any{"request": "sender data", "data": all})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(zbx.AppendFrame(nil, body)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct{ Info string }
	if err := json.Unmarshal(answer[min(13, len(answer)):], &reply); err != nil {
		t.Fatalf("answer of %s: %v: %.200q", address, err, answer)
	}
	var processed, failed, total int
	if _, err := fmt.Sscanf(reply.Info, "processed: %d; failed: %d; total: %d", &processed, &failed, &total); err != nil {
		t.Fatalf("answer of %s: %q", address, reply.Info)
	}
	return fmt.Sprintf("processed %d failed %d", processed, failed)
}
