package dbengine

import (
	"testing"
	"time"
)

func TestPlanFor(t *testing.T) {
	d := Demand{Metrics: 4096, Interval: time.Second, Retention: 30 * 24 * time.Hour, Varying: 0.11, PageCacheBytes: 64 << 20}
	p, err := PlanFor(d)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(4096 * 30 * 86400); p.Samples != want {
		t.Errorf("%d samples, expected %d", p.Samples, want)
	}
	if p.BytesPerSample < 0.06 || p.BytesPerSample > 0.15 || p.DiskBytes <= p.ValueBytes+p.HourlyBytes || p.MemoryBytes < d.PageCacheBytes || p.Pairs < 2 {
		t.Errorf("%+v", p)
	}
	// A series that is active takes what was measured.
	many := d
	many.Metrics += 1_000_000
	if q, err := PlanFor(many); err != nil || (q.MemoryBytes-p.MemoryBytes)/1_000_000 < 483 || (q.MemoryBytes-p.MemoryBytes)/1_000_000 > 700 { // the rest are pages
		t.Errorf("a million more metrics take %d bytes each: %v", (q.MemoryBytes-p.MemoryBytes)/1_000_000, err)
	}
	more := d
	more.Retention *= 2
	if q, err := PlanFor(more); err != nil || q.DiskBytes <= p.DiskBytes || q.MemoryBytes <= p.MemoryBytes {
		t.Errorf("twice the retention: %+v %v", q, err)
	}
	for name, change := range map[string]func(*Demand){
		"metrics":   func(d *Demand) { d.Metrics = 0 },
		"interval":  func(d *Demand) { d.Interval = 0 },
		"retention": func(d *Demand) { d.Retention = time.Millisecond },
		"varying":   func(d *Demand) { d.Varying = 1.5 },
	} {
		bad := d
		change(&bad)
		if p, err := PlanFor(bad); err == nil {
			t.Errorf("%s: no error, got %+v", name, p)
		}
	}
}
