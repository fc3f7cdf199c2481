package agent

import (
	"testing"
	"time"
)

func TestNextMoment(t *testing.T) {
	for _, c := range []struct{ at, interval, want int64 }{
		{0, 1e9, 1e9}, {1, 1e9, 1e9}, {1e9, 1e9, 2e9}, {1e9 - 1, 1e9, 1e9}, {12_345_678_901, 100e6, 12_400_000_000},
	} {
		if got := nextMoment(time.Unix(0, c.at), time.Duration(c.interval)).UnixNano(); got != c.want {
			t.Errorf("after %d by %d: %d; expected %d", c.at, c.interval, got, c.want)
		}
	}
}

func TestStamp(t *testing.T) {
	moment := time.Unix(1000, 0)
	for _, c := range []struct {
		late time.Duration
		own  bool
	}{{0, false}, {4 * time.Millisecond, false}, {-4 * time.Millisecond, false}, {6 * time.Millisecond, true}, {3 * time.Second, true}, {-time.Hour, true}} {
		now := moment.Add(c.late)
		want := moment
		if c.own {
			want = now
		}
		if got := stamp(now, moment, time.Second); !got.Equal(want) {
			t.Errorf("%s late: %s; expected %s", c.late, got, want)
		}
	}
}
