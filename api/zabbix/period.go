package zabbix

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tidemark/alert"
)

// periodTypes are Zabbix's numbers of the kinds of periods.
var periodTypes = map[string]string{"once": "0", "day": "2", "week": "3", "month": "4"}

var weekdayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

var periodKind = kind[alert.Recurring]{
	name: "time period", id: "timeperiod_type",
	fields: []field[alert.Recurring]{
		{name: "timeperiod_type", number: true, get: func(p *alert.Recurring) string { return periodTypes[p.Every] }},
		{name: "every", number: true, get: func(p *alert.Recurring) string {
			if len(p.Weeks) > 0 {
				return formatInt(p.Weeks[0])
			}
			return formatInt(max(p.Interval, 1))
		}},
		{name: "month", number: true, get: func(p *alert.Recurring) string { return formatInt(monthBits(p)) }},
		{name: "dayofweek", number: true, get: func(p *alert.Recurring) string {
			bits := 0
			for _, d := range p.Days {
				bits |= 1 << slices.Index(weekdayNames, d)
			}
			return formatInt(bits)
		}},
		{name: "day", number: true, get: func(p *alert.Recurring) string { return formatInt(p.DayOfMonth) }},
		{name: "start_time", number: true, get: func(p *alert.Recurring) string { return formatInt(clockSeconds(p.At)) }},
		{name: "period", number: true, get: func(p *alert.Recurring) string { return formatInt(int(time.Duration(p.For) / time.Second)) }},
		{name: "start_date", number: true, get: func(p *alert.Recurring) string { return localSeconds(p.Start, 0) }},
	},
}

func monthBits(p *alert.Recurring) int {
	if p.Every != "month" {
		return 0
	}
	bits := 0
	for _, m := range p.Months {
		bits |= 1 << (m - 1)
	}
	if len(p.Months) == 0 {
		bits = 1<<12 - 1
	}
	return bits
}

func clockSeconds(at string) int {
	t, err := time.Parse("15:04", at)
	if err != nil {
		return 0
	}
	return t.Hour()*3600 + t.Minute()*60
}

// local reads Unix seconds as a time of the server's zone; seconds are left out.
func (p *params) local(name string) (l alert.LocalTime) {
	at := time.Unix(p.number(name, 0, math.MaxInt32), 0)
	if err := l.UnmarshalText([]byte(at.Format(localTime))); err != nil {
		p.fail(name, "a time is expected")
	}
	return l
}

// period reads one time period of a maintenance.
func (p *params) period() (r alert.Recurring, err error) {
	const day = 24 * 3600
	kind := p.number("timeperiod_type", 0, 4)
	r.For = alert.Duration(time.Duration(p.number("period", 3600, 31*day)) * time.Second)
	start, every := p.number("start_time", 0, day-1), int(p.number("every", 1, 1000))
	days, months, ofMonth := bits(p.number("dayofweek", 0, 127)), bits(p.number("month", 0, 4095)), int(p.number("day", 0, 31))
	date := p.local("start_date")
	if _, ok := p.get("start_date"); !ok {
		_ = date.UnmarshalText([]byte(time.Now().Format(localTime))) // its own form
	}
	p.accept("timeperiodid")
	r.At = fmt.Sprintf("%02d:%02d", start/3600, start/60%60)
	for _, d := range days {
		r.Days = append(r.Days, weekdayNames[d-1])
	}
	switch kind {
	case 0:
		r = alert.Recurring{Every: "once", Start: date, For: r.For}
	case 2:
		r.Every, r.Interval, r.Days = "day", every, nil
	case 3:
		r.Every, r.Interval = "week", every
	case 4:
		r.Every, r.Months = "month", months
		if ofMonth > 0 {
			r.DayOfMonth, r.Days = ofMonth, nil
		} else {
			r.Weeks = []int{every}
		}
	default:
		p.fail("timeperiod_type", "value must be one of 0, 2, 3, 4")
	}
	return r, p.done()
}

// bits returns the numbers, from 1, of the bits that are set.
func bits(n int64) (list []int) {
	for i := range 12 {
		if n&(1<<i) != 0 {
			list = append(list, i+1)
		}
	}
	return list
}
