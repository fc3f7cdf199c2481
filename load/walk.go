package load

import (
	"math"
	"strconv"
	"time"
)

// walkMax is the largest value of a walk, in hundredths; walks go from 0 to 10,000.
const walkMax = 1_000_000

// Walk makes the values of one item: a random walk between 0 and 10,000 in steps of up to 1, with two decimals.
// The same host and item always give the same values.
type Walk struct {
	state uint64
	value int32
}

// NewWalk returns the walk of item i of host h, both from 0.
func NewWalk(h, i int) Walk {
	seed := mix(uint64(h)<<32 | uint64(uint32(i)))
	return Walk{state: seed, value: int32(seed % walkMax)}
}

// Next returns the next value in hundredths.
func (w *Walk) Next() int32 {
	w.state = w.state*6364136223846793005 + 1442695040888963407
	w.value += int32(w.state>>33)%201 - 100
	if w.value < 0 {
		w.value = -w.value
	}
	if w.value > walkMax {
		w.value = 2*walkMax - w.value
	}
	return w.value
}

// AppendValue appends a value of a walk as it is sent: "12.34".
func AppendValue(dst []byte, hundredths int32) []byte {
	dst = strconv.AppendInt(dst, int64(hundredths/100), 10)
	cents := hundredths % 100
	return append(dst, '.', byte('0'+cents/10), byte('0'+cents%10))
}

// AppendState appends the text that an item of states sends for a value of its walk: "state 0" to "state 9".
func AppendState(dst []byte, hundredths int32) []byte {
	return append(append(dst, "state "...), byte('0'+min(9, hundredths/(walkMax/10))))
}

// IsString says whether item i, from 0, sends texts: the given share of all items, evenly among them.
func IsString(i int, share float64) bool {
	return math.Floor(float64(i+1)*share) > math.Floor(float64(i)*share)
}

// mix spreads the bits of x (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Due is one value that is due: which item, from 0, and when, Unix nanoseconds.
type Due struct {
	Item int
	At   int64
}

// Schedule says which items of a host are due when. Its order is the order of sending.
type Schedule struct {
	items int
	start int64
	// periodNanos and phase are for a rate: value n is due at start + (n+phase)·period.
	periodNanos, phase float64
	n                  uint64
	// next and interval are for intervals: per item.
	next, interval []int64
}

// NewSchedule returns the schedule of host h, from 0, for checked options with a Start.
func NewSchedule(o *Options, h int) *Schedule {
	s := &Schedule{items: o.Items, start: o.Start.UnixNano()}
	if o.NVPS > 0 {
		s.periodNanos = float64(o.Hosts) * 1e9 / o.NVPS
		s.phase = float64(h) / float64(o.Hosts)
		return s
	}
	s.next, s.interval = make([]int64, o.Items), make([]int64, o.Items)
	for i := range s.next {
		seed := mix(^(uint64(h)<<32 | uint64(uint32(i))))
		s.interval[i] = int64(o.IntervalMin) + int64(seed%uint64(o.IntervalMax-o.IntervalMin+1))
		s.next[i] = s.start + int64(mix(seed)%uint64(s.interval[i]))
	}
	return s
}

// Take appends what is due before the given time, Unix nanoseconds, up to limit values, and moves on.
func (s *Schedule) Take(dst []Due, before int64, limit int) []Due {
	if s.next != nil {
		return s.takeIntervals(dst, before, limit)
	}
	for len(dst) < limit {
		at := s.start + int64(math.Round((float64(s.n)+s.phase)*s.periodNanos))
		if at >= before {
			break
		}
		dst = append(dst, Due{int(s.n % uint64(s.items)), at})
		s.n++
	}
	return dst
}

// takeIntervals goes over the items in order, so that a full batch leaves the later ones for the next.
func (s *Schedule) takeIntervals(dst []Due, before int64, limit int) []Due {
	for i := range s.next {
		for s.next[i] < before {
			if len(dst) == limit {
				return dst
			}
			dst = append(dst, Due{i, s.next[i]})
			s.next[i] += s.interval[i]
		}
	}
	return dst
}

// tick is how often a host looks for due values.
const tick = time.Second
