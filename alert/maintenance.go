package alert

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark/model"
)

// Maintenance is a time in which the problems of some hosts are suppressed.
type Maintenance struct {
	Name string `yaml:"name" json:"name"`
	// Description is for people only.
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	// From and To bound all periods: local times "2026-01-31T22:00", To exclusive; empty is open.
	From LocalTime `yaml:"from,omitempty" json:"from,omitzero"`
	To   LocalTime `yaml:"to,omitempty" json:"to,omitzero"`
	// NoData says that no values are collected meanwhile.
	NoData bool `yaml:"no_data,omitempty" json:"no_data,omitempty"`
	// Hosts by technical name and Groups with all below them; at least one of the two lists.
	Hosts  []string `yaml:"hosts,omitempty" json:"hosts,omitempty"`
	Groups []string `yaml:"groups,omitempty" json:"groups,omitempty"`
	// Tags, if any, must be on the problem: all of them, or one with AnyTag. They have no meaning with NoData.
	Tags    []TagFilter `yaml:"tags,omitempty" json:"tags,omitempty"`
	AnyTag  bool        `yaml:"any_tag,omitempty" json:"any_tag,omitempty"`
	Periods []Recurring `yaml:"periods" json:"periods"`
	// Origin is where it was imported from.
	Origin string `yaml:"origin,omitempty" json:"origin,omitempty"`
}

// TagFilter is met by a tag of the name and, if set, a value.
type TagFilter struct {
	Tag   string `yaml:"tag" json:"tag"`
	Value string `yaml:"value,omitempty" json:"value,omitempty"`
	// Operator is contains (the default) or equals.
	Operator string `yaml:"operator,omitempty" json:"operator,omitempty"`
}

// Recurring is when a maintenance is in force.
type Recurring struct {
	// Every is once, day, week or month.
	Every string `yaml:"every" json:"every"`
	// Start is the beginning of a period of kind once.
	Start LocalTime `yaml:"start,omitempty" json:"start,omitzero"`
	// At is the time of day, "22:00", of the other kinds.
	At string `yaml:"at,omitempty" json:"at,omitempty"`
	// For is how long it lasts, at most 31 days.
	For Duration `yaml:"for" json:"for"`
	// Interval is each how many days or weeks, counted from the maintenance's From; zero is 1.
	Interval int `yaml:"interval,omitempty" json:"interval,omitempty"`
	// Days of the week: mon … sun. For a month they go with Weeks.
	Days []string `yaml:"days,omitempty" json:"days,omitempty"`
	// Months are 1 to 12, empty for all. In them DayOfMonth, or Days in Weeks 1 to 5, where 5 is the last.
	Months     []int `yaml:"months,omitempty" json:"months,omitempty"`
	DayOfMonth int   `yaml:"day_of_month,omitempty" json:"day_of_month,omitempty"`
	Weeks      []int `yaml:"weeks,omitempty" json:"weeks,omitempty"`
}

// LocalTime is a date and time without a zone: the server's is meant.
type LocalTime struct{ t time.Time }

const localLayout = "2006-01-02T15:04"

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LocalTime) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*l = LocalTime{}
		return nil
	}
	t, err := time.Parse(localLayout, strings.Replace(string(text), " ", "T", 1))
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return fmt.Errorf("%.40q is no time, expected 2026-01-31T22:00", text)
	}
	l.t = t
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (l LocalTime) MarshalText() ([]byte, error) {
	if l.t.IsZero() {
		return nil, nil
	}
	return []byte(l.t.Format(localLayout)), nil
}

// IsZero reports whether no time is set.
func (l LocalTime) IsZero() bool { return l.t.IsZero() }

// in is the moment in a zone.
func (l LocalTime) in(zone *time.Location) time.Time {
	return time.Date(l.t.Year(), l.t.Month(), l.t.Day(), l.t.Hour(), l.t.Minute(), 0, 0, zone)
}

// maxPeriodLength bounds For: the search for a period that has begun goes back so far.
const maxPeriodLength = 31 * 24 * time.Hour

