package expr

import (
	"strconv"
	"strings"
	"time"

	"tidemark/model"
)

// MaxSpan is the longest period and time shift that a function may ask for.
const MaxSpan = 5 * 366 * 24 * time.Hour

// MaxRetention is the longest that Zabbix lets values, trends and lost resources stay: 25 years.
const MaxRetention = 25 * 365 * 24 * time.Hour

// MaxCount is the largest #N that a function may ask for.
const MaxCount = 1 << 20

// Window is the period of a function: the last Span of time or the last Count values before a moment.
type Window struct {
	// Span is the length of the period; zero when Count is given.
	Span time.Duration
	// Count is the number of values (#N); zero when Span is given.
	Count int
	// Back moves the end of the period into the past.
	Back time.Duration
	// calendar is the period of a function of trends in months or years, which differ in length; its unit is zero for all others.
	calendar shift
	// aligned are shifts with calendar units, applied in order instead of Back.
	aligned []shift
	// shift tells windows apart that differ only in their time shift.
	shift uint64
}

// shift is one step of a time shift: to the start of a unit, or by a number of units.
type shift struct {
	unit  byte
	count int64 // zero: to the start of the unit
}

// Range is a window at a moment.
type Range struct {
	// From and To are half-open, Unix nanoseconds. From does not count when Count is given.
	From, To int64
	// Count asks for the newest Count values before To; zero asks for all values from From on.
	Count int
	// Span is the nominal length of a time window, and Shift stands for its time shift. Ranges that agree in Span, Count and
	// Shift are one window that slides.
	Span  time.Duration
	Shift uint64
}

// At returns the range of the window that ends at a moment. A window of n seconds holds the values behind the moment n
// seconds before its end, to the nanosecond, as Zabbix 6.0 counts them (test/conformance).
func (w *Window) At(at int64, zone *time.Location) Range {
	end := at - int64(w.Back)
	if w.aligned != nil {
		end = alignedEnd(w.aligned, at, zone)
	}
	r := Range{To: end + 1, Count: w.Count, Span: w.Span, Shift: w.shift}
	if w.Count == 0 {
		r.From = end - int64(w.Span) + 1
	}
	return r
}

// floorSecond rounds down to a whole second, before 1970 too.
func floorSecond(at int64) int64 {
	rest := at % int64(time.Second)
	if rest < 0 {
		rest += int64(time.Second)
	}
	return at - rest
}

// trendRange returns the range of whole hours of a function of trends, back seasons ago.
func (w *Window) trendRange(at int64, zone *time.Location, season byte, back int) model.TimeRange {
	end := time.Unix(0, alignedEnd(w.aligned, at, zone)).In(zone)
	if back > 0 {
		end = move(end, season, -back)
	}
	from := end.Add(-w.Span)
	switch {
	case w.calendar.unit != 0:
		from = move(end, w.calendar.unit, -int(w.calendar.count))
	case w.Span%(24*time.Hour) == 0:
		// Days, also those on which summer time begins or ends.
		from = end.AddDate(0, 0, -int(w.Span/(24*time.Hour)))
	}
	return model.TimeRange{From: from.UnixNano(), To: end.UnixNano()}
}

// hourly reports whether the time shift leads to the start of an hour.
func (w *Window) hourly() bool {
	whole := false
	for _, s := range w.aligned {
		switch {
		case s.count == 0:
			whole = s.unit != 'm'
		case s.unit == 's' || s.unit == 'm':
			whole = whole && s.count*int64(unitLength(s.unit))%int64(time.Hour) == 0
		}
	}
	return whole
}

// Reach returns how far before the moment of evaluation the window may begin, rounded up for calendar units.
func (w *Window) Reach() time.Duration {
	back := w.Back
	for _, s := range w.aligned {
		back += unitLength(s.unit) * time.Duration(max(1, -s.count))
	}
	return w.Span + back
}

// Shifted reports whether the window ends before the moment of evaluation.
func (w *Window) Shifted() bool { return w.Back != 0 || w.aligned != nil }

// unitLength is the longest length of a unit.
func unitLength(unit byte) time.Duration {
	switch unit {
	case 's':
		return time.Second
	case 'm':
		return time.Minute
	case 'h':
		return time.Hour
	case 'd':
		return 25 * time.Hour // the day on which summer time ends
	case 'w':
		return 7*24*time.Hour + time.Hour
	case 'M':
		return 31*24*time.Hour + time.Hour
	}
	return 366*24*time.Hour + time.Hour
}

// alignedEnd applies calendar shifts to at.
func alignedEnd(shifts []shift, at int64, zone *time.Location) int64 {
	t := time.Unix(0, at).In(zone)
	for _, s := range shifts {
		if s.count == 0 {
			t = startOf(t, s.unit)
			continue
		}
		t = move(t, s.unit, int(s.count))
	}
	return t.UnixNano()
}

// startOf returns the start of the unit that holds t; weeks start on Monday.
func startOf(t time.Time, unit byte) time.Time {
	year, month, day := t.Date()
	switch unit {
	case 'm':
		return t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case 'h':
		return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case 'd':
		return time.Date(year, month, day, 0, 0, 0, 0, t.Location())
	case 'w':
		return time.Date(year, month, day-(int(t.Weekday())+6)%7, 0, 0, 0, 0, t.Location())
	case 'M':
		return time.Date(year, month, 1, 0, 0, 0, 0, t.Location())
	case 'y':
		return time.Date(year, time.January, 1, 0, 0, 0, 0, t.Location())
	}
	return t.Add(-time.Duration(t.Nanosecond()))
}

