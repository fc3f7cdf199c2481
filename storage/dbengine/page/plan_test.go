package page

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestPlanBlock compares with trying every width.
func TestPlanBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 7, 63, 64}).Draw(t, "n")
		long, short := rapid.IntRange(0, 64).Draw(t, "long"), rapid.IntRange(0, 64).Draw(t, "short")
		block := make([]uint64, n)
		for i := range block {
			x := rapid.Uint64().Draw(t, "x")
			if block[i] = x << 1 >> 1 >> (63 - min(short, 63)); i < rapid.IntRange(0, 20).Draw(t, "outliers") {
				block[i] = x >> max(0, 63-long) >> min(1, max(0, 64-long))
			}
		}
		width, size := planBlock(block)
		best := 1 << 30
		for w := 64; w >= 0; w-- {
			cost, exceptions := (n*w+7)/8, 0
			for _, x := range block {
				if length := bits.Len64(x); length > w {
					exceptions++
					cost += 1 + (length-w+6)/7
				}
			}
			if exceptions > 0 {
				cost++
			}
			if exceptions <= maxExceptions {
				best = min(best, cost)
			}
		}
		c := new(coder)
		if b := c.appendStream(nil, block, []byte{width}); size != best || len(b) != 1+size {
			t.Fatalf("width %#x takes %d bytes, planned %d; the best is %d", width, len(b)-1, size, best)
		}
	})
}
