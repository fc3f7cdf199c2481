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
	for _, size := range []int{1024, 4096, values} {
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
				perValue(b, size*len(pages), func() {
					for _, p := range pages {
						if out, err = DecodeFloats(out[:0], p, size); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.ReportMetric(float64(len(pages[0]))/float64(size), "B/value")
			})
			b.Run(fmt.Sprintf("%d/dense=%v/hours", size, dense), func(b *testing.B) { benchHours(b, pages, size) })
		}
	}
}

// benchHours decodes an hour from random places on, as a chart does.
func benchHours(b *testing.B, pages [][]byte, size int) {
	const hour, starts = 3600, 64
	r := rand.New(rand.NewPCG(3, 4))
	var out []uint64
	perValue(b, hour*starts, func() {
		for range starts {
			from := r.IntN(size*len(pages) - hour)
			out = out[:0]
			for to := from + hour; from < to; {
				page, at := from/size, from%size
				end := min(size, at+to-from)
				var err error
				if out, err = DecodeFloatsRange(out, pages[page], size, at, end); err != nil {
					b.Fatal(err)
				}
				from += end - at
			}
		}
	})
}
