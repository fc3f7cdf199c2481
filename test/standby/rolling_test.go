package standby

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/load"
)

// rolling is the size of the fleet's replacement: small by default, TIDEMARK_ROLLING=minutes of history at 2,000 values a second for make test-rolling.
type rolling struct {
	nodes   int
	history time.Duration
	nvps    float64
	queries int
}

func rollingSize(t *testing.T) rolling {
	t.Helper()
	text := os.Getenv("TIDEMARK_ROLLING")
	if text == "" {
		return rolling{nodes: 5, history: 6 * time.Minute, nvps: 300, queries: 40}
	}
	minutes, err := strconv.Atoi(text)
	if err != nil || minutes < 1 {
		t.Fatalf("TIDEMARK_ROLLING is %q, want minutes of history", text)
	}
	return rolling{nodes: 5, history: time.Duration(minutes) * time.Minute, nvps: 2000, queries: 500}
}

// member is a node of the fleet behind the addresses that its agents and users know.
type member struct {
	*node
	agents, users *relay
	feed          *feed
	asking        func() (int, error)
	repository    string
}

// figures are what is compared before and after.
type figures struct {
	bytesPerValue float64
	diskBytes     int64
	write         time.Duration // half of the answers took less
	p50, p99      time.Duration
}

// TestRolling replaces five nodes under load, one after another, by ones with another codec: restored from the latest backup, warm standby, swap. Zero values are lost and queries are answered
// throughout.
func TestRolling(t *testing.T) {
	size := rollingSize(t)
	started := time.Now()
	fleet := make([]*member, size.nodes)
	for i := range fleet {
		fleet[i] = newMember(t, size)
	}
	for i, m := range fleet {
		m.filled(size)
		m.closePair()
		t.Logf("node %d of %d has its history after %.0f s", i+1, len(fleet), time.Since(started).Seconds())
	}
	before := measure(t, fleet, size)
	for _, m := range fleet { // the nightly backup
		m.repository = filepath.Join(t.TempDir(), "backup")
		command(t, "store", "backup", "--http", m.http, m.repository)
	}
	began := time.Now()
	for i, m := range fleet {
		took := m.replace(t)
		t.Logf("node %d of %d: %s", i+1, len(fleet), took)
	}
	migrated := time.Since(began)
	after := measure(t, fleet, size)
	values, retries, queries := uint64(0), uint64(0), 0
	reports := make([]load.Report, len(fleet))
	for i, m := range fleet {
		reports[i] = m.feed.finish(t)
	}
	for i, m := range fleet {
		r := reports[i]
		if checking := time.Now(); m.feed.sameDigest(t, m.node, &r, m.floats("web-1", "temperature")) {
			t.Logf("node %d of %d: each of %d values is there once, found in %.1f s", i+1, len(fleet), r.Sent, time.Since(checking).Seconds())
		} else {
			m.feed.verify(t, m.node, &r)
			t.Errorf("node %d: its digest is not that of what was answered", i+1)
		}
		asked, failed := m.asking()
		if failed != nil || asked == 0 {
			t.Errorf("node %d: %d queries, then %v", i, asked, failed)
		}
		values, retries, queries = values+r.Sent, retries+r.Retries, queries+asked
	}
	t.Logf("%d nodes in %.0f s: %d values, %d requests repeated; %d queries", len(fleet), migrated.Seconds(), values, retries, queries)
	t.Logf("before: %.3f B/value, %.1f MB, write %v, query p50 %v p99 %v", before.bytesPerValue, float64(before.diskBytes)/1e6, before.write, before.p50, before.p99)
	t.Logf("after:  %.3f B/value, %.1f MB, write %v, query p50 %v p99 %v", after.bytesPerValue, float64(after.diskBytes)/1e6, after.write, after.p50, after.p99)
	t.Logf("size %+.0f %%, write time %+.0f %%, query %+.0f %% (p50), %+.0f %% (p99)", change(after.bytesPerValue, before.bytesPerValue),
		change(float64(after.write), float64(before.write)), change(float64(after.p50), float64(before.p50)), change(float64(after.p99), float64(before.p99)))
	if after.bytesPerValue >= before.bytesPerValue {
		t.Errorf("%.3f B/value after, %.3f before", after.bytesPerValue, before.bytesPerValue)
	}
}

func change(after, before float64) float64 { return 100 * (after/before - 1) }

// newMember starts a node with history that its agents send, and goes on sending and asking.
func newMember(t *testing.T, size rolling) *member {
	m := &member{node: newNode(t)}
	m.start()
	o := load.Options{Hosts: 4, Items: 25, NVPS: size.nvps, Protocol: load.Agent, Timeout: 10 * time.Second, Drain: patience, Start: time.Now().Add(-size.history).Truncate(time.Second)}
	provision(t, m.node, o)
	m.agents, m.users = newRelay(t, m.trapper), newRelay(t, m.http)
	o.Server = m.agents.Addr().String()
	m.feed = startFeed(t, o)
	m.asking = startAsking(t, m.users.Addr().String())
	return m
}

