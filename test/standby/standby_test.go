package standby

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/load"
)

// small is a load that two cores have room for.
func small() load.Options {
	return load.Options{Hosts: 4, Items: 10, NVPS: 1500, Protocol: load.Agent, Triggers: 0.5, Timeout: 10 * time.Second, Drain: patience}
}

// problems lists the open problems with what is known of them.
func (n *node) problems() string {
	n.t.Helper()
	var list struct {
		Problems []struct {
			ID           string `json:"event_id"`
			Name         string
			StartedAt    int64 `json:"started_at"`
			Acknowledged bool
			RecoveredAt  *int64 `json:"recovered_at"`
		}
	}
	n.get("/api/problems?limit=1000", &list)
	var out strings.Builder
	for _, p := range list.Problems {
		if p.RecoveredAt == nil {
			fmt.Fprintln(&out, p.ID, p.Name, p.StartedAt, p.Acknowledged)
		}
	}
	return out.String()
}

// TestHandOver takes over under load from a primary that answers: nothing is lost, queries are answered all the time, and the old primary, fenced, becomes the standby.
func TestHandOver(t *testing.T) {
	t.Parallel()
	a, b := newNode(t), newNode(t)
	a.start()
	provision(t, a, small())
	agents, queries := newRelay(t, a.trapper), newRelay(t, a.http)
	o := small()
	o.Server = agents.Addr().String()
	f := startFeed(t, o)
	asking := startAsking(t, queries.Addr().String())
	until(t, "values come", func() bool { _, n := a.digest(); return n > 1000 })
	b.start("--standby-of", a.http)
	b.caughtUp()
	p := b.promote()
	if !p.HandedOver || p.Epoch>>32 != 1 {
		t.Errorf("%+v", p)
	}
	if log := command(t, "audit", "list", "--http", b.http); !strings.Contains(log, "POST /api/standby/promote") {
		t.Errorf("the audit log of the new primary is %s", log)
	}
	agents.move(b.trapper)
	queries.moveGently(t, b.http)
	_, before := b.digest()
	until(t, "values come to the new primary", func() bool { _, n := b.digest(); return n > before+1000 })
	if s := a.state(); s.Role != "fenced" {
		t.Errorf("the old primary is %+v", s)
	}
	r := f.finish(t)
	f.verify(t, b, &r)
	if asked, failed := asking(); asked == 0 || failed != nil {
		t.Errorf("%d queries, then %v", asked, failed)
	}
	// The fenced server refuses over a restart, and becomes the standby.
	a.kill()
	a.start()
	if s := a.state(); s.Role != "fenced" || !strings.Contains(s.Refusal, "another server was promoted") || !strings.HasSuffix(s.Refusal, "the new primary is http://"+b.http) {
		t.Errorf("the old primary is %+v after its restart", s)
	}
	a.kill()
	a.start("--standby-of", b.http)
	a.follows(b)
	equal(t, a, b)
	until(t, "the configuration is there too", func() bool { return a.problems() == b.problems() })
	t.Logf("%d values, %d requests repeated, promoted in %.0f ms", r.Sent, r.Retries, p.Milliseconds)
}

const export = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcdef","name":"Tests"}],"hosts":[{"host":"web-1","name":"Web",
"groups":[{"name":"Tests"}],"items":[{"name":"Temperature","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","triggers":[
{"expression":"last(/web-1/temperature)>10","name":"Too warm on {HOST.NAME}","priority":"HIGH"}]},
{"name":"Text","type":"TRAP","key":"text","delay":"0","value_type":"TEXT"}]}]}}`

func (n *node) importHost() {
	n.t.Helper()
	answer, err := http.Post("http://"+n.http+"/api/import", "application/json", strings.NewReader(export))
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		n.t.Fatalf("import: %s", answer.Status)
	}
}

// send sends a value in the sender's protocol until it is taken.
func (n *node) send(host, key, value string) { n.sendTimes(host, key, value, 1) }

// sendTimes sends a value several times in one request.
func (n *node) sendTimes(host, key, value string, times int) {
	n.t.Helper()
	row := fmt.Sprintf(`{"host":%q,"key":%q,"value":%q}`, host, key, value)
	body := `{"request":"sender data","data":[` + strings.Repeat(row+",", times-1) + row + `]}`
	frame := append([]byte("ZBXD\x01"), binary.LittleEndian.AppendUint64(nil, uint64(len(body)))...)
	until(n.t, "a value is taken", func() bool {
		c, err := net.Dial("tcp", n.trapper)
		if err != nil {
			return false
		}
		defer c.Close()
		if _, err := c.Write(append(frame, body...)); err != nil {
			return false
		}
		answer, _ := io.ReadAll(c)
		return bytes.Contains(answer, []byte(fmt.Sprintf("processed: %d; failed: 0", times)))
	})
}

// startAsking queries an address until the function is called, which returns how often and the first failure.
func startAsking(t testing.TB, address string) func() (int, error) {
	stop, done := make(chan struct{}), make(chan struct{})
	asked, failed := 0, error(nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			answer, err := client.Get("http://" + address + "/api/v1/query?query=count(load_item)")
			if err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					err = fmt.Errorf("status %s", answer.Status)
				}
			}
			if err != nil && failed == nil {
				failed = fmt.Errorf("query %d: %w", asked, err)
			}
			asked++
		}
	}()
	return func() (int, error) { close(stop); <-done; return asked, failed }
}

// TestKilled kills the primary when the standby has everything: all of it is there, with problems and their acknowledgement.
func TestKilled(t *testing.T) {
	t.Parallel()
	a, b := newNode(t), newNode(t)
	a.start()
	provision(t, a, small())
	a.importHost()
	b.start("--standby-of", a.http)
	o := small()
	o.Server, o.Seconds = a.trapper, 2
	f := startFeed(t, o)
	a.send("web-1", "temperature", "20")
	until(t, "a problem is open", func() bool { return a.problems() != "" })
	r := (<-f.done).report
	f.o.Start = r.Start
	b.follows(a)
	var list struct {
		Problems []struct {
			ID string `json:"event_id"`
		}
	}
	a.get("/api/problems", &list)
	answer, err := http.Post("http://"+a.http+"/api/problems/"+list.Problems[0].ID+"/acknowledge", "application/json", strings.NewReader(`{"message":"seen"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("acknowledge: %s", answer.Status)
	}
	want := a.problems()
	until(t, "the standby shows the same problems", func() bool { return b.problems() == want })
	a.kill()
	if p := b.promote(); p.HandedOver || p.Milliseconds > 30_000 {
		t.Errorf("%+v", p)
	}
	f.verify(t, b, &r)
	if got := b.problems(); got != want {
		t.Errorf("problems after the promotion:\n%s\nbefore:\n%s", got, want)
	}
	b.send("web-1", "temperature", "1")
	until(t, "the problem recovered at the new primary", func() bool { return b.problems() == "" })
	// Both come back: the old one hears of it before it takes a value.
	b.kill()
	b.start("--standby-of", a.http) // as it was started; it knows that it was promoted
	a.start()
	if s := a.state(); s.Role != "fenced" {
		t.Errorf("the old primary is %+v", s)
	}
	until(t, "the new primary is told that the old one knows", func() bool {
		text, err := os.ReadFile(filepath.Join(b.data(), "replication.json"))
		return err == nil && !bytes.Contains(text, []byte("primary_unfenced"))
	})
}

