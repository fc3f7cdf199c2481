package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var whole Sketch
	parts := make([]Sketch, 7)
	var values []float64
	for i := range 20_000 {
		v := int64(math.Exp(random.NormFloat64()*2+13)) + 1024
		values = append(values, float64(v))
		whole.Add(v)
		parts[i%7].Add(v)
	}
	slices.Sort(values)
	var merged Sketch
	for i := range parts {
		merged.Merge(&parts[i])
	}
	if !merged.Equal(&whole) {
		t.Error("merged parts differ from the whole")
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.99, 0.999, 1} {
		want := values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
		if got := whole.Quantile(q); math.Abs(got-want) > want*0.017 {
			t.Errorf("quantile %v is %v, want %v within 1.7 %%", q, got, want)
		}
	}
}

func TestEdges(t *testing.T) {
	var s Sketch
	if s.Quantile(0.5) != 0 {
		t.Error("an empty sketch has a quantile")
	}
	s.Add(-5)
	s.Add(math.MaxInt64)
	if s.Min != 0 || s.Max != math.MaxInt64 || s.Count != 2 {
		t.Errorf("min %d max %d count %d", s.Min, s.Max, s.Count)
	}
	s.AddN(math.MaxInt64, math.MaxUint32)
	if s.Sum != math.MaxUint64 {
		t.Errorf("sum %d did not stop at the largest number", s.Sum)
	}
}

func FuzzDecode(f *testing.F) {
	var s Sketch
	s.Add(5000)
	s.AddN(9_000_000, 7)
	f.Add(s.Append(nil))
	f.Add([]byte{version, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s, again Sketch
		known := s.Decode(b) == nil
		var m Merger
		var merged Sketch
		merged.Add(77_000)
		var before Sketch
		before.Merge(&merged)
		if err := m.Merge(&merged, b); (err == nil) != known || err != nil && !merged.Equal(&before) {
			t.Fatalf("decoding says %v, merging %v", known, err)
		}
		if !known {
			return
		}
		if before.Merge(&s); !merged.Equal(&before) {
			t.Error("merging the encoded form differs from merging the decoded one")
		}
		if err := again.Decode(s.Append(nil)); err != nil || !again.Equal(&s) {
			t.Errorf("encoded again it reads %v", err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var s Sketch
	for i := 0; b.Loop(); i++ {
		s.Add(int64(i&0xfffff) * 100)
	}
}

func BenchmarkMerger(b *testing.B) {
	var one, sum Sketch
	for i := range int64(40) {
		one.Add(900_000 + i*i*2_000)
	}
	encoded := one.Append(nil)
	var m Merger
	for b.Loop() {
		if err := m.Merge(&sum, encoded); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReset(t *testing.T) {
	var s Sketch
	s.Add(5_000)
	s.Add(5_000_000)
	s.Reset()
	if !s.Equal(&Sketch{}) || s.Quantile(0.5) != 0 {
		t.Error("a sketch that was reset still counts")
	}
	if n := testing.AllocsPerRun(10, func() { s.Add(5_100); s.Reset() }); n != 0 {
		t.Errorf("%v allocations to count again where something was counted before", n)
	}
}
