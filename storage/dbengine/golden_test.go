package dbengine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/translog"
	"tidemark/storage/storagetest"
)

// goldenDirs are folders as the formats were written over time: v1 is the first, v2 has logs with the packed forms 3 and 4, v3 has footers that bound values and rows. They are never written again: a test that fails here means that data of users cannot be read. The last one was
// made with TIDEMARK_WRITE_GOLDEN=1, which refuses to write over it.
var goldenDirs = []string{"testdata/v1", "testdata/v2", "testdata/v3"}

// goldenBatches are what was put in.
func goldenBatches() []*model.Batch {
	var all []*model.Batch
	for i := range 60 {
		b := &model.Batch{ArrivedAt: storagetest.Base + int64(i)*1_000_000_000}
		for item := model.ItemID(1); item <= 6; item++ {
			at := storagetest.Base + int64(i)*90_000_000_000 + int64(item)
			switch item {
			case 1, 2:
				b.AppendUint(item, at, uint64(i)*uint64(i)<<(20*item))
			case 3, 4:
				b.AppendFloat(item, at, float64(i%7)*0.25-float64(item))
			case 5:
				b.AppendString(item, at, model.Text, strings.Repeat("text ", i%9))
			case 6:
				b.AppendLog(item, at, model.Log{At: int64(i), Severity: 2, EventID: 7, Source: "unit", Text: "line"})
			}
		}
		if i%10 == 9 {
			b.AppendUint(1, storagetest.Base+int64(i)*1_000_000_000+500, uint64(i)) // late
		}
		b.Marks = []model.Mark{{Key: "log/6", Value: strings.Repeat("9", i%5+1), At: b.ArrivedAt}}
		all = append(all, b)
	}
	return all
}

func writeGolden(t *testing.T) {
	goldenDir := goldenDirs[len(goldenDirs)-1]
	if _, err := os.Stat(goldenDir); err == nil {
		t.Fatalf("%s exists: a golden folder is never changed; make one for the new version beside it", goldenDir)
	}
	o := tinyOptions()
	o.limits.datafileBytes = 2 << 10 // the first pair is closed, the second is not
	db, err := Open(context.Background(), vfs.OS{}, goldenDir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range goldenBatches() {
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
		if i == 30 || i == 40 {
			db.Release(db.LastLSN())
			if err := db.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if translog.IsSpare(n.Name()) || n.Name() == lockName {
			if err := os.Remove(filepath.Join(goldenDir, n.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDB_golden(t *testing.T) {
	if os.Getenv("TIDEMARK_WRITE_GOLDEN") != "" {
		writeGolden(t)
	}
	for _, goldenDir := range goldenDirs {
		t.Run(filepath.Base(goldenDir), func(t *testing.T) { testGolden(t, goldenDir) })
	}
}

func testGolden(t *testing.T, goldenDir string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenDir)); err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(vfs.OS{}, dir, nil); err != nil || len(findings) != 0 {
		t.Errorf("check: %v %v", findings, err)
	}
	info, err := Info(vfs.OS{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []storagetest.Value
	for _, b := range goldenBatches() {
		for i := range b.Items {
			v := storagetest.Value{Item: b.Items[i], Type: b.Types[i], At: b.At[i], Bits: b.Bits[i]}
			if v.Type.InArena() {
				v.Bits, v.Text = 0, string(b.Bytes(i))
			}
			want = append(want, v)
		}
	}
	slices.SortFunc(want, func(a, b storagetest.Value) int {
		if a.Item != b.Item {
			return int(a.Item) - int(b.Item)
		}
		return int(a.At - b.At)
	})
	if info.Samples != uint64(len(want)) || info.Series != 6 || info.Pairs != 2 || info.From != storagetest.Base+1 || info.Instances["hourly"].Samples == 0 || info.LogSamples == 0 {
		text, _ := json.MarshalIndent(info, "", " ")
		t.Errorf("info of %d values: %s", len(want), text)
	}
	var dump bytes.Buffer
	if err := Dump(vfs.OS{}, dir, &dump); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"datafile datafile-1-0000000001.ndf", "extent 1 at 64", "hourly rows", "log/6", "record before LSN"} {
		if !strings.Contains(dump.String(), part) {
			t.Errorf("the dump lacks %q", part)
		}
	}
	if strings.Contains(dump.String(), "damage") {
		t.Errorf("the dump tells of damage:\n%s", dump.String())
	}
	db, err := Open(context.Background(), vfs.OS{}, dir, tinyOptions())
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Compare(t, storagetest.Collect(t, db, storagetest.All(1, 2, 3, 4, 5, 6)), want)
	marks := 0
	db.Marks(func(m model.Mark) {
		if marks++; m.Key != "log/6" || m.Value != "99999" {
			t.Errorf("mark %+v", m)
		}
	})
	if marks != 1 {
		t.Errorf("%d marks, expected 1", marks)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
