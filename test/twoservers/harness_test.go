package twoservers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/test/freeport"
	"tidemark/test/launch"
	"tidemark/wire/zbx"
)

// program is the binary under test.
var program string

func TestMain(m *testing.M) { launch.Main(m, &program) }

// patience is how long a test waits for something that must come, on a busy machine.
const patience = 3 * time.Minute

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// count reads a number of repetitions from the environment.
func count(t testing.TB, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q, expected a number from 1 on", name, text)
	}
	return n
}

// wire is a connection to the database that can be cut, as a network is: what is open stays open and silent, and new connections get no answer.
type wire struct {
	net.Listener
	target string
	cut    atomic.Bool
}

func newWire(t testing.TB, socket string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, target: socket}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	return w
}

// pass copies in both directions while the wire is whole. What comes while it is cut is lost, so the connection is of no use afterwards either.
func (w *wire) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("unix", w.target)
	if err != nil {
		return
	}
	defer out.Close()
	ends := make(chan struct{}, 2)
	copying := func(to, from net.Conn) {
		defer func() { ends <- struct{}{} }()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			for w.cut.Load() {
				if err != nil {
					return
				}
				_, err = from.Read(b) // lost
				n = 0
			}
			if n > 0 {
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go copying(out, in)
	go copying(in, out)
	<-ends
}

// node is a server on a machine of its own, so to speak.
type node struct {
	t             testing.TB
	name, dir     string
	http, trapper string
	wire          *wire
	pid           int
	kill          func()
}

// leaseTime is how long a lease lasts in the tests.
const leaseTime = 5 * time.Second

func newNode(t testing.TB, name, socket string) *node {
	n := &node{t: t, name: name, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t), wire: newWire(t, socket), kill: func() {}}
	host, port, _ := net.SplitHostPort(n.wire.Addr().String())
	config := fmt.Sprintf(`data: %s
http: {listen: %q}
trapper: {listen: %q}
storage: {engine: postgres, dsn: "host=%s port=%s user=tidemark dbname=postgres sslmode=disable", shared: true, lease: %s}
configuration: {engine: postgres}
`, filepath.Join(n.dir, "data"), n.http, n.trapper, host, port, leaseTime)
	if err := os.WriteFile(n.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) config() string { return filepath.Join(n.dir, "tidemark.yaml") }

func (n *node) start() {
	n.t.Helper()
	n.pid, n.kill = launch.Group(n.t, filepath.Join(n.dir, "server.log"), program, "server", "--config", n.config())
}

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := syscall.Kill(n.pid, s); err != nil {
		n.t.Fatal(err)
	}
}

// client gives up on a server that is stopped.
var client = &http.Client{Timeout: 10 * time.Second}

// lease is what GET /api/lease says.
type lease struct {
	Role  string
	Epoch int64
}

func (n *node) lease() (l lease) {
	answer, err := client.Get("http://" + n.http + "/api/lease")
	if err != nil {
		return l
	}
	defer answer.Body.Close()
	_ = json.NewDecoder(answer.Body).Decode(&l) // what is no answer is no role
	return l
}

// ready is the status of the answer to a load balancer; zero when there is none.
func (n *node) ready() int {
	answer, err := client.Get("http://" + n.http + "/-/ready")
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func (n *node) works() bool { return n.lease().Role == "working" }

// call sends a request that must succeed.
func (n *node) call(method, path, kind, body string, into any) {
	n.t.Helper()
	r, err := http.NewRequest(method, "http://"+n.http+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	answer, err := client.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		n.t.Fatalf("%s %s: %s %s %v", method, path, answer.Status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			n.t.Fatal(err)
		}
	}
}

// exchange sends a body in the senders' protocol and reports whether all its values were processed.
func exchange(ctx context.Context, address, body string, values int) bool {
	c, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(zbx.AppendFrame(nil, []byte(body))); err != nil {
		return false
	}
	_, answer, err := (&zbx.FrameReader{}).Read(c)
	return err == nil && strings.Contains(string(answer), fmt.Sprintf("processed: %d; failed: 0", values))
}

// desk receives alerts and counts them by the text in their subject.
type desk struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]int
}

