package config

import (
	"fmt"
	"strings"
	"time"
)

// MinimumAge is how long values of items whose history is kept at least so long shall be there in any case.
type MinimumAge struct{ History, Age time.Duration }

// maxMinimumAges bounds storage.minimum_ages: there are no more retention classes.
const maxMinimumAges = 16

// ParseMinimumAges reads "90d=60d, 365d=180d": pairs of a history and a minimum age.
func ParseMinimumAges(text string) ([]MinimumAge, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > maxMinimumAges {
		return nil, fmt.Errorf("found %d minimum ages; expected at most %d", len(parts), maxMinimumAges)
	}
	var ages []MinimumAge
	for _, part := range parts {
		history, age, both := strings.Cut(part, "=")
		h, err := ParseDuration(strings.TrimSpace(history))
		a, err2 := ParseDuration(strings.TrimSpace(age))
		switch {
		case !both || err != nil || err2 != nil || h <= 0 || a <= 0:
			return nil, fmt.Errorf("found %.60q; expected HISTORY=AGE, such as 90d=60d: values of items whose history is kept 90 days or longer shall be there for 60", part)
		case a > h:
			return nil, fmt.Errorf("found %.60q; expected an age no longer than the history", part)
		}
		for _, other := range ages {
			if other.History == h {
				return nil, fmt.Errorf("found %.60q; there is an age for that history already", part)
			}
		}
		ages = append(ages, MinimumAge{h, a})
	}
	return ages, nil
}

func checkAges(text string) error {
	_, err := ParseMinimumAges(text)
	return err
}
