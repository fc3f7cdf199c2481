package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

func open(t *testing.T, fsys vfs.FS, options Options) *Catalog {
	t.Helper()
	c, err := Open(t.Context(), fsys, "/data/catalog", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newFS(t *testing.T) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	return fsys
}

func declare(t *testing.T, c *Catalog, host model.HostID, decls ...Declaration) []model.Entry {
	t.Helper()
	entries, _, err := c.Declare(t.Context(), host, fmt.Sprintf("host%d", host), decls)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestDeclare_survivesReopen(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	want := declare(t, c, 7,
		Declaration{
			Key: "net.if.in[eth0]", Name: "In", Units: "B", Help: "bytes", ValueType: model.Uint, Interval: time.Second,
			Labels: model.Labels{{Name: "type", Value: "counter"}, {Name: "{#IFNAME}", Value: "eth0"}},
		},
		Declaration{Key: "system.uname", ValueType: model.Text},
	)
	if want[0].ID == 0 || want[1].ID == 0 || want[0].ID == want[1].ID {
		t.Fatalf("ids %d and %d", want[0].ID, want[1].ID)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, fsys, Options{})
	for _, e := range want {
		got, ok := c.Item(e.ID)
		if !ok || got != e {
			t.Errorf("item %d: got %+v, want %+v", e.ID, got, e)
		}
		if got, ok = c.ByKeyBytes(7, []byte(e.Key)); !ok || got != e {
			t.Errorf("key %s: got %+v", e.Key, got)
		}
	}
	labels := model.Labels{
		{Name: "__name__", Value: "net_if_in"},
		{Name: "host", Value: "host7"},
		{Name: "ifname", Value: "eth0"},
		{Name: "key", Value: "net.if.in[eth0]"},
		{Name: "type", Value: "counter"},
	}
	if got := c.Labels(want[0].ID); !reflect.DeepEqual(got, labels) {
		t.Errorf("labels %v, want %v", got, labels)
	}
	if id, ok := c.Host("host7"); !ok || id != 7 {
		t.Errorf("host7 is %d", id)
	}
	if next, err := c.NextItemID(); err != nil || next <= want[1].ID {
		t.Errorf("next id %d, %v; ids up to %d are taken", next, err, want[1].ID)
	}
}

func TestDeclare_updatesAndKeepsID(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	first := declare(t, c, 1, Declaration{Key: "k", Units: "B"})[0]
	entries, created, err := c.Declare(t.Context(), 1, "host1", []Declaration{{Key: "k", Units: "bps", Labels: model.Labels{{Name: "a", Value: "b"}}}})
	if err != nil || created != 0 || entries[0].ID != first.ID || entries[0].Units != "bps" {
		t.Fatalf("got %+v, %d new, %v", entries, created, err)
	}
	_ = c.Close()
	c = open(t, fsys, Options{})
	if e, _ := c.ByKey(1, "k"); e.Units != "bps" || c.OwnLabels(e.ID).Get("a") != "b" || c.Len() != 1 {
		t.Errorf("after reopening: %+v, %d items", e, c.Len())
	}
}

func TestDeclare_limits(t *testing.T) {
	c := open(t, newFS(t), Options{MaxDeclared: 2})
	entries, created, err := c.Declare(t.Context(), 1, "h", []Declaration{
		{Key: "a"}, {Key: ""}, {Key: "b"}, {Key: "c"}, {Key: "a"}, {Key: "d", Labels: model.Labels{{Name: strings.Repeat("n", 300), Value: "v"}}},
	})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.OverLimit != 1 || refused.Invalid != 2 || created != 2 {
		t.Fatalf("created %d, error %v", created, err)
	}
	for i, want := range []bool{true, false, true, false, true, false} {
		if (entries[i].ID != 0) != want {
			t.Errorf("declaration %d: id %d", i, entries[i].ID)
		}
	}
	if entries[0] != entries[4] {
		t.Errorf("the same key gave %+v and %+v", entries[0], entries[4])
	}
	if !strings.Contains(err.Error(), "limit of 2") {
		t.Errorf("error %q does not name the limit", err)
	}
}

// TestDeclare_shapeItems bounds the items of MongoDB's shapes apart, over a restart too.
func TestDeclare_shapeItems(t *testing.T) {
	fsys := newFS(t)
	options := Options{MaxDeclared: 2, MaxShapeItems: 3}
	c := open(t, fsys, options)
	f := func(wantCreated, wantRefused int, keys ...string) {
		t.Helper()
		var declarations []Declaration
		for _, k := range keys {
			declarations = append(declarations, Declaration{Key: k})
		}
		_, created, err := c.Declare(t.Context(), 1, "h", declarations)
		refused := &RefusedError{}
		if created != wantCreated || errors.As(err, &refused) != (wantRefused > 0) || refused.OverLimit != wantRefused {
			t.Errorf("%v: created %d, error %v", keys, created, err)
		}
	}
	f(3, 2, "mongo.shape[a]", "mongo.shape[b]", "mongo.shape[c]", "mongo.shape[d]", "mongo.shape[e]")
	f(2, 1, "a", "b", "c")
	_ = c.Close()
	c = open(t, fsys, options)
	f(0, 2, "mongo.shape[d]", "c")
	f(0, 0, "mongo.shape[a]", "a")
}

func TestDeclare_configuredItemWins(t *testing.T) {
	c := open(t, newFS(t), Options{})
	item := model.Item{ID: 500, HostID: 1, Key: "k", ValueType: model.Uint, Units: "B"}
	if err := c.Apply(t.Context(), Change{Hosts: []HostName{{1, "web"}}, Upserts: []model.Item{item}}); err != nil {
		t.Fatal(err)
	}
	e := declare(t, c, 1, Declaration{Key: "k", Units: "%"})[0]
	if e.ID != 500 || e.Units != "B" || e.Kind != model.Configured {
		t.Errorf("got %+v", e)
	}
	if next, _ := c.NextItemID(); next <= 500 {
		t.Errorf("next id is %d after 500 was applied", next)
	}
}

func TestApply_replacesDeclared(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	e := declare(t, c, 1, Declaration{Key: "k"}, Declaration{Key: "other"})[0]
	item := model.Item{ID: e.ID, HostID: 1, Key: "k", Tags: []model.Tag{{Name: "host", Value: "x"}, {Name: "c", Value: "2"}, {Name: "c", Value: "1"}}}
	if err := c.Apply(t.Context(), Change{Upserts: []model.Item{item}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Item(e.ID); got.Kind != model.Configured {
		t.Errorf("got %+v", got)
	}
	if ls := c.OwnLabels(e.ID); ls.Get("exported_host") != "x" || ls.Get("c") != "1,2" {
		t.Errorf("labels %v", ls)
	}
	if err := c.Apply(t.Context(), Change{Deletes: []model.ItemID{e.ID}}); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	c = open(t, fsys, Options{})
	if _, ok := c.Item(e.ID); ok || c.Len() != 1 {
		t.Errorf("a deleted configured item came back; %d items", c.Len())
	}
}

func TestApply_hosts(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	declare(t, c, 1, Declaration{Key: "a"}, Declaration{Key: "b"})
	if err := c.Apply(t.Context(), Change{Hosts: []HostName{{1, "renamed"}}}); err != nil {
		t.Fatal(err)
	}
	if got := c.Match(equal("host", "renamed")); len(got) != 2 {
		t.Errorf("renamed host has %d items", len(got))
	}
	if got := c.Match(equal("host", "host1")); len(got) != 0 {
		t.Errorf("old name has %d items", len(got))
	}
	if _, ok := c.Host("host1"); ok {
		t.Error("the old name is still known")
	}
	if err := c.Apply(t.Context(), Change{DeletedHosts: []model.HostID{1}}); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if c = open(t, fsys, Options{}); c.Len() != 0 {
		t.Errorf("%d items of a deleted host came back", c.Len())
	}
	if err := c.Apply(t.Context(), Change{Upserts: []model.Item{{ID: 9, HostID: 44, Key: "k"}}}); err == nil {
		t.Error("an item of an unknown host was taken")
	}
}

func TestApply_silence(t *testing.T) {
	c := open(t, newFS(t), Options{})
	items := []model.Item{
		{ID: 1, HostID: 1, Key: "a", Interval: time.Minute},
		{ID: 2, HostID: 1, Key: "b", Interval: time.Minute, Steps: []model.Step{{Type: model.StepDiscardHeartbeat, Params: []string{"6h"}}}},
		{ID: 3, HostID: 1, Key: "c", Interval: time.Minute, Steps: []model.Step{{Type: model.StepDiscardUnchanged}}},
	}
	if err := c.Apply(t.Context(), Change{Hosts: []HostName{{1, "h"}}, Upserts: items}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[model.ItemID]time.Duration{1: time.Minute, 2: 6 * time.Hour, 3: 24 * time.Hour} {
		if e, _ := c.Item(id); e.Silence != want || e.Interval != time.Minute {
			t.Errorf("item %d: interval %v, silence %v, want %v", id, e.Interval, e.Silence, want)
		}
	}
}

func TestExpire(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	e := declare(t, c, 1, Declaration{Key: "old"}, Declaration{Key: "live"})
	now := time.Now().Add(8 * 24 * time.Hour).UnixNano()
	seen := func(id model.ItemID) int64 {
		if id == e[1].ID {
			return now - int64(time.Hour)
		}
		return 0
	}
	gone, err := c.Expire(t.Context(), now, seen)
	if err != nil || len(gone) != 1 || gone[0] != e[0].ID {
		t.Fatalf("gone %v, %v", gone, err)
	}
	if gone, _ = c.Expire(t.Context(), time.Now().UnixNano(), func(model.ItemID) int64 { return 0 }); len(gone) != 0 {
		t.Errorf("just declared items went: %v", gone)
	}
	_ = c.Close()
	c = open(t, fsys, Options{})
	if _, ok := c.ByKey(1, "old"); ok || c.Len() != 1 {
		t.Errorf("the item came back; %d items", c.Len())
	}
	if again := declare(t, c, 1, Declaration{Key: "old"})[0]; again.ID == e[0].ID {
		t.Errorf("id %d was given twice", again.ID)
	}
}

func TestNextItemID_neverTwice(t *testing.T) {
	fsys := newFS(t)
	given := make(map[model.ItemID]bool)
	for round := range 5 {
		c := open(t, fsys, Options{})
		for range 3000 {
			id, err := c.NextItemID()
			if err != nil || given[id] || id == 0 {
				t.Fatalf("round %d: id %d, %v", round, id, err)
			}
			given[id] = true
		}
		fsys = fsys.CrashClone(rand.New(rand.NewPCG(1, uint64(round))))
	}
	c := open(t, fsys, Options{MinItemID: 1 << 40})
	if id, _ := c.NextItemID(); id != 1<<40 {
		t.Errorf("id %d, want the floor", id)
	}
}

// TestCatalog_crash declares, changes and forgets at random, crashes at random, and checks that what was acknowledged
// is there afterwards and no id was given twice.
// TestPassID: a catalog that followed another one gives no id that the configuration or the engine had from elsewhere, also after a restart.
func TestPassID(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	for _, known := range []model.ItemID{7000, 3, 20_000} {
		c.PassID(known)
	}
	id, err := c.NextItemID()
	if err != nil || id != 20_001 {
		t.Errorf("the next id is %d, %v; expected 20001", id, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if id, err = open(t, fsys, Options{}).NextItemID(); err != nil || id <= 20_001 {
		t.Errorf("after a restart the next id is %d, %v", id, err)
	}
}

func TestCatalog_crash(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		fsys := newFS(t)
		want := make(map[string]model.Entry)
		owner := make(map[model.ItemID]string)
		for range 6 {
			c := open(t, fsys, Options{})
			for name, e := range want {
				if got, ok := c.Item(e.ID); !ok || got != e {
					t.Fatalf("seed %d: %s: got %+v %v, want %+v", seed, name, got, ok, e)
				}
			}
			if c.Len() != len(want) {
				t.Fatalf("seed %d: %d items, want %d", seed, c.Len(), len(want))
			}
			for range 30 {
				host := model.HostID(1 + r.IntN(3))
				key := fmt.Sprintf("k%d", r.IntN(40))
				if r.IntN(4) == 0 {
					e := want[fmt.Sprint(host, key)]
					_, err := c.Expire(t.Context(), time.Now().Add(1000*time.Hour).UnixNano(), func(id model.ItemID) int64 {
						if id == e.ID {
							return 0
						}
						return time.Now().Add(1000 * time.Hour).UnixNano()
					})
					if err != nil {
						t.Fatal(err)
					}
					delete(want, fmt.Sprint(host, key))
					continue
				}
				e := declare(t, c, host, Declaration{Key: key, Units: fmt.Sprint(r.IntN(3))})[0]
				if was := owner[e.ID]; was != "" && was != fmt.Sprint(host, key) {
					t.Fatalf("seed %d: id %d belongs to %s and %s%d", seed, e.ID, was, key, host)
				}
				owner[e.ID] = fmt.Sprint(host, key)
				want[fmt.Sprint(host, key)] = e
			}
			fsys = fsys.CrashClone(r)
		}
	}
}

func TestCatalog_failedSync(t *testing.T) {
	fsys := vfs.NewFailing(newFS(t))
	c := open(t, fsys, Options{})
	declare(t, c, 1, Declaration{Key: "a"})
	broken := errors.New("input/output error")
	fsys.FailNth(1, vfs.OpSync, broken, false)
	if _, _, err := c.Declare(t.Context(), 1, "host1", []Declaration{{Key: "b"}}); !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
	if _, ok := c.ByKey(1, "b"); ok {
		t.Error("an item that is not durable exists")
	}
	e := declare(t, c, 1, Declaration{Key: "b"})[0]
	_ = c.Close()
	c = open(t, fsys, Options{})
	if got, ok := c.Item(e.ID); !ok || got != e || c.Len() != 2 {
		t.Errorf("got %+v, %d items", got, c.Len())
	}
}

func TestCatalog_rewrite(t *testing.T) {
	fsys := newFS(t)
	c := open(t, fsys, Options{})
	for i := range 6000 {
		declare(t, c, 1, Declaration{Key: "k", Units: fmt.Sprint(i)})
	}
	if c.log.records > 5000 {
		t.Errorf("the log has %d records for one item", c.log.records)
	}
	names, _ := fsys.List("/data/catalog")
	if len(names) != 1 {
		t.Errorf("files %v", names)
	}
	next, _ := c.NextItemID()
	_ = c.Close()
	c = open(t, fsys, Options{})
	if e, _ := c.ByKey(1, "k"); e.Units != "5999" {
		t.Errorf("got %+v", e)
	}
	if again, _ := c.NextItemID(); again <= next {
		t.Errorf("next id %d after %d", again, next)
	}
}

func TestClose_twice(t *testing.T) {
	c := open(t, newFS(t), Options{})
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Declare(t.Context(), 1, "h", []Declaration{{Key: "k"}}); !errors.Is(err, errClosed) {
		t.Errorf("declare after close: %v", err)
	}
}
