package page

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDecodeRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, k := range []struct {
			v      []uint64
			encode func([]byte, []uint64) []byte
			decode func([]uint64, []byte, int, int, int) ([]uint64, error)
		}{
			{drawUints(t), AppendUints, DecodeUintsRange},
			{drawFloats(t), AppendFloats, DecodeFloatsRange},
			{drawUints(t), AppendDenseUints, DecodeUintsRange},
			{drawFloats(t), AppendDenseFloats, DecodeFloatsRange},
		} {
			from := rapid.IntRange(0, len(k.v)).Draw(t, "from")
			to := rapid.IntRange(from, len(k.v)).Draw(t, "to")
			got, err := k.decode([]uint64{7}, k.encode(nil, k.v), len(k.v), from, to)
			if err != nil || got[0] != 7 || !slices.Equal(got[1:], k.v[from:to]) {
				t.Fatalf("values %d to %d of %v: %v %v", from, to, k.v, got, err)
			}
		}
	})
}

// TestDecodeRange_kinds takes parts of long columns at rest, of every scheme that they come to.
func TestDecodeRange_kinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k, kind := range kinds {
		v := drawKind(k, 3000)
		if kind.name == "normal" { // multiples
			for i := range v {
				v[i] = 12 * v[i]
			}
		}
		c := traceColumn{float: kind.float, dense: true, v: v}
		b := c.append(nil)
		decode := DecodeUintsRange
		if kind.float {
			decode = DecodeFloatsRange
		}
		for range 40 {
			from := r.IntN(len(v))
			to := from + r.IntN(len(v)-from+1)
			if got, err := decode(nil, b, len(v), from, to); err != nil || !slices.Equal(got, v[from:to]) {
				t.Fatalf("%s, %s: values %d to %d: %v", kind.name, describe(b), from, to, err)
			}
		}
	}
}

func FuzzDecodeRange(f *testing.F) {
	f.Add(AppendUints(nil, []uint64{1, 5, 2, 9, 1 << 40}), 5, 1, 3)
	f.Add(AppendFloats(nil, make([]uint64, 200)), 200, 100, 130)
	for k := range kinds {
		f.Add((&traceColumn{float: kinds[k].float, dense: true, v: drawKind(k, 300)}).append(nil), 300, 100, 130)
	}
	f.Fuzz(func(t *testing.T, b []byte, n, from, to int) {
		if n < 0 || n > 1<<12 {
			return
		}
		for _, decode := range []func([]uint64, []byte, int, int, int) ([]uint64, error){DecodeUintsRange, DecodeFloatsRange} {
			got, err := decode(nil, b, n, from, to)
			if err == nil && len(got) != to-from {
				t.Fatalf("%d values from %d to %d", len(got), from, to)
			}
		}
		whole, err := DecodeUints(nil, b, n)
		if err != nil || from < 0 || to < from || to > n {
			return
		}
		if part, err := DecodeUintsRange(nil, b, n, from, to); err != nil || string(bytesOf(part)) != string(bytesOf(whole[from:to])) {
			t.Fatalf("values %d to %d: %v, expected %v: %v", from, to, part, whole[from:to], err)
		}
	})
}

func bytesOf(v []uint64) []byte {
	var b []byte
	for _, x := range v {
		for range 8 {
			b, x = append(b, byte(x)), x>>8
		}
	}
	return b
}
