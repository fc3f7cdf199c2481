package postgres

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// foldBatch is the values of second k of series of several kinds.
func foldBatch(r *rand.Rand, k int) *model.Batch {
	b := &model.Batch{}
	at := storagetest.Base + int64(k)*int64(time.Second)
	b.AppendFloat(1, at, 2.5)
	b.AppendUint(2, at, 1<<63+7) // their sum passes 64 bits
	b.AppendFloat(3, at, r.NormFloat64())
	b.AppendUint(4, at+int64(r.IntN(1000)), uint64(k*k))
	b.AppendFloat(5, at, []float64{1, math.NaN(), math.Inf(1)}[k%3])
	b.AppendFloat(6, storagetest.Base+int64(k)*1000, float64(k)) // dense
	b.AppendFloat(7, at, math.MaxFloat64)                        // their sum is beyond what floats hold
	if k%2 == 0 {
		b.AppendUint(8, at, uint64(k)) // changes its type
	} else {
		b.AppendFloat(8, at, float64(k))
	}
	b.AppendBytes(9, at, model.Character, []byte("text"))
	return b
}

// TestDB_fold compares what the database sums up, with values that wait and without, with sums of what is read.
func TestDB_fold(t *testing.T) {
	for _, mode := range []Mode{Plain, Partitions, Timescale} {
		t.Run(string(mode), func(t *testing.T) {
			on := shared.database
			if mode == Timescale {
				on = timescale.database
			}
			db := open(t, on(t), testOptions(t, mode, t.TempDir()))
			if db.remote {
				t.Error("a database on this machine counts as one on another")
			}
			r := rand.New(rand.NewPCG(1, 2))
			check := func(what string) {
				t.Helper()
				q := storagetest.All(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
				for _, step := range []int64{999, 700_000_000, 1e9, 7e9, 60e9, 3600e9, math.MaxInt64} {
					for _, from := range []int64{math.MinInt64, -5, 0, storagetest.Base + 3_500_000_000} {
						q.Range = model.TimeRange{From: from, To: storagetest.Base + 250e9}
						if err := storagetest.CompareFolds(db, q, step); err != nil {
							t.Errorf("%s, from %d: %v", what, from, err)
						}
					}
				}
			}
			for k := range 300 {
				storagetest.Append(t, db, foldBatch(r, k))
			}
			if err := db.flushed(context.Background()); err != nil {
				t.Fatal(err)
			}
			check("here")
			db.remote = true
			check("all stored")
			// What waits: new values, and one between those that are stored.
			db.cancel() // the writer ends
			db.loops.Wait()
			waits := foldBatch(r, 240)
			for i := range waits.At {
				waits.At[i] += 500_000_000
			}
			if _, err := db.Append(context.Background(), waits); err != nil {
				t.Fatal(err)
			}
			check("some wait")
		})
	}
}

// TestDB_foldSteps refuses steps of nothing, and a closed engine.
func TestDB_foldSteps(t *testing.T) {
	db := open(t, shared.database(t), testOptions(t, Plain, t.TempDir()))
	if err := db.Fold(context.Background(), storagetest.All(1), 0, nil); err == nil {
		t.Error("a step of nothing is no error")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Fold(context.Background(), storagetest.All(1), 1, nil); err == nil {
		t.Error("a closed engine is no error")
	}
}

// BenchmarkFold sums up a day of a value each second by steps of five minutes, in the database and here.
func BenchmarkFold(b *testing.B) {
	db := open(b, shared.database(b), testOptions(b, Partitions, b.TempDir()))
	storagetest.Append(b, settled{db}, benchBatch(0))
	makeDays(b, db, 1)
	sql := fmt.Sprintf("INSERT INTO history_c0 SELECT 1, %d + s, 1, s %% 100 + 0.5 FROM generate_series(1, 86400) s", storagetest.Base/int64(time.Second)-86_400)
	if _, err := pgtest.Exec(db.dsn, sql); err != nil {
		b.Fatal(err)
	}
	db.remote = true
	q := storagetest.All(1)
	q.Range = model.TimeRange{From: storagetest.Base - day, To: storagetest.Base}
	for _, way := range []string{"database", "reading"} {
		b.Run(way, func(b *testing.B) {
			for b.Loop() {
				asked := folding{item: 1, rest: q.Range}
				grid, _ := newGrid(q.Range.From, int64(5*time.Minute))
				if way == "database" {
					asked = db.foldingOf(1, q.Range, grid)
				}
				list := []folding{asked}
				if err := db.foldStored(context.Background(), list, grid); err != nil {
					b.Fatal(err)
				}
				if err := db.foldRest(context.Background(), &list[0], q, grid.step); err != nil || len(list[0].out[0].Folds) != 288 {
					b.Fatalf("%v, %d folds", err, len(list[0].out[0].Folds))
				}
			}
		})
	}
}
