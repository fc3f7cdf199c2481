package page

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// repeated are columns that repeat, by the scheme that holds the repetition.
func repeated() map[string]traceColumn {
	const n, period = 600, 45
	repeat, decimal, patched, ordered := make([]uint64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for i := range n {
		x := i % period / 2
		x = x * x * 31 % 1009
		repeat[i] = uint64(x) + uint64(i/period)*7
		decimal[i] = math.Float64bits(float64(x) / 10)
		patched[i] = decimal[i]
		ordered[i] = math.Float64bits(math.Sin(float64(i % period)))
	}
	patched[13+3*period], patched[13+13*period] = math.Float64bits(math.NaN()), 1<<63 // where the value before is the same
	return map[string]traceColumn{
		"repeat": {v: repeat}, "decimal": {float: true, v: decimal}, "patched": {float: true, v: patched}, "ordered": {float: true, v: ordered},
	}
}

func TestRepeat(t *testing.T) {
	for name, c := range repeated() {
		plain := c.append(nil)
		c.dense = true
		dense := c.append(nil)
		schemes := describe(dense)
		if 2*len(dense) > len(plain) || !strings.HasPrefix(schemes, name) || name != "patched" && !strings.Contains(schemes, "repeat") {
			t.Errorf("%s: %d bytes %s, plain %d %s", name, len(dense), schemes, len(plain), describe(plain))
		}
		if Repeats(plain) || !Repeats(dense) {
			t.Errorf("%s: said to repeat: plain %v, dense %v", name, Repeats(plain), Repeats(dense))
		}
		checkDecoded(t, c)
		checkReference(t, c)
		checkTurns(t, &c, plain, dense)
	}
}

// checkTurns compares parts and folds of a column that repeats with those of the same values in one that does not.
func checkTurns(t *testing.T, c *traceColumn, plain, dense []byte) {
	t.Helper()
	n := len(c.v)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		ends := []int{r.IntN(n + 1), r.IntN(n + 1), r.IntN(n + 1), r.IntN(n + 1)}
		slices.Sort(ends)
		if ends = slices.Compact(ends); len(ends) < 2 {
			continue
		}
		from, to := ends[0], ends[len(ends)-1]
		part, err := DecodeUintsRange(nil, dense, n, from, to)
		var folds, want any
		var err2, err3 error
		if c.float {
			part, err = DecodeFloatsRange(nil, dense, n, from, to)
			folds, err2 = FoldFloatRanges(nil, dense, n, from, ends[1:])
			want, err3 = FoldFloatRanges(nil, plain, n, from, ends[1:])
		} else {
			folds, err2 = FoldUintRanges(nil, dense, n, from, ends[1:])
			want, err3 = FoldUintRanges(nil, plain, n, from, ends[1:])
		}
		if err := errors.Join(err, err2, err3); err != nil || !slices.Equal(part, c.v[from:to]) || fmt.Sprint(folds) != fmt.Sprint(want) {
			t.Fatalf("%s, ranges %v: %v\nvalues %x\nexpected %x\nfolds %v\nexpected %v", describe(dense), ends, err, part, c.v[from:to], folds, want)
		}
	}
}

// TestFold_repeatLarge folds a column that repeats integers whose sums no float holds: they are added as those of any other column are.
func TestFold_repeatLarge(t *testing.T) {
	for _, scale := range []float64{1, 1 << 40, 1 << 49} {
		c := traceColumn{float: true, dense: true, v: make([]uint64, 6000)}
		for i := range c.v {
			c.v[i] = math.Float64bits(float64(i%83*(i%83)%97) * scale)
		}
		dense := c.append(nil)
		c.dense = false
		if !Repeats(dense) {
			t.Errorf("%v: %s does not repeat", scale, describe(dense))
		}
		checkTurns(t, &c, c.append(nil), dense)
	}
}

func TestFindPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.Uint64Range(0, 3)
		delta := make([]uint64, rapid.IntRange(1, 60).Draw(t, "n"))
		every := rapid.IntRange(1, 20).Draw(t, "every")
		for i := range delta {
			if delta[i] = alphabet.Draw(t, "delta"); i >= every {
				delta[i] = delta[i-every]
			}
		}
		if rapid.Bool().Draw(t, "break") {
			delta[rapid.IntRange(0, len(delta)-1).Draw(t, "at")] = alphabet.Draw(t, "other")
		}
		want := 0
		for p := 1; p <= (len(delta)+1)/2 && want == 0; p++ {
			if slices.Equal(delta[p:], delta[:len(delta)-p]) {
				want = p
			}
		}
		if got := new(coder).findPeriod(delta); got != want {
			t.Fatalf("period %d of %v, expected %d", got, delta, want)
		}
	})
}

func TestRepeat_refuses(t *testing.T) {
	inner := AppendUints(nil, []uint64{1, 5, 2})
	again := append([]byte{schemeRepeat, 3, 0}, append([]byte{schemeRepeat, 2, 0}, AppendUints(nil, []uint64{1, 5})...)...)
	for name, b := range map[string][]byte{
		"no header": {schemeRepeat}, "no step": {schemeRepeat, 3}, "no column": {schemeRepeat, 3, 0}, "no period": append([]byte{schemeRepeat, 0, 0}, inner...),
		"a period of all":    append([]byte{schemeRepeat, 9, 0}, inner...),
		"one inside another": again,
	} {
		if _, err := DecodeUints(nil, b, 9); err == nil {
			t.Errorf("%s: read", name)
		}
		decimal := append([]byte{schemeDecimal, 1}, b...)
		if _, err := DecodeFloats(nil, decimal, 9); err == nil {
			t.Errorf("%s: read as decimals", name)
		}
		if _, err := FoldFloats(decimal, 9, 0, 9); err == nil {
			t.Errorf("%s: summed up", name)
		}
		if _, err := FoldUints(b, 9, 0, 9); err == nil {
			t.Errorf("%s: summed up", name)
		}
		if _, err := DecodeUintsRange(nil, b, 9, 1, 2); err == nil {
			t.Errorf("%s: read in part", name)
		}
	}
	if got, err := DecodeUints(nil, append([]byte{schemeRepeat, 3, 20}, inner...), 8); err != nil || !slices.Equal(got, []uint64{1, 5, 2, 11, 15, 12, 21, 25}) {
		t.Errorf("read %v, %v", got, err)
	}
}

// BenchmarkPeriod is what looking for a period costs where there is none, and where there is one.
func BenchmarkPeriod(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"none", "steps", "seldom", "period"} {
		delta := make([]uint64, 16383)
		for i := range delta {
			switch name {
			case "none":
				delta[i] = r.Uint64N(101)
			case "steps":
				delta[i] = r.Uint64N(2)
			case "seldom":
				delta[i] = 1 - min(r.Uint64N(50), 1)
			case "period":
				delta[i] = uint64(i % 1024 * (i % 1024))
			}
		}
		c := new(coder)
		b.Run(name, func(b *testing.B) { perValue(b, len(delta), func() { c.findPeriod(delta) }) })
	}
}
