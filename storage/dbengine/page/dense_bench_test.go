package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkDense decodes a random walk of two decimals, 16,384 values in pages of several sizes, as it is first written and at rest.
func BenchmarkDense(b *testing.B) {
	const values = 16384
	for _, size := range []int{720, 4096, values} {
		for _, dense := range []bool{false, true} {
			r := rand.New(rand.NewPCG(1, 2))
			walk := 0
			var pages [][]byte
			for range values / size {
				v := make([]uint64, size)
				for i := range v {
					walk += r.IntN(101) - 50
					v[i] = math.Float64bits(float64(walk) / 100)
				}
				if dense {
					pages = append(pages, AppendDenseFloats(nil, v))
				} else {
					pages = append(pages, AppendFloats(nil, v))
				}
			}
			b.Run(fmt.Sprintf("%d/dense=%v", size, dense), func(b *testing.B) {
				var out []uint64
				var err error
				for b.Loop() {
					for _, p := range pages {
						if out, err = DecodeFloats(out[:0], p, size); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size*len(pages)), "ns/value")
				b.ReportMetric(float64(len(pages[0]))/float64(size), "B/value")
			})
		}
	}
}
