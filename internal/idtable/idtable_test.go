package idtable

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTable_equalsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[uint64, int]
		want := make(map[uint64]*int)
		ids := rapid.SampledFrom([]uint64{0, 1, 2, 255, 256, 257, 1 << 40, 1<<64 - 1})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id := ids.Draw(t, "id")
			if rapid.Bool().Draw(t, "remove") {
				table.Set(id, nil)
				delete(want, id)
				continue
			}
			v := new(int)
			table.Set(id, v)
			want[id] = v
		}
		if table.Len() != len(want) {
			t.Fatalf("%d ids, want %d", table.Len(), len(want))
		}
		cursor := table.Cursor()
		for _, id := range []uint64{0, 1, 2, 255, 256, 257, 1 << 40, 1<<64 - 1, 77} {
			if table.Get(id) != want[id] || cursor.Get(id) != want[id] {
				t.Fatalf("id %d is wrong", id)
			}
		}
		for id := range want {
			table.Set(id, nil)
		}
		if len(table.pages) != 0 {
			t.Fatalf("%d pages of an empty table", len(table.pages))
		}
	})
}
