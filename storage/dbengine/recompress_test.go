package dbengine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/extent"
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

// TestDB_recompressFolds puts late values into the pages where they belong, and keeps those that belong to another pair.
func TestDB_recompressFolds(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	second := int64(1_000_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	want := 0
	for n := int64(0); n < 300; n++ {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 8; item++ {
			b.AppendUint(item, storagetest.Base+n*10*second, uint64(r.IntN(1000)))
			if n%5 == 4 {
				b.AppendUint(item, storagetest.Base+(n-int64(r.IntN(60)))*10*second-second*int64(1+r.IntN(9)), uint64(r.IntN(1000)))
			}
		}
		want += b.Len()
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(ctx), db.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	contents := func() string {
		var text strings.Builder
		n := 0
		for item := model.ItemID(1); item <= 8; item++ {
			values := storagetest.Collect(t, db, storagetest.All(item))
			n += len(values)
			fmt.Fprintln(&text, values)
		}
		return fmt.Sprint(n, "\n", text.String())
	}
	before := contents()
	done, err := db.Recompress(ctx, everything("none"))
	if err != nil || done.FoldedValues == 0 || done.WrittenPairs == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if after := contents(); after != before {
		t.Errorf("before %.300s\nafter %.300s", before, after)
	}
	if again, err := db.Recompress(ctx, everything("none")); err != nil || again.Pairs != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
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

// recompressDir is the variable by which the child of TestDB_recompressKill knows that it is one.
const recompressDir = "TIDEMARK_RECOMPRESS_DIR"

// TestDB_recompressKill kills a process that writes values, reads them and writes pairs anew, again and again.
func TestDB_recompressKill(t *testing.T) {
	if dir := os.Getenv(recompressDir); dir != "" {
		recompressUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	generations := 0
	for cycle := range count(t, "TIDEMARK_RECOMPRESS_KILLS", 20) {
		acked := killRecompression(t, dir, r)
		db, err := Open(context.Background(), vfs.OS{}, dir, tinyOptions())
		if err != nil {
			t.Fatal(err)
		}
		for item := model.ItemID(1); item <= killItems; item++ {
			values := storagetest.Collect(t, db, storagetest.All(item))
			if len(values) < acked {
				t.Fatalf("cycle %d: item %d has %d values, and %d were acknowledged", cycle, item, len(values), acked)
			}
			for i, v := range values {
				if v.Bits != uint64(i+1) || v.At != storagetest.Base+int64(i+1)*1_000_000_000 {
					t.Fatalf("cycle %d: value %d is %v", cycle, i, v)
				}
			}
		}
		for _, p := range db.pairs.all() {
			generations = max(generations, int(p.id.Generation))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix)); err != nil || len(left) > 0 {
			t.Fatalf("cycle %d: %q were left behind, %v", cycle, left, err)
		}
	}
	if generations < 2 && !recompresses(t, dir) {
		t.Error("no pair can be written anew")
	}
}

// recompresses writes pairs anew after all kills: on a busy machine every child may have been killed before it came so far.
func recompresses(t *testing.T, dir string) bool {
	t.Helper()
	ctx := context.Background()
	db, err := Open(ctx, vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Recompress(ctx, everything("zstd:1")); err != nil {
		t.Fatal(err)
	}
	for _, p := range db.pairs.all() {
		if p.id.Generation >= 2 {
			return true
		}
	}
	return false
}

func killRecompression(t *testing.T, dir string, r *rand.Rand) int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestDB_recompressKill$")
	child.Env = append(os.Environ(), recompressDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked, lines, enough := 0, 0, 1+r.IntN(60)
	for in := bufio.NewScanner(out); in.Scan(); lines++ {
		if _, err := fmt.Sscanf(in.Text(), "acked %d", &acked); err != nil {
			t.Fatalf("the child said %q", in.Text())
		}
		if lines == enough {
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if lines <= enough {
		t.Fatalf("the child ended by itself after %d lines", lines)
	}
	return acked
}

func recompressUntilKilled(t *testing.T, dir string) {
	ctx := context.Background()
	db, err := Open(ctx, vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	q := storagetest.All(killItems)
	q.Newest = 1
	n := uint64(0)
	if last := storagetest.Collect(t, db, q); len(last) > 0 {
		n = last[0].Bits
	}
	go func() {
		for {
			if err := db.buildTiers(ctx); err != nil {
				panic(err)
			}
			o := everything("zstd:1")
			o.MergeBytes = MergeAuto
			if _, err := db.Recompress(ctx, o); err != nil {
				panic(err)
			}
		}
	}()
	go func() {
		for {
			_ = db.Read(ctx, storagetest.All(1, 2, 3), func(*model.Columns) error { return nil })
		}
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		n++
		b := &model.Batch{}
		for item := model.ItemID(1); item <= killItems; item++ {
			b.AppendUint(item, storagetest.Base+int64(n)*1_000_000_000, n)
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked %d\n", n)
	}
}

// TestFolding checks that folding keeps every value, of all types and mixtures.
func TestFolding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var f folding
	for range 300 {
		var pages []coldPage
		want := map[string]int{}
		at := int64(0)
		mixed := r.IntN(4) == 0
		kinds := []model.ValueType{model.Float, model.Uint}
		kind := kinds[r.IntN(2)]
		for range 1 + r.IntN(6) {
			if mixed {
				kind = kinds[r.IntN(2)]
			}
			pages = append(pages, randomPage(r, kind, extent.Values, &at))
		}
		for range r.IntN(4) {
			late := int64(r.IntN(int(at)))
			pages = append(pages, randomPage(r, kind, extent.Late, &late))
		}
		tally := func(p *extent.Page, by int) {
			var d decoded
			if err := d.decode(p); err != nil {
				t.Fatal(err)
			}
			for i := range d.at {
				if i > 0 && d.at[i] <= d.at[i-1] {
					t.Fatalf("page of kind %d falls at %d", p.Kind, i)
				}
				want[fmt.Sprint(d.valueType, d.at[i], d.bits[i])] += by
			}
		}
		for i := range pages {
			tally(&pages[i].Page, 1)
		}
		out, err := f.item(pages)
		if err != nil {
			t.Fatal(err)
		}
		last := int64(-1)
		for i := range out {
			tally(&out[i].Page, -1)
			if out[i].Kind == extent.Values {
				if out[i].From <= last {
					t.Fatal("pages of values overlap")
				}
				last = out[i].To
			}
		}
		for value, n := range want {
			if n != 0 {
				t.Fatalf("%s is there %d times too little", value, n)
			}
		}
	}
}

func randomPage(r *rand.Rand, t model.ValueType, kind uint8, at *int64) coldPage {
	d := decoded{valueType: t}
	for range 1 + r.IntN(20) {
		*at += 1 + int64(r.IntN(3))
		d.at, d.bits = append(d.at, *at), append(d.bits, uint64(r.IntN(50))<<52)
	}
	var f folding
	f.emit(&d, kind, 7)
	return f.out[0]
}
