package conformance

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/launch"
)

// TestConformance compares our server, with both engines, with Zabbix's.
func TestConformance(t *testing.T) {
	folder := os.Getenv("TIDEMARK_ZABBIX")
	if folder == "" {
		folder = filepath.Join(os.TempDir(), "tidemark-zabbix-6.0")
	}
	if out, err := exec.Command("./install.sh", folder).CombinedOutput(); err != nil {
		t.Fatalf("install the peers: %v\n%s", err, out)
	}
	binary := launch.Binary(t)
	seed := uint64(20_260_601)
	if text := os.Getenv("TIDEMARK_CONFORMANCE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	db := &database{t, launch.Postgres(t, "-cfsync=off")}
	z := startZabbix(t, folder, db)
	db.rows("postgres", "create database ours")
	ours := startServer(t, binary, "storage:\n  disk_space: 1GiB\n")
	inPostgres := startServer(t, binary, fmt.Sprintf("storage:\n  engine: postgres\n  dsn: %q\n", db.DSN("ours")))

	to := time.Now().Add(-5 * time.Minute).Truncate(time.Second)
	from := to.Truncate(time.Hour).Add(-3 * time.Hour)
	rows := input(seed, from, to)
	t.Logf("seed %d: %d values from %s to %s", seed, len(rows), from.UTC().Format(time.DateTime), to.UTC().Format(time.DateTime))
	for part := range slices.Chunk(rows, 250) {
		want := send(t, z.address, part)
		for _, s := range []*server{ours, inPostgres} {
			if got := send(t, s.trapper, part); got != want {
				t.Errorf("our answer is %q, Zabbix's %q", got, want)
			}
		}
	}
	z.settle()
	zabbixEvents, zabbixStates := z.events(), z.states()
	z.stop()
	compareEvents(t, "dbengine", ours.events(), zabbixEvents)
	compareEvents(t, "postgres", inPostgres.events(), zabbixEvents)
	compareStates(t, ours.states(), zabbixStates)
	compareCharts(t, ours, z)
	ids := inPostgres.itemIDs()
	inPostgres.stop()
	compareTables(t, db, ids, to.Truncate(time.Hour))
}

// settle waits until Zabbix has synced everything: there is something, and nothing changes for 15 s, in which ours have long done the same.
func (z *zabbix) settle() {
	z.t.Helper()
	last, since := "", time.Now()
	until(z.t, "Zabbix has synced", func() bool {
		now, err := z.db.SQL("zabbix", "select (select count(*) from history),(select count(*) from history_uint),(select count(*) from history_str),(select count(*) from history_text),(select count(*) from events)")
		if err != nil || now != last || strings.HasSuffix(now, "|0") {
			last, since = now, time.Now()
			return false
		}
		return time.Since(since) >= 15*time.Second
	})
	z.t.Logf("Zabbix has (floats, unsigned, short, long, events) %s", last)
}

// events returns for each trigger what happened, such as "PROBLEM 1790000000.250".
func (z *zabbix) events() map[string][]string {
	z.t.Helper()
	all := make(map[string][]string)
	for _, r := range z.db.rows("zabbix", `select t.description, e.value, e.clock, e.ns from events e join triggers t on t.triggerid=e.objectid
		where e.source=0 and e.object=0 order by e.clock, e.ns, e.eventid`) {
		clock, _ := strconv.ParseInt(r[2], 10, 64)
		ns, _ := strconv.ParseInt(r[3], 10, 64)
		word := "OK"
		if r[1] == "1" {
			word = "PROBLEM"
		}
		all[r[0]] = append(all[r[0]], happening(word, clock*1000+ns/1e6))
	}
	return all
}

func happening(word string, atMillis int64) string {
	return fmt.Sprintf("%s %d.%03d", word, atMillis/1000, atMillis%1000)
}

// states returns the triggers' values at the end, with an X for unknown.
func (z *zabbix) states() map[string]string {
	z.t.Helper()
	all := make(map[string]string)
	for _, r := range z.db.rows("zabbix", fmt.Sprintf("select description, value, state from triggers where triggerid between %d and %d", firstTrigger, firstFunction)) {
		word := "ok"
		if r[1] == "1" {
			word = "problem"
		}
		if r[2] == "1" {
			word += " unknown"
		}
		all[r[0]] = word
	}
	return all
}

// events is what zabbix.events is, made of our problems.
func (s *server) events() map[string][]string {
	s.t.Helper()
	type one struct {
		at   int64
		word string
	}
	byTrigger := make(map[string][]one)
	query := url.Values{"limit": {"1000"}}
	for {
		var page struct {
			Problems []struct {
				Name        string
				At          int64
				RecoveredAt *int64 `json:"recovered_at"`
			}
			Next string
		}
		s.get("/api/problems", query, &page)
		for _, p := range page.Problems {
			list := append(byTrigger[p.Name], one{p.At, "PROBLEM"})
			if p.RecoveredAt != nil && !slices.Contains(list, one{*p.RecoveredAt, "OK"}) {
				list = append(list, one{*p.RecoveredAt, "OK"})
			}
			byTrigger[p.Name] = list
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
	}
	all := make(map[string][]string)
	for name, list := range byTrigger {
		slices.SortStableFunc(list, func(a, b one) int { return int(a.at - b.at) })
		for _, o := range list {
			all[name] = append(all[name], happening(o.word, o.at))
		}
	}
	return all
}

func (s *server) states() map[string]string {
	s.t.Helper()
	var answer struct {
		Triggers []struct{ Name, State, Error string }
	}
	s.get("/api/triggers", url.Values{"limit": {"1000"}}, &answer)
	all := make(map[string]string)
	for _, t := range answer.Triggers {
		word := strings.ToLower(t.State)
		if t.Error != "" && !strings.Contains(word, "unknown") {
			word += " unknown"
		}
		all[t.Name] = word
	}
	return all
}

// compareEvents compares trigger by trigger. Triggers over items with late values may differ: they are counted.
func compareEvents(t *testing.T, what string, got, want map[string][]string) {
	t.Helper()
	equal, events, late := 0, 0, 0
	for _, tr := range triggers() {
		g, w := got[tr.name], want[tr.name]
		switch {
		case slices.Equal(g, w):
			equal++
			events += len(w)
		case tr.late:
			late++
		default:
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			t.Errorf("%s: trigger %s, %s: %d events, Zabbix has %d; from number %d on ours %v, Zabbix's %v", what, tr.name, tr.expression, len(g), len(w), at,
				g[at:min(len(g), at+4)], w[at:min(len(w), at+4)])
		}
	}
	t.Logf("%s: %d triggers with %d events are equal, %d over items with late values differ", what, equal, events, late)
	if events < 1000 {
		t.Errorf("%s: only %d events were compared: the input is too calm", what, events)
	}
}

func compareStates(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, tr := range triggers() {
		g, w := got[tr.name], want[tr.name]
		// Ours says only "unknown" of a trigger that is unknown, Zabbix also what it was before.
		if g != w && !(g == "unknown" && strings.HasSuffix(w, " unknown")) && !tr.late {
			t.Errorf("trigger %s, %s: at the end %q, in Zabbix %q", tr.name, tr.expression, g, w)
		}
	}
}

// near reports whether two numbers are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-3) }

// maxLateRounding is how far below the truth Zabbix's average of an hour may lie after it was merged many times.
const maxLateRounding = 20

// compareCharts compares the hours of our engine's charts with Zabbix's trends.
func compareCharts(t *testing.T, s *server, z *zabbix) {
	t.Helper()
	ids := s.itemIDs()
	compared := 0
	for _, r := range z.trends() {
		clock, _ := strconv.ParseInt(r[1], 10, 64)
		var chart struct {
			Series []struct{ Avg, Min, Max []*float64 }
		}
		s.get("/api/chart", url.Values{"items": {ids[r[0]]}, "from": {r[1] + "000"}, "to": {strconv.FormatInt(clock+3600, 10) + "000"}, "points": {"1"}}, &chart)
		if len(chart.Series) != 1 || len(chart.Series[0].Avg) != 1 || chart.Series[0].Avg[0] == nil {
			t.Errorf("item %s, hour %s: our chart is %v, Zabbix has %v", r[0], r[1], chart, r)
			continue
		}
		c := chart.Series[0]
		minimum, maximum := c.Avg[0], c.Avg[0]
		if len(c.Min) == 1 {
			minimum, maximum = c.Min[0], c.Max[0]
		}
		for n, got := range []*float64{minimum, c.Avg[0], maximum} {
			want, _ := strconv.ParseFloat(r[3+n], 64)
			// Zabbix cuts averages of unsigned integers, with late values at every merge.
			isWhole, room := r[6] == "uint" && n == 1, 1.0
			if strings.HasPrefix(r[0], "late") {
				room = maxLateRounding
			}
			if got == nil || !near(*got, want) && !(isWhole && *got >= want && *got < want+room) {
				t.Errorf("item %s, hour %s: number %d of (min, avg, max) is %v, in Zabbix %v", r[0], r[1], n, *got, want)
			}
		}
		compared++
	}
	t.Logf("dbengine: %d hours compared with Zabbix's trends", compared)
	if compared < 20 {
		t.Errorf("only %d hours were compared", compared)
	}
}

// trends returns Zabbix's trends: key, hour, count, minimum, average, maximum, type.
func (z *zabbix) trends() [][]string {
	z.t.Helper()
	return z.db.rows("zabbix", `select i.key_, t.clock, t.num, t.value_min, t.value_avg, t.value_max, 'float' from trends t join items i using (itemid)
		union all select i.key_, t.clock, t.num, t.value_min, t.value_avg, t.value_max, 'uint' from trends_uint t join items i using (itemid) order by 1, 2`)
}
