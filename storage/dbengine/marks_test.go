package dbengine

import (
	"context"
	"fmt"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
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

func FuzzDecodeRows(f *testing.F) {
	rows := []hourRow{
		{valueType: model.Float, stale: true, Trend: model.Trend{Count: 3, Sum: 1.5, Increase: 2, Min: 1, Max: 2, First: 3, Last: 4}},
		{valueType: model.Float, Trend: model.Trend{At: storage.Hour, Count: 1}},
	}
	f.Add(appendRows(nil, rows), uint8(model.Float))
	rows[0].valueType, rows[0].SumHigh = model.Uint, 7
	f.Add(appendRows(nil, rows), uint8(model.Uint))
	times := page.AppendTimes(nil, []int64{0, storage.Hour})
	f.Fuzz(func(t *testing.T, values []byte, vt uint8) {
		p := extent.Page{Type: model.ValueType(vt), Count: 2, Times: times, Values: values}
		rows, err := decodeRows(&p)
		if err != nil {
			return
		}
		p.Values = appendRows(nil, rows)
		again, err := decodeRows(&p)
		if err != nil || len(again) != 2 {
			t.Fatal(err)
		}
		for i := range rows {
			if again[i].Count != rows[i].Count || again[i].Min != rows[i].Min || again[i].Last != rows[i].Last || again[i].SumLow != rows[i].SumLow {
				t.Errorf("row %d: %+v, then %+v", i, rows[i], again[i])
			}
		}
	})
}
