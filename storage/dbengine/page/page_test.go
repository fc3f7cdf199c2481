package page

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawUints draws a column of one of the shapes that the schemes are for, and some that fit none.
func drawUints(t *rapid.T) []uint64 {
	n := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(11, 400), rapid.SampledFrom([]int{63, 64, 65, 127, 128, 129, 256, 1024})).Draw(t, "n")
	any64 := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 1<<53 + 1, math.MaxUint32}))
	base, step := any64.Draw(t, "base"), any64.Draw(t, "step")
	width := rapid.IntRange(0, 64).Draw(t, "width")
	small := func() uint64 { return rapid.Uint64().Draw(t, "x") >> (64 - width) }
	every := rapid.IntRange(1, 40).Draw(t, "every")
	v := make([]uint64, n)
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	sum, slope := base, step
	for i := range v {
		switch kind {
		case 0:
			v[i] = base
		case 1:
			v[i] = base + uint64(i)*step
		case 2:
			v[i] = base + small()
		case 3:
			sum += small()
			v[i] = sum
		case 4:
			sum += unzigzag(small())
			v[i] = sum
		case 5:
			slope += unzigzag(small())
			sum += slope
			v[i] = sum
		case 6:
			if i%every == 0 && rapid.Bool().Draw(t, "change") {
				sum += unzigzag(small()) * step
			}
			v[i] = sum
		case 7:
			v[i] = any64.Draw(t, "x")
		case 8:
			if v[i] = base + small(); i >= every { // a period
				v[i] = v[i-every] + step
			}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "outliers") {
		v[rapid.IntRange(0, n-1).Draw(t, "at")] = any64.Draw(t, "outlier")
	}
	return v
}

func checkUints(t rapid.TB, v []uint64) {
	t.Helper()
	b := AppendUints([]byte("ab"), v)[2:]
	if len(b) > 8*len(v)+1 {
		t.Fatalf("%d values took %d bytes", len(v), len(b))
	}
	if b[0] == schemeRaw && len(v) > 2 && slices.Max(v) == slices.Min(v) {
		t.Fatalf("constant column stored raw")
	}
	got, err := DecodeUints([]uint64{7}, b, len(v))
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != 7 || !slices.Equal(got[1:], v) {
		t.Fatalf("scheme %d: got %v; want %v", b[0], got[1:], v)
	}
	for _, dense := range []bool{false, true} {
		c := &coder{dense: dense}
		plain := c.encodeWhole(nil, v)
		if err := c.decode(got[1:], plain, rankRepeat); err != nil || !slices.Equal(got[1:], v) {
			t.Fatalf("scheme %d is mended by the check only: %v", plain[0], err)
		}
	}
	at := make([]int64, len(v))
	for i, x := range v {
		at[i] = int64(x)
	}
	b = AppendTimes(nil, at)
	times, err := DecodeTimes([]int64{7}, b, len(v))
	if err != nil || !slices.Equal(times[1:], at) {
		t.Fatalf("times: scheme %d: %v", b[0], err)
	}
}

func TestUints_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkUints(t, drawUints(t)) })
}

func drawFloats(t *rapid.T) []uint64 {
	special := rapid.SampledFrom([]uint64{
		0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7FF8000000000001,
		0x7FF0000000000002, 0xFFF8DEADBEEF0000, 1, 0x000FFFFFFFFFFFFF, math.Float64bits(math.MaxFloat64), math.Float64bits(1 << 53), math.Float64bits(1 << 63),
	})
	v := drawUints(t)
	kind := rapid.IntRange(0, 4).Draw(t, "floats")
	e := rapid.IntRange(0, 12).Draw(t, "e")
	for i, x := range v {
		switch kind {
		case 0:
			v[i] = math.Float64bits(float64(int64(x)) / math.Pow10(e))
		case 1:
			v[i] = math.Float64bits(float64(x>>40) * 0.1)
		case 2:
			v[i] = math.Float64bits(math.Sin(float64(i) + float64(x)))
		case 3:
			v[i] = math.Float64bits(float64(float32(x) / 3))
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "specials") {
		v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] = special.Draw(t, "special")
	}
	return v
}

func TestFloats_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawFloats(t)
		b := AppendFloats([]byte("ab"), v)[2:]
		if len(b) > 8*len(v)+1 {
			t.Fatalf("%d values took %d bytes", len(v), len(b))
		}
		got, err := DecodeFloats([]uint64{7}, b, len(v))
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != 7 || !slices.Equal(got[1:], v) {
			t.Fatalf("scheme %d: got %x; want %x", b[0], got[1:], v)
		}
		for _, dense := range []bool{false, true} {
			c := &coder{dense: dense}
			plain := c.encodeFloats(nil, v)
			if err := c.decodeFloats(got[1:], plain); err != nil || !slices.Equal(got[1:], v) {
				t.Fatalf("scheme %d is mended by the check only: %v", plain[0], err)
			}
		}
	})
}
