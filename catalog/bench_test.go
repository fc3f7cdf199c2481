package catalog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// bigCatalog has 500,000 items: 500 hosts with 1,000 items each.
func bigCatalog(b *testing.B) *Catalog {
	b.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/data"); err != nil {
		b.Fatal(err)
	}
	c, err := Open(b.Context(), fsys, "/data/catalog", Options{})
	if err != nil {
		b.Fatal(err)
	}
	for host := range 500 {
		change := Change{Hosts: []HostName{{model.HostID(host + 1), fmt.Sprintf("db-%04d.example.net", host)}}}
		for i := range 1000 {
			change.Upserts = append(change.Upserts, model.Item{
				ID: model.ItemID(host*1000 + i + 1), HostID: model.HostID(host + 1), Key: fmt.Sprintf("vfs.dev.read.%d[disk%d,ops]", i/20, i%20),
				Name: fmt.Sprintf("Disk %d: reads %d", i%20, i/20), ValueType: model.Float, Units: "ops", Interval: time.Minute,
				Labels: model.Labels{{Name: "component", Value: "storage"}, {Name: "disk", Value: fmt.Sprintf("disk%d", i%20)}},
			})
		}
		if err := c.Apply(b.Context(), change); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := bigCatalog(b)
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		c.Len()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(c.Len()), "B/item")
}

func BenchmarkMatch(b *testing.B) {
	c := bigCatalog(b)
	for name, ms := range map[string][]*labels.Matcher{
		"host+name":   {equal("__name__", "vfs_dev_read_7"), equal("host", "db-0042.example.net")},
		"name":        {equal("__name__", "vfs_dev_read_7")},
		"name+regex":  {equal("__name__", "vfs_dev_read_7"), labels.MustNewMatcher(labels.MatchRegexp, "host", "db-00.*")},
		"alternation": {labels.MustNewMatcher(labels.MatchRegexp, "host", "db-0001.example.net|db-0002.example.net"), equal("disk", "disk3")},
		"regex keys":  {labels.MustNewMatcher(labels.MatchRegexp, "key", ".*disk3,.*")},
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(c.Match(ms...))
			}
			b.ReportMetric(float64(n), "items")
		})
	}
}

func BenchmarkByKeyBytes(b *testing.B) {
	c := bigCatalog(b)
	key := []byte("vfs.dev.read.7[disk3,ops]")
	for b.Loop() {
		if _, ok := c.ByKeyBytes(77, key); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkFindBytes(b *testing.B) {
	c := bigCatalog(b)
	key := []byte("vfs.dev.read.7[disk3,ops]")
	for b.Loop() {
		if _, ok := c.FindBytes(77, key); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	c := bigCatalog(b)
	for b.Loop() {
		if _, n := c.Search(Filter{Text: "disk3,", Limit: 100}); n == 0 {
			b.Fatal("not found")
		}
	}
}
