package dbengine

import (
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// meters are the engine's metrics.
type meters struct {
	stored, duplicate, late, moved, expired   *metrics.Counter
	refused                                   *metrics.Counter
	pagesWritten, extentsWritten, extentsRead *metrics.Counter
	indexBlocksRead                           *metrics.Counter
	readBytes, writtenBytes, logBytes         *metrics.Counter
	plainBytes                                *metrics.Counter
	damagedPages, damagedRecords, quarantined *metrics.Counter
	writeErrors, pairsDeleted                 *metrics.Counter
	tierPairs, tierBytes, mergeRefused        *metrics.Counter
	recompressed, ceilingPairs                *metrics.Counter
	thinnedPairs, thinnedValues, thinWritten  *metrics.Counter
	logSync                                   *metrics.Histogram
}

func newMeters(db *DB) *meters {
	set := db.o.Metrics
	counter := func(name string) *metrics.Counter { return set.GetOrCreateCounter("tidemark_dbengine_" + name) }
	gauge := func(name string, f func() float64) {
		set.UnregisterMetric("tidemark_dbengine_" + name) // an engine that was opened before on the same set
		set.NewGauge("tidemark_dbengine_"+name, f)
	}
	gauge("page_cache_hits_total", func() float64 { return float64(db.cache.Stats().Hits) })
	gauge("page_cache_misses_total", func() float64 { return float64(db.cache.Stats().Misses) })
	gauge("page_cache_evictions_total", func() float64 { return float64(db.cache.Stats().Evictions) })
	gauge("page_cache_bytes", func() float64 { return float64(db.cache.Stats().UsedBytes) })
	gauge("page_cache_limit_bytes", func() float64 { return float64(db.o.PageCacheBytes) })
	gauge("disk_bytes", func() float64 { return float64(db.space.usedBytes()) })
	gauge("disk_quota_bytes", func() float64 { return float64(db.o.DiskSpaceBytes) })
	gauge("dirty_bytes", func() float64 { return float64(db.dirtyBytes.Load()) })
	gauge("unwritten_bytes", func() float64 { return float64(db.hotBytes.Load()) })
	gauge("pages_hot", func() float64 { return float64(db.pageCounts().hot) })
	gauge("pages_dirty", func() float64 { return float64(db.pageCounts().dirty) })
	gauge("pages_clean", func() float64 { return float64(db.pageCounts().clean) })
	gauge("pairs", func() float64 { return float64(len(db.pairs.all())) })
	gauge("log_size_bytes", func() float64 {
		if db.log == nil {
			return 0
		}
		return float64(db.log.SizeBytes())
	})
	gauge("direct_io", func() float64 {
		if db.direct.possible() {
			return 1
		}
		return 0
	})
	gauge("direct_read_bytes_total", func() float64 { return float64(db.Direct().ReadBytes) })
	gauge("direct_written_bytes_total", func() float64 { return float64(db.Direct().WrittenBytes) })
	gauge("direct_buffer_bytes", func() float64 { return float64(db.Direct().BufferBytes) })
	gauge("ceiling_bytes", func() float64 { return float64(db.CeilingBytes()) })
	gauge("minimum_age_short", func() float64 {
		if db.ageShort.Load() {
			return 1
		}
		return 0
	})
	gauge("shares", func() float64 { return float64(db.sharesSeen.Load()) })
	gauge("shares_over", func() float64 { return float64(db.sharesOver.Load()) })
	gauge("log_limit_bytes", func() float64 { return float64(db.o.limits.logBytes) })
	return &meters{
		stored: counter(`values_total{outcome="stored"}`), duplicate: counter(`values_total{outcome="duplicate"}`),
		expired: counter(`values_total{outcome="expired"}`),
		late:    counter("late_values_total"), moved: counter("moved_values_total"),
		refused:      counter("refused_batches_total"),
		pagesWritten: counter("pages_written_total"), extentsWritten: counter("extents_written_total"),
		extentsRead: counter("extents_read_total"), indexBlocksRead: counter("index_blocks_read_total"), readBytes: counter("read_bytes_total"),
		writtenBytes: counter("written_bytes_total"), plainBytes: counter("plain_bytes_total"),
		logBytes:     counter("log_written_bytes_total"),
		damagedPages: counter("damaged_pages_total"), damagedRecords: counter("damaged_records_total"),
		quarantined: counter("quarantined_files_total"),
		writeErrors: counter("write_errors_total"), pairsDeleted: counter("deleted_pairs_total"),
		tierPairs: counter("tier_pairs_written_total"), tierBytes: counter("tier_written_bytes_total"),
		thinnedPairs: counter("thinned_pairs_total"), thinnedValues: counter("thinned_values_total"), thinWritten: counter("thin_written_bytes_total"),
		mergeRefused: counter("merge_refused_values_total"),
		recompressed: counter("recompressed_pairs_total"), ceilingPairs: counter("ceiling_deleted_pairs_total"),
		logSync: set.GetOrCreateHistogram("tidemark_dbengine_log_sync_duration_seconds"),
	}
}

func (m *meters) appended(a *appended) {
	m.stored.Add(a.stored)
	add := func(c *metrics.Counter, n int) {
		if n > 0 {
			c.Add(n)
		}
	}
	add(m.duplicate, a.duplicate)
	add(m.late, a.late)
	add(m.moved, a.moved)
	add(m.expired, a.expired)
}

func (m *meters) synced(sizeBytes int, took time.Duration) {
	m.logBytes.Add(sizeBytes)
	m.logSync.Update(took.Seconds())
}

// pageCounts are the pages by state.
type pageCounts struct{ hot, dirty, clean int64 }

func (db *DB) pageCounts() pageCounts {
	var c pageCounts
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			if s.unsealed() {
				c.hot++
			}
		}
		c.dirty += int64(len(sh.dirty))
		sh.mu.Unlock()
	}
	for _, p := range db.pairs.all() {
		p.mu.Lock()
		c.clean += p.pageCount
		p.mu.Unlock()
	}
	return c
}
