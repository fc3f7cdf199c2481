package dbengine

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// BenchmarkRotation tells how long appends of 1,000 values take, acknowledged each, while files rotate: log files, file pairs, and at the quota the
// deletion of the oldest pair. "log", "pair" and "delete" are the appends during which a log file or a pair began or a pair was deleted, "quiet" the others.
//
//	go test -run xxx -bench BenchmarkRotation -benchtime 1x ./storage/dbengine
func BenchmarkRotation(b *testing.B) {
	const items, appends = 4000, 20_000
	for b.Loop() {
		o := Options{DiskSpaceBytes: MinDiskSpaceBytes, limits: limitsFor(MinDiskSpaceBytes)}
		o.limits.datafileBytes, o.limits.segmentBytes = 1<<20, 1<<20
		o.limits.logBytes, o.DiskSpaceBytes = 20<<20, 34<<20
		db, err := Open(context.Background(), vfs.OS{}, b.TempDir(), o)
		if err != nil {
			b.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 1))
		times := map[string][]time.Duration{}
		at, next, was := testBase, 0, turnsOf(b, db)
		batch := model.NewBatch()
		for range appends {
			batch.Reset()
			for range 1000 {
				batch.AppendFloat(model.ItemID(1+next), at, float64(r.IntN(10_000))/100)
				if next++; next == items {
					next, at = 0, at+int64(time.Second)
				}
			}
			began := time.Now()
			lsn, err := db.Append(context.Background(), batch)
			if err == nil {
				err = db.log.Wait(context.Background(), lsn)
			}
			if err != nil {
				b.Fatal(err)
			}
			took, now := time.Since(began), turnsOf(b, db)
			kind := "quiet"
			switch {
			case now.gone != was.gone:
				kind = "delete"
			case now.pair != was.pair:
				kind = "pair"
			case now.log != was.log:
				kind = "log"
			}
			times[kind] = append(times[kind], took)
			was = now
		}
		for name, list := range times {
			slices.Sort(list)
			b.ReportMetric(float64(len(list)), name+"s")
			b.ReportMetric(list[len(list)/2].Seconds()*1e3, "ms-"+name+"-p50")
			b.ReportMetric(list[len(list)*99/100].Seconds()*1e3, "ms-"+name+"-p99")
			b.ReportMetric(list[len(list)*999/1000].Seconds()*1e3, "ms-"+name+"-p99.9")
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// turnsOf tells what rotated so far: the last pair and the last log file, and how many pairs are gone.
func turnsOf(b *testing.B, db *DB) (turns struct {
	pair, gone uint64
	log        string
},
) {
	names, err := db.fs.List(db.dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "log-") {
			turns.log = name
		}
	}
	db.pairs.mu.Lock()
	turns.pair = uint64(db.pairs.next)
	db.pairs.mu.Unlock()
	turns.gone = uint64(db.m.pairsDeleted.Get())
	return turns
}
