package confcache

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/confdb"
	"tidemark/model"
)

type ids struct{ last model.ItemID }

func (i *ids) NextItemID() (model.ItemID, error) {
	i.last++
	return i.last, nil
}

// hostFile is an export of a host as the load generator provisions it.
func hostFile(host string, items, triggers int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"Load"}],"hosts":[{"host":%q,"name":%q,"groups":[{"name":"Load"}],"items":[`, host, host)
	for i := 1; i <= items; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"Load item %d","type":"TRAP","key":"load.item[%d]","delay":"0","history":"7d","value_type":"FLOAT"}`, i, i)
	}
	b.WriteString(`]}],"triggers":[`)
	for i := 1; i <= triggers; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"expression":"last(/%s/load.item[%d])>1000000","name":"Load item %d is high","priority":"WARNING"}`, host, i, i)
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

func provision(b *testing.B, hosts, items, triggers int) *confdb.DB {
	ctx := context.Background()
	d, err := confdb.Open(ctx, b.TempDir(), confdb.Options{IDs: &ids{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	for h := range hosts {
		name := fmt.Sprintf("load-%04d", h+1)
		if _, err := d.Import(ctx, name, hostFile(name, items, triggers), confdb.ImportOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	return d
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cpuTime is what the process has used; unlike the time on the clock it does not depend on what else runs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRefresh_all loads 50,000 items and 30,000 triggers of 25 hosts, of which own ones are the dearest kind.
func BenchmarkRefresh_all(b *testing.B) {
	const hosts, items, triggers = 25, 2000, 1200
	d := provision(b, hosts, items, triggers)
	before := heapBytes()
	var c *Cache
	busy := cpuTime()
	for b.Loop() {
		c = New(d, Options{})
		if _, err := c.Refresh(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-busy)/float64(b.N)/(hosts*items), "cpu-ns/item")
	b.ReportMetric(float64(heapBytes()-before)/(hosts*items), "heapB/item")
	runtime.KeepAlive(c)
}

// BenchmarkRefresh_inherited loads 50,000 items and 30,000 triggers that 25 hosts inherit from one template.
func BenchmarkRefresh_inherited(b *testing.B) {
	const hosts, items, triggers = 25, 2000, 1200
	d := provision(b, 0, 0, 0)
	text := string(hostFile("T", items, triggers))
	text = strings.Replace(strings.Replace(text, `"hosts":[{"host"`, `"templates":[{"template"`, 1), `"host_groups"`, `"template_groups"`, 1)
	if _, err := d.Import(context.Background(), "template", []byte(text), confdb.ImportOptions{}); err != nil {
		b.Fatal(err)
	}
	for h := range hosts {
		id, _, err := d.RegisterHost(context.Background(), fmt.Sprintf("h%d", h), "")
		if err == nil {
			err = d.LinkTemplate(context.Background(), id, "T")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	before := heapBytes()
	var c *Cache
	busy := cpuTime()
	for b.Loop() {
		c = New(d, Options{})
		if _, err := c.Refresh(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	if n := c.Snapshot().ItemCount(); n != hosts*items {
		b.Fatalf("%d items, want %d", n, hosts*items)
	}
	b.ReportMetric(float64(cpuTime()-busy)/float64(b.N)/(hosts*items), "cpu-ns/item")
	b.ReportMetric(float64(heapBytes()-before)/(hosts*items), "heapB/item")
	runtime.KeepAlive(c)
}

// BenchmarkRefresh_oneHost changes one host of 25.
func BenchmarkRefresh_oneHost(b *testing.B) {
	d := provision(b, 25, 2000, 1200)
	c := New(d, Options{})
	if _, err := c.Refresh(context.Background()); err != nil {
		b.Fatal(err)
	}
	on := false
	for b.Loop() {
		if err := d.SetHostEnabled(context.Background(), 3, on); err != nil {
			b.Fatal(err)
		}
		on = !on
		if _, err := c.Refresh(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkImport_host imports a file of 2,000 items and 1,200 triggers, the first time into an empty database, then
// again without change.
func BenchmarkImport_host(b *testing.B) {
	file := hostFile("load-0001", 2000, 1200)
	b.Run("new", func(b *testing.B) {
		d := provision(b, 0, 0, 0)
		for n := 0; b.Loop(); n++ {
			name := fmt.Sprintf("load-%04d", n)
			if _, err := d.Import(context.Background(), name, hostFile(name, 2000, 1200), confdb.ImportOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		d := provision(b, 1, 2000, 1200)
		for b.Loop() {
			if _, err := d.Import(context.Background(), "again", file, confdb.ImportOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
