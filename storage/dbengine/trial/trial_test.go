package trial

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/page/pagetest"
)

// repeats is how often the recorded trace is written; TIDEMARK_TRIAL_REPEATS=17 with all columns makes more than 1 GiB, counted as 16 bytes a value.
func repeats(t *testing.T) (times, columns int) {
	text := os.Getenv("TIDEMARK_TRIAL_REPEATS")
	if text == "" {
		return 6, 150
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n, math.MaxInt
}

const second = int64(1e9)

// fill writes the recorded trace again and again with shifted values, a pair for each time, and leaves the engine open.
func fill(t *testing.T, dir string, shift uint64, times, most int) *dbengine.DB {
	t.Helper()
	columns, err := pagetest.Trace()
	if err != nil {
		t.Fatal(err)
	}
	if most < len(columns) { // a mixture of those that vary and those that do not
		step := len(columns) / most
		for i := range most {
			columns[i] = columns[i*step]
		}
		columns = columns[:most]
	}
	ctx := context.Background()
	db, err := dbengine.Open(ctx, vfs.OS{}, dir, dbengine.Options{DiskSpaceBytes: 8 << 30, MinuteShare: -1, HourShare: -1, Durability: dbengine.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := model.NewBatch()
	defer b.Free()
	at := 1_790_000_000 * second
	for k := range times {
		for row := range columns[0].Bits {
			b.Reset()
			for i := range columns {
				bits, kind := columns[i].Bits[row]+uint64(k)*shift, model.Uint
				if columns[i].Float {
					bits, kind = math.Float64bits(math.Float64frombits(columns[i].Bits[row])+float64(k)*float64(shift)), model.Float
				}
				b.Append(model.ItemID(i+1), at, kind, bits)
			}
			b.ArrivedAt = at
			if _, err := db.Append(ctx, b); err != nil {
				t.Fatal(err)
			}
			at += second
		}
		if err := db.ClosePair(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// codecs are those of most tests: a few, for their time.
func codecs(t *testing.T, texts ...string) (list []dbengine.Codec) {
	t.Helper()
	for _, text := range texts {
		c, err := dbengine.ParseCodec(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// contents are the names and sizes of a folder's datafiles and journalfiles.
func contents(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), "f") {
			list = append(list, e.Name()+" "+strconv.FormatInt(info.Size(), 10)+" "+info.ModTime().String())
		}
	}
	return list
}

func gone(t *testing.T, scratch string) {
	t.Helper()
	entries, err := os.ReadDir(scratch)
	if err != nil || len(entries) > 0 {
		t.Errorf("the scratch folder holds %v, %v", entries, err)
	}
}

// TestRun tries codecs on stores in use, filled with the recorded trace. The ratios repeat on another store, and what is recommended is checked by
// doing it.
func TestRun(t *testing.T) {
	ctx := context.Background()
	scratch := t.TempDir()
	var reports [2]*Report
	var db *dbengine.DB
	var dir string
	queries := []Query{{Items: []model.ItemID{1, 2, 3}, Range: model.TimeRange{To: 600 * second}}, {Items: []model.ItemID{50}, Range: model.TimeRange{To: 900 * second}}}
	for i := range reports {
		dir = filepath.Join(t.TempDir(), "engine")
		times, columns := repeats(t)
		db = fill(t, dir, uint64(i)*977+3, times, columns)
		before := contents(t, dir)
		var last, total int64
		o := Options{Dir: dir, Codecs: codecs(t, []string{"zstd:3", "none"}[:i+1]...), Queries: queries, Sample: 0.5, Scratch: scratch, Progress: func(d, all int64, _ string) { last, total = d, all }}
		var err error
		if reports[i], err = Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		if after := contents(t, dir); !slices.Equal(before, after) {
			t.Errorf("the store was changed: %q became %q", before, after)
		}
		if last != total || total == 0 {
			t.Errorf("progress ended at %d of %d", last, total)
		}
		gone(t, scratch)
		if r := reports[i]; r.Queries != 2 || r.QueriesMade || r.Pairs < r.SamplePairs || r.SamplePairs == 0 {
			t.Errorf("%d queries, %d of %d pairs", r.Queries, r.SamplePairs, r.Pairs)
		}
	}
	a, b := &reports[0].Candidates[0], &reports[1].Candidates[0]
	if r := a.Ratio / b.Ratio; r < 0.9 || r > 1.1 {
		t.Errorf("%s: ratios %g and %g", a.Name(), a.Ratio, b.Ratio)
	}
	for i := range reports[1].Candidates {
		a := &reports[1].Candidates[i]
		checkCandidate(t, a)
		t.Logf("%s: ratio %.2f, %.4f bytes a sample, CPU %.1f ms, wall %.1f ms, p50 %.3f p99 %.3f, cold %.3f %.3f, %.2f days", a.Name(), a.Ratio, a.BytesPerSample,
			a.WriteCPU, a.WriteWall, a.QueryP50, a.QueryP99, a.QueryColdP50, a.QueryColdP99, a.ProjectedRetentionDays)
	}
	t.Log(reports[1].Recommended.Text)
	checkReally(t, db, dir, reports[1])
}

func checkCandidate(t *testing.T, c *Candidate) {
	t.Helper()
	if c.Ratio <= 1 || c.WriteCPU <= 0 || c.WriteWall <= 0 || c.QueryP99 <= 0 || c.QueryColdP99 < c.QueryColdP50 || c.ProjectedRetentionDays <= 0 {
		t.Errorf("%s: %+v", c.Name(), c)
	}
	if s := c.Spread.WriteCPU; s.Least > c.WriteCPU || s.Greatest < c.WriteCPU {
		t.Errorf("%s: the median %g is not within %+v", c.Name(), c.WriteCPU, s)
	}
}

// checkReally does what a trial recommends and compares the size with what was projected.
func checkReally(t *testing.T, db *dbengine.DB, dir string, r *Report) {
	t.Helper()
	i := slices.IndexFunc(r.Candidates, func(c Candidate) bool {
		return c.Codec == r.Recommended.Codec && c.ExtentBytes == r.Recommended.ExtentBytes
	})
	if i < 0 {
		t.Fatalf("%+v is recommended, of a store that was never written anew", r.Recommended)
	}
	c := &r.Candidates[i]
	p, err := db.Recompress(context.Background(), dbengine.Recompress{Codec: codecs(t, c.Codec)[0], ExtentBytes: c.ExtentBytes, OlderThan: -1 << 62})
	if err != nil || p.SkippedPairs > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	pairs, err := dbengine.ClosedPairs(vfs.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	really := float64(sizeOf(pairs))
	t.Logf("%s: %d bytes projected, really %.0f", c.Name(), c.ProjectedBytes, really)
	if d := float64(c.ProjectedBytes)/really - 1; math.Abs(d) > 0.03 {
		t.Errorf("%s: %d bytes projected, really %.0f: %.1f %% off", c.Name(), c.ProjectedBytes, really, 100*d)
	}
}

// TestRun_ends leaves nothing when it is interrupted, removes what a killed one left, and refuses to run twice in one place.
func TestRun_ends(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "engine")
	db := fill(t, dir, 1, 3, 40)
	scratch := t.TempDir()
	left := filepath.Join(scratch, scratchName, "engine", "datafile-1-0000000001.ndf")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o750), os.WriteFile(left, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := Options{Dir: dir, Codecs: codecs(t, "none"), Scratch: scratch} // made-up queries
	o.Progress = func(int64, int64, string) {
		again := o
		again.Progress = nil
		if _, err := Run(context.Background(), again); err == nil || !strings.Contains(err.Error(), "another trial") {
			t.Errorf("a second trial in one place: %v", err)
		}
		if _, err := os.Stat(left); err == nil {
			if b, _ := os.ReadFile(left); string(b) == "half" {
				t.Error("what a killed trial left is still there")
			}
		}
		cancel()
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	gone(t, scratch)
	o.Queries = []Query{{Items: []model.ItemID{1, 2, 3}, Range: model.TimeRange{To: 600 * second}}}
	// The pairs of the sample may go while the trial runs.
	o.Progress = func(int64, int64, string) {
		if _, err := db.Recompress(context.Background(), dbengine.Recompress{OlderThan: -1 << 62}); err != nil {
			t.Error(err)
		}
	}
	if _, err := Run(context.Background(), o); err != nil {
		t.Errorf("while the store is written anew: %v", err)
	}
	gone(t, scratch)
}

// TestOverlay_log: the log of the engine that is measured takes no room and waits for no disk; file pairs are written as they would be in the store.
func TestOverlay_log(t *testing.T) {
	o := newOverlay(t.TempDir(), nil, nil)
	for name, light := range map[string]bool{"log-spare-1": true, "marks.nmk.tmp": true, "datafile-2-0000000001.ndf.tmp": false, "journalfile-2-0000000001.njf.tmp": false} {
		path := filepath.Join(o.dir, name)
		f, err := o.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Allocate(8<<20), f.Sync(), f.SyncData(), o.SyncDir(o.dir), f.Close()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != 8<<20 || light && blocks > 8 {
			t.Errorf("%s has %d bytes in %d blocks", name, info.Size(), blocks)
		}
		if _, is := f.(lightFile); is != light {
			t.Errorf("%s is synced: %v, expected %v", name, !is, !light)
		}
	}
}

func TestRun_refuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "engine")
	db, err := dbengine.Open(context.Background(), vfs.OS{}, empty, dbengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for want, o := range map[string]Options{
		"no closed file pair":       {},
		"recompress --older-than 0": {},
		"a sample of 2":             {Sample: 2},
		"4 rounds":                  {Rounds: 4},
		"extents of 1 bytes":        {Extents: []int{1}},
		"combinations":              {Codecs: make([]dbengine.Codec, 65)},
	} {
		o.Dir = empty
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSample(t *testing.T) {
	pairs := make([]dbengine.ClosedPair, 40)
	for i := range pairs {
		pairs[i] = dbengine.ClosedPair{Bytes: 1 << 20, From: int64(i)}
	}
	f := func(n int, part float64, want [][]int64) {
		t.Helper()
		var got [][]int64
		for _, round := range sample(pairs[:n], 5, part) {
			var at []int64
			for i := range round {
				at = append(at, round[i].From)
			}
			got = append(got, at)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%d pairs, %g of them: %v, want %v", n, part, got, want)
		}
	}
	f(1, 0.05, [][]int64{{0}, {0}, {0}, {0}, {0}})
	f(10, 0.05, [][]int64{{1}, {3}, {5}, {7}, {9}})
	f(40, 0.05, [][]int64{{2, 22}, {6, 26}, {10, 30}, {14, 34}, {18, 38}})
	f(3, 1, [][]int64{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}})
	for i := range pairs {
		pairs[i].Bytes = 1 << 29
	}
	if n := len(sample(pairs, 5, 1)[0]); n != 2 {
		t.Errorf("a round has %d pairs of 512 MiB", n)
	}
}

func TestRecommend(t *testing.T) {
	c := func(codec string, bytes, cpu, cold float64) Candidate {
		return Candidate{
			Codec: codec, ExtentBytes: 64 << 10, BytesPerSample: bytes, WriteCPU: cpu, QueryColdP50: cold, QueryP50: 1,
			Spread: Spread{QueryColdP50: Range{cold * 0.9, cold * 1.1}, QueryColdP99: Range{cold * 0.9, cold * 1.1}, QueryP50: Range{0.9, 1.1}},
		}
	}
	f := func(want, text string, all ...Candidate) {
		t.Helper()
		now := c("", 1, 0, 1)
		if got := recommend(&now, all); got.Codec != want || !strings.Contains(got.Text, text) {
			t.Errorf("%+v, want %q and %q", got, want, text)
		}
	}
	f("", "leave it as it is", c("none", 0.99, 10, 1), c("zstd:3", 0.98, 20, 1))
	// Nothing is taken for 5 % at 16 times the CPU, whatever the cheaper ones save.
	f("", "3 % more for each doubling of the CPU", c("none", 0.99, 10, 1), c("zstd:9", 0.95, 160, 1))
	f("", "the smallest, zstd:9, 64 KiB, saves 5.0 %", c("none", 0.99, 10, 1), c("zstd:9", 0.95, 160, 1))
	f("zstd:9", "", c("none", 0.99, 10, 1), c("zstd:9", 0.84, 160, 1))
	f("none", "20 % less disk", c("none", 0.8, 10, 1), c("zstd:3", 0.79, 20, 1))
	f("zstd:3", "writing takes 1.9x the CPU of none, queries unchanged within noise, cold queries 1.5x slower", c("zstd:3", 0.6, 19, 1.5), c("none", 0.8, 10, 1))
	f("zstd:3", "", c("none", 0.8, 10, 1), c("zstd:3", 0.6, 20, 1), c("zstd:9", 0.57, 160, 1))
	f("none", "", c("none", 0.8, 10, 1), c("zstd:3", 0.6, 20, 3))
}

func TestAdvise_tooLittle(t *testing.T) {
	now, half := Candidate{BytesPerSample: 1}, []Candidate{{Codec: "zstd:3", BytesPerSample: 0.5, WriteCPU: 1}}
	if got := advise(leastSample-1, &now, half); got.Codec != "" || !strings.Contains(got.Text, "too little data") {
		t.Errorf("%+v", got)
	}
	if got := advise(leastSample, &now, half); got.Codec != "zstd:3" {
		t.Errorf("%+v", got)
	}
}

func TestMoved(t *testing.T) {
	p := &dbengine.ClosedPair{From: 1000, To: 1999}
	for i := range uint64(200) {
		r := moved(model.TimeRange{From: -5, To: 95}, p, newRandom(i, 1))
		if r.To-r.From != 100 || r.From < 1000 || r.To > 2000 {
			t.Fatalf("%+v is not within the pair", r)
		}
	}
	if r := moved(model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, p, newRandom(1, 1)); r != (model.TimeRange{From: 1000, To: 2000}) {
		t.Errorf("all of it became %+v", r)
	}
}
