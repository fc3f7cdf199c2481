package postgres

import (
	"math"
	"strconv"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/storage"
)

// meters are the engine's metrics.
type meters struct {
	written, transactions, refused, dropped, unchecked, repeated, early *metrics.Counter
	flushSeconds                                                        *metrics.Histogram
}

func newMeters(db *DB) *meters {
	set := db.o.Metrics
	set.NewGauge("tidemark_postgres_pending_bytes", func() float64 {
		db.mu.RLock()
		defer db.mu.RUnlock()
		return float64(db.pendingBytes)
	})
	set.NewGauge("tidemark_postgres_spool_damaged_bytes", func() float64 {
		if db.spool == nil {
			return 0
		}
		return float64(db.spool.Damage().Bytes)
	})
	set.NewGauge("tidemark_postgres_tables_bytes", func() float64 { return float64(db.sizeBytes.Load()) })
	set.NewGauge("tidemark_postgres_away", func() float64 {
		if db.away.Load() != nil {
			return 1
		}
		return 0
	})
	db.roomGauges()
	return &meters{
		early:        set.NewCounter("tidemark_postgres_early_dropped_bytes_total"),
		written:      set.NewCounter("tidemark_postgres_written_values_total"),
		transactions: set.NewCounter("tidemark_postgres_transactions_total"),
		refused:      set.NewCounter("tidemark_postgres_refused_batches_total"),
		dropped:      set.NewCounter("tidemark_postgres_dropped_values_total"),
		repeated:     set.NewCounter("tidemark_postgres_repeated_transactions_total"),
		unchecked:    set.NewCounter("tidemark_postgres_unchecked_late_values_total"),
		flushSeconds: set.NewHistogram("tidemark_postgres_flush_seconds"),
	}
}

// Stats tells how full the engine is. Size and count of values are those of the last look, a minute ago at most; the count is
// PostgreSQL's estimate.
func (db *DB) Stats() storage.Stats {
	s := storage.Stats{DiskBytes: db.sizeBytes.Load() + db.spool.SizeBytes(), QuotaBytes: db.o.SizeBytes, Durable: db.spool.Synced()}
	db.mu.RLock()
	defer db.mu.RUnlock()
	waiting := 0
	for _, p := range db.queue {
		waiting += p.Batch.Len()
	}
	s.Values = uint64(max(db.rowsEstimate.Load(), 0)) + uint64(waiting)
	s.Items = uint64(len(db.ids))
	if db.low <= db.high {
		s.From, s.To = db.low, db.high
	}
	return s
}

// formatFloat writes a float as PostgreSQL reads it, exactly.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
