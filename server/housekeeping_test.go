package server

import (
	"testing"
	"time"
)

// TestOverrideRetention leaves each item its class, whose retention is the same everywhere.
func TestOverrideRetention(t *testing.T) {
	for _, test := range []struct{ history, trends time.Duration }{{0, 0}, {31 * day, 0}, {0, 400 * day}, {31 * day, 400 * day}} {
		was := retentionClasses()
		classes := overrideRetention(was, test.history, test.trends)
		for i, c := range classes {
			want := was[i]
			if test.history > 0 {
				want.History = test.history
			}
			if test.trends > 0 {
				want.Trends = test.trends
			}
			if c != want {
				t.Errorf("%v: class %d is %v, expected %v", test, i, c, want)
			}
			if a, b := classOf(was, was[i].History, was[i].Trends), uint8(i); a != b && was[i] != (retentionClass{}) {
				t.Errorf("class %d is found as %d", b, a)
			}
		}
	}
}
