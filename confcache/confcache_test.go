package confcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/model"
)

// source is a configuration in memory.
type source struct {
	revision uint64
	hosts    map[model.HostID]*model.HostConfig
	deleted  map[model.HostID]uint64
	global   []model.Macro
	own      []model.GlobalRegexp
}

func newSource() *source {
	return &source{hosts: map[model.HostID]*model.HostConfig{}, deleted: map[model.HostID]uint64{}}
}

func (s *source) put(h model.HostConfig) {
	s.revision++
	h.Host.Revision = s.revision
	s.hosts[h.Host.ID] = &h
}

func (s *source) Changes(_ context.Context, since uint64) (uint64, []model.HostID, []model.HostID, error) {
	var changed, deleted []model.HostID
	for id, h := range s.hosts {
		if h.Host.Revision > since {
			changed = append(changed, id)
		}
	}
	for id, revision := range s.deleted {
		if revision > since {
			deleted = append(deleted, id)
		}
	}
	return s.revision, changed, deleted, nil
}

func (s *source) Regexps(context.Context) ([]model.GlobalRegexp, error) { return s.own, nil }

func (s *source) GlobalMacros(context.Context) ([]model.Macro, error) { return s.global, nil }

func (s *source) HostConfigs(_ context.Context, ids []model.HostID, f func(*model.HostConfig) error) error {
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if h := s.hosts[id]; h != nil {
			c := *h
			if err := f(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

func refresh(t testing.TB, c *Cache) *Changes {
	t.Helper()
	changes, err := c.Refresh(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func item(id model.ItemID, host model.HostID, key string) model.ItemConfig {
	return model.ItemConfig{
		Item:        model.Item{ID: id, HostID: host, Key: key, Type: model.ActiveAgent, Delay: "30s", Enabled: true},
		HistoryText: "7d", TrendsText: "0",
	}
}

func hostConfig(id model.HostID, name string, items ...model.ItemConfig) model.HostConfig {
	return model.HostConfig{Host: model.Host{ID: id, Host: name, Name: name, Enabled: true}, Items: items}
}

func TestSnapshot_lookups(t *testing.T) {
	s := newSource()
	h := hostConfig(7, "web", item(70, 7, "a[{$P}]"), item(71, 7, "b"))
	h.Host.Macros = []model.Macro{{Name: "{$P}", Value: "x"}}
	h.Items[1].Type = model.Trapper
	h.Triggers = []model.Trigger{{ID: 5, HostID: 7, Name: "n", Expression: `last(/web/a[{$P}])>1`, Enabled: true}}
	s.put(h)
	c := New(s, Options{})
	refresh(t, c)
	snap := c.Snapshot()
	if i, ok := snap.ItemByKey(7, "a[x]"); !ok || i.ID != 70 || i.Interval != 30*time.Second || i.History != 7*24*time.Hour || i.Trends != 0 {
		t.Errorf("ItemByKey(7, a[x]) = %+v, %v", i, ok)
	}
	if i, ok := snap.ItemByKeyBytes(7, []byte("b")); !ok || i.ID != 71 {
		t.Errorf("ItemByKeyBytes(7, b) = %+v, %v", i, ok)
	}
	if i, ok := snap.ItemOf("web", "b"); !ok || i.ID != 71 {
		t.Errorf("ItemOf(web, b) = %+v, %v", i, ok)
	}
	if _, ok := snap.ItemByKey(8, "b"); ok {
		t.Error("ItemByKey found an item of an unknown host")
	}
	if i, ok := snap.Item(70); !ok || i.Key != "a[x]" {
		t.Errorf("Item(70) = %+v, %v", i, ok)
	}
	if h, ok := snap.HostBytes([]byte("web")); !ok || h.ID != 7 {
		t.Errorf("HostBytes(web) = %+v, %v", h, ok)
	}
	if active := snap.ActiveItems(7); len(active) != 1 || active[0].ID != 70 {
		t.Errorf("ActiveItems = %v, want item 70 only", active)
	}
	if got, ok := snap.Trigger(5); !ok || got.Expression != `last(/web/a[x])>1` {
		t.Errorf("Trigger(5) = %+v, %v", got, ok)
	}
	name, key := []byte("web"), []byte("a[x]")
	if n := testing.AllocsPerRun(100, func() {
		h, _ := snap.HostBytes(name)
		snap.ItemByKeyBytes(h.ID, key)
	}); n != 0 {
		t.Errorf("a lookup allocates %v times, want 0", n)
	}
}

func TestSnapshot_faults(t *testing.T) {
	s := newSource()
	h := hostConfig(1, "h", item(1, 1, "a"), item(2, 1, "b[{$NO}]"), item(3, 1, "a"))
	h.Items[0].Delay = "often"
	s.put(h)
	c := New(s, Options{})
	refresh(t, c)
	var reasons []string
	for _, f := range c.Snapshot().Faults(1) {
		reasons = append(reasons, f.Object+": "+f.Reason)
	}
	want := []string{
		`a: delay "often"; expected 0 to 24h, such as 30s or 1m`,
		`b[{$NO}]: macro {$NO} is not defined`,
		`a: another item of the host has the key a`,
	}
	if !slices.Equal(reasons, want) {
		t.Errorf("faults %q, want %q", reasons, want)
	}
	if active := c.Snapshot().ActiveItems(1); len(active) != 0 {
		t.Errorf("ActiveItems = %v, want none", active)
	}
}

// TestSnapshot_retention takes as much as Zabbix does, 25 years.
func TestSnapshot_retention(t *testing.T) {
	s := newSource()
	h := hostConfig(1, "h", item(1, 1, "a"), item(2, 1, "b"))
	h.Items[0].HistoryText, h.Items[0].TrendsText = "3650d", "9125d"
	h.Items[1].HistoryText = "9126d"
	s.put(h)
	c := New(s, Options{})
	refresh(t, c)
	snap := c.Snapshot()
	const day = 24 * time.Hour
	if i, ok := snap.ItemByKey(1, "a"); !ok || i.History != 3650*day || i.Trends != 9125*day {
		t.Errorf("kept for %v and %v, expected 3650 and 9125 days", i.History, i.Trends)
	}
	want := `history "9126d"; expected 0 or up to 25 years, such as 90d`
	if f := snap.Faults(1); len(f) != 1 || f[0].Reason != want {
		t.Errorf("faults %v, expected %s", f, want)
	}
}

func TestRefresh_tellsWhatChanged(t *testing.T) {
	s := newSource()
	s.put(hostConfig(1, "one", item(1, 1, "a"), item(2, 1, "b")))
	s.put(hostConfig(2, "two", item(3, 2, "a")))
	c := New(s, Options{})
	refresh(t, c)
	if changes := refresh(t, c); changes != nil {
		t.Errorf("a refresh without change tells %+v", changes)
	}
	var told *Changes
	cancel := c.Subscribe(func(_ context.Context, changes *Changes) error { told = changes; return nil })
	two := c.Snapshot().hosts[2]
	edited := hostConfig(1, "one", item(1, 1, "a"), item(4, 1, "c"))
	edited.Triggers = []model.Trigger{{ID: 9, HostID: 1, Expression: "last(/one/a)>0"}}
	s.put(edited)
	refresh(t, c)
	if told == nil || len(told.Items) != 1 || told.Items[0].ID != 4 || !slices.Equal(told.DeletedItems, []model.ItemID{2}) ||
		!slices.Equal(told.Hosts, []model.HostID{1}) || len(told.Triggers) != 1 {
		t.Errorf("told %+v", told)
	}
	if c.Snapshot().hosts[2] != two {
		t.Error("an untouched host was built anew")
	}
	cancel()
	told = nil
	delete(s.hosts, 1)
	s.revision++
	s.deleted[1] = s.revision
	changes := refresh(t, c)
	if told != nil {
		t.Error("told after the end of the subscription")
	}
	if !slices.Equal(changes.DeletedHosts, []model.HostID{1}) || len(changes.DeletedItems) != 2 || len(changes.DeletedTriggers) != 1 {
		t.Errorf("changes %+v", changes)
	}
	if _, ok := c.Snapshot().Item(1); ok {
		t.Error("an item of a deleted host is found")
	}
}

func TestRefresh_subscriberRefuses(t *testing.T) {
	s := newSource()
	s.put(hostConfig(1, "one", item(1, 1, "a")))
	c := New(s, Options{})
	refused := errors.New("refused")
	fail := true
	c.Subscribe(func(context.Context, *Changes) error {
		if fail {
			return refused
		}
		return nil
	})
	if _, err := c.Refresh(context.Background()); !errors.Is(err, refused) {
		t.Fatalf("Refresh: %v, want %v", err, refused)
	}
	if n := c.Snapshot().HostCount(); n != 0 {
		t.Errorf("%d hosts in force after a refused refresh", n)
	}
	fail = false
	if changes := refresh(t, c); len(changes.Items) != 1 {
		t.Errorf("changes %+v, want the item again", changes)
	}
}

// flat is a snapshot without its structure, for comparison.
func flat(s *Snapshot) map[string]any {
	all := map[string]any{"revision": s.Revision(), "items": s.ItemCount(), "triggers": s.TriggerCount()}
	for h := range s.Hosts() {
		all["host "+h.Host] = *h
		for i := range s.Items(h.ID) {
			item := s.Items(h.ID)[i]
			found, ok := s.Item(item.ID)
			all[fmt.Sprint("item ", item.ID)] = []any{item, ok, found != nil && reflect.DeepEqual(*found, item)}
		}
		for _, t := range s.TriggersOf(h.ID) {
			_, ok := s.Trigger(t.ID)
			all[fmt.Sprint("trigger ", t.ID)] = []any{t, ok}
		}
	}
	return all
}

func TestRefresh_equalsRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSource()
		c := New(s, Options{})
		next := model.ItemID(0)
		trigger := model.TriggerID(0)
		known := map[model.ItemID]bool{}
		c.Subscribe(func(_ context.Context, changes *Changes) error {
			for _, id := range changes.DeletedItems {
				delete(known, id)
			}
			for _, i := range changes.Items {
				known[i.ID] = true
			}
			return nil
		})
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			id := model.HostID(rapid.IntRange(1, 4).Draw(t, "host"))
			if h := s.hosts[id]; h != nil && rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
				delete(s.hosts, id)
				s.revision++
				s.deleted[id] = s.revision
			} else {
				delete(s.deleted, id)
				h := hostConfig(id, fmt.Sprint("h", id))
				h.Host.Macros = []model.Macro{{Name: "{$M}", Value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "macro")}}
				if old := s.hosts[id]; old != nil && rapid.Bool().Draw(t, "keep") {
					h.Items, h.Triggers = slices.Clone(old.Items), slices.Clone(old.Triggers)
				}
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					next += model.ItemID(rapid.SampledFrom([]int{1, 700}).Draw(t, "step"))
					h.Items = append(h.Items, item(next, id, fmt.Sprintf("k%d[{$M}]", next)))
					trigger++
					h.Triggers = append(h.Triggers, model.Trigger{ID: trigger, HostID: id, Expression: fmt.Sprintf("last(/h%d/k%d[{$M}])>{$M}", id, next)})
				}
				s.put(h)
			}
			if rapid.Bool().Draw(t, "refresh") {
				if _, err := c.Refresh(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := c.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		anew := New(s, Options{})
		if _, err := anew.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		got, want := flat(c.Snapshot()), flat(anew.Snapshot())
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !reflect.DeepEqual(got[key], want[key]) {
				t.Fatalf("%s: refreshed %+v, rebuilt %+v", key, got[key], want[key])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("refreshed has %d objects, rebuilt %d", len(got), len(want))
		}
		if len(known) != c.Snapshot().ItemCount() {
			t.Fatalf("a subscriber knows %d items, the snapshot has %d", len(known), c.Snapshot().ItemCount())
		}
	})
}

// counted counts the hosts that are read of a source.
type counted struct {
	*source
	hosts int
}

func (c *counted) HostConfigs(ctx context.Context, ids []model.HostID, f func(*model.HostConfig) error) error {
	return c.source.HostConfigs(ctx, ids, func(h *model.HostConfig) error {
		c.hosts++
		return f(h)
	})
}

// TestCache_Adopt gives a new cache what another one had: subscribers are told of all of it, no host is read, and the next refresh reads what changed since.
func TestCache_Adopt(t *testing.T) {
	ctx, s := context.Background(), &counted{source: newSource()}
	for id := range model.HostID(20) {
		h := hostConfig(id+1, fmt.Sprint("host-", id+1), item(model.ItemID(1000-10*id), id+1, "a"), item(model.ItemID(1001-10*id), id+1, "b"))
		h.Triggers = []model.Trigger{{ID: model.TriggerID(100 - id), HostID: id + 1, Name: "n", Expression: "1=1", Enabled: true}}
		s.put(h)
	}
	first := New(s, Options{})
	read := refresh(t, first)
	again := New(s, Options{})
	var told []*Changes
	again.Subscribe(func(_ context.Context, c *Changes) error { told = append(told, c); return nil })
	s.source.put(hostConfig(7, "renamed", item(2000, 7, "c")))
	s.hosts = 0
	if err := again.Adopt(ctx, first.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if s.hosts != 0 || again.Snapshot() != first.Snapshot() || len(told) != 1 {
		t.Fatalf("%d hosts were read, subscribers were told %d times", s.hosts, len(told))
	}
	if !reflect.DeepEqual(told[0], read) {
		t.Errorf("told of %d hosts, %d items, %d triggers, expected what was read first: %d, %d, %d", len(told[0].Hosts), len(told[0].Items), len(told[0].Triggers), len(read.Hosts), len(read.Items), len(read.Triggers))
	}
	if changes := refresh(t, again); s.hosts != 1 || !slices.Equal(changes.Hosts, []model.HostID{7}) || len(changes.DeletedItems) != 2 {
		t.Errorf("after that %d hosts were read: %+v", s.hosts, changes)
	}
	if err := again.Adopt(ctx, first.Snapshot()); err == nil {
		t.Error("adopted over a configuration in force")
	}
	if err := New(s, Options{}).Adopt(ctx, emptySnapshot()); err != nil {
		t.Errorf("nothing is adopted with %v", err)
	}
	failing := New(s, Options{})
	failing.Subscribe(func(context.Context, *Changes) error { return errors.New("no") })
	if err := failing.Adopt(ctx, first.Snapshot()); err == nil || failing.Snapshot().HostCount() != 0 {
		t.Errorf("adopted although a subscriber failed: %v", err)
	}
}
