package dbengine

import (
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// TestDB_sameInstant stores many values of one instant: each goes to a place of its own, what comes again is known, and the first pages
// are on disk by then. Compared one with another, they would take hours.
func TestDB_sameInstant(t *testing.T) {
	const count = 20_000
	batch := func(value func(i int) uint64) *model.Batch {
		b := &model.Batch{}
		for i := range count {
			b.Items, b.At, b.Types = append(b.Items, 7), append(b.At, testBase), append(b.Types, model.Uint)
			b.Bits, b.Flags = append(b.Bits, value(i)), append(b.Flags, 0)
		}
		return b
	}
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer db.Close()
	first := batch(func(i int) uint64 { return uint64(i) })
	appendWait(t, db, first)
	for i, at := range first.At {
		if at != testBase+int64(i) || first.Flags[i]&model.Duplicate != 0 {
			t.Fatalf("value %d is stored at %d ns behind with flags %v", i, at-testBase, first.Flags[i])
		}
	}
	more := &model.Batch{}
	for i := range maxCrowded {
		more.Items, more.At, more.Types = append(more.Items, 7), append(more.At, testBase), append(more.Types, model.Uint)
		more.Bits, more.Flags = append(more.Bits, uint64(count+i)), append(more.Flags, 0)
	}
	appendWait(t, db, more)
	if last := more.At[maxCrowded-1]; last != testBase+count+maxCrowded-1 {
		t.Fatalf("the last value is %d ns behind", last-testBase)
	}
	again := batch(func(i int) uint64 { return uint64(count - 1 - i) })
	appendWait(t, db, again)
	for i, f := range again.Flags {
		if f&model.Duplicate == 0 {
			t.Fatalf("value %d is stored a second time, %d ns behind", i, again.At[i]-testBase)
		}
	}
}
