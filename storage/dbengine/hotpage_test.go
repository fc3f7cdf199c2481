package dbengine

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/page/pagetest"
	"tidemark/storage/storagetest"
)

// TestHotPage compares hot pages with plain slices, for values of all widths and scales and series that share clocks,
// leave them one by one or together, and begin anew.
func TestHotPage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	special := []uint64{0, 1 << 63, math.MaxUint64, math.Float64bits(math.NaN()), 0x7FF8000000000001, math.Float64bits(math.Inf(-1)), 1}
	for round := range 300 {
		sh := &shard{}
		const series = 5
		var pages [series]hotPage
		var types [series]model.ValueType
		var times [series][]int64
		var want [series][]uint64
		var held [series]numbers
		var heldTimes, heldBits [series][]uint64
		for i := range types {
			types[i] = model.Float
			if i%2 == 1 {
				types[i] = model.Uint
			}
		}
		at := testBase
		decimals := r.IntN(9)
		instants := 40 + r.IntN(200)
		if round%50 == 0 {
			instants = 1500 // more than all blocks but the last hold
		}
		for range instants {
			at += 1 + r.Int64N(1000)
			for i := range pages {
				switch r.IntN(40 + 400*(round%3)) {
				case 0: // it misses this instant
					continue
				case 1: // it has another one
					at += int64(1 + r.IntN(2))
				case 2: // sealed
					pages[i], times[i], want[i] = hotPage{}, nil, nil
				}
				sh.tick(&pages[i], at)
				bits := uint64(7)
				switch k := r.IntN(30); {
				case k == 0:
					bits = special[r.IntN(len(special))]
				case k < 20 && types[i] == model.Float:
					bits = math.Float64bits(float64(r.IntN(100_000)-50_000) / math.Pow10(r.IntN(decimals+1)))
				case k < 20:
					bits = r.Uint64() >> (r.IntN(4) * 16)
				}
				pages[i].push(types[i], bits)
				times[i], want[i] = append(times[i], at), append(want[i], bits)
			}
			k := r.IntN(series)
			held[k] = pages[k].freeze()
			heldTimes[k], heldBits[k] = asWords(times[k]), slices.Clone(want[k])
		}
		for i := range pages {
			n := pages[i].freeze()
			if !slices.Equal(n.times, times[i]) || !slices.Equal(n.decode(nil), want[i]) {
				t.Fatalf("round %d, series %d: %v %x, expected %v %x", round, i, n.times, n.decode(nil), times[i], want[i])
			}
			if !slices.Equal(asWords(held[i].times), heldTimes[i]) || !slices.Equal(held[i].decode(nil), heldBits[i]) {
				t.Fatalf("round %d, series %d: what was frozen has changed", round, i)
			}
			if k := len(want[i]); k > 0 {
				from := r.IntN(k)
				to := from + r.IntN(k-from+1)
				if got := n.decodeFrom(nil, from, to); !slices.Equal(got, want[i][from:to]) {
					t.Fatalf("round %d, series %d: values %d to %d are %x, expected %x", round, i, from, to, got, want[i][from:to])
				}
				if bits, ok := n.at(times[i][from]); !ok || bits != want[i][from] {
					t.Fatalf("round %d, series %d: value %d is %x %v, expected %x", round, i, from, bits, ok, want[i][from])
				}
			}
		}
	}
}

func asWords(times []int64) []uint64 {
	words := make([]uint64, len(times))
	for i, at := range times {
		words[i] = uint64(at)
	}
	return words
}

// TestShard_tick_shares tells that series which come together have one clock, also after some have left.
func TestShard_tick_shares(t *testing.T) {
	sh := &shard{}
	pages := make([]hotPage, 60)
	push := func(list []hotPage, at int64) {
		for i := range list {
			sh.tick(&list[i], at)
			list[i].push(model.Uint, 1)
		}
	}
	for k := range int64(100) {
		push(pages, k*10)
	}
	push(pages[:30], 2000)
	push(pages[30:], 2001)
	for k := range int64(100) {
		push(pages[:30], 3000+k*10)
		push(pages[30:], 3001+k*10)
	}
	clocks := map[*clock]int{}
	for i := range pages {
		clocks[pages[i].clock]++
		if n := pages[i].freeze(); len(n.times) != 201 || n.times[100] != 2000+int64(i/30) {
			t.Errorf("series %d: %d values", i, len(n.times))
		}
	}
	if len(clocks) != 2 {
		t.Errorf("%d clocks, expected 2", len(clocks))
	}
}

// TestDB_memory tells what active series of the recorded trace take in memory when their pages are nearly full.
func TestDB_memory(t *testing.T) {
	if got := traceHeap(t); got > 512 {
		t.Errorf("%d bytes of heap for each active series, expected at most 512", got)
	} else {
		t.Logf("%d bytes of heap for each active series", got)
	}
}

func BenchmarkMemoryTrace(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(traceHeap(b)), "heap-B/series")
	}
}

func traceHeap(t testing.TB) uint64 {
	const copies = 4 // so that what does not grow with the series weighs less
	columns, err := pagetest.Trace()
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	db, err := Open(context.Background(), vfs.OS{}, t.TempDir(), Options{Now: storagetest.Now})
	if err != nil {
		t.Fatal(err)
	}
	batch := model.NewBatch()
	for k := range 1000 {
		at := testBase + int64(k)*1_000_000_000
		for first := 0; first < copies*len(columns); first += len(columns) {
			batch.Reset()
			for i, c := range columns {
				vt := model.Uint
				if c.Float {
					vt = model.Float
				}
				batch.Append(model.ItemID(1+first+i), at, vt, c.Bits[k])
			}
			if _, err := db.Append(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	total := uint64(math.MaxUint64)
	for range 20 { // after some small batches the log has let go of the buffers that the rush of large ones needed
		batch.Reset()
		batch.Append(1, testBase+2000*1_000_000_000, model.Text, 0)
		if _, err := db.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		if err := db.log.Wait(context.Background(), db.LastLSN()); err != nil {
			t.Fatal(err)
		}
		total = min(total, heap()-before-uint64(db.direct.buffers.HeldBytes())) // a bounded number, however many series there are
	}
	runtime.KeepAlive(columns)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return total / uint64(copies*len(columns))
}
