package alert

import (
	"fmt"
	"strings"
	"time"
)

// maxPeriods bounds the periods of one text.
const maxPeriods = 50

// Periods are times of the week. The zero value is always.
type Periods struct {
	text string
	list []period
}

// period is days of the week, 1 is Monday, and minutes of the day; to is exclusive and may be 1440.
type period struct{ firstDay, lastDay, from, to int }

// Contain reports whether a moment, in its own time zone, is in one of the periods.
func (p *Periods) Contain(at time.Time) bool {
	if len(p.list) == 0 {
		return true
	}
	day, minute := int(at.Weekday()+6)%7+1, at.Hour()*60+at.Minute()
	for _, one := range p.list {
		if day >= one.firstDay && day <= one.lastDay && minute >= one.from && minute < one.to {
			return true
		}
	}
	return false
}

// UnmarshalText reads Zabbix's form: "1-5,09:00-18:00;6,10:00-16:00" (manual, "Time period syntax").
func (p *Periods) UnmarshalText(text []byte) error {
	*p = Periods{text: string(text)}
	if p.text == "" {
		return nil
	}
	parts := strings.Split(strings.TrimSuffix(p.text, ";"), ";")
	if len(parts) > maxPeriods {
		return fmt.Errorf("%d periods, expected at most %d", len(parts), maxPeriods)
	}
	for _, part := range parts {
		one, ok := parsePeriod(strings.TrimSpace(part))
		if !ok {
			return fmt.Errorf("%.60q is no period, expected days and hours, such as 1-5,09:00-18:00", part)
		}
		p.list = append(p.list, one)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Periods) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// IsZero reports whether it is always; YAML and JSON then leave it out.
func (p Periods) IsZero() bool { return p.text == "" }

func parsePeriod(text string) (period, bool) {
	var p period
	days, hours, ok := strings.Cut(text, ",")
	if !ok {
		return p, false
	}
	first, last, several := strings.Cut(days, "-")
	if !several {
		last = first
	}
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return p, false
	}
	var errs [2]error
	p.firstDay, errs[0] = parseNumber(first, 7)
	p.lastDay, errs[1] = parseNumber(last, 7)
	if errs[0] != nil || errs[1] != nil || p.firstDay < 1 || p.lastDay < p.firstDay {
		return p, false
	}
	var okFrom, okTo bool
	p.from, okFrom = parseClock(from)
	p.to, okTo = parseClock(to)
	return p, okFrom && okTo && p.from < p.to
}

// parseClock reads "9:05" up to "24:00" as minutes.
func parseClock(text string) (int, bool) {
	hour, minute, ok := strings.Cut(text, ":")
	if !ok {
		return 0, false
	}
	h, errHour := parseNumber(hour, 24)
	m, errMinute := parseNumber(minute, 59)
	if errHour != nil || errMinute != nil || len(minute) != 2 || h == 24 && m != 0 {
		return 0, false
	}
	return h*60 + m, true
}
