// Package schedule reads Zabbix's update intervals and says when an item is due.
package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule is an item's update interval in Zabbix's notation: a delay, and after it, parted by ';', flexible intervals
// ("10s/1-5,09:00-18:00") and scheduling intervals ("wd1-5h9-18m/15").
type Schedule struct {
	delay    time.Duration // zero: at the times only
	flexible []flexible
	times    []timetable
}

// flexible is another delay in a weekly period.
type flexible struct {
	delay time.Duration
	period
}

// period is part of a week: days 1 (Monday) to 7, and seconds of the day, to the end exclusive.
type period struct{ firstDay, lastDay, from, to int }

// timetable is a scheduling interval: which days of the month and week, hours, minutes and seconds.
type timetable struct{ monthDays, weekDays, hours, minutes, seconds set }

// set is a set of small numbers.
type set uint64

func (s set) has(i int) bool { return s&(1<<i) != 0 }

// MaxDelay bounds a delay, as in Zabbix: a day.
const MaxDelay = 24 * time.Hour

// ErrZero is of an interval that can be read and is never due, as that of items which are sent to the server.
var ErrZero = errors.New("it is zero")

// Parse reads an interval. Anything else than the three forms is an error that names the part.
func Parse(text string) (s Schedule, err error) {
	parts := strings.Split(text, ";")
	if len(parts) > 64 {
		return s, fmt.Errorf("interval: %d parts; at most 64 are read", len(parts))
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if i == 0 && part[0] >= '0' && part[0] <= '9' && !strings.Contains(part, "/") {
			if s.delay, err = parseDelay(part); err != nil {
				return s, err
			}
			continue
		}
		if part[0] >= '0' && part[0] <= '9' {
			f, err := parseFlexible(part)
			if err != nil {
				return s, err
			}
			s.flexible = append(s.flexible, f)
			continue
		}
		t, err := parseTimetable(part)
		if err != nil {
			return s, err
		}
		s.times = append(s.times, t)
	}
	if s.delay == 0 && len(s.flexible) == 0 && len(s.times) == 0 {
		return s, fmt.Errorf("interval %q: %w", text, ErrZero)
	}
	return s, nil
}

// parseDelay reads "30", "30s", "5m", "1h", "1d", "1w".
func parseDelay(text string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	unit := time.Second
	digits := text
	if text != "" {
		if u, ok := units[text[len(text)-1]]; ok {
			unit, digits = u, text[:len(text)-1]
		}
	}
	v, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || time.Duration(v) > MaxDelay/unit {
		return 0, fmt.Errorf("interval %q: expected seconds, or a number with s, m, h or d, up to one day", text)
	}
	return time.Duration(v) * unit, nil
}

func parseFlexible(text string) (f flexible, err error) {
	delay, rest, ok := strings.Cut(text, "/")
	if !ok {
		return f, fmt.Errorf("interval %q: expected delay/period", text)
	}
	if f.delay, err = parseDelay(delay); err != nil {
		return f, err
	}
	days, hours, ok := strings.Cut(rest, ",")
	from, to, okHours := strings.Cut(hours, "-")
	if !ok || !okHours {
		return f, fmt.Errorf("interval %q: expected days,hh:mm-hh:mm after the slash", text)
	}
	if f.firstDay, f.lastDay, err = parseRange(days, 1, 7); err != nil {
		return f, fmt.Errorf("interval %q: days: %w", text, err)
	}
	if f.from, err = parseClock(from); err == nil {
		f.to, err = parseClock(to)
	}
	if err != nil || f.from >= f.to {
		return f, fmt.Errorf("interval %q: expected a period from an earlier to a later time of day", text)
	}
	return f, nil
}

func parseClock(text string) (int, error) {
	hour, minute, ok := strings.Cut(text, ":")
	h, errHour := strconv.ParseUint(hour, 10, 8)
	m, errMinute := strconv.ParseUint(minute, 10, 8)
	if !ok || errHour != nil || errMinute != nil || h > 24 || m > 59 || h == 24 && m > 0 {
		return 0, fmt.Errorf("time %q: expected hh:mm", text)
	}
	return int(h*3600 + m*60), nil
}

