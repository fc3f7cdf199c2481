package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/model"
	"tidemark/storage/storagetest"
)

// benchItems is how many items have a value in each batch.
const benchItems = 10_000

func benchBatch(n int) *model.Batch {
	b := &model.Batch{}
	for item := range benchItems {
		b.AppendFloat(model.ItemID(item+1), storagetest.Base+int64(n)*int64(time.Second), float64(item%100)+0.5)
	}
	return b
}

// BenchmarkDB_Append writes from Append to committed rows; the figure to look at is rows/s.
func BenchmarkDB_Append(b *testing.B) {
	for _, mode := range []Mode{Partitions, Plain} {
		b.Run(string(mode), func(b *testing.B) {
			db := open(b, shared.database(b), testOptions(b, mode, b.TempDir()))
			n, start := 0, time.Now()
			for b.Loop() {
				storagetest.Append(b, db, benchBatch(n))
				n++
			}
			if err := db.flushed(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n*benchItems)/time.Since(start).Seconds(), "rows/s")
		})
	}
}

// BenchmarkInsert compares ways into the same empty partitioned table: COPY as the writer does it, INSERT as it does it for rows that may
// be there, and COPY by a bare client.
func BenchmarkInsert(b *testing.B) {
	ctx := context.Background()
	for _, size := range []int{1000, 10_000} {
		for _, way := range []string{"writer", "unnest", "copy"} {
			b.Run(fmt.Sprintf("%s/%d", way, size), func(b *testing.B) {
				dsn := shared.database(b)
				db := open(b, dsn, testOptions(b, Partitions, b.TempDir()))
				storagetest.Append(b, settled{db}, benchBatch(0)) // makes the table
				w := writerOf(b, db)
				n, before := 0, backendSeconds(b, w)
				for b.Loop() {
					n++
					p := &pending{}
					p.Batch = benchBatch(n)
					p.Classes = make([]uint8, benchItems)
					for from := 0; from < benchItems; from += size {
						if err := insertPart(ctx, w, way, p, from, size); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(n*benchItems)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(1e6*(backendSeconds(b, w)-before)/float64(n*benchItems), "server-µs/row")
			})
		}
	}
}

// writerOf takes the engine's writer, whose session alone may write, after the engine has stopped to write by itself.
func writerOf(b *testing.B, db *DB) *writer {
	b.Helper()
	db.cancel()
	db.loops.Wait()
	if err := db.writer.connect(context.Background()); err != nil {
		b.Fatal(err)
	}
	return db.writer
}

// backendSeconds is the processor time that PostgreSQL spent for the writer's connection: a figure that other load on the machine
// disturbs less than rows per second.
func backendSeconds(b *testing.B, w *writer) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.conn.PgConn().PID()))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const ticksPerSecond = 100 // USER_HZ
	return (user + system) / ticksPerSecond
}

func insertPart(ctx context.Context, w *writer, way string, p *pending, from, size int) error {
	if way == "copy" {
		_, err := w.conn.CopyFrom(ctx, pgx.Identifier{"history_c0"}, []string{"itemid", "clock", "ns", "value"}, pgx.CopyFromSlice(size, func(i int) ([]any, error) {
			clock, ns := split(p.Batch.At[from+i])
			return []any{int64(p.Batch.Items[from+i]), clock, ns, p.Batch.Float(from + i)}, nil
		}))
		return err
	}
	rows := make([]row, size)
	for i := range rows {
		rows[i] = row{item: p.Batch.Items[from+i], at: p.Batch.At[from+i], p: p, row: from + i}
	}
	if way == "writer" {
		return w.copyAll(ctx, statements(rows))
	}
	return w.insertAll(ctx, statements(rows))
}

// BenchmarkStatements is what the writer itself does for a transaction of 20,000 floats, from 80 requests of hosts in no order.
func BenchmarkStatements(b *testing.B) {
	const requests, each, hosts = 80, 250, 100
	var rows []row
	r := rand.New(rand.NewPCG(1, 1))
	for n := range int64(requests) {
		p := &pending{}
		p.Batch, p.Classes = &model.Batch{}, make([]uint8, each)
		first := model.ItemID(1 + each*r.IntN(hosts))
		for i := range each {
			p.Batch.AppendFloat(first+model.ItemID(i), storagetest.Base+n*int64(time.Millisecond)+int64(i), 0.5)
			rows = append(rows, row{item: p.Batch.Items[i], at: p.Batch.At[i], p: p, row: i})
		}
	}
	for b.Loop() {
		for _, s := range statements(rows) {
			s.key.copyData(s.rows)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}
