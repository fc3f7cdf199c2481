package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/snapshot"
	"tidemark/storage/dbengine"
)

// manyPairs makes a data folder whose engine has so many closed pairs of values, each with its minutes and hours, and returns the engine, open. At the
// usual size a pair holds up to 256 MiB.
func manyPairs(tb testing.TB, data string, pairs int) *dbengine.DB {
	tb.Helper()
	ctx := context.Background()
	db, err := dbengine.Open(ctx, vfs.OS{}, filepath.Join(data, "engine"), dbengine.Options{DiskSpaceBytes: 1 << 40, Durability: dbengine.Relaxed})
	if err != nil {
		tb.Fatal(err)
	}
	b := model.NewBatch()
	defer b.Free()
	for n := range pairs {
		b.Reset()
		for i := range 10 {
			b.AppendUint(model.ItemID(i+1), int64(1_790_000_000+3600*n)*int64(time.Second), uint64(n*i))
		}
		if _, err := db.Append(ctx, b); err != nil {
			tb.Fatal(err)
		}
		db.Release(db.LastLSN())
		if err := db.ClosePair(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.WaitSummedUp(ctx); err != nil {
		tb.Fatal(err)
	}
	return db
}

// TestSnapshots_work: what a snapshot of the engine costs are links, whatever is in the files: not one byte of a file pair or of the log is copied.
func TestSnapshots_work(t *testing.T) {
	data := t.TempDir()
	db := manyPairs(t, data, 20)
	s := &snapshots{data: data, version: "test", engine: db}
	w, err := snapshot.Create(filepath.Join(data, SnapshotsFolder, "one"), nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.fill(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	linked := 0
	for _, f := range made.Manifest().Files {
		if f.SHA256 == "" {
			linked++
		} else if filepath.Dir(f.Path) == "engine" {
			t.Errorf("%s was copied, %d bytes", f.Path, f.Bytes)
		}
	}
	if made.Copied || linked < 3*2*20 {
		t.Errorf("%d files were linked, copied %v; expected the two files of 60 pairs, and the log", linked, made.Copied)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkSnapshot makes snapshots while values are written: 1,000 pairs with their tiers are 250 GiB at the usual size, 4,000 are 1 TiB.
func BenchmarkSnapshot(b *testing.B) {
	for _, pairs := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprint(pairs), func(b *testing.B) {
			data := b.TempDir()
			db := manyPairs(b, data, pairs)
			s := &snapshots{data: data, version: "test", engine: db}
			ctx, stop := context.WithCancel(context.Background())
			written := make(chan error, 1)
			go func() {
				batch := model.NewBatch()
				defer batch.Free()
				for at := time.Now().UnixNano(); ctx.Err() == nil; at += int64(time.Millisecond) {
					batch.Reset()
					for i := range 100 {
						batch.AppendUint(model.ItemID(i+1), at, uint64(at))
					}
					if _, err := db.Append(context.Background(), batch); err != nil {
						written <- err
						return
					}
					time.Sleep(time.Millisecond)
				}
				written <- nil
			}()
			longest, files := time.Duration(0), 0
			for n := 0; b.Loop(); n++ {
				began := time.Now()
				w, err := snapshot.Create(filepath.Join(data, SnapshotsFolder, fmt.Sprint(n)), nil)
				if err != nil {
					b.Fatal(err)
				}
				made, err := s.fill(context.Background(), w, nil)
				if err != nil {
					b.Fatal(err)
				}
				longest, files = max(longest, time.Since(began)), len(made.Manifest().Files)
			}
			stop()
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
			b.ReportMetric(float64(files), "files")
			if err := errors.Join(<-written, db.Close()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
