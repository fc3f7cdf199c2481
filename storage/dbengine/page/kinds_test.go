package page

import (
	"math"
	"math/rand/v2"
	"testing"
)

// kinds are columns of known entropy and the bytes a value that they may take, plain and dense, at 2,048 values.
var kinds = []struct {
	name         string
	float        bool
	plain, dense float64
	next         func(r *rand.Rand, i int, before float64) float64
}{
	// Steps of −0.50 to +0.50 in hundredths: 101 equally likely ones hold 6.66 bits, 0.832 B.
	{"gauge", true, 0.895, 0.855, func(r *rand.Rand, _ int, x float64) float64 {
		return math.Round(100*x+float64(r.IntN(101)-50)) / 100
	}},
	{"gauge, large steps", true, 1.27, 1.265, func(r *rand.Rand, _ int, x float64) float64 {
		return math.Round(100*x+float64(r.IntN(1001)-500)) / 100
	}},
	{"counter", false, 1.145, 1.115, func(r *rand.Rand, _ int, x float64) float64 { return x + 1000 + float64(r.IntN(401)-200) }},
	{"normal", false, 1.07, 0.99, func(r *rand.Rand, _ int, _ float64) float64 { return math.Round(1e6 + 50*r.NormFloat64()) }},
	{"full mantissa", true, 7.02, 6.91, func(r *rand.Rand, _ int, _ float64) float64 { return r.Float64() }},
	{"full mantissa, both signs", true, 7.18, 7.0, func(r *rand.Rand, _ int, _ float64) float64 { return r.NormFloat64() }},
	{"single precision", true, 3.4, 3.2, func(r *rand.Rand, _ int, _ float64) float64 { return float64(r.Float32()) }},
	{"constant", true, 0.003, 0.003, func(*rand.Rand, int, float64) float64 { return 42.5 }},
	{"flapping", false, 0.027, 0.027, func(r *rand.Rand, _ int, x float64) float64 {
		if r.IntN(50) == 0 {
			return 1 - x
		}
		return x
	}},
	{"states", false, 0.28, 0.24, func(r *rand.Rand, _ int, _ float64) float64 {
		return []float64{0, 1 << 20, 7e12, 3}[min(r.IntN(6), 3)]
	}},
	// At rest only one period is stored: 79 values, 512, and 30 deltas.
	{"period", false, 2.53, 0.11, func(_ *rand.Rand, i int, _ float64) float64 { return float64(i % 79 * (i % 79) * 7919 % 1000003) }},
	{"sawtooth", true, 0.075, 0.032, func(_ *rand.Rand, i int, _ float64) float64 { return float64(i * 37 % 512) }},
	{"rhythm", false, 0.9, 0.018, func(_ *rand.Rand, i int, x float64) float64 { return x + float64(i%30*(i%30)*7%100) }},
}

func drawKind(k, n int) []uint64 {
	r := rand.New(rand.NewPCG(1, uint64(k)))
	v := make([]uint64, n)
	x := 0.0
	for i := range v {
		x = kinds[k].next(r, i, x)
		v[i] = uint64(int64(x))
		if kinds[k].float {
			v[i] = math.Float64bits(x)
		}
	}
	return v
}

func TestKinds_size(t *testing.T) {
	for k, kind := range kinds {
		for _, n := range []int{1024, 2048, 8192} {
			c := traceColumn{float: kind.float, v: drawKind(k, n)}
			plain := c.append(nil)
			c.dense = true
			dense := c.append(nil)
			perPlain, perDense := float64(len(plain))/float64(n), float64(len(dense))/float64(n)
			t.Logf("%s, %d values: %.4f B %s, dense %.4f B %s", kind.name, n, perPlain, describe(plain), perDense, describe(dense))
			if n == 2048 && (perPlain > kind.plain || perDense > kind.dense) {
				t.Errorf("%s: %.4f B a value, dense %.4f; expected at most %v and %v", kind.name, perPlain, perDense, kind.plain, kind.dense)
			}
		}
	}
}
