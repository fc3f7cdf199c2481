package load

import (
	"math"
	"time"
)

// histogram counts durations in steps of 5 %, from 1 µs to about 20 min.
type histogram struct {
	counts [430]uint64
	total  uint64
	max    time.Duration
}

const stepRatio = 1.05

func (h *histogram) add(d time.Duration) {
	i := 0
	if micros := float64(d) / float64(time.Microsecond); micros > 1 {
		i = min(len(h.counts)-1, int(math.Ceil(math.Log(micros)/math.Log(stepRatio))))
	}
	h.counts[i]++
	h.total++
	h.max = max(h.max, d)
}

// quantile returns the upper end of the step that holds quantile q, at most the maximum, in milliseconds.
func (h *histogram) quantile(q float64) float64 {
	rank := uint64(math.Ceil(q * float64(h.total)))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank && seen > 0 {
			return min(math.Pow(stepRatio, float64(i))/1000, milliseconds(h.max))
		}
	}
	return 0
}

func (h *histogram) latency() Latency {
	return Latency{P50: h.quantile(0.5), P99: h.quantile(0.99), Max: milliseconds(h.max)}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
