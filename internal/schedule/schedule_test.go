package schedule

import (
	"testing"
	"time"
)

// at reads a moment of the week that begins on Monday, 6 January 2025.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.ParseInLocation("2006-01-02 15:04:05", text, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchedule(t *testing.T) {
	f := func(text, from string, want ...string) {
		t.Helper()
		s, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			return
		}
		moment := at(t, from)
		for _, w := range want {
			next, due := s.Next(moment, 0)
			if w == "" {
				if due {
					t.Errorf("%q after %s: due at %s; expected never", text, moment, next)
				}
				return
			}
			if !due || !next.Equal(at(t, w)) {
				t.Errorf("%q after %s: %s, %v; expected %s", text, moment, next, due, w)
			}
			moment = next
		}
	}
	// Simple intervals are aligned.
	f("30", "2025-01-06 10:00:07", "2025-01-06 10:00:30", "2025-01-06 10:01:00")
	f("1s", "2025-01-06 10:00:07", "2025-01-06 10:00:08")
	f("5m", "2025-01-06 10:00:07", "2025-01-06 10:05:00")
	f("1h", "2025-01-06 10:00:00", "2025-01-06 11:00:00")
	f("1d", "2025-01-06 10:00:00", "2025-01-07 00:00:00")
	// Flexible ones change the delay in a period, or stop the checks.
	f("1m;10s/1-5,09:00-18:00", "2025-01-06 08:59:10", "2025-01-06 09:00:00", "2025-01-06 09:00:10", "2025-01-06 09:00:20")
	f("1m;10s/1-5,09:00-18:00", "2025-01-06 17:59:45", "2025-01-06 17:59:50", "2025-01-06 18:00:00", "2025-01-06 18:01:00")
	f("1m;10s/1-5,09:00-18:00", "2025-01-11 10:00:00", "2025-01-11 10:01:00")
	f("1m;0/6-7,00:00-24:00", "2025-01-10 23:59:30", "2025-01-13 00:00:00", "2025-01-13 00:01:00")
	f("0;30/2,10:00-10:01", "2025-01-06 10:00:00", "2025-01-07 10:00:00", "2025-01-07 10:00:30", "2025-01-14 10:00:00")
	f("60;50/1-7,00:00-24:00;20/1,10:00-11:00", "2025-01-06 10:10:00", "2025-01-06 10:10:20")
	// Scheduling intervals.
	f("0;m/15", "2025-01-06 10:07:00", "2025-01-06 10:15:00", "2025-01-06 10:30:00", "2025-01-06 10:45:00", "2025-01-06 11:00:00")
	f("0;h9", "2025-01-06 09:00:00", "2025-01-07 09:00:00")
	f("0;wd1-5h9-17m30", "2025-01-10 17:30:00", "2025-01-13 09:30:00")
	f("0;md1h0m0", "2025-01-06 09:00:00", "2025-02-01 00:00:00", "2025-03-01 00:00:00")
	f("0;md31", "2025-01-31 00:00:00", "2025-03-31 00:00:00")
	f("0;h9,21m5s10", "2025-01-06 09:05:10", "2025-01-06 21:05:10")
	f("0;s20-40/10", "2025-01-06 09:00:30", "2025-01-06 09:00:40", "2025-01-06 09:01:20")
	f("0;md30wd7", "2025-01-06 00:00:00", "2025-03-30 00:00:00")
	f("1h;m30", "2025-01-06 09:10:00", "2025-01-06 09:30:00", "2025-01-06 10:00:00")
	f("0;m/15;wd1", "2025-01-06 00:00:00", "2025-01-06 00:15:00")
	f("0;0/1-7,00:00-24:00", "2025-01-06 09:00:00", "")
}

func TestSchedule_refuses(t *testing.T) {
	for _, text := range []string{
		"", "0", "0s", "soon", "-5", "1y", "2d", "99999999999", "5/1", "5/1-8,00:00-24:00", "5/1,10:00-09:00", "5/1,10-11",
		"5/1,00:00-24:01", "5/0,00:00-24:00", "0;x5", "0;h24", "0;m60", "0;md0", "0;md32", "0;wd8", "0;h", "0;m5h3", "0;m1-", "0;m5-1",
		"0;m/0", "0;m/x", "0;h9h9", "30;30", "1;2;3",
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("Parse takes %q as %+v", text, s)
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{"30s", "1m;10s/1-5,09:00-18:00", "0;wd1-5h9-17/2m/15s10,20", "0;md31", "1h;0/6-7,00:00-24:00"} {
		f.Add(seed, int64(1_736_150_400))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		moment := time.Unix(seconds&(1<<33-1), 0).UTC()
		if next, _ := s.Next(moment, time.Duration(seconds&(1<<40-1))); !next.After(moment) {
			t.Fatalf("%q after %s: %s", text, moment, next)
		}
	})
}

// Items of the same delay are due all over it, each always at its own phase.
func TestNext_phase(t *testing.T) {
	f := func(text string, phase time.Duration, from string, want ...string) {
		t.Helper()
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		moment := at(t, from)
		for _, w := range want {
			next, due := s.Next(moment, phase)
			if !due || !next.Equal(at(t, w)) {
				t.Errorf("%q after %s: %s, %v; expected %s", text, moment, next, due, w)
			}
			moment = next
		}
	}
	f("1m", 17*time.Second, "2025-01-06 10:00:07", "2025-01-06 10:00:17", "2025-01-06 10:01:17")
	f("1m", 77*time.Second, "2025-01-06 10:00:20", "2025-01-06 10:01:17")
	f("1h;m30", 10*time.Minute, "2025-01-06 09:10:00", "2025-01-06 09:30:00", "2025-01-06 10:10:00")
	f("1m;10s/1-5,09:00-18:00", 25*time.Second, "2025-01-06 08:58:30", "2025-01-06 08:59:25", "2025-01-06 09:00:05", "2025-01-06 09:00:15")
}
