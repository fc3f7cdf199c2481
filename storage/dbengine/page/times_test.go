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
		want int // bytes for 1,024 times, in all
		next func(i int, before int64) int64
	}{
		{"regular", 17, func(i int, _ int64) int64 { return start/second*second + int64(i)*second }},
		{"two gaps", 45, func(i int, before int64) int64 {
			if i == 100 || i == 700 {
				return before + 17*second
			}
			return before + second
		}},
		{"three intervals", 45, func(i int, before int64) int64 {
			return before + []int64{1, 1, 10, 60}[i/256]*second
		}},
		{"jitter in ms", 840, func(i int, _ int64) int64 {
			return start/second*second + int64(i)*second + int64(r.IntN(50))*1e6
		}},
		{"jitter in µs", 2020, func(i int, _ int64) int64 {
			return start/1000*1000 + int64(i)*second + int64(r.IntN(30_000))*1e3
		}},
		{"drift in ns", 1900, func(_ int, before int64) int64 { return before + second + int64(r.IntN(10_000)) }},
	} {
		at := make([]int64, 1024)
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