func parseRange(text string, low, high int) (first, last int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	first, err = strconv.Atoi(from)
	last = first
	if err == nil && isRange {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < low || last > high || last < first {
		return 0, 0, fmt.Errorf("%q: expected numbers from %d to %d", text, low, high)
	}
	return first, last, nil
}

// parseTimetable reads md, wd, h, m and s, each followed by ranges with steps: "md1-7wd1h8,20m/30".
func parseTimetable(text string) (t timetable, err error) {
	fields := []struct {
		name      string
		low, high int
		set       *set
	}{
		{"md", 1, 31, &t.monthDays},
		{"wd", 1, 7, &t.weekDays},
		{"h", 0, 23, &t.hours},
		{"m", 0, 59, &t.minutes},
		{"s", 0, 59, &t.seconds},
	}
	rest := text
	finest := -1
	for i, f := range fields {
		tail, ok := strings.CutPrefix(rest, f.name)
		if !ok || f.name == "m" && strings.HasPrefix(rest, "md") {
			continue
		}
		end := strings.IndexAny(tail, "mwhs")
		if end < 0 {
			end = len(tail)
		}
		if *f.set, err = parseSet(tail[:end], f.low, f.high); err != nil {
			return t, fmt.Errorf("interval %q: %s: %w", text, f.name, err)
		}
		rest, finest = tail[end:], i
	}
	if rest != "" || finest < 0 {
		return t, fmt.Errorf("interval %q: expected md, wd, h, m and s in this order, each with numbers", text)
	}
	for i, f := range fields {
		switch {
		case *f.set != 0:
		case i < finest || i < 2: // Not said: every one.
			for v := f.low; v <= f.high; v++ {
				*f.set |= 1 << v
			}
		default: // Finer than said: at the start.
			*f.set = 1
		}
	}
	return t, nil
}

func parseSet(text string, low, high int) (s set, err error) {
	for _, part := range strings.Split(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > high {
				return 0, fmt.Errorf("step %q: expected a number from 1 to %d", stepText, high)
			}
		}
		first, last := low, high
		if span != "" || !stepped {
			if first, last, err = parseRange(span, low, high); err != nil {
				return 0, err
			}
		}
		for v := first; v <= last; v += step {
			s |= 1 << v
		}
	}
	return s, nil
}

func (p period) holds(t time.Time) bool {
	day := (int(t.Weekday())+6)%7 + 1
	second := t.Hour()*3600 + t.Minute()*60 + t.Second()
	return day >= p.firstDay && day <= p.lastDay && second >= p.from && second < p.to
}

// ends is when the period that holds t is over.
func (p period) ends(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, p.to, 0, t.Location())
}

// starts is the next start of the period after t.
func (p period) starts(t time.Time) time.Time {
	for i := range 9 {
		start := time.Date(t.Year(), t.Month(), t.Day()+i, 0, 0, p.from, 0, t.Location())
		if start.After(t) && p.holds(start) {
			return start
		}
	}
	return t.Add(MaxDelay)
}

// Every is a schedule of a delay only; it must be above zero.
func Every(delay time.Duration) Schedule { return Schedule{delay: delay} }

// TimesOnly reports whether the schedule has no delay of its own, but times or periods.
func (s *Schedule) TimesOnly() bool { return s.delay == 0 }

// Next is the first moment after t at which the item is due: multiples of the delay since 1970 moved by phase, and the
// times. A phase of its own for each of many items spreads them over their delay; zero or more. A schedule without a moment
// in the coming days gives one MaxDelay later, at which it is asked again; due says so.
func (s *Schedule) Next(t time.Time, phase time.Duration) (at time.Time, due bool) {
	at, due = s.nextDelay(t, phase)
	for i := range s.times {
		if next, ok := s.times[i].next(t); ok && (!due || next.Before(at)) {
			at, due = next, true
		}
	}
	return at, due
}

func (s *Schedule) nextDelay(t time.Time, phase time.Duration) (time.Time, bool) {
	// A change of delay lies at the start or the end of a period; there are few, and each step passes one.
	for range 32 {
		delay, until := s.delayAt(t)
		if delay > 0 {
			shift := phase % delay
			if next := t.Add(-shift).Truncate(delay).Add(delay + shift); until.IsZero() || next.Before(until) {
				return next, true
			}
		}
		if until.IsZero() {
			break
		}
		if later, _ := s.delayAt(until); later > 0 {
			return until.Add(phase % later), true
		}
		t = until
	}
	return t.Add(MaxDelay), false
}

// delayAt is the delay at t, the shortest of the flexible ones that hold or else the item's own, and until when that
// is so; zero for always.
func (s *Schedule) delayAt(t time.Time) (delay time.Duration, until time.Time) {
	inside := false
	for _, f := range s.flexible {
		edge := f.starts(t)
		if f.holds(t) {
			edge = f.ends(t)
			if !inside || f.delay < delay {
				delay = f.delay
			}
			inside = true
		}
		if until.IsZero() || edge.Before(until) {
			until = edge
		}
	}
	if !inside {
		delay = s.delay
	}
	return delay, until
}

// next is the first moment after t; false when there is none within a year.
func (t *timetable) next(after time.Time) (time.Time, bool) {
	start := after.Truncate(time.Second).Add(time.Second)
	for i := range 367 {
		day := time.Date(start.Year(), start.Month(), start.Day()+i, 0, 0, 0, 0, start.Location())
		weekday := (int(day.Weekday())+6)%7 + 1
		if !t.monthDays.has(day.Day()) || !t.weekDays.has(weekday) {
			continue
		}
		if at, ok := t.nextOn(day, start); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// nextOn is the first moment of a day that is not before start.
func (t *timetable) nextOn(day, start time.Time) (time.Time, bool) {
	for h := range 24 {
		if !t.hours.has(h) {
			continue
		}
		for m := range 60 {
			if !t.minutes.has(m) {
				continue
			}
			if day.Add(time.Duration(h+2) * time.Hour).Before(start) {
				break // Far before it, also where the clock changes.
			}
			for s := range 60 {
				at := time.Date(day.Year(), day.Month(), day.Day(), h, m, s, 0, day.Location())
				if t.seconds.has(s) && !at.Before(start) {
					return at, true
				}
			}
		}
	}
	return time.Time{}, false
}