func newDesk(t testing.TB) *desk {
	d := &desk{got: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in struct{ Subject, Kind string }
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil {
			t.Errorf("an alert that is no JSON: %v", err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if in.Kind == "problem" {
			d.got[in.Subject]++
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) told(subject string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.got[subject]
}

// pair are two servers on one database.
type pair struct {
	t       testing.TB
	cluster *pgtest.Cluster
	nodes   [2]*node
	desk    *desk
	raised  []string
}

// The hosts of the tests: counters get rising numbers from senders, alarms raise one problem each.
const (
	counters = 20
	alarms   = 400
)

// newPair starts two servers with a host, triggers and an action.
func newPair(t testing.TB) *pair {
	t.Helper()
	c, err := pgtest.Start("-cautovacuum=on", "-crestart_after_crash=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	p := &pair{t: t, cluster: c, desk: newDesk(t)}
	// A role of the documentation's name: the schema of the configuration, which the first server makes, comes first in its search path.
	if _, err := c.SQL("postgres", "CREATE ROLE tidemark LOGIN; GRANT CREATE ON SCHEMA public TO tidemark; GRANT CREATE ON DATABASE postgres TO tidemark"); err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(strings.Fields(c.DSN("postgres"))[0], "host=") + "/.s.PGSQL.5432"
	for i := range p.nodes {
		p.nodes[i] = newNode(t, string(rune('a'+i)), socket)
	}
	first := p.nodes[0]
	first.start()
	until(t, "the first server works", first.works)
	first.call(http.MethodPost, "/api/import", "application/yaml", p.hosts(), nil)
	first.call(http.MethodPut, "/api/alerting", "application/json", fmt.Sprintf(`{
		"media": [{"name": "desk", "ticket": true, "sessions": 4, "webhook": {"url": "%s", "allow": ["127.0.0.0/8"], "body": {"subject": "{ALERT.SUBJECT}", "kind": "{ALERT.KIND}"}}}],
		"receivers": [{"name": "desk", "media": [{"media": "desk", "to": "desk"}]}],
		"actions": [{"name": "all", "operations": [{"receivers": ["desk"], "subject": "{EVENT.NAME}"}]}]}`, p.desk.URL), nil)
	p.refuseOtherKey()
	p.nodes[1].start()
	until(t, "the second server waits", func() bool { return p.nodes[1].lease().Role == "waiting" })
	return p
}

// refuseOtherKey starts the second server without the key that the first one has encrypted secrets with, and then gives it that.
func (p *pair) refuseOtherKey() {
	p.t.Helper()
	second := p.nodes[1]
	out, err := exec.Command(program, "server", "--config", second.config()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "copy the file secret.key") {
		p.t.Errorf("without the key: %v\n%s", err, out)
	}
	key, err := os.ReadFile(filepath.Join(p.nodes[0].dir, "data", "secret.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(second.dir, "data", "secret.key"), key, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// hosts is the configuration.
func (p *pair) hosts() string {
	var b strings.Builder
	b.WriteString("zabbix_export:\n  version: '6.0'\n  host_groups: [{uuid: 4f1c6a0f6a5c4c1d8b0f3a7de2b9c001, name: Examples}]\n  hosts:\n  - host: example\n    groups: [{name: Examples}]\n    items:\n")
	for i := range counters {
		fmt.Fprintf(&b, "    - {name: c%d, type: TRAP, key: 'counter[%d]', delay: '0', value_type: UNSIGNED}\n", i, i)
	}
	for i := range alarms {
		fmt.Fprintf(&b, "    - {name: a%d, type: TRAP, key: 'alarm[%d]', delay: '0', value_type: UNSIGNED, triggers: [{expression: 'last(/example/alarm[%d])>0', name: 'alarm %d', priority: HIGH}]}\n", i, i, i, i)
	}
	return b.String()
}

// send sends to one server after the other until one has acknowledged, as agents with a list of servers do; first says which is asked first.
func (p *pair) send(ctx context.Context, first int, body string, values int) bool {
	for i := first; ctx.Err() == nil; i++ {
		if exchange(ctx, p.nodes[i%2].trapper, body, values) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// raise lets one more problem begin, and waits until its value is acknowledged.
func (p *pair) raise() {
	p.t.Helper()
	n := len(p.raised)
	if n == alarms {
		p.t.Fatalf("more than %d problems", alarms)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	body := fmt.Sprintf(`{"request":"sender data","data":[{"host":"example","key":"alarm[%d]","value":"1","clock":%d,"ns":1}]}`, n, time.Now().Unix())
	if !p.send(ctx, n, body, 1) {
		p.t.Fatalf("alarm %d was not acknowledged in %v", n, patience)
	}
	p.raised = append(p.raised, fmt.Sprintf("alarm %d", n))
}

// working is the server that works now.
func (p *pair) working() (works, waits *node) {
	p.t.Helper()
	until(p.t, "one server works", func() bool {
		for i, n := range p.nodes {
			if n.works() {
				works, waits = n, p.nodes[1-i]
				return true
			}
		}
		return false
	})
	return works, waits
}
