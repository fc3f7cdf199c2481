package dbengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/storagetest"
)

const (
	mergeItems = 40
	mergeTimes = 300
)

// slow fills a store with slow series, whose pages in each pair are small, and returns it with everything summed up.
func slow(t *testing.T, fsys vfs.FS, o Options) *DB {
	t.Helper()
	db := openTest(t, fsys, o)
	for n := range mergeTimes {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= mergeItems; item++ {
			at := storagetest.Base + int64(n)*int64(time.Minute)
			if item%2 == 0 {
				b.AppendFloat(item, at, float64((n*int(item))%997)/100)
			} else {
				b.AppendUint(item, at, uint64(n*n)*uint64(item))
			}
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		if n%10 == 9 {
			db.Release(db.LastLSN())
			if err := errors.Join(db.Flush(context.Background()), db.buildTiers(context.Background())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return db
}

// said is all that a store answers: values, hours, minutes.
func said(t *testing.T, db *DB) string {
	t.Helper()
	var text strings.Builder
	ctx := context.Background()
	for item := model.ItemID(1); item <= mergeItems; item++ {
		q := storagetest.All(item)
		fmt.Fprintln(&text, item, storagetest.Collect(t, db, q))
		rows := func(c *storage.TrendColumns) error {
			for _, row := range c.Trends {
				fmt.Fprintln(&text, c.Type, row)
			}
			return nil
		}
		if err := errors.Join(db.Trends(ctx, q, rows), db.Minutes(ctx, q, rows)); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func mergeRuns(t *testing.T, db *DB, limitBytes int64) RecompressProgress {
	t.Helper()
	o := everything("zstd:3")
	o.MergeBytes = limitBytes
	done, err := db.Recompress(context.Background(), o)
	if err != nil || done.SkippedPairs > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	return done
}

func countPairs(db *DB, tier header.Tier) (n int) {
	for _, p := range db.pairs.all() {
		if p.tier == tier {
			n++
		}
	}
	return n
}

// TestRecompress_merge makes one pair of a run: answers stay the same, also after opening again, and with each of the old files left behind.
func TestRecompress_merge(t *testing.T) {
	fsys := vfs.NewMem()
	db := slow(t, fsys, tinyOptions())
	want, pairs := said(t, db), countPairs(db, header.Raw)
	before := fsys.Clone()
	done := mergeRuns(t, db, 1<<20)
	if left := countPairs(db, header.Raw); done.MergedPairs < 4 || done.JoinedPairs == 0 || left != pairs-done.MergedPairs+done.JoinedPairs {
		t.Fatalf("%d pairs became %d: %+v", pairs, left, done)
	}
	if done.AfterPages*2 > done.BeforePages || done.AfterBytes >= done.BeforeBytes {
		t.Errorf("pages did not become large: %+v", done)
	}
	if got := said(t, db); got != want {
		t.Errorf("answers differ: %s", firstDifference(got, want))
	}
	for _, p := range db.pairs.all() {
		if p.members > 1 && p.tier == header.Raw && (!p.lean || p.index.Load().parts.Footer().Summary.Values == 0) {
			t.Errorf("%s has rows of hours that follow from its values", p.id.Name())
		}
	}
	if again := mergeRuns(t, db, 1<<20); again.WrittenPairs != 0 {
		t.Errorf("again: %+v", again)
	}
	if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, fsys, tinyOptions())
	if got := said(t, db); got != want {
		t.Errorf("after opening: %s", firstDifference(got, want))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := before.List("/engine")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old { // as if the crash had come before they were removed
		if _, _, ok := datafile.ParseName(name); !ok {
			continue
		}
		if _, err := fsys.Stat("/engine/" + name); err == nil {
			continue
		}
		if err := writeFile(fsys, "/engine/"+name, content(t, before, "/engine/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := Info(fsys, "/engine", nil)
	if err != nil || info.Instances["history"].Samples != mergeItems*mergeTimes-info.LogSamples && info.Samples != mergeItems*mergeTimes {
		t.Errorf("info of a folder with old generations: %+v, %v", info, err)
	}
	db = openTest(t, fsys, tinyOptions())
	if got := said(t, db); got != want {
		t.Errorf("with the old files left: %s", firstDifference(got, want))
	}
	if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
		t.Fatal(err)
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %.200s, want %.200s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// TestRecompress_mergedTools looks at a merged pair with the tools, and takes away its journal, summaries of a part of it, all of them, and itself.
func TestRecompress_mergedTools(t *testing.T) {
	fsys := vfs.NewMem()
	db := slow(t, fsys, tinyOptions())
	want := said(t, db)
	mergeRuns(t, db, 1<<20)
	var joined *pair
	for _, p := range db.pairs.all() {
		if p.tier == header.Raw && p.members > 1 && (joined == nil || p.members > joined.members) {
			joined = p
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := Dump(fsys, "/engine/"+joined.id.Name(), &dump); err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("stands for %d pairs with numbers from %d to %d", joined.members, joined.first, joined.id.Number); !strings.Contains(dump.String(), line) {
		t.Errorf("the dump lacks %q: %.300s", line, dump.String())
	}
	remove := func(fsys *vfs.Mem, names ...string) {
		for _, name := range names {
			if err := fsys.Remove("/engine/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(what string, fsys *vfs.Mem) *DB {
		db := openTest(t, fsys, tinyOptions())
		if err := db.buildTiers(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := said(t, db); got != want {
			t.Errorf("%s: %s", what, firstDifference(got, want))
		}
		return db
	}
	whole := fsys.Clone()
	remove(whole, joined.id.JournalName())
	if err := errors.Join(check("without its journalfile", whole).Close(), noDamage(whole)); err != nil {
		t.Error(err)
	}
	for _, tier := range []header.Tier{header.Minute, header.Hour} {
		clone := fsys.Clone()
		ids := tierParts(t, clone, tier, joined)
		remove(clone, ids[0].Name(), ids[0].JournalName())
		db := check("without the first summaries of "+tier.String(), clone)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		for _, id := range ids[1:] {
			remove(clone, id.Name(), id.JournalName())
		}
		all := tierIDs(t, clone, tier)
		for _, id := range all { // so that the newest is missing too
			remove(clone, id.Name(), id.JournalName())
		}
		db = check("without all summaries of "+tier.String(), clone)
		made := tierParts(t, clone, tier, joined)
		if h, err := datafile.ReadHeader(clone, "/engine", made[0]); err != nil || len(made) != 1 || h.Members != joined.members {
			t.Errorf("%d pairs of %v were made again, %+v, %v", len(made), tier, h, err)
		}
		// The values go, and what was made of them as a whole stays beside the parts of the other tier.
		db.pairs.mu.Lock()
		list := append([]*pair(nil), db.pairs.list...)
		db.pairs.mu.Unlock()
		hours := trendsOf(t, db)
		for _, p := range list {
			if p.id == joined.id {
				db.pairs.mu.Lock()
				db.pairs.list = without(db.pairs.list, p)
				db.pairs.mu.Unlock()
				db.deletePair(p)
			}
		}
		if got := trendsOf(t, db); got != hours {
			t.Errorf("hours of %v without the values: %s", tier, firstDifference(got, hours))
		}
		if err := errors.Join(db.Close(), noDamage(clone)); err != nil {
			t.Error(err)
		}
	}
	remove(fsys, joined.id.Name(), joined.id.JournalName())
	db = openTest(t, fsys, tinyOptions())
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) == 0 || len(got) >= mergeTimes {
		t.Errorf("%d values are left of %d without the merged pair", len(got), mergeTimes)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func without(list []*pair, p *pair) (rest []*pair) {
	for _, other := range list {
		if other != p {
			rest = append(rest, other)
		}
	}
	return rest
}

func trendsOf(t *testing.T, db *DB) string {
	t.Helper()
	var text strings.Builder
	for item := model.ItemID(1); item <= mergeItems; item++ {
		err := db.Trends(context.Background(), storagetest.All(item), func(c *storage.TrendColumns) error {
			for _, row := range c.Trends {
				fmt.Fprintln(&text, item, c.Type, row)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// tierIDs lists the pairs of a tier, tierParts those that sum up parts of a pair of values, or all of it.
func tierIDs(t *testing.T, fsys *vfs.Mem, tier header.Tier) (ids []datafile.ID) {
	t.Helper()
	f, err := openFolder(fsys, "/engine")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.ids {
		if h, err := datafile.ReadHeader(fsys, "/engine", id); err == nil && h.Tier == tier {
			ids = append(ids, id)
		}
	}
	return ids
}

func tierParts(t *testing.T, fsys *vfs.Mem, tier header.Tier, p *pair) (ids []datafile.ID) {
	t.Helper()
	for _, id := range tierIDs(t, fsys, tier) {
		if h, err := datafile.ReadHeader(fsys, "/engine", id); err == nil && p.covers(h.Source) {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestRecompress_mergeRoom merges at a quota that is full: what goes for the room is older than the run, and nothing goes that is younger than the
// minimum age.
func TestRecompress_mergeRoom(t *testing.T) {
	for _, minimum := range []time.Duration{0, 1 << 60} {
		o := tinyOptions()
		o.MinimumAge = minimum
		fsys := vfs.NewMem()
		db := slow(t, fsys, o)
		newest := storagetest.Base + (mergeTimes-1)*int64(time.Minute)
		db.space.mu.Lock()
		db.space.quota = db.space.used + 4<<10
		db.space.mu.Unlock()
		pairs := countPairs(db, header.Raw)
		p := everything("zstd:1")
		p.MergeBytes = 40 << 10
		done, err := db.Recompress(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		left := countPairs(db, header.Raw)
		if minimum == 0 && done.MergedPairs == 0 || minimum > 0 && left != pairs-done.MergedPairs+done.JoinedPairs {
			t.Errorf("minimum age %v: %d pairs became %d: %+v", minimum, pairs, left, done)
		}
		if minimum > 0 && !strings.Contains(done.Skipped, "minimum age") {
			t.Errorf("it was not said why nothing was merged: %+v", done)
		}
		if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) == 0 || got[len(got)-1].At != newest {
			t.Errorf("the newest value is gone")
		}
		if db.space.usedBytes() > db.space.quota {
			t.Errorf("%d bytes used, and the quota is %d", db.space.usedBytes(), db.space.quota)
		}
		if err := errors.Join(db.Close(), noDamage(fsys)); err != nil {
			t.Fatal(err)
		}
	}
}

// joinedGolden is a folder with a pair that stands for a run.
var joinedGolden = goldenFolder{
	name: "testdata/v5", says: []string{"  stands for ", "without the rows of hours"}, mergeBytes: 48 << 10,
	write: func(t *testing.T, fsys *vfs.Mem) *DB { return slow(t, fsys, tinyOptions()) },
}

// TestRecompress_mergedGolden reads a folder that is never written again.
func TestRecompress_mergedGolden(t *testing.T) { joinedGolden.read(t, nil) }

// goldenFolder is a folder as it was written when something in it came to be; see goldenDirs.
type goldenFolder struct {
	name string
	// says is what its dump has.
	says []string
	// write writes the values that are in it, which were merged to this size then.
	write      func(t *testing.T, fsys *vfs.Mem) *DB
	mergeBytes int64
}

// read compares the folder with values that are written now; look, if not nil, looks at it too.
func (g goldenFolder) read(t *testing.T, look func(*DB)) {
	t.Helper()
	if os.Getenv("TIDEMARK_WRITE_GOLDEN") != "" {
		g.make(t)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(g.name)); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(vfs.OS{}, dir, nil); err != nil || len(findings) != 0 {
		t.Errorf("check: %v %v", findings, err)
	}
	var dump bytes.Buffer
	err := Dump(vfs.OS{}, dir, &dump)
	missing := func(says string) bool { return !strings.Contains(dump.String(), says) }
	if err != nil || slices.ContainsFunc(g.says, missing) || strings.Contains(dump.String(), "damage") {
		t.Errorf("dump: %v\n%.500s", err, dump.String())
	}
	db, err := Open(context.Background(), vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	fresh := g.write(t, vfs.NewMem())
	if got, want := said(t, db), said(t, fresh); got != want {
		t.Error(firstDifference(got, want))
	}
	if look != nil {
		look(db)
	}
	if err := errors.Join(db.Close(), fresh.Close()); err != nil {
		t.Fatal(err)
	}
}

// make writes the folder, which must not exist.
func (g goldenFolder) make(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(g.name); err == nil {
		t.Fatalf("%s exists: a golden folder is never changed", g.name)
	}
	fsys := vfs.NewMem()
	db := g.write(t, fsys)
	mergeRuns(t, db, g.mergeBytes)
	if err := errors.Join(db.Close(), os.MkdirAll(g.name, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range dataNames(t, fsys) {
		if err := os.WriteFile(g.name+"/"+name, content(t, fsys, "/engine/"+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecompress_mergeTexts merges pairs that hold texts only: their tiers are empty, and become one pair for each merged one, also with a power cut in
// between.
func TestRecompress_mergeTexts(t *testing.T) {
	ctx, fsys := context.Background(), vfs.NewMem()
	o := tinyOptions()
	db := openTest(t, fsys, o)
	for n := range 12 {
		b := &model.Batch{}
		for i := range 20 {
			at := storagetest.Base + int64(20*n+i)*int64(time.Minute)
			b.AppendString(1, at, model.Text, fmt.Sprint("line ", n, i))
			b.AppendString(2, at, model.LogEntry, fmt.Sprint("entry ", n*i))
		}
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		db.Release(db.LastLSN())
		if err := errors.Join(db.ClosePair(ctx), db.buildTiers(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	want := storagetest.Collect(t, db, storagetest.All(1, 2))
	if n := countPairs(db, header.Minute); n < 12 {
		t.Fatalf("%d pairs of minutes, expected one for each pair", n)
	}
	r := rand.New(rand.NewPCG(1, 3))
	cuts := 0
	fsys.OnSync(func() {
		clone := fsys.CrashClone(r)
		again, err := Open(ctx, clone, "/engine", o)
		if err != nil {
			t.Error(err)
			return
		}
		cuts++
		if got := storagetest.Collect(t, again, storagetest.All(1, 2)); !slices.Equal(got, want) {
			t.Errorf("after a power cut: %d values, expected %d", len(got), len(want))
		}
		if err := errors.Join(again.Close(), noDamage(clone)); err != nil {
			t.Error(err)
		}
	})
	mergeRuns(t, db, 1<<20)
	fsys.OnSync(nil)
	check := func() {
		t.Helper()
		pairs := countPairs(db, header.Raw)
		for _, tier := range []header.Tier{header.Minute, header.Hour} {
			if n := countPairs(db, tier); n > pairs {
				t.Errorf("%d pairs of the tier %v for %d of values", n, tier, pairs)
			}
		}
		if got := storagetest.Collect(t, db, storagetest.All(1, 2)); !slices.Equal(got, want) {
			t.Errorf("%d values, expected %d", len(got), len(want))
		}
	}
	check()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, fsys, o)
	check()
	if used, counted := diskBytes(t, fsys), db.space.usedBytes(); used > counted || cuts == 0 {
		t.Errorf("files take %d bytes, %d are counted; %d power cuts", used, counted, cuts)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
