package dbengine

import (
	"context"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	db, err := Open(context.Background(), vfs.OS{}, dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const items, rows = 10_000, 1000
	batch := model.NewBatch()
	at, next := testBase, 0
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += rows {
		batch.Reset()
		for range rows {
			batch.AppendFloat(model.ItemID(1+next), at+int64(next)*1000, float64(next%100)/4)
			if next++; next == items {
				next, at = 0, at+1_000_000_000
			}
		}
		if _, err := db.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
}
