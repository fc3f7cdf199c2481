package standby

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/load"
	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// program is the binary under test.
var program string

func TestMain(m *testing.M) { launch.Main(m, &program) }

// patience is how long a test waits for something that must come, on a busy machine.
const patience = 2 * time.Minute

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	launch.Until(t, patience, what, ok)
}

// node is a server on a machine of its own, so to speak: folder and addresses stay over restarts.
type node struct {
	t             testing.TB
	dir           string
	http, trapper string
	kill          func()
}

func newNode(t testing.TB) *node {
	return &node{t: t, dir: t.TempDir(), http: freeport.Address(t), trapper: freeport.Address(t), kill: func() {}}
}

func (n *node) data() string { return filepath.Join(n.dir, "data") }

// start starts the server and waits until it is ready, or follows another one.
func (n *node) start(args ...string) {
	n.t.Helper()
	all := append([]string{"server", "--data", n.data(), "--http", n.http, "--trapper", n.trapper, "--disk-space", "512MiB"}, args...)
	n.kill = launch.Run(n.t, filepath.Join(n.dir, "server.log"), program, all...)
	until(n.t, "the server is ready", func() bool {
		answer, err := http.Get("http://" + n.http + "/-/ready")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return true
		}
		var s state
		return n.fetch("/api/standby", &s) == nil && s.Role != "primary"
	})
}

// command runs another command of the program and returns what it prints.
func command(t testing.TB, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	var wrong strings.Builder
	c.Stderr = &wrong
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tidemark %s: %v\n%s%s", strings.Join(args, " "), err, out, wrong.String())
	}
	return string(out)
}

// fetch reads JSON from the API; problems are returned.
func (n *node) fetch(path string, into any) error {
	answer, err := http.Get("http://" + n.http + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body[:min(len(body), 500)])
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	return err
}

func (n *node) get(path string, into any) {
	n.t.Helper()
	if err := n.fetch(path, into); err != nil {
		n.t.Fatalf("%s: %v", path, err)
	}
}

// state is what GET /api/standby says.
type state struct {
	Role    string
	Epoch   uint64
	Refusal string
	Lag     *struct {
		Bytes           uint64
		Connected       bool
		ConfigurationAt int64 `json:"configuration_at"`
	}
	Standbys []struct {
		LagBytes uint64 `json:"lag_bytes"`
		Seeding  bool
	}
}

func (n *node) state() state {
	n.t.Helper()
	var s state
	n.get("/api/standby", &s)
	return s
}

// caughtUp waits until the node, a standby, has everything that its primary had a moment ago.
func (n *node) caughtUp() {
	n.t.Helper()
	until(n.t, "the standby has everything", func() bool {
		s := n.state()
		return s.Lag != nil && s.Lag.Connected && s.Lag.Bytes == 0 && s.Lag.ConfigurationAt > 0
	})
}

// follows waits until the node, a standby, has everything that its primary has now.
func (n *node) follows(primary *node) {
	n.t.Helper()
	until(n.t, "the standby has all that the primary has", func() bool {
		s := primary.state()
		return len(s.Standbys) == 1 && s.Standbys[0].LagBytes == 0 && !s.Standbys[0].Seeding && n.state().Lag.Bytes == 0
	})
}

// promoted is what store promote says.
type promoted struct {
	Epoch        uint64
	HandedOver   bool `json:"handed_over"`
	Milliseconds float64
}

