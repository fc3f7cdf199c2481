package media

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) { launch.Main(m, &program) }

// patience is how long a test waits for something that must come.
const patience = 60 * time.Second

// object is one of JSON.
type object = map[string]any

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// server is the program under test.
type server struct {
	t                     *testing.T
	dir, config           string
	http, trapper, origin string
	kill                  func()
}

// startServer starts a server that trusts the certificate authority of a file.
func startServer(t *testing.T, authority string) *server {
	t.Helper()
	t.Setenv("SSL_CERT_FILE", authority)
	s := &server{t: t, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t)}
	s.config, s.origin = filepath.Join(s.dir, "tidemark.yaml"), "http://"+s.http
	text := fmt.Sprintf("data: %s/data\nhttp: {listen: %q}\nstorage: {disk_space: 1GiB}\n", s.dir, s.http)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.kill = launch.Run(s.t, filepath.Join(s.dir, "server.log"), program, "server", "--config", s.config, "--trapper", s.trapper)
	until(s.t, "the server is ready", func() bool {
		resp, err := http.Get(s.origin + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// call sends JSON to the REST API and reads the answer.
func (s *server) call(method, path string, body, into any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest(method, s.origin+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %s %v: %.2000s", method, path, resp.Status, err, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.t.Fatalf("%s %s: %v in %.500s", method, path, err, answer)
		}
	}
}

// send sends one value as zabbix_sender does.
func (s *server) send(host, key, value string) {
	s.t.Helper()
	body, err := json.Marshal(object{"request": "sender data", "data": []object{{"host": host, "key": key, "value": value}}})
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.trapper)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	frame := binary.LittleEndian.AppendUint64([]byte("ZBXD\x01"), uint64(len(body)))
	if _, err := c.Write(append(frame, body...)); err != nil {
		s.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !bytes.Contains(answer, []byte("failed: 0")) {
		s.t.Fatalf("send: %v: %q", err, answer)
	}
}

// problem is an open or past problem of the REST API.
type problem struct {
	EventID string `json:"event_id"`
	Tags    []struct{ Tag, Name, Value string }
	Links   []struct{ Name, URL string }
}

func (s *server) problems() []problem {
	s.t.Helper()
	var list struct{ Problems []problem }
	s.call(http.MethodGet, "/api/problems", nil, &list)
	return list.Problems
}