// TestSynchronous kills the primary in the middle: nothing that was answered is lost. Alone it answers nothing.
func TestSynchronous(t *testing.T) {
	t.Parallel()
	a, b := newNode(t), newNode(t)
	settings := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(settings, []byte("standby:\n  synchronous: true\n  wait: 2s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.start()
	provision(t, a, small())
	a.kill()
	a.start("--config", settings)
	until(t, "the server refuses values alone", func() bool { return strings.Contains(a.state().Refusal, "no standby has confirmed") })
	agents := newRelay(t, a.trapper)
	o := small()
	o.Server = agents.Addr().String()
	f := startFeed(t, o)
	b.start("--standby-of", a.http, "--config", settings)
	until(t, "values are taken", func() bool { _, n := b.digest(); return n > 3000 })
	a.kill()
	b.promote()
	agents.move(b.trapper)
	until(t, "the new primary refuses values alone", func() bool { return strings.Contains(b.state().Refusal, "no standby has confirmed") })
	_, before := b.digest()
	a.start("--standby-of", b.http, "--config", settings)
	until(t, "values are taken again", func() bool { _, n := b.digest(); return n > before+1000 })
	r := f.finish(t)
	f.verify(t, b, &r)
	a.follows(b)
	equal(t, a, b)
	t.Logf("%d values, %d requests repeated", r.Sent, r.Retries)
}

// TestBehind keeps a standby away for longer than its primary's log reaches back: it copies everything again.
func TestBehind(t *testing.T) {
	t.Parallel()
	a, b := newNode(t), newNode(t)
	a.start()
	a.importHost()
	a.send("web-1", "text", "first")
	b.start("--standby-of", a.http)
	b.follows(a)
	b.kill()
	for range 60 { // 64 MiB, of which half is kept
		text := make([]byte, 60<<10)
		for i := range text {
			text[i] = byte('a' + rand.IntN(26))
		}
		a.sendTimes("web-1", "text", string(text), 18)
	}
	b.start("--standby-of", a.http)
	log := filepath.Join(b.dir, "server.log")
	until(t, "the standby is seeded again", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && bytes.Contains(text, []byte("everything is copied again"))
	})
	until(t, "the standby has all that the primary has", func() bool {
		var one, two state
		return a.fetch("/api/standby", &one) == nil && b.fetch("/api/standby", &two) == nil && two.Lag != nil && two.Lag.Connected && two.Lag.Bytes == 0 &&
			len(one.Standbys) == 1 && one.Standbys[0].LagBytes == 0 && !one.Standbys[0].Seeding
	})
	equal(t, a, b)
}

// TestFlapping kills primary and standby at random under load; TIDEMARK_STANDBY_KILLS sets how often.
func TestFlapping(t *testing.T) {
	t.Parallel()
	kills := 6
	if text := os.Getenv("TIDEMARK_STANDBY_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TIDEMARK_STANDBY_KILLS is %q, want a number of kills", text)
		}
		kills = n
	}
	a, b := newNode(t), newNode(t)
	a.start()
	provision(t, a, small())
	o := small()
	o.Server = a.trapper
	f := startFeed(t, o)
	b.start("--standby-of", a.http)
	for i := range kills {
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
		if i%3 == 2 {
			a.kill()
			a.start()
			continue
		}
		b.kill()
		b.start("--standby-of", a.http)
	}
	r := f.finish(t)
	f.verify(t, a, &r)
	b.follows(a)
	equal(t, a, b)
	f.verify(t, b, &r)
	t.Logf("%d values, %d requests repeated", r.Sent, r.Retries)
}
