package main

import (
	"context"
	"flag"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/VictoriaMetrics/lib/prompb"
	vmstorage "github.com/VictoriaMetrics/VictoriaMetrics/lib/storage"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/bench"
)

// victoria is VictoriaMetrics' lib/storage as in its single server.
type victoria struct {
	db      *vmstorage.Storage
	dir     string
	names   [][]byte // by ItemID
	written atomic.Uint64
}

func openVictoria(_ context.Context, o *bench.Options) (bench.Store, error) {
	if err := flag.Set("loggerLevel", "ERROR"); err != nil {
		return nil, err
	}
	if err := flag.Set("memory.allowedBytes", strconv.FormatInt(o.CacheBytes, 10)); err != nil {
		return nil, err
	}
	if err := flag.CommandLine.Parse(nil); err != nil { // its packages insist on parsed flags
		return nil, err
	}
	db := vmstorage.MustOpenStorage(o.Dir, vmstorage.OpenOptions{Retention: 10 * 365 * 24 * time.Hour, FutureRetention: 2 * 24 * time.Hour})
	return &victoria{db: db, dir: o.Dir}, nil
}

func (v *victoria) Define(_ context.Context, defs []storage.ItemDefinition) error {
	v.names = make([][]byte, len(defs)+1)
	rows := make([]vmstorage.MetricRow, len(defs))
	for i := range defs {
		v.names[defs[i].ID] = vmstorage.MarshalMetricNameRaw(nil, []prompb.Label{{Name: "__name__", Value: metricName(defs[i].ID)}})
		rows[i] = vmstorage.MetricRow{MetricNameRaw: v.names[defs[i].ID], Timestamp: defined}
	}
	// Else readers that come before its index is written remember for a while that there is nothing.
	v.db.RegisterMetricNames(nil, rows)
	v.db.DebugFlush()
	return nil
}

// defined is when the metrics are made known, the first instant of the workload in milliseconds.
const defined = 1_767_225_600_000

// Append stores a batch with all 64 bits of precision.
func (v *victoria) Append(_ context.Context, b *model.Batch) error {
	rows := make([]vmstorage.MetricRow, b.Len())
	for i, id := range b.Items {
		rows[i] = vmstorage.MetricRow{MetricNameRaw: v.names[id], Timestamp: b.At[i] / millisecond, Value: number(b, i)}
	}
	v.db.AddRows(rows, 64)
	v.written.Add(uint64(len(rows)))
	return nil
}

func (v *victoria) NewReader() func(context.Context, model.ItemID, model.TimeRange) (int, error) {
	var search vmstorage.Search
	var block vmstorage.Block
	var times []int64
	var values []float64
	return func(_ context.Context, id model.ItemID, r model.TimeRange) (int, error) {
		filters := vmstorage.NewTagFilters()
		if err := filters.Add(nil, []byte(metricName(id)), false, false); err != nil {
			return 0, err
		}
		span := vmstorage.TimeRange{MinTimestamp: r.From / millisecond, MaxTimestamp: r.To/millisecond - 1}
		search.Init(nil, v.db, []*vmstorage.TagFilters{filters}, span, 1000, math.MaxUint64)
		defer search.MustClose()
		times, values = times[:0], values[:0]
		for search.NextMetricBlock() {
			search.MetricBlockRef.BlockRef.MustReadBlock(&block)
			if err := block.UnmarshalData(); err != nil {
				return 0, err
			}
			times, values = block.AppendRowsWithTimeRangeFilter(times, values, span)
		}
		return len(values), search.Error()
	}
}

// Flush merges everything into the parts that stay.
func (v *victoria) Flush(context.Context) error {
	v.db.DebugFlush()
	return v.db.ForceMergePartitions("")
}

func (v *victoria) Close() error {
	v.db.MustClose()
	return nil
}

// AtRest counts data and index; its caches are left out.
func (v *victoria) AtRest() (uint64, int64, error) {
	bytes, err := folderBytes(v.dir, func(name string) bool { return name == "cache" || name == "metadata" || name == "tmp" })
	return v.written.Load(), bytes, err
}