// filled waits until the history is there; it may take long, but not stand still.
func (m *member) filled(size rolling) {
	m.t.Helper()
	want := uint64(size.nvps * size.history.Seconds())
	for has := uint64(0); has < want; {
		more := min(has+100_000, want)
		until(m.t, fmt.Sprintf("%d values of the history are there", more), func() bool {
			var s struct{ Values uint64 }
			m.get("/api/storage", &s)
			has = s.Values
			return has >= more
		})
	}
}

// replace is the documented procedure for one node.
func (m *member) replace(t *testing.T) string {
	t.Helper()
	began := time.Now()
	old, spare := m.node, newNode(t)
	command(t, "store", "restore", m.repository, spare.data())
	settings := filepath.Join(spare.dir, "tidemark.yaml")
	if err := os.WriteFile(settings, []byte("storage:\n  recompress:\n    codec: zstd:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spare.start("--standby-of", old.http, "--config", settings)
	spare.caughtUp()
	var p struct {
		WrittenPairs int `json:"written_pairs"`
	}
	said := command(t, "store", "recompress", "--http", spare.http, "--codec", "zstd:3", "--older-than", "0", "--now", "--json")
	if err := json.Unmarshal([]byte(said), &p); err != nil || p.WrittenPairs == 0 {
		t.Fatalf("re-compression: %s, %v", said, err)
	}
	var d struct{ Equal bool }
	if err := json.Unmarshal([]byte(command(t, "store", "digest", "--http", old.http, "--with", spare.http, "--json")), &d); err != nil || !d.Equal {
		t.Fatalf("the standby differs: %v", err)
	}
	done := spare.promote()
	if !done.HandedOver {
		t.Errorf("not handed over: %+v", done)
	}
	m.agents.move(spare.trapper)
	m.users.moveGently(t, spare.http)
	m.node = spare
	old.kill()
	return fmt.Sprintf("%.1f s, promoted in %.0f ms", time.Since(began).Seconds(), done.Milliseconds)
}

// measure takes sizes, the time of answers to agents, and of queries over all the history.
func measure(t *testing.T, fleet []*member, size rolling) figures {
	t.Helper()
	var f figures
	var values uint64
	var times, writes []time.Duration
	for _, m := range fleet {
		var s struct {
			Pairs []struct {
				Tier          string
				Bytes, Values int64
			}
		}
		m.get("/api/storage", &s)
		for _, p := range s.Pairs {
			if p.Tier == "values" {
				f.diskBytes += p.Bytes
				values += uint64(p.Values)
			}
		}
		times = append(times, m.ask(size)...)
		writes = append(writes, m.write()...)
	}
	f.bytesPerValue = float64(f.diskBytes) / float64(values)
	slices.Sort(times)
	slices.Sort(writes)
	f.p50, f.p99, f.write = times[len(times)/2].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond), writes[len(writes)/2].Round(10*time.Microsecond)
	return f
}

// closePair has everything so far written to closed files, and nothing rewritten, so that sizes can be compared.
func (m *member) closePair() {
	m.t.Helper()
	const path = "/api/storage/recompress"
	answer, err := http.Post("http://"+m.http+path, "application/json", strings.NewReader(`{"codec":"none","older_than_seconds":1e9,"close":true}`))
	if err != nil {
		m.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		m.t.Fatalf("close the pair: %s", answer.Status)
	}
	until(m.t, "the pair is closed", func() bool {
		var s struct{ Running bool }
		m.get(path, &s)
		return !s.Running
	})
}

// ask queries everything that a host's item ever had.
func (m *member) ask(size rolling) []time.Duration {
	m.t.Helper()
	var times []time.Duration
	for i := range size.queries {
		q := url.Values{"query": {fmt.Sprintf(`avg_over_time(load_item{host="%s",key="%s"}[%ds])`, load.HostName(i%4), load.ItemKey(i%25), int(size.history.Seconds()))}}
		began := time.Now()
		answer, err := http.Get("http://" + m.http + "/api/v1/query?" + q.Encode())
		if err != nil {
			m.t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			m.t.Fatalf("query: %s", answer.Status)
		}
		times = append(times, time.Since(began))
	}
	return times
}

// write sends values one after another and takes the time of each answer.
func (m *member) write() []time.Duration {
	m.t.Helper()
	var times []time.Duration
	m.importHost()
	for i := range 20 {
		began := time.Now()
		m.send("web-1", "temperature", strconv.Itoa(i%10))
		times = append(times, time.Since(began))
	}
	return times
}