// move adds count units to t.
func move(t time.Time, unit byte, count int) time.Time {
	switch unit {
	case 'm':
		return t.Add(time.Duration(count) * time.Minute)
	case 'h':
		return t.Add(time.Duration(count) * time.Hour)
	case 'd':
		return t.AddDate(0, 0, count)
	case 'w':
		return t.AddDate(0, 0, 7*count)
	case 'M':
		return t.AddDate(0, count, 0)
	case 'y':
		return t.AddDate(count, 0, 0)
	}
	return t.Add(time.Duration(count) * time.Second)
}

// parseWindow reads [#]N[unit][:shift]. The result is "" or what was expected.
func parseWindow(text string, trends bool) (Window, string) {
	period, shiftText, shifted := strings.Cut(text, ":")
	var w Window
	if period != "" {
		if count, ok := strings.CutPrefix(period, "#"); ok {
			n, err := strconv.Atoi(count)
			if err != nil || n < 1 || n > MaxCount {
				return w, "expected a number from 1 to " + strconv.Itoa(MaxCount) + " behind #"
			}
			w.Count = n
		} else {
			span, ok := ParseDuration(period, trends)
			if !ok || span <= 0 {
				return w, "expected a period such as 30, 5m, 1h or #5"
			}
			w.Span = span
			if unit := period[len(period)-1]; unit == 'M' || unit == 'y' {
				n, _ := strconv.Atoi(period[:len(period)-1]) // ParseDuration read it
				w.calendar = shift{unit: unit, count: int64(n)}
			}
		}
	}
	if !shifted {
		return w, ""
	}
	return w, w.parseShift(shiftText)
}

// parseShift reads now, then -N[unit], +N[unit] and /unit in any number.
func (w *Window) parseShift(text string) string {
	const expected = "expected a time shift such as now-1h or now/d"
	rest, ok := strings.CutPrefix(text, "now")
	if !ok || rest == "" {
		return expected
	}
	var shifts []shift
	aligned := false
	for rest != "" {
		sign := rest[0]
		rest = rest[1:]
		if sign == '/' {
			if rest == "" || strings.IndexByte("mhdwMy", rest[0]) < 0 {
				return "expected one of the units m h d w M y behind /"
			}
			shifts = append(shifts, shift{unit: rest[0]})
			rest, aligned = rest[1:], true
			continue
		}
		digits := 0
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 40)
		if err != nil || sign != '-' && sign != '+' {
			return expected
		}
		s := shift{unit: 's', count: n}
		if rest = rest[digits:]; rest != "" && strings.IndexByte("smhdwMy", rest[0]) >= 0 {
			s.unit, rest = rest[0], rest[1:]
		}
		if n > int64(MaxSpan/unitLength(s.unit)) {
			return "expected a time shift of at most 5 years"
		}
		if sign == '-' {
			s.count = -n
		}
		if n != 0 {
			shifts = append(shifts, s)
		}
		aligned = aligned || strings.IndexByte("dwMy", s.unit) >= 0
		if len(shifts) > 8 {
			return "expected at most 8 steps in a time shift"
		}
	}
	return w.setShifts(shifts, aligned)
}

// setShifts keeps the shifts, as one duration when no unit depends on the calendar.
func (w *Window) setShifts(shifts []shift, aligned bool) string {
	w.shift = 14695981039346656037 // FNV-1a
	for _, s := range shifts {
		w.shift = (w.shift ^ uint64(s.unit)) * 1099511628211
		w.shift = (w.shift ^ uint64(s.count)) * 1099511628211
	}
	if aligned {
		w.aligned = shifts
		return ""
	}
	for _, s := range shifts {
		w.Back -= time.Duration(s.count) * unitLength(s.unit)
	}
	if w.Back < 0 {
		return "expected a time shift into the past"
	}
	return ""
}

// ParseDuration reads a number of seconds with an optional unit s m h d w, with long also M and y (of 30 and 365 days).
func ParseDuration(text string, long bool) (time.Duration, bool) {
	return parseSpan(text, long, MaxSpan)
}

// ParseRetention reads how long values are kept: a number of seconds with an optional unit s m h d w, at most MaxRetention.
func ParseRetention(text string) (time.Duration, bool) {
	return parseSpan(text, false, MaxRetention)
}

func parseSpan(text string, long bool, most time.Duration) (time.Duration, bool) {
	unit := time.Second
	if n := len(text); n > 1 && !isDigit(text[n-1]) {
		switch text[n-1] {
		case 's':
		case 'm':
			unit = time.Minute
		case 'h':
			unit = time.Hour
		case 'd':
			unit = 24 * time.Hour
		case 'w':
			unit = 7 * 24 * time.Hour
		case 'M':
			unit = 30 * 24 * time.Hour
		case 'y':
			unit = 365 * 24 * time.Hour
		default:
			return 0, false
		}
		if !long && unit > 7*24*time.Hour {
			return 0, false
		}
		text = text[:n-1]
	}
	v, err := strconv.ParseUint(text, 10, 40)
	if err != nil || v > uint64(most/unit) {
		return 0, false
	}
	return time.Duration(v) * unit, true
}
