package confcache

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"tidemark/confdb"
	"tidemark/model"
)

// TestCache_withDatabase changes a real database from several goroutines while the cache refreshes, and compares the
// snapshot with one that is built anew.
func TestCache_withDatabase(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	d, err := confdb.Open(ctx, t.TempDir(), confdb.Options{IDs: &ids{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	template := func(keys int) {
		text := fmt.Sprintf(`{"zabbix_export":{"version":"6.0","templates":[{"template":%q,"items":[`, confdb.ZabbixAgentTemplate)
		for k := range keys {
			if k > 0 {
				text += ","
			}
			text += fmt.Sprintf(`{"key":"k%d","type":"TRAP","triggers":[{"name":"t%d","expression":"last(/%s/k%d)>0"}]}`, k, k, confdb.ZabbixAgentTemplate, k)
		}
		if _, err := d.Import(ctx, "t", []byte(text+`]}]}}`), confdb.ImportOptions{DeleteMissing: true}); err != nil {
			t.Error(err)
		}
	}
	template(3)
	c := New(d, Options{})
	var running, changing sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx, d.Changed()); err != nil {
			t.Error(err)
		}
	})
	changing.Go(func() {
		for n := range 8 {
			template(n)
		}
	})
	for worker := range 2 {
		changing.Go(func() {
			for n := range 6 {
				id, _, err := d.RegisterHost(ctx, fmt.Sprintf("h%d-%d", worker, n), "")
				if err == nil && n%3 == 2 {
					err = d.DeleteHost(ctx, id)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Go(func() {
		for n := range 200 {
			s := c.Snapshot()
			for h := range s.Hosts() {
				for _, i := range s.Items(h.ID) {
					if found, ok := s.Item(i.ID); !ok || found.HostID != h.ID {
						t.Errorf("read %d: item %d of host %s is not found", n, i.ID, h.Host)
					}
				}
			}
		}
	})
	changing.Wait()
	if _, err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	running.Wait()
	anew := New(d, Options{})
	if _, err := anew.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, want := flat(c.Snapshot()), flat(anew.Snapshot())
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: refreshed %+v, rebuilt %+v", key, got[key], want[key])
		}
	}
	if len(got) != len(want) || c.Snapshot().HostCount() != 8 {
		t.Errorf("%d objects and %d hosts, rebuilt %d objects, want 8 hosts", len(got), c.Snapshot().HostCount(), len(want))
	}
	if n := len(c.Snapshot().Items(model.HostID(1))); n != 7 {
		t.Errorf("host 1 has %d items, want the 7 of the last template", n)
	}
}
