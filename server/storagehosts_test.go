package server

import (
	"testing"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine"
)

// TestServer_hostShares asks what hosts take: one that has many pages, one that has five values, and an item that no host has.
func TestServer_hostShares(t *testing.T) {
	r := run(t, t.TempDir())
	var got hostShares
	r.get("/api/storage/hosts", &got)
	if len(got.Hosts) != 0 || got.Factor != 2 {
		t.Fatalf("an empty store: %+v", got)
	}
	r.ask("POST", "/api/import", twoHosts, nil, 200)
	b, now := model.NewBatch(), time.Now().Unix()
	counts := map[string]int{"own-host": 60_000, foreign: 5, "": 3}
	snapshot := r.server.cache.Snapshot()
	for name, count := range counts {
		item := model.ItemID(1 << 40)
		if h, ok := snapshot.Host(name); ok {
			items := r.server.catalog.HostItems(h.ID)
			if len(items) == 0 {
				t.Fatalf("%s has no items", name)
			}
			item = items[0]
		} else if name != "" {
			t.Fatalf("no host %s", name)
		}
		for n := range count {
			b.AppendFloat(item, (now-int64(count)+int64(n))*int64(time.Second), float64(n*n%997)/7)
		}
	}
	db := r.server.engine.(*dbengine.DB)
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.ClosePair(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.get("/api/storage/hosts", &got)
	found := map[string]hostShare{}
	parts := 0.0
	for i, h := range got.Hosts {
		found[h.Host] = h
		parts += h.Percent
		if h.Bytes <= 0 || (h.HostID == "") != (h.Host == "") || i > 0 && h.Percent > got.Hosts[i-1].Percent {
			t.Errorf("host %d: %+v", i, got.Hosts)
		}
	}
	own, other, gone := found["own-host"], found[foreign], found[""]
	if len(found) != len(got.Hosts) || got.Count != len(got.Hosts) || parts < 99.9 || parts > 100.1 || own.Bytes == 0 || other.Bytes == 0 || gone.Bytes == 0 {
		t.Fatalf("%+v", got)
	}
	if !own.Over || own.LimitBytes <= 0 || own.LimitBytes >= own.Bytes || other.Over || gone.LimitBytes != 0 {
		t.Errorf("limits of %+v", got)
	}
}
