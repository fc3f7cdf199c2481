package dbengine

import (
	"fmt"
	"time"
)

// Demand is what a store shall hold.
type Demand struct {
	// Metrics come every Interval and are kept for Retention.
	Metrics             int64
	Interval, Retention time.Duration
	// Varying is the share of metrics that change from one value to the next most of the time, 0 to 1. On a Linux machine it is
	// about 0.11.
	Varying float64
	// PageCacheBytes is the page cache size.
	PageCacheBytes int64
}

// Plan is what it takes. All sizes are in bytes.
type Plan struct {
	Samples         int64   `json:"samples"`
	BytesPerSample  float64 `json:"bytes_per_sample"`
	ValueBytes      int64   `json:"value_bytes"`
	MinuteBytes     int64   `json:"minute_bytes"`
	HourlyBytes     int64   `json:"hourly_bytes"`
	LogBytes        int64   `json:"log_bytes"`
	DiskBytes       int64   `json:"disk_bytes"`
	MemoryBytes     int64   `json:"memory_bytes"`
	Pairs           int64   `json:"pairs"`
	OpenFiles       int64   `json:"open_files"`
	ValuesPerSecond float64 `json:"values_per_second"`
}

// The measured ratios; docs/user/storage.md has the formulas, docs/benchmarks.md the measurements.
const (
	planVaryingBytes  = 0.70  // of a value that varies
	planConstantBytes = 0.008 // of one that does not
	planPageBytes     = 12    // of a page's row in directory, journalfile, checksums
	planMinuteBytes   = 9.3   // of a minute of a value that varies
	planFlatBytes     = 0.25  // of a minute of one that does not
	planRowBytes      = 22    // of an hourly row
	planSeriesBytes   = 490   // of memory for an active series, when its page is nearly full
	planRefBytes      = 56    // of memory for a page of the pair that grows
	planTableBytes    = 0.016 // of memory for a page of a closed pair
	planPageValues    = 1024
	planBaseBytes     = 48 << 20 // of memory for the process, buffers
	planOtherFiles    = 24
)

// PlanFor computes what a demand takes. The disk space it says is the setting storage.disk_space.
func PlanFor(d Demand) (*Plan, error) {
	switch {
	case d.Metrics < 1 || d.Metrics > 1e9:
		return nil, fmt.Errorf("metrics: %d, expected 1 to 1,000,000,000", d.Metrics)
	case d.Interval < time.Millisecond || d.Interval > 24*time.Hour:
		return nil, fmt.Errorf("interval: %v, expected 1ms to 24h", d.Interval)
	case d.Retention < d.Interval || d.Retention > 50*365*24*time.Hour:
		return nil, fmt.Errorf("retention: %v, expected at least the interval and at most 50 years", d.Retention)
	case !(d.Varying >= 0 && d.Varying <= 1):
		return nil, fmt.Errorf("varying: %g, expected 0 to 1", d.Varying)
	}
	each := float64(d.Retention / d.Interval)
	metrics := float64(d.Metrics)
	samples := metrics * each
	// A page is closed when it has 1,024 values or is a day old.
	pageValues := min(planPageValues, max(1, float64(24*time.Hour/d.Interval)))
	pages := samples / pageValues
	values := samples*(d.Varying*planVaryingBytes+(1-d.Varying)*planConstantBytes) + pages*planPageBytes
	rows := metrics * max(1, d.Retention.Hours()) * planRowBytes
	if d.Interval > time.Hour {
		rows = samples * planRowBytes
	}
	minutes := min(samples, metrics*max(1, d.Retention.Minutes())) * (d.Varying*planMinuteBytes + (1-d.Varying)*planFlatBytes)
	hot := metrics * 16 * min(pageValues, each)
	log := max(64<<20, min(2*hot, (values+minutes+rows)/3))
	disk := max((values+minutes+rows)*1.05+log, MinDiskSpaceBytes) // the oldest pair goes whole
	datafile := float64(limitsFor(int64(disk)).datafileBytes)
	pairs := int64((values+rows)/datafile) + 1
	refs := pages/float64(pairs)*planRefBytes + pages*planTableBytes
	p := &Plan{
		Samples: int64(samples), ValueBytes: int64(values), MinuteBytes: int64(minutes), HourlyBytes: int64(rows), LogBytes: int64(log), DiskBytes: int64(disk),
		BytesPerSample: (values + minutes + rows) / samples, Pairs: pairs,
		MemoryBytes:     int64(metrics*planSeriesBytes+refs) + d.PageCacheBytes + planBaseBytes,
		ValuesPerSecond: metrics / d.Interval.Seconds(),
	}
	p.OpenFiles = planOtherFiles + min(p.Pairs, int64(openFilesLimit()))
	return p, nil
}
