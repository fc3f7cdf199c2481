package page

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawUints(t)
		from := rapid.IntRange(0, len(v)).Draw(t, "from")
		to := rapid.IntRange(from, len(v)).Draw(t, "to")
		f, err := FoldUints(AppendUints(nil, v), len(v), from, to)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := FoldUints(AppendDenseUints(nil, v), len(v), from, to); err != nil || g != f {
			t.Fatalf("fold of the dense column = %+v, %v; want %+v", g, err, f)
		}
		sum := new(big.Int)
		want := UintFold{Count: to - from}
		for i, x := range v[from:to] {
			if i == 0 {
				want.First, want.Min, want.Max = x, x, x
			}
			want.Last, want.Min, want.Max = x, min(want.Min, x), max(want.Max, x)
			sum.Add(sum, new(big.Int).SetUint64(x))
		}
		want.SumLow = new(big.Int).And(sum, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		want.SumHigh = new(big.Int).Rsh(sum, 64).Uint64()
		if f != want {
			t.Fatalf("fold of %v = %+v; want %+v", v[from:to], f, want)
		}
		checkFloatFold(t, drawFloats(t))
	})
}

func checkFloatFold(t *rapid.T, v []uint64) {
	from := rapid.IntRange(0, len(v)).Draw(t, "from")
	to := rapid.IntRange(from, len(v)).Draw(t, "to")
	f, err := FoldFloats(AppendFloats(nil, v), len(v), from, to)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := FoldFloats(AppendDenseFloats(nil, v), len(v), from, to); err != nil || fmt.Sprint(g) != fmt.Sprint(f) {
		t.Fatalf("fold of the dense column = %+v, %v; want %+v", g, err, f)
	}
	want := FloatFold{Count: to - from}
	scale := 0.0
	for i, bits := range v[from:to] {
		x := math.Float64frombits(bits)
		if i == 0 {
			want.First, want.Min, want.Max = x, math.NaN(), math.NaN()
		}
		want.Last = x
		want.Sum += x
		scale += math.Abs(x)
		if !math.IsNaN(x) {
			if !(want.Min <= x) {
				want.Min = x
			}
			if !(want.Max >= x) {
				want.Max = x
			}
		}
	}
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	sums := same(f.Sum, want.Sum) || math.Abs(f.Sum-want.Sum) <= 1e-9*scale || math.IsInf(scale, 0)
	if f.Count != want.Count || !same(f.Min, want.Min) || !same(f.Max, want.Max) || !same(f.First, want.First) || !same(f.Last, want.Last) || !sums {
		t.Fatalf("fold of %x = %+v; want %+v", v[from:to], f, want)
	}
}

func TestFold_refuses(t *testing.T) {
	b := AppendUints(nil, []uint64{1, 2, 4})
	for _, r := range [][2]int{{-1, 2}, {2, 1}, {0, 4}} {
		if _, err := FoldUints(b, 3, r[0], r[1]); err == nil {
			t.Errorf("range %v of 3 values and no error", r)
		}
	}
	if _, err := FoldUints(b[:2], 3, 0, 3); err == nil {
		t.Error("a column cut off and no error")
	}
}

func BenchmarkFold(b *testing.B) {
	trace := readTrace(b)
	var encoded [][]byte
	for i := range trace {
		encoded = append(encoded, trace[i].append(nil))
	}
	perValue(b, 1024*len(trace), func() {
		for i, column := range encoded {
			var err error
			if trace[i].float {
				_, err = FoldFloats(column, 1024, 0, 1024)
			} else {
				_, err = FoldUints(column, 1024, 0, 1024)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
