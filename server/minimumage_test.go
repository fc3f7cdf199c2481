package server

import (
	"testing"
	"time"

	"tidemark/config"
)

func TestOptions_minimumAge(t *testing.T) {
	o := Options{MinimumAges: []config.MinimumAge{{History: 365 * day, Age: 180 * day}, {History: 31 * day, Age: 20 * day}}}
	for history, want := range map[time.Duration]time.Duration{
		day: 0, 31 * day: 20 * day, 90 * day: 20 * day, 365 * day: 180 * day, 5 * 365 * day: 180 * day, 0: 180 * day,
	} {
		if got := o.minimumAge(history); got != want {
			t.Errorf("history of %v: %v, expected %v", history, got, want)
		}
	}
}
