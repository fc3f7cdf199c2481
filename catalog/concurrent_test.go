package catalog

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// TestCatalog_concurrent lets agents declare, the configuration change, items expire and queries match at the same
// time; the race detector and the final count judge.
func TestCatalog_concurrent(t *testing.T) {
	c := open(t, newFS(t), Options{})
	const rounds, keys = 30, 40
	var wg sync.WaitGroup
	for agent := range 4 {
		wg.Go(func() {
			host := model.HostID(agent + 1)
			for round := range rounds {
				var decls []Declaration
				for k := range keys {
					decls = append(decls, Declaration{Key: fmt.Sprintf("k[%d]", k), Units: fmt.Sprint(round % 3), Labels: model.Labels{{Name: "n", Value: fmt.Sprint(k % 5)}}})
				}
				if _, _, err := c.Declare(t.Context(), host, fmt.Sprintf("host%d", host), decls); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		var before []model.ItemID
		for round := range rounds {
			// An id of one's own would be given to a declared item as well sooner or later.
			id, err := c.NextItemID()
			if err != nil {
				t.Error(err)
			}
			item := model.Item{ID: id, HostID: 9, Key: fmt.Sprintf("c%d", round)}
			change := Change{Hosts: []HostName{{9, fmt.Sprintf("conf%d", round)}}, Upserts: []model.Item{item}, Deletes: before}
			before = []model.ItemID{id}
			if err := c.Apply(t.Context(), change); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range rounds {
			if _, err := c.Expire(t.Context(), time.Now().UnixNano(), func(model.ItemID) int64 { return 0 }); err != nil {
				t.Error(err)
			}
			if _, err := c.NextItemID(); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range rounds * 5 {
				for _, id := range c.Match(equal("n", "3")) {
					if ls := c.Labels(id); ls != nil && ls.Get("n") != "3" {
						t.Errorf("labels %v", ls)
					}
				}
				c.LabelNames()
				c.Search(Filter{Text: "k", Limit: 10})
				c.Metadata("", 0)
			}
		})
	}
	wg.Wait()
	if want := 4*keys + 1; c.Len() != want {
		t.Errorf("%d items, want %d", c.Len(), want)
	}
}

// TestCatalog_brokenDisk fails everything for a while: nothing is acknowledged then, and everything works again after.
func TestCatalog_brokenDisk(t *testing.T) {
	mem := newFS(t)
	fsys := vfs.NewFailing(mem)
	c := open(t, fsys, Options{})
	declare(t, c, 1, Declaration{Key: "before"})
	broken := errors.New("input/output error")
	fsys.SetRule(func(op vfs.Op, _ string, _ int) error {
		if op == vfs.OpSync || op == vfs.OpWrite || op == vfs.OpCreate {
			return broken
		}
		return nil
	})
	for i := range 3 {
		if _, _, err := c.Declare(t.Context(), 1, "host1", []Declaration{{Key: fmt.Sprintf("during%d", i)}}); !errors.Is(err, broken) {
			t.Errorf("declare %d: %v", i, err)
		}
		gone, err := c.Expire(t.Context(), time.Now().Add(time.Hour*24*30).UnixNano(), func(model.ItemID) int64 { return 0 })
		if !errors.Is(err, broken) || len(gone) != 0 {
			t.Errorf("expire: %v %v", gone, err)
		}
	}
	if c.Len() != 1 {
		t.Errorf("%d items", c.Len())
	}
	fsys.SetRule(nil)
	e := declare(t, c, 1, Declaration{Key: "after"})[0]
	_ = c.Close()
	c = open(t, mem, Options{})
	if got, ok := c.Item(e.ID); !ok || got != e || c.Len() != 2 {
		t.Errorf("after the disk works again: %+v, %d items", got, c.Len())
	}
	names, _ := mem.List("/data/catalog")
	if len(names) != 1 {
		t.Errorf("files %v", names)
	}
}
