package dbengine

import (
	"context"
	"fmt"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

func TestMarks_surviveRecyclingAndAreBounded(t *testing.T) {
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	const total = maxMarks + maxMarks/4
	for i := 0; i < total; {
		b := &model.Batch{ArrivedAt: testBase}
		for range 400 {
			b.Marks = append(b.Marks, model.Mark{Key: fmt.Sprint("session/1/", i), Value: fmt.Sprint(i), At: int64(i)})
			i++
		}
		appendWait(t, db, b)
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		kept := map[string]string{}
		db.Marks(func(m model.Mark) { kept[m.Key] = m.Value })
		if len(kept) > maxMarks+maxMarks/8 || len(kept) < maxMarks {
			t.Errorf("%d marks are kept", len(kept))
		}
		for i := total - maxMarks; i < total; i++ {
			if kept[fmt.Sprint("session/1/", i)] != fmt.Sprint(i) {
				t.Fatalf("mark %d is missing", i)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openTest(t, fsys, tinyOptions())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzDecodeMarks(f *testing.F) {
	f.Add(encodeMarks(5, []model.Mark{{Key: "k", Value: "v", At: 3}, {Key: "l"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if lsn, all, err := decodeMarks(b); err == nil && len(encodeMarks(lsn, all)) != len(b) {
			t.Error("encoding again gives another length")
		}
	})
}
