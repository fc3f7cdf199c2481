package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// bulk puts n rows of history into a plain or partitioned table as fast as PostgreSQL can, spread over days that end at the base time.
func bulk(b *testing.B, dsn string, n int64, days int64) {
	b.Helper()
	now := storagetest.Base / int64(time.Second)
	seconds := days * 86_400
	items := max(n/seconds*2, benchItems/10)
	each := n / items
	sql := fmt.Sprintf("INSERT INTO history_c0 SELECT i, %d + (s::bigint * %d / %d), s %% 1000000000, (i %% 100) + 0.5 FROM generate_series(0, %d) s, generate_series(1, %d) i",
		now-seconds, seconds, each, each-1, items)
	if _, err := pgtest.Exec(dsn, sql); err != nil {
		b.Fatal(err)
	}
	if _, err := pgtest.Exec(dsn, "CHECKPOINT"); err != nil {
		b.Fatal(err)
	}
}

// bulkRows is how many rows a table has; ROWS in the environment changes it.
func bulkRows(b *testing.B) int64 { return int64(count(b, "ROWS", 5_000_000)) }

// dashboardCount people have dashboardCharts charts of an hour before them, anew every dashboardPause.
const (
	dashboardCount, dashboardCharts = 10, 30
	dashboardPause                  = 10 * time.Second
)

// dashboards reads charts until stop is called, which returns how many there were and the longest time that one took.
func dashboards(b *testing.B, db *DB) (stop func() (charts int64, longest time.Duration)) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var charts, longest atomic.Int64
	for person := range dashboardCount {
		all.Go(func() {
			for ctx.Err() == nil {
				for chart := range dashboardCharts {
					q := storagetest.All(model.ItemID(1 + (person*dashboardCharts+chart)%(benchItems/10)))
					q.Range = model.TimeRange{From: storagetest.Base - int64(time.Hour), To: storagetest.Base}
					began := time.Now()
					if err := db.Read(ctx, q, func(*model.Columns) error { return nil }); err != nil && ctx.Err() == nil {
						b.Error(err)
						return
					}
					charts.Add(1)
					longest.Store(max(longest.Load(), int64(time.Since(began))))
				}
				select {
				case <-ctx.Done():
				case <-time.After(dashboardPause):
				}
			}
		})
	}
	return func() (int64, time.Duration) {
		cancel()
		all.Wait()
		return charts.Load(), time.Duration(longest.Load())
	}
}

// BenchmarkFilled writes to tables that have a million rows, and many, while dashboards are refreshed.
func BenchmarkFilled(b *testing.B) {
	for _, mode := range []Mode{Partitions, Plain} {
		for _, rows := range []int64{1_000_000, bulkRows(b)} {
			b.Run(fmt.Sprintf("%s/%d", mode, rows), func(b *testing.B) {
				dsn := shared.database(b)
				o := testOptions(b, mode, b.TempDir())
				o.Classes = nil
				db := open(b, dsn, o)
				storagetest.Append(b, settled{db}, benchBatch(0)) // makes the table
				makeDays(b, db, 10)
				bulk(b, dsn, rows, 10)
				w := writerOf(b, db)
				n, before := 0, backendSeconds(b, w)
				stop := dashboards(b, db)
				for b.Loop() {
					n++
					p := &pending{}
					p.Batch = benchBatch(n)
					p.Classes = make([]uint8, benchItems)
					if err := insertPart(context.Background(), w, "writer", p, 0, benchItems); err != nil {
						b.Fatal(err)
					}
				}
				charts, longest := stop()
				b.ReportMetric(float64(charts), "charts")
				b.ReportMetric(float64(longest.Milliseconds()), "longest-chart-ms")
				b.ReportMetric(float64(n*benchItems)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(1e6*(backendSeconds(b, w)-before)/float64(n*benchItems), "server-µs/row")
			})
		}
	}
}

// makeDays makes the partitions of the days before the base time.
func makeDays(b *testing.B, db *DB, days int64) {
	b.Helper()
	conn, err := db.pool.Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	for _, t := range db.allTables() {
		for d := int64(0); d <= days && t.mode == Partitions; d++ {
			clock := int32(storagetest.Base/int64(time.Second) - d*86_400)
			if err := db.partitionAt(context.Background(), conn.Conn(), t.key, clock, maxStep); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDropDay takes the oldest of ten days out: a partition, and rows as Zabbix's housekeeper deletes them, by item.
func BenchmarkDropDay(b *testing.B) {
	for _, mode := range []Mode{Partitions, Plain} {
		b.Run(string(mode), func(b *testing.B) {
			dsn := shared.database(b)
			o := testOptions(b, mode, b.TempDir())
			o.Classes = nil
			db := open(b, dsn, o)
			storagetest.Append(b, settled{db}, benchBatch(0))
			makeDays(b, db, 10)
			bulk(b, dsn, bulkRows(b), 10)
			db.o.Classes = []Class{{History: (8*24 + 22) * time.Hour}} // the base time is an hour before midnight
			rows := func() int64 {
				text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history")
				n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				return n
			}
			before, start := rows(), time.Now()
			freed := int64(0)
			for i := 0; b.Loop(); i++ {
				if i > 0 {
					continue // it is gone
				}
				n, err := db.Prune(context.Background(), storagetest.Base)
				if err != nil {
					b.Fatal(err)
				}
				freed += n
			}
			took := time.Since(start)
			b.ReportMetric(float64(took.Microseconds())/1000, "ms")
			b.ReportMetric(float64(before-rows()), "rows")
			b.ReportMetric(float64(freed)/(1<<20), "MiB-freed")
		})
	}
}

// BenchmarkBytes stores the same gauges and counters in each way and says what a value takes on disk, with indexes, after VACUUM.
func BenchmarkBytes(b *testing.B) {
	for _, mode := range []Mode{Plain, Partitions, Timescale} {
		b.Run(string(mode), func(b *testing.B) {
			dsn := ""
			if mode == Timescale {
				dsn = timescale.database(b)
			} else {
				dsn = shared.database(b)
			}
			o := testOptions(b, mode, b.TempDir())
			o.Classes = nil
			o.Now = func() int64 { return storagetest.Base }
			db := open(b, dsn, o)
			values := 0
			for n := range int64(400) {
				batch := &model.Batch{}
				for id := model.ItemID(1); id <= 200; id++ {
					at := storagetest.Base + n*int64(10*time.Second)
					batch.AppendFloat(id, at, float64((int64(id)*7+n*13)%1000)/10)
					batch.AppendUint(id+1000, at, uint64(id)*1_000_000+uint64(n)*uint64(id%50))
				}
				values += batch.Len()
				storagetest.Append(b, settled{db}, batch)
			}
			for b.Loop() { // sizes are all that is measured
			}
			if mode == Timescale {
				later := storagetest.Base + 30*day
				db.o.Now = func() int64 { return later }
				for range 4 {
					if err := db.keep(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			h, err := db.Housekeeping(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			size := int64(0)
			for _, t := range h.Tables {
				if strings.HasPrefix(t.Name, "history") {
					size += t.Bytes
				}
			}
			b.ReportMetric(float64(size)/float64(values), "bytes/value")
		})
	}
}
