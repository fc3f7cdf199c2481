package proxy

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
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { launch.Main(m, &binary) }

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// server is the program under test.
type server struct {
	t             *testing.T
	dir           string
	http, trapper string
	config        string
	kill          func()
}

// startServer starts a server with an empty data folder on free ports; config is more of its configuration file.
func startServer(t *testing.T, config string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t)}
	s.config = filepath.Join(s.dir, "tidemark.yaml")
	text := fmt.Sprintf("data: %s/data\nautoregistration: true\nhttp: {listen: %q}\nstorage: {disk_space: 1GiB}\n", s.dir, s.http) + config
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.kill = launch.Run(s.t, filepath.Join(s.dir, "server.log"), binary, "server", "--config", s.config, "--trapper", s.trapper)
	until(s.t, "the server is ready", func() bool {
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

// tell runs a command that speaks to the server and returns what it prints.
func (s *server) tell(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(binary, append(args, "--http", s.http)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tidemark %q: %v\n%s", args, err, out)
	}
	return string(out)
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
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", path, resp.Status, body)
	}
	if err := errors.Join(err, json.Unmarshal(body, into)); err != nil {
		s.t.Fatal(err)
	}
}

// object is one of an export.
type object = map[string]any

// importHosts imports hosts; each gets a group.
func (s *server) importHosts(hosts ...object) {
	s.t.Helper()
	group := []object{{"name": "Proxied"}}
	for _, h := range hosts {
		h["groups"], h["name"] = group, h["host"]
	}
	body, err := json.Marshal(object{"zabbix_export": object{
		"version": "6.0", "groups": []object{{"uuid": "0b6f8a52c9a14c0c8d4d0f3e5b7a9c12", "name": "Proxied"}}, "hosts": hosts,
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
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"refused":`)) || bytes.Contains(answer, []byte("has no collector")) {
		s.t.Fatalf("import: %s, %v: %.3000s", resp.Status, err, answer)
	}
}

// reading is what is known of an item.
type reading struct {
	ID, Key, State, Error string
	Last                  *struct{ Value struct{ V string } }
}

// items returns the items of a host by key.
func (s *server) items(host string) map[string]reading {
	s.t.Helper()
	var hosts struct{ Hosts []struct{ ID, Host string } }
	s.get("/api/hosts", url.Values{"search": {host}}, &hosts)
	byKey := map[string]reading{}
	for _, h := range hosts.Hosts {
		if h.Host != host {
			continue
		}
		var list struct{ Items []reading }
		s.get("/api/items", url.Values{"host": {h.ID}, "limit": {"10000"}}, &list)
		for _, i := range list.Items {
			byKey[i.Key] = i
		}
	}
	return byKey
}

// values are the values of an item in order of time.
func (s *server) values(host, key string) []string {
	s.t.Helper()
	i, ok := s.items(host)[key]
	if !ok {
		return nil
	}
	var page struct {
		Values []struct{ Value struct{ V string } }
	}
	s.get("/api/values", url.Values{"item": {i.ID}, "from": {"0"}, "to": {"4000000000000"}, "limit": {"10000"}}, &page)
	list := make([]string, len(page.Values))
	for i, v := range page.Values {
		list[i] = v.Value.V
	}
	return list
}

// sendTo sends values as lines of zabbix_sender, with more arguments if need be, and reports whether all of them were taken.
func sendTo(address, lines string, args ...string) bool {
	ip, port, _ := net.SplitHostPort(address)
	c := exec.Command("/usr/bin/zabbix_sender", append([]string{"-z", ip, "-p", port, "-T", "-N", "-i", "-"}, args...)...)
	c.Stdin = strings.NewReader(lines)
	out, err := c.CombinedOutput()
	return err == nil && bytes.Contains(out, []byte("failed: 0;"))
}

// inOrder is list in rising order of time.
func inOrder(list []string, first string) []string {
	if len(list) > 1 && list[0] != first {
		slices.Reverse(list)
	}
	return list
}

// write writes a file in a folder.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
