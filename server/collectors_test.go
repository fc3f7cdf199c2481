package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/expr"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

func TestSupport(t *testing.T) {
	s := &support{}
	put := func(id model.ItemID, vt model.ValueType) {
		b := model.NewBatch()
		b.AppendString(id, 1, vt, "x")
		s.Observe(b)
	}
	put(70, model.Unsupported)
	put(70, model.Unsupported)
	put(3, model.Text)
	put(1, model.Unsupported)
	put(maxSupportID, model.Unsupported)
	if !s.unsupported(70) || !s.unsupported(1) || s.unsupported(3) || s.unsupported(1<<40) || s.total() != 2 {
		t.Errorf("70 %v, 1 %v, 3 %v, total %d", s.unsupported(70), s.unsupported(1), s.unsupported(3), s.total())
	}
	put(70, model.Text)
	s.forget([]model.ItemID{1, 2, 1 << 40})
	if s.unsupported(70) || s.total() != 0 {
		t.Errorf("70 %v, total %d", s.unsupported(70), s.total())
	}
}

type oneHourEngine struct {
	reads int
	empty bool
}

func (e *oneHourEngine) Trends(_ context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	e.reads++
	if e.empty {
		return nil
	}
	return fn(&storage.TrendColumns{Item: q.Items[0], Type: model.Uint, Trends: []model.Trend{{At: q.Range.From, Count: 1}}})
}

func TestHourTrends(t *testing.T) {
	e := &oneHourEngine{}
	h := &hourTrends{engine: e}
	for i, r := range []model.TimeRange{{From: 1, To: 2}, {From: 1, To: 2}, {From: 1, To: 3}} {
		got, vt, err := h.Hours(t.Context(), 5, r, make([]model.Trend, 1))
		if err != nil || vt != model.Uint || len(got) != 2 || got[1].At != 1 {
			t.Fatalf("read %d: %v %v %v", i, got, vt, err)
		}
	}
	if e.reads != 2 {
		t.Errorf("the engine was read %d times, want 2", e.reads)
	}
}

// TestHourTrends_early asks for hours of an item before its values are stored: they are found once they are.
func TestHourTrends_early(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &oneHourEngine{empty: true}
		h := &hourTrends{engine: e}
		for i, want := range []int{0, 0, 1, 1} {
			got, _, err := h.Hours(t.Context(), 5, model.TimeRange{From: 1, To: 2}, nil)
			if err != nil || len(got) != want {
				t.Fatalf("read %d: %v, %v, want %d hours", i, got, err, want)
			}
			e.empty = false
			if i > 0 {
				time.Sleep(runningFor)
			}
		}
		if e.reads != 2 {
			t.Errorf("the engine was read %d times, want 2", e.reads)
		}
	})
}

// hostSource is a configuration of hosts that never changes.
type hostSource []model.HostConfig

func (s hostSource) Changes(context.Context, uint64) (uint64, []model.HostID, []model.HostID, error) {
	var ids []model.HostID
	for i := range s {
		ids = append(ids, s[i].Host.ID)
	}
	return 1, ids, nil, nil
}

func (s hostSource) Regexps(context.Context) ([]model.GlobalRegexp, error) { return nil, nil }

func (s hostSource) GlobalMacros(context.Context) ([]model.Macro, error) { return nil, nil }

func (s hostSource) HostConfigs(_ context.Context, _ []model.HostID, f func(*model.HostConfig) error) error {
	for i := range s {
		c := s[i]
		if err := f(&c); err != nil {
			return err
		}
	}
	return nil
}

func TestFormulaItems(t *testing.T) {
	host := func(id model.HostID, enabled bool, group string, keys ...string) model.HostConfig {
		h := model.HostConfig{Host: model.Host{ID: id, Host: fmt.Sprintf("h%d", id), Enabled: enabled, Groups: []string{group}}}
		for i, k := range keys {
			h.Items = append(h.Items, model.ItemConfig{Item: model.Item{
				ID: model.ItemID(int(id)*10 + i), HostID: id, Key: k, Enabled: i < 3, Delay: "10s", Tags: []model.Tag{{Name: "k", Value: k}},
			}})
		}
		return h
	}
	source := hostSource{host(1, true, "DB", "a", "net[x,in]", "net[y,in]", "net[z,in]"), host(2, true, "Web", "a", "net[x,in]"), host(3, false, "DB", "a")}
	c, err := catalog.Open(t.Context(), vfs.OS{}, t.TempDir(), catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cache := confcache.New(source, confcache.Options{})
	if _, err := cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	items := formulaItems{&namedItems{definitions: newDefinitions(cache, c)}, &support{}}
	f := func(host, key, want string) {
		t.Helper()
		q, err := expr.ParseQuery(expr.Ref{Host: host, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		var got []model.ItemID
		items.Match(q, func(id model.ItemID, _ model.ValueType, _ string) bool {
			got = append(got, id)
			return len(got) < 3
		})
		if fmt.Sprint(got) != want {
			t.Errorf("/%s/%s: %v, want %s", host, key, got, want)
		}
	}
	f("*", "a", "[10 20]")
	f("h2", "a", "[20]")
	f("h3", "a", "[]")
	f("none", "a", "[]")
	f("*", "net[*,in]", "[11 12 21]")
	f("*", `net[*,in]?[group="Web"]`, "[21]")
	f("*", `a?[tag="k:a" and not group="DB"]`, "[20]")
	if name, ok := items.HostName(2); !ok || name != "h2" || items.Revision() != 1 {
		t.Errorf("host %s %v, revision %d", name, ok, items.Revision())
	}
	facts := &facts{cache: cache, support: items.support}
	if got := facts.Counts(); got.Hosts != 2 || got.Items != 5 || got.Performance < 0.49 || got.Performance > 0.51 {
		t.Errorf("counts %+v", got)
	}
	if h, ok := facts.Host(1); !ok || h.Items != 3 {
		t.Errorf("host %+v %v", h, ok)
	}
	if facts.Queue(time.Second, 0) != 0 || facts.Available(1, "agent") != 0 {
		t.Error("a queue or availability without a poller")
	}
}
