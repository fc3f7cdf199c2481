package confcache

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTable_equalsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const farID = directPages << pageBits
		ids := rapid.SampledFrom([]uint64{0, 1, 511, 512, 513, 1 << 20, farID - 1, farID, farID + 1, 1 << 40, 1<<64 - 1})
		table, want := newTable[int](), map[uint64]*int{}
		for range rapid.IntRange(1, 4).Draw(t, "revisions") {
			before, wantBefore := table, make(map[uint64]*int)
			for id, v := range want {
				wantBefore[id] = v
			}
			b := table.builder()
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				id := ids.Draw(t, "id")
				if rapid.Bool().Draw(t, "remove") {
					b.set(id, nil)
					delete(want, id)
					continue
				}
				v := new(int)
				b.set(id, v)
				want[id] = v
			}
			table = b.table
			checkTable(t, before, wantBefore)
			checkTable(t, table, want)
		}
	})
}

func checkTable(t *rapid.T, table *table[int], want map[uint64]*int) {
	if table.count != len(want) {
		t.Fatalf("%d objects, want %d", table.count, len(want))
	}
	const farID = directPages << pageBits
	for _, id := range []uint64{0, 1, 2, 511, 512, 513, 1 << 20, 1<<20 + 1024, farID - 1, farID, farID + 1, 1 << 40, 1<<64 - 1} {
		if table.get(id) != want[id] {
			t.Fatalf("object %d is wrong", id)
		}
	}
}