func (n *node) promote() promoted {
	n.t.Helper()
	var p promoted
	if err := json.Unmarshal([]byte(command(n.t, "store", "promote", "--http", n.http, "--json")), &p); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// digest sums up all values.
func (n *node) digest() (sum string, values uint64) {
	n.t.Helper()
	var d struct {
		Digest string
		Values uint64
	}
	n.get("/api/storage/digest", &d)
	return d.Digest, d.Values
}

// equal reports whether two servers have the same values.
func equal(t testing.TB, a, b *node) {
	t.Helper()
	one, n := a.digest()
	two, m := b.digest()
	if one != two || n != m || n == 0 {
		t.Fatalf("%s of %d values and %s of %d", one, n, two, m)
	}
}

// feed is a load that runs.
type feed struct {
	o    load.Options
	stop context.CancelFunc
	done chan result
}

type result struct {
	report load.Report
	err    error
}

// provision makes hosts and items at a server.
func provision(t testing.TB, n *node, o load.Options) {
	t.Helper()
	o.HTTP = n.http
	o, err := o.Check()
	if err != nil {
		t.Fatal(err)
	}
	if err := load.Provision(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
}

// start sends values until finish.
func startFeed(t testing.TB, o load.Options) *feed {
	t.Helper()
	o.Finish = true
	o, err := o.Check()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f := &feed{o: o, stop: stop, done: make(chan result, 1)}
	go func() {
		r, err := load.Run(ctx, o, io.Discard)
		f.done <- result{r, err}
	}()
	return f
}

// finish ends the load and returns what was answered.
func (f *feed) finish(t testing.TB) load.Report {
	t.Helper()
	f.stop()
	r := <-f.done
	if r.err != nil {
		t.Fatal(r.err)
	}
	f.o.Start = r.report.Start
	return r.report
}

// verify compares what a server has of a host with what was answered: all of it, once, and nothing else.
func (f *feed) verify(t testing.TB, n *node, r *load.Report) {
	t.Helper()
	stored := 0
	for h := range f.o.Hosts {
		want := f.answered(t, h, r.PerHost[h])
		for key, id := range n.items(load.HostName(h)) {
			var index int
			if _, err := fmt.Sscanf(key, "load.item[%d]", &index); err != nil {
				continue
			}
			got := n.values(id)
			stored += len(got)
			lost, foreign := differences(got, want[index-1])
			if lost+foreign > 0 {
				t.Errorf("%s %s: %d of %d answered values are missing or changed, %d stored ones were never answered", load.HostName(h), key, lost, len(want[index-1]), foreign)
			}
		}
	}
	if uint64(stored) != r.Sent || stored == 0 {
		t.Errorf("%d values are stored, %d were answered", stored, r.Sent)
	}
}

// sameDigest reports whether a server has exactly the values that were answered, and others: by the sum over all values, so that tens of millions take seconds.
// What differs, verify says.
func (f *feed) sameDigest(t testing.TB, n *node, r *load.Report, others *model.Columns) bool {
	t.Helper()
	var want dbengine.Digest
	want.Add(others)
	for h := range f.o.Hosts {
		f.addAnswered(t, &want, n, h, r.PerHost[h])
	}
	sum, values := n.digest()
	if want.Values != r.Sent+uint64(len(others.At)) {
		t.Errorf("%d values were answered, the schedule has %d", r.Sent, want.Values-uint64(len(others.At)))
	}
	return sum == want.String() && values == want.Values
}

// addAnswered adds the values of a host's items that were answered to a digest.
func (f *feed) addAnswered(t testing.TB, to *dbengine.Digest, n *node, h int, count uint64) {
	t.Helper()
	ids := n.items(load.HostName(h))
	items, walks := make([]model.Columns, f.o.Items), make([]load.Walk, f.o.Items)
	for i := range items {
		walks[i] = load.NewWalk(h, i)
		items[i] = model.Columns{Item: itemID(t, ids[load.ItemKey(i)]), Type: model.Float}
	}
	schedule := load.NewSchedule(&f.o, h)
	var due []load.Due
	for left := count; left > 0; left -= uint64(len(due)) {
		due = schedule.Take(due[:0], 1<<62, int(min(left, 10_000)))
		for _, d := range due {
			c := &items[d.Item]
			c.At = append(c.At, d.At)
			c.Bits = append(c.Bits, math.Float64bits(float64(walks[d.Item].Next())/100))
		}
		for i := range items {
			to.Add(&items[i])
			items[i].At, items[i].Bits = items[i].At[:0], items[i].Bits[:0]
		}
	}
}

// itemID reads the id of an item as the API gives it.
func itemID(t testing.TB, text string) model.ItemID {
	t.Helper()
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return model.ItemID(id)
}

// floats are all values of an item with floats.
func (n *node) floats(host, key string) *model.Columns {
	n.t.Helper()
	id := n.items(host)[key]
	c := &model.Columns{Item: itemID(n.t, id), Type: model.Float}
	for at, text := range n.values(id) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			n.t.Fatal(err)
		}
		c.At, c.Bits = append(c.At, at), append(c.Bits, math.Float64bits(v))
	}
	return c
}

func differences(got, want map[int64]string) (lost, foreign int) {
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
	return lost, foreign
}

// answered computes the values of a host's items that were answered.
func (f *feed) answered(t testing.TB, h int, count uint64) map[int]map[int64]string {
	t.Helper()
	want := map[int]map[int64]string{}
	walks := make([]load.Walk, f.o.Items)
	for i := range walks {
		walks[i] = load.NewWalk(h, i)
		want[i] = map[int64]string{}
	}
	schedule := load.NewSchedule(&f.o, h)
	for left := count; left > 0; {
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
	return want
}

// items returns key → id of a host's items.
func (n *node) items(host string) map[string]string {
	n.t.Helper()
	var hosts struct {
		Hosts []struct{ ID, Host string }
	}
	n.get("/api/hosts?search="+host, &hosts)
	out := map[string]string{}
	for _, h := range hosts.Hosts {
		if h.Host != host {
			continue
		}
		var page struct {
			Items []struct{ ID, Key string }
		}
		n.get("/api/items?limit=10000&host="+h.ID, &page)
		for _, i := range page.Items {
			out[i.Key] = i.ID
		}
	}
	if len(out) == 0 {
		n.t.Fatalf("host %s has no items", host)
	}
	return out
}

// values returns every stored value of an item by its time.
func (n *node) values(item string) map[int64]string {
	n.t.Helper()
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
		n.get("/api/values?limit=10000&from=0&to=9000000000000&item="+item+"&cursor="+url.QueryEscape(cursor), &page)
		for _, v := range page.Values {
			at, err := strconv.ParseInt(v.AtNS, 10, 64)
			if err != nil {
				n.t.Fatal(err)
			}
			if _, twice := out[at]; twice {
				n.t.Fatalf("item %s has two values at %d", item, at)
			}
			out[at] = v.Value.V
		}
		if page.Next == "" {
			return out
		}
		cursor = page.Next
	}
}
