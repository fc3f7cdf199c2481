package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tidemark/load"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// kills is how often the server is killed; TIDEMARK_KILLS sets another number (make soak: 10,000).
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TIDEMARK_KILLS")
	if text == "" {
		return 500
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TIDEMARK_KILLS is %q, want a number of kills", text)
	}
	return n
}

// server is the program under test.
type server struct {
	t                        *testing.T
	path, dir, http, trapper string
	cmd                      *exec.Cmd
	log                      *os.File
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, path: launch.Binary(t), dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t)}
	log, err := os.Create(filepath.Join(s.dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	s.log = log
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the server's log ends with\n%s", text[max(0, len(text)-6000):])
		}
		_ = log.Close()
	})
	return s
}

// patience is how long a test waits for something that must come, on a busy machine.
const patience = 2 * time.Minute

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.path, "server", "--data", filepath.Join(s.dir, "data"), "--http", s.http, "--trapper", s.trapper, "--disk-space", "1GiB")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if answer, err := http.Get("http://" + s.http + "/-/ready"); err == nil {
			_ = answer.Body.Close()
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	s.t.Fatal("the server does not get ready")
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// get reads JSON from the API.
func (s *server) get(path string, into any) {
	s.t.Helper()
	answer, err := http.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v\n%s", path, answer.Status, err, body[:min(len(body), 500)])
	}
}

// values returns every stored value of an item as "time value".
func (s *server) values(item string) map[int64]string {
	s.t.Helper()
	out := map[int64]string{}
	cursor := ""
	for {
		var page struct {
			Values []struct {
				AtNS  string `json:"at_ns"`
				Value struct{ V string }
			}
			Next string
		}
		s.get("/api/values?limit=10000&from=0&to=9000000000000&item="+item+"&cursor="+url.QueryEscape(cursor), &page)
		for _, v := range page.Values {
			at, err := strconv.ParseInt(v.AtNS, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			if _, twice := out[at]; twice {
				s.t.Fatalf("item %s has two values at %d", item, at)
			}
			out[at] = v.Value.V
		}
		if page.Next == "" {
			return out
		}
		cursor = page.Next
	}
}

// TestKill kills the server at random moments under load. Afterwards every value that was answered is stored, exactly and once, and
// nothing else is.
func TestKill(t *testing.T) {
	s := newServer(t)
	s.start()
	o := load.Options{Server: s.trapper, HTTP: s.http, Hosts: 8, Items: 25, NVPS: 4000, Protocol: load.Agent, Triggers: 0.6, Timeout: 10 * time.Second, Drain: patience}
	o, err := o.Check()
	if err != nil {
		t.Fatal(err)
	}
	if err := load.Provision(t.Context(), o, t.Output()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type result struct {
		report load.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		r, err := load.Run(ctx, o, t.Output())
		done <- result{r, err}
	}()
	n := kills(t)
	for i := range n {
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
		s.kill()
		s.start()
		if i%50 == 49 {
			t.Logf("%d of %d kills", i+1, n)
		}
	}
	stop()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	s.kill()
	s.start()
	verify(t, s, o, r.report)
}

// verify compares what is stored with what was answered.
func verify(t *testing.T, s *server, o load.Options, r load.Report) {
	t.Helper()
	if r.Sent == 0 || r.Retries == 0 {
		t.Fatalf("%d values were sent with %d retries: the kills hit nothing", r.Sent, r.Retries)
	}
	o.Start = r.Start
	var stored uint64
	for h := range o.Hosts {
		want := map[int]map[int64]string{}
		walks := make([]load.Walk, o.Items)
		for i := range walks {
			walks[i] = load.NewWalk(h, i)
			want[i] = map[int64]string{}
		}
		schedule := load.NewSchedule(&o, h)
		for left := r.PerHost[h]; left > 0; {
			due := schedule.Take(nil, 1<<62, int(min(left, 10_000)))
			for _, d := range due {
				v, err := strconv.ParseFloat(string(load.AppendValue(nil, walks[d.Item].Next())), 64)
				if err != nil {
					t.Fatal(err)
				}
				want[d.Item][d.At] = strconv.FormatFloat(v, 'g', -1, 64)
			}
			left -= uint64(len(due))
		}
		for key, id := range items(s, load.HostName(h)) {
			var index int
			if _, err := fmt.Sscanf(key, "load.item[%d]", &index); err != nil {
				continue
			}
			got := s.values(id)
			compare(t, load.HostName(h)+" "+key, got, want[index-1])
			stored += uint64(len(got))
		}
	}
	t.Logf("%d values sent, %d requests repeated, %d values stored", r.Sent, r.Retries, stored)
}

func compare(t *testing.T, name string, got, want map[int64]string) {
	t.Helper()
	lost, foreign := 0, 0
	for at, v := range want {
		if got[at] != v {
			lost++
		}
	}
	for at := range got {
		if _, ok := want[at]; !ok {
			foreign++
		}
	}
	if lost > 0 || foreign > 0 {
		t.Errorf("%s: %d of %d answered values are missing or changed, %d stored ones were never answered", name, lost, len(want), foreign)
	}
}

// items returns key → id of a host's items.
func items(s *server, host string) map[string]string {
	s.t.Helper()
	var hosts struct {
		Hosts []struct{ ID, Host string }
	}
	s.get("/api/hosts?search="+host, &hosts)
	out := map[string]string{}
	for _, h := range hosts.Hosts {
		if h.Host != host {
			continue
		}
		var page struct {
			Items []struct{ ID, Key string }
		}
		s.get("/api/items?limit=10000&host="+h.ID, &page)
		for _, i := range page.Items {
			out[i.Key] = i.ID
		}
	}
	if len(out) == 0 {
		s.t.Fatalf("host %s has no items", host)
	}
	return out
}
