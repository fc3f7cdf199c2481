package config

import (
	"slices"
	"testing"
	"time"
)

func TestParseMinimumAges(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string][]MinimumAge{
		"":                    nil,
		"90d=60d":             {{90 * day, 60 * day}},
		" 365d = 180d,7d=1w ": {{365 * day, 180 * day}, {7 * day, 7 * day}},
	} {
		if got, err := ParseMinimumAges(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v, expected %v", text, got, err, want)
		}
	}
	for _, text := range []string{"90d", "90d=", "=1d", "1d=2d", "0=0", "x=y", "7d=1d,7d=2d", ",", "1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h,1d=1h"} {
		if got, err := ParseMinimumAges(text); err == nil {
			t.Errorf("%q: %v, expected an error", text, got)
		}
	}
}
