package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// everything makes every closed pair cold.
func everything(codec string) Recompress {
	c, err := ParseCodec(codec)
	if err != nil {
		panic(err)
	}
	return Recompress{Codec: c, OlderThan: -1 << 60, ExtentBytes: MinExtentBytes}
}

func TestParseCodec(t *testing.T) {
	for _, text := range []string{"none", "lz4", "zstd:1", "zstd:22"} {
		if c, err := ParseCodec(text); err != nil || c.String() != text {
			t.Errorf("%s is read as %v, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "gzip", "zstd:0", "zstd:23", "zstd:x", "none:1", "lz4:3"} {
		if c, err := ParseCodec(text); err == nil {
			t.Errorf("%q is read as %v", text, c)
		}
	}
}

// TestDB_recompress writes pairs anew while values come and are read, and cuts the power again and again.
func TestDB_recompress(t *testing.T) {
	if untilClones(t, count(t, "TIDEMARK_RECOMPRESS_CLONES", 60), recompressRun) == 0 {
		t.Error("no pair was written anew")
	}
}

func recompressRun(_ *testing.T, seed uint64) (clones, written int, err error) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHistory(rand.New(rand.NewPCG(seed, 2)))
	fsys := vfs.NewMem()
	cuts := cutPower(fsys, rand.New(rand.NewPCG(seed, 3)), 6, h.promises)
	codecs := []string{"none", "lz4", "zstd:1", "zstd:3"}
	first := tinyOptions() // clones are opened with another hot codec
	first.HotCodec = everything(codecs[r.IntN(len(codecs))]).Codec
	first.DirectIO = anyDirect(seed)
	db, err := Open(ctx, fsys, "/engine", first)
	if err != nil {
		return 0, 0, err
	}
	for i := range 60 {
		b := h.batch()
		if err := appendAll(db, b); err != nil {
			return clones, written, err
		}
		h.ack(b)
		if i%6 == 5 {
			if err := db.Flush(ctx); err != nil {
				return clones, written, err
			}
		}
		if i%15 == 14 {
			if err := db.buildTiers(ctx); err != nil {
				return clones, written, err
			}
			o := everything(codecs[h.r.IntN(len(codecs))])
			o.Again = h.r.IntN(2) == 0
			o.MergeBytes = int64(h.r.IntN(3)) * 48 << 10
			done, err := db.Recompress(ctx, o)
			if err != nil {
				return clones, written, err
			}
			if done.SkippedPairs > 0 {
				return clones, written, errors.New(done.Skipped)
			}
			written += done.WrittenPairs
			if err := verify(db, h.promises()); err != nil {
				return clones, written, fmt.Errorf("after writing anew: %w", err)
			}
		}
	}
	fsys.OnSync(nil)
	clones, err = cuts.found()
	return clones, written, errors.Join(err, db.Close(), noDamage(fsys))
}

func noDamage(fsys vfs.FS) error {
	findings, err := Check(fsys, "/engine", nil)
	for _, f := range findings {
		if f.Damage {
			err = errors.Join(err, errors.New(f.String()))
		}
	}
	return err
}

// TestDB_recompressReaders reads all the while that pairs are written anew: every answer is whole. What the quota counts is what is on the disk.
func TestDB_recompressReaders(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	r := rand.New(rand.NewPCG(1, 2))
	const items, times = 20, 400
	for n := range times {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= items; item++ {
			b.AppendFloat(item, storagetest.Base+int64(n)*1_000_000_000, float64(r.IntN(100))/10)
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(ctx), db.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	db.Release(db.LastLSN())
	before := db.space.usedBytes()
	var reading sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for item := model.ItemID(1); item <= items; item++ {
					if got := storagetest.Collect(t, db, storagetest.All(item)); len(got) != times {
						t.Errorf("item %d has %d values, want %d", item, len(got), times)
						return
					}
				}
			}
		})
	}
	var last RecompressProgress
	for _, codec := range []string{"none", "zstd:3", "lz4", "zstd:1"} {
		o := everything(codec)
		o.Again = true
		if codec == "lz4" || codec == "zstd:1" {
			o.MergeBytes = 64 << 10
		}
		o.Progress = func(p RecompressProgress) { last = p }
		done, err := db.Recompress(ctx, o)
		if err != nil || done.SkippedPairs > 0 || done.DonePairs != done.Pairs || done.DoneBytes != done.Bytes || last != done {
			t.Errorf("%s: %+v, %v, and the last progress %+v", codec, done, err, last)
		}
		if codec == "none" && (done.WrittenPairs == 0 || done.AfterBytes >= done.BeforeBytes) {
			t.Errorf("nothing became smaller: %+v", done)
		}
	}
	close(stop)
	reading.Wait()
	after, onDisk := db.space.usedBytes(), int64(0)
	names, err := fsys.List("/engine")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := fsys.Stat("/engine/" + name); err == nil && !info.IsDir() && name != lockName {
			onDisk += roundUp(info.Size())
		}
		if strings.HasSuffix(name, tempSuffix) {
			t.Errorf("%s was left behind", name)
		}
	}
	if after != onDisk || after >= before {
		t.Errorf("%d bytes counted, %d before, %d on the disk", after, before, onDisk)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Recompress(ctx, everything("none")); err == nil {
		t.Error("a closed engine wrote pairs anew")
	}
}

// TestDropReplaced opens a folder in which a crash left two generations of a pair.
func TestDropReplaced(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	const items, times = 20, 400
	r := rand.New(rand.NewPCG(1, 9))
	for n := range times {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= items; item++ {
			b.AppendUint(item, storagetest.Base+int64(n)*1_000_000_000, uint64(r.IntN(100)))
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(ctx), db.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	kept := map[string][]byte{}
	for _, p := range db.pairs.all() {
		for _, name := range []string{p.id.Name(), p.id.JournalName()} {
			if b, err := readAll(db, name, 1<<20); err == nil {
				kept[name] = b
			}
		}
	}
	done, err := db.Recompress(ctx, everything("none"))
	if err != nil || done.WrittenPairs == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, b := range kept { // as if the crash had come before they were removed
		if _, err := fsys.Stat("/engine/" + name); err == nil {
			continue
		}
		if err := writeFile(fsys, "/engine/"+name, b); err != nil {
			t.Fatal(err)
		}
	}
	db = openTest(t, fsys, tinyOptions())
	for item := model.ItemID(1); item <= items; item++ {
		if got := storagetest.Collect(t, db, storagetest.All(item)); len(got) != times {
			t.Errorf("item %d has %d values, want %d", item, len(got), times)
		}
	}
	for _, p := range db.pairs.all() {
		if other := p.id; other.Generation > generation {
			other.Generation--
			if _, err := fsys.Stat("/engine/" + other.Name()); !isNotExist(err) {
				t.Errorf("%s is still there", other.Name())
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
