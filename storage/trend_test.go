package storage

import (
	"math"
	"math/rand/v2"
	"testing"

	"tidemark/model"
)

// TestAddRunToTrend compares runs with single values, bit for bit.
func TestAddRunToTrend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300, -5}
	for round := range 2000 {
		vt := model.Float
		if round%2 == 1 {
			vt = model.Uint
		}
		values := make([]uint64, r.IntN(40))
		for i := range values {
			switch {
			case vt == model.Uint:
				values[i] = r.Uint64() >> r.IntN(64)
			case r.IntN(4) == 0:
				values[i] = math.Float64bits(special[r.IntN(len(special))])
			default:
				values[i] = math.Float64bits(r.NormFloat64())
			}
		}
		var want, got model.Trend
		var previous, gotPrevious uint64
		has, gotHas := false, false
		for _, v := range values {
			if AddToTrend(&want, vt, v, previous, has) {
				previous, has = v, true
			}
		}
		for rest := values; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			gotPrevious, gotHas = AddRunToTrend(&got, vt, rest[:n], gotPrevious, gotHas)
			rest = rest[n:]
		}
		if trendBits(&got) != trendBits(&want) || has != gotHas || previous != gotPrevious {
			t.Fatalf("%v: %+v, one by one %+v", values, got, want)
		}
	}
}

func trendBits(t *model.Trend) [10]uint64 {
	return [10]uint64{uint64(t.At), t.Count, t.Min, t.Max, t.First, t.Last, math.Float64bits(t.Sum), t.SumLow, t.SumHigh, math.Float64bits(t.Increase)}
}
