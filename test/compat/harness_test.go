package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { launch.Main(m, &binary) }

// patience is how long a test waits for something that must come. Zabbix agent 2 makes the first check of a minute's interval at any moment of that minute.
const patience = 100 * time.Second

// process is a child that is killed when the test ends.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error
}

func run(t *testing.T, logFile, name string, args ...string) *process {
	t.Helper()
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{t: t, cmd: exec.Command(name, args...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: agents have children, which must not outlive the test.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(p.kill)
	return p
}

// showLog shows a log when the test fails.
func showLog(t *testing.T, logFile string) {
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(logFile)
			t.Logf("%s:\n%s", logFile, text[max(0, len(text)-8000):])
		}
	})
}

// kill ends the process and its children at once and waits for it.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	launch.KillGroup(p.cmd.Process.Pid)
	<-p.done
	p.cmd = nil
}

// stop ends the process politely and waits for it.
func (p *process) stop() {
	p.t.Helper()
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		p.t.Error(err)
	}
	select {
	case <-p.done:
		p.cmd = nil
	case <-time.After(patience):
		p.t.Error("the process does not end")
		p.kill()
	}
}

// server is the program under test.
type server struct {
	*process
	t                  *testing.T
	dir, http, trapper string
	trapperPort        int
	// flags are further ones.
	flags []string
}

// startServer starts a server with an empty data folder on free ports.
func startServer(t *testing.T) *server {
	t.Helper()
	return startServerWith(t, "--disk-space", "1GiB")
}

// startServerWith is startServer with other flags.
func startServerWith(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t), flags: flags}
	_, port, _ := net.SplitHostPort(s.trapper)
	s.trapperPort, _ = strconv.Atoi(port)
	showLog(t, s.logFile())
	s.start()
	return s
}

func (s *server) logFile() string { return filepath.Join(s.dir, "server.log") }

// start starts the server, after kill again with the same data and ports, and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{
		"server", "--data", filepath.Join(s.dir, "data"), "--http", s.http, "--trapper", s.trapper, "--autoregistration",
	}, s.flags...)
	s.process = run(s.t, s.logFile(), binary, args...)
	s.until("the server is ready", func() bool {
		resp, err := http.Get("http://" + s.http + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// restart kills the server as a power cut would and starts it again.
func (s *server) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

// until waits for a condition, checked ten times a second.
func (s *server) until(what string, fn func() bool) {
	s.t.Helper()
	launch.Until(s.t, patience, what, fn)
}

// get reads JSON from the REST API.
func (s *server) get(path string, query url.Values, into any) {
	s.t.Helper()
	if err := s.tryGet(path, query, into); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) tryGet(path string, query url.Values, into any) error {
	resp, err := http.Get("http://" + s.http + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", path, resp.Status, body)
	}
	return errors.Join(err, json.Unmarshal(body, into))
}

// importHost imports an export of one host with items.
func (s *server) importHost(host string, items ...map[string]any) {
	s.t.Helper()
	group := []map[string]any{{"name": "Compat"}}
	export := map[string]any{"zabbix_export": map[string]any{
		"version": "6.0",
		"groups":  []map[string]any{{"uuid": "0b6f8a52c9a14c0c8d4d0f3e5b7a9c11", "name": "Compat"}},
		"hosts":   []map[string]any{{"host": host, "name": host, "groups": group, "items": items}},
	}}
	body, err := json.Marshal(export)
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
		s.t.Fatalf("import of host %s: %s, %v: %.1000s", host, resp.Status, err, answer)
	}
}

func item(kind, key, valueType, delay string) map[string]any {
	return map[string]any{"name": key, "type": kind, "key": key, "value_type": valueType, "delay": delay}
}

// hostID returns the id of a host, "" when there is none.
func (s *server) hostID(host string) string {
	s.t.Helper()
	var answer struct {
		Hosts []struct{ ID, Host string }
	}
	s.get("/api/hosts", url.Values{"search": {host}}, &answer)
	for _, h := range answer.Hosts {
		if h.Host == host {
			return h.ID
		}
	}
	return ""
}

// itemID returns the id of an item.
func (s *server) itemID(host, key string) string {
	s.t.Helper()
	var answer struct {
		Items []struct{ ID, Key string }
	}
	s.get("/api/items", url.Values{"host": {s.hostID(host)}, "search": {key}, "limit": {"10000"}}, &answer)
	for _, i := range answer.Items {
		if i.Key == key {
			return i.ID
		}
	}
	s.t.Fatalf("host %s has no item %s among %v", host, key, answer.Items)
	return ""
}

// value is one stored value.
type value struct {
	at   int64
	text string
}

// values returns every stored value of an item, oldest first.
func (s *server) values(host, key string) []value {
	s.t.Helper()
	query := url.Values{"item": {s.itemID(host, key)}, "from": {"0"}, "to": {"4000000000000"}, "order": {"asc"}, "limit": {"10000"}}
	var all []value
	for {
		var page struct {
			Values []struct {
				At    string `json:"at_ns"`
				Value struct{ V string }
			}
			Next string
		}
		s.get("/api/values", query, &page)
		for _, v := range page.Values {
			at, err := strconv.ParseInt(v.At, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, value{at, v.Value.V})
		}
		if page.Next == "" {
			return all
		}
		query.Set("cursor", page.Next)
	}
}

// number returns the shortest text of the float that text is, as the REST API gives it.
func number(text []byte) string {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return string(text)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
