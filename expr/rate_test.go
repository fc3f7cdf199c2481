package expr

import (
	"math"
	"testing"
	"time"
)

// TestRate has the values with which Zabbix 6.0.14 found what is expected here.
func TestRate(t *testing.T) {
	f := func(want float64, span time.Duration, now int64, pairs ...float64) {
		t.Helper()
		var at []int64
		var vs []float64
		for i := 0; i < len(pairs); i += 2 {
			at, vs = append(at, int64(pairs[i]*1e9)), append(vs, pairs[i+1])
		}
		got, code := rate(at, vs, Range{From: now - int64(span) + 1, To: now + 1, Span: span})
		if code != FailNone || math.Abs(got.number-want) > 1e-6 {
			t.Errorf("rate of %v is %v (%d), want %v", pairs, got.number, code, want)
		}
	}
	// The counter would be zero nearer than 1.1 times the distance of the values: it is extended to there, not by half the distance.
	f(72*(14.665+14.665*76/72)/14.665/600, 10*time.Minute, 16_962_000_000, 2.297, 76, 16.962, 72)
	// It would be zero further away: half the distance.
	f(1*(10+5)/10.0/600, 10*time.Minute, 1_000_000_000_000, 990, 50, 1000, 51)
	// Near both ends of the period: to the ends.
	f(10*(50+9+1)/50.0/60, time.Minute, 1_000_000_000_000, 949, 50, 999, 60)
}
