package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
)

func equal(name, value string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, value)
}

func TestNames(t *testing.T) {
	for key, want := range map[string]string{
		"system.cpu.load[all,avg1]": "system_cpu_load", "vfs.fs.size[/,used]": "vfs_fs_size", "a:b": "a:b",
		"9lives": "_9lives", "ünicode": "_nicode", "": "_", "[x]": "_",
	} {
		if got := MetricName(key); got != want {
			t.Errorf("metric name of %q is %q, want %q", key, got, want)
		}
	}
	for name, want := range map[string]string{
		"{#FSNAME}": "fsname", "{#A.B}": "a_b", "host": "exported_host", "{#HOST}": "exported_host", "Target Type": "Target_Type",
		"__name__": "", "a:b": "a_b", "key": "exported_key",
	} {
		if got := LabelName(name); got != want {
			t.Errorf("label name of %q is %q, want %q", name, got, want)
		}
	}
}

// TestMatch_againstOracle compares the index with a plain scan over random items, before and after changes.
func TestMatch_againstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := open(t, newFS(t), Options{})
	matchers := oracleMatchers()
	for round := range 8 {
		for range 150 {
			host := model.HostID(1 + r.IntN(5))
			d := Declaration{Key: fmt.Sprintf("cpu.%d[%d]", r.IntN(4), r.IntN(30)), ValueType: model.ValueType(r.IntN(2) * 3)}
			if r.IntN(5) == 0 {
				d.ValueType = model.Text
			}
			for _, name := range []string{"mode", "disk", "env"} {
				if r.IntN(2) == 0 {
					d.Labels = append(d.Labels, model.Label{Name: name, Value: fmt.Sprintf("v%d", r.IntN(4))})
				}
			}
			declare(t, c, host, d)
		}
		if round == 5 {
			if err := c.Apply(t.Context(), Change{DeletedHosts: []model.HostID{2}, Hosts: []HostName{{3, "db3"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if round%3 == 2 {
			c.mu.Lock()
			c.index.sweep()
			c.mu.Unlock()
		}
		for range 60 {
			ms := make([]*labels.Matcher, r.IntN(4))
			for i := range ms {
				ms[i] = matchers[r.IntN(len(matchers))]
			}
			checkMatch(t, c, ms)
		}
	}
}

func oracleMatchers() []*labels.Matcher {
	var ms []*labels.Matcher
	for _, name := range []string{"mode", "disk", "env", "host", "key", "__name__", "absent"} {
		for _, value := range []string{"", "v1", "v2", "host3", "db3", "cpu_1", "v[12]", "v1|v3|", "v.*", ".*", ".+", "cpu.[0-2].*", "(?i)V1", "host(1|4)"} {
			for _, mt := range []labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp} {
				ms = append(ms, labels.MustNewMatcher(mt, name, value))
			}
		}
	}
	return ms
}

func checkMatch(t *testing.T, c *Catalog, ms []*labels.Matcher) {
	t.Helper()
	var want []model.ItemID
	names, values := map[string]bool{}, map[string]bool{}
	entries, total := c.Search(Filter{Limit: 1 << 20})
	if total != len(entries) || total != c.Len() {
		t.Fatalf("search gives %d of %d, catalog has %d", len(entries), total, c.Len())
	}
	for _, e := range entries {
		ls := c.Labels(e.ID)
		misses := func(m *labels.Matcher) bool { return !m.Matches(ls.Get(m.Name)) }
		if !e.ValueType.Numeric() || slices.ContainsFunc(ms, misses) {
			continue
		}
		want = append(want, e.ID)
		for _, l := range ls {
			names[l.Name] = true
			if l.Name == "mode" {
				values[l.Value] = true
			}
		}
	}
	got := c.Match(ms...)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%v: got %d items, want %d", ms, len(got), len(want))
	}
	if got := c.LabelNames(ms...); !equalSet(got, names) {
		t.Fatalf("%v: names %v, want %v", ms, got, names)
	}
	if got := c.LabelValues("mode", ms...); !equalSet(got, values) {
		t.Fatalf("%v: values %v, want %v", ms, got, values)
	}
}

func equalSet(got []string, want map[string]bool) bool {
	if len(got) != len(want) || !slices.IsSorted(got) {
		return false
	}
	return !slices.ContainsFunc(got, func(s string) bool { return !want[s] })
}

func TestSymbols_areGivenBack(t *testing.T) {
	c := open(t, newFS(t), Options{})
	declare(t, c, 1, Declaration{Key: "stays", Labels: model.Labels{{Name: "a", Value: "b"}}})
	before := len(c.index.symbols.ids)
	for i := range 3000 {
		declare(t, c, 2, Declaration{Key: fmt.Sprintf("k%d", i), Name: fmt.Sprintf("n%d", i), Labels: model.Labels{{Name: "a", Value: fmt.Sprintf("v%d", i)}}})
	}
	if err := c.Apply(t.Context(), Change{Hosts: []HostName{{2, "other"}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), Change{DeletedHosts: []model.HostID{2}}); err != nil {
		t.Fatal(err)
	}
	c.index.sweep()
	if got := len(c.index.symbols.ids); got != before {
		t.Errorf("%d texts are kept, want %d", got, before)
	}
	if got := len(c.index.sets.ids); got != 2 {
		t.Errorf("%d label sets are kept, want 2", got)
	}
	if c.index.count != 1 || c.index.dead != 0 {
		t.Errorf("%d entries, %d dead", c.index.count, c.index.dead)
	}
}

func TestSearch(t *testing.T) {
	c := open(t, newFS(t), Options{})
	declare(t, c, 1, Declaration{Key: "cpu.load", Name: "Load"}, Declaration{Key: "mem", ValueType: model.Text}, Declaration{Key: "disk", Name: "CPU-like"})
	declare(t, c, 2, Declaration{Key: "CPU.idle"})
	entries, total := c.Search(Filter{Text: "cpu", Limit: 2})
	if total != 3 || len(entries) != 2 || entries[0].Key != "cpu.load" || entries[1].Key != "disk" {
		t.Fatalf("%d: %+v", total, entries)
	}
	entries, total = c.Search(Filter{Text: "cpu", Limit: 2, After: entries[1].ID})
	if total != 3 || len(entries) != 1 || entries[0].Key != "CPU.idle" {
		t.Errorf("second page: %d: %+v", total, entries)
	}
	if _, total = c.Search(Filter{Host: 1, Limit: 10}); total != 3 {
		t.Errorf("host 1 has %d", total)
	}
	n := 0
	c.Each(func(e model.Entry) { n++ })
	if n != 4 {
		t.Errorf("Each gave %d items", n)
	}
	if _, total = c.Search(Filter{Text: "HOST2", Limit: 10}); total != 1 {
		t.Errorf("search by host: %d", total)
	}
}

func TestByKeyBytes_doesNotAllocate(t *testing.T) {
	c := open(t, newFS(t), Options{})
	declare(t, c, 1, Declaration{Key: "cpu.load[all]"})
	key, host := []byte("cpu.load[all]"), []byte("host1")
	n := testing.AllocsPerRun(100, func() {
		id, _ := c.HostBytes(host)
		e, ok := c.ByKeyBytes(id, key)
		if found, also := c.FindBytes(id, key); !ok || !also || found != e.ID {
			t.Fatal("not found")
		}
	})
	if _, ok := c.FindBytes(2, key); ok {
		t.Error("found on a host that does not exist")
	}
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMetadata(t *testing.T) {
	c := open(t, newFS(t), Options{})
	declare(t, c, 1,
		Declaration{Key: "net.in[a]", Help: "Bytes received.", Units: "B", Labels: model.Labels{{Name: "type", Value: "counter"}}},
		Declaration{Key: "net.in[b]", Units: "B"},
		Declaration{Key: "load", Name: "Load", Labels: model.Labels{{Name: "type", Value: "fast"}}},
		Declaration{Key: "uname", ValueType: model.Text})
	want := []Metadata{{"load", "unknown", "Load", ""}, {"net_in", "counter", "Bytes received.", "B"}}
	if got := c.Metadata("", 0); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := c.Metadata("net_in", 0); !slices.Equal(got, want[1:]) {
		t.Errorf("got %v", got)
	}
	if got := c.Metadata("", 1); !slices.Equal(got, want[:1]) {
		t.Errorf("got %v", got)
	}
	if got := c.Metadata("absent", 0); got != nil {
		t.Errorf("got %v", got)
	}
}
