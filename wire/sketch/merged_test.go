package sketch

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// sketchOf draws a sketch of few or many values, far apart or near, and some with counts that reach the greatest.
func sketchOf(r *rand.Rand) *Sketch {
	s := new(Sketch)
	for range r.IntN(60) {
		s.AddN(int64(math.Exp2(r.Float64()*44)), 1+r.Uint32N(1000))
	}
	if r.IntN(8) == 0 {
		s.AddN(5e6, math.MaxUint32-r.Uint32N(4))
	}
	return s
}

func TestAppendMerged(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 5000 {
		a, b := sketchOf(r), sketchOf(r)
		x, y := a.Append(nil), b.Append(nil)
		got, err := AppendMerged([]byte("x"), x, y)
		if err != nil {
			t.Fatal(err)
		}
		a.Merge(b)
		if want := a.Append([]byte("x")); !bytes.Equal(got, want) {
			t.Fatalf("% x and % x: % x, expected % x", x, y, got, want)
		}
	}
	some := sketchOf(r).Append(nil)
	if got, err := AppendMerged(nil, nil, some); err != nil || !bytes.Equal(got, some) {
		t.Errorf("without a first: % x %v", got, err)
	}
	for n := range some {
		if got, err := AppendMerged([]byte("x"), some, some[:n]); err == nil || string(got) != "x" {
			t.Errorf("%d of %d bytes: %q", n, len(some), got)
		}
	}
}

func FuzzAppendMerged(f *testing.F) {
	r := rand.New(rand.NewPCG(8, 2))
	for range 8 {
		f.Add(sketchOf(r).Append(nil), sketchOf(r).Append(nil))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var x, y Sketch
		readable := y.Decode(b) == nil && (len(a) == 0 || x.Decode(a) == nil)
		got, err := AppendMerged(nil, a, b)
		if (err == nil) != readable {
			t.Fatalf("% x and % x: %v, and they can be read: %v", a, b, err, readable)
		}
		if err != nil {
			return
		}
		var merged Sketch
		if len(a) == 0 {
			x = Sketch{}
		}
		x.Merge(&y)
		if err := merged.Decode(got); err != nil {
			t.Fatal(err)
		}
		if x.Count > 0 && x.Count < math.MaxUint32 && !merged.Equal(&x) {
			t.Errorf("% x and % x merge to % x", a, b, got)
		}
	})
}

func BenchmarkAppendMerged(b *testing.B) {
	r := rand.New(rand.NewPCG(8, 3))
	var x, y Sketch
	for range 40 {
		x.Add(int64(2e6 * r.ExpFloat64()))
		y.Add(int64(2e6 * r.ExpFloat64()))
	}
	m, n := x.Append(nil), y.Append(nil)
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = AppendMerged(dst[:0], m, n)
	}
}