// maxDescriptionBytes bounds a description.
const maxDescriptionBytes = 4096

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// check reports what is wrong with a maintenance.
func (m *Maintenance) check() error {
	switch {
	case len(m.Description) > maxDescriptionBytes:
		return fmt.Errorf("description has %d bytes, expected at most %d", len(m.Description), maxDescriptionBytes)
	case len(m.Hosts)+len(m.Groups) == 0:
		return fmt.Errorf("hosts and groups are empty, expected one of them")
	case len(m.Periods) == 0:
		return fmt.Errorf("periods is empty, expected at least one")
	case len(m.Hosts) > maxList || len(m.Groups) > maxList || len(m.Tags) > maxList || len(m.Periods) > maxPeriods:
		return fmt.Errorf("a list is longer than %d (periods: %d)", maxList, maxPeriods)
	case m.NoData && len(m.Tags) > 0:
		return fmt.Errorf("tags is set, expected none with no_data: data belongs to hosts")
	}
	for _, t := range m.Tags {
		if t.Tag == "" || t.Operator != "" && t.Operator != opEquals && t.Operator != opContains {
			return fmt.Errorf("tag %q with operator %q, expected a name and equals or contains", t.Tag, t.Operator)
		}
	}
	for i := range m.Periods {
		if err := m.Periods[i].check(); err != nil {
			return fmt.Errorf("period %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *Recurring) check() error {
	if length := time.Duration(r.For); length < time.Minute || length > maxPeriodLength {
		return fmt.Errorf("for is %s, expected 1m to 31d", length)
	}
	if r.Every == "once" {
		if r.Start.IsZero() {
			return fmt.Errorf("start is empty, expected a time for every: once")
		}
		return nil
	}
	if _, ok := parseClock(r.At); !ok {
		return fmt.Errorf("at is %.40q, expected a time of day such as 22:00", r.At)
	}
	for _, d := range r.Days {
		if !slices.Contains(weekdays, d) {
			return fmt.Errorf("days has %.40q, expected mon, tue, wed, thu, fri, sat, sun", d)
		}
	}
	for _, list := range []struct {
		name   string
		values []int
		most   int
	}{{"months", r.Months, 12}, {"weeks", r.Weeks, 5}} {
		for _, v := range list.values {
			if v < 1 || v > list.most {
				return fmt.Errorf("%s has %d, expected 1 to %d", list.name, v, list.most)
			}
		}
	}
	switch {
	case r.Interval < 0 || r.Interval > 1000:
		return fmt.Errorf("interval is %d, expected 1 to 1000", r.Interval)
	case r.Every == "day":
	case r.Every == "week" && len(r.Days) > 0:
	case r.Every == "week":
		return fmt.Errorf("days is empty, expected days of the week")
	case r.Every == "month" && (r.DayOfMonth >= 1 && r.DayOfMonth <= 31) != (len(r.Days) > 0 && len(r.Weeks) > 0):
	case r.Every == "month":
		return fmt.Errorf("expected day_of_month (1 to 31) or days with weeks")
	default:
		return fmt.Errorf("every is %.40q, expected once, day, week or month", r.Every)
	}
	return nil
}

// until returns when the period that a moment is in ends; false when it is in none. from is the maintenance's begin for intervals.
func (r *Recurring) until(now time.Time, from LocalTime) (time.Time, bool) {
	length := time.Duration(r.For)
	if r.Every == "once" {
		start := r.Start.in(now.Location())
		end := start.Add(length)
		return end, !now.Before(start) && now.Before(end)
	}
	minutes, _ := parseClock(r.At)
	var latest time.Time
	for back := 0; back <= int(length/(24*time.Hour))+1; back++ {
		y, month, d := now.Date()
		// time.Date moves a time that the change to summer time left out; minutes beyond the hour are carried.
		start := time.Date(y, month, d-back, 0, minutes, 0, 0, now.Location())
		if end := start.Add(length); !now.Before(start) && now.Before(end) && end.After(latest) && r.on(start, from) {
			latest = end
		}
	}
	return latest, !latest.IsZero()
}

// on reports whether a period begins on a day.
func (r *Recurring) on(day time.Time, from LocalTime) bool {
	interval := max(r.Interval, 1)
	y, m, d := day.Date()
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	first := time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC) // a Monday
	if !from.IsZero() {
		first = time.Date(from.t.Year(), from.t.Month(), from.t.Day(), 0, 0, 0, 0, time.UTC)
	}
	if r.Every != "month" && date.Before(first) {
		return false
	}
	days := int(date.Sub(first) / (24 * time.Hour))
	weekday := weekdays[day.Weekday()]
	switch r.Every {
	case "day":
		return days%interval == 0
	case "week":
		monday := (int(first.Weekday()) + 6) % 7
		return slices.Contains(r.Days, weekday) && (days+monday)/7%interval == 0
	}
	if len(r.Months) > 0 && !slices.Contains(r.Months, int(m)) {
		return false
	}
	if r.DayOfMonth > 0 {
		return d == r.DayOfMonth
	}
	last := time.Date(y, m, d+7, 0, 0, 0, 0, time.UTC).Month() != m
	return slices.Contains(r.Days, weekday) && (slices.Contains(r.Weeks, (d-1)/7+1) || last && slices.Contains(r.Weeks, 5))
}

// Until returns when a maintenance that is in force ends; false when it is not in force.
func (m *Maintenance) Until(now time.Time) (time.Time, bool) {
	if !m.From.IsZero() && now.Before(m.From.in(now.Location())) || !m.To.IsZero() && !now.Before(m.To.in(now.Location())) {
		return time.Time{}, false
	}
	var latest time.Time
	for i := range m.Periods {
		if end, ok := m.Periods[i].until(now, m.From); ok && end.After(latest) {
			latest = end
		}
	}
	if to := m.To.in(now.Location()); !m.To.IsZero() && latest.After(to) {
		latest = to
	}
	return latest, !latest.IsZero()
}

// ofHost reports whether a maintenance is for a host.
func (m *Maintenance) ofHost(h *model.Host) bool {
	if slices.Contains(m.Hosts, h.Host) {
		return true
	}
	for _, group := range m.Groups {
		for _, have := range h.Groups {
			if have == group || strings.HasPrefix(have, group+"/") {
				return true
			}
		}
	}
	return false
}

// ofTags reports whether a maintenance is for a problem with tags.
func (m *Maintenance) ofTags(tags []model.Tag) bool {
	if len(m.Tags) == 0 {
		return true
	}
	met := func(f TagFilter) bool {
		return slices.ContainsFunc(tags, func(t model.Tag) bool {
			if t.Name != f.Tag {
				return false
			}
			if f.Operator == opEquals {
				return t.Value == f.Value
			}
			return strings.Contains(t.Value, f.Value)
		})
	}
	if m.AnyTag {
		return slices.ContainsFunc(m.Tags, met)
	}
	return !slices.ContainsFunc(m.Tags, func(f TagFilter) bool { return !met(f) })
}
