package page

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTimes_size(t *testing.T) {
	const second = int64(1e9)
	start := int64(1_796_022_383_520_576_200)
	r := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		name string
		want int // bytes in all
		// count is the number of times; 1,024 if it is zero.
		count int
		next  func(i int, before int64) int64
	}{
		{"regular", 17, 0, func(i int, _ int64) int64 { return start/second*second + int64(i)*second }},
		{"two gaps", 45, 0, func(i int, before int64) int64 {
			if i == 100 || i == 700 {
				return before + 17*second
			}
			return before + second
		}},
		{"three intervals", 45, 0, func(i int, before int64) int64 {
			return before + []int64{1, 1, 10, 60}[i/256]*second
		}},
		{"a day with a gap", 60, 86_400, func(i int, before int64) int64 {
			if i == 40_000 {
				return before + 600*second
			}
			return before + second
		}},
		{"jitter in ms", 840, 0, func(i int, _ int64) int64 {
			return start/second*second + int64(i)*second + int64(r.IntN(50))*1e6
		}},
		{"jitter in µs", 2020, 0, func(i int, _ int64) int64 {
			return start/1000*1000 + int64(i)*second + int64(r.IntN(30_000))*1e3
		}},
		{"drift in ns", 1900, 0, func(_ int, before int64) int64 { return before + second + int64(r.IntN(10_000)) }},
	} {
		at := make([]int64, max(1024, test.count))
		before := start
		for i := range at {
			before = test.next(i, before)
			at[i] = before
		}
		b := AppendTimes(nil, at)
		got, err := DecodeTimes(nil, b, len(at))
		if err != nil || !slices.Equal(got, at) {
			t.Fatalf("%s: did not come back: %v", test.name, err)
		}
		t.Logf("%s: %d B %s", test.name, len(b), describe(b))
		if len(b) > test.want {
			t.Errorf("%s: %d bytes; expected at most %d", test.name, len(b), test.want)
		}
	}
}
