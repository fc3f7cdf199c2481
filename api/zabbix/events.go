package zabbix

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tidemark/alert"
	"tidemark/api/rest"
	"tidemark/model"
)

// eventRow is a problem as an event.
type eventRow struct {
	model.Problem
	suppression alert.Suppression
	// now returns the operational data of now; nil: as recorded.
	now func(*model.Problem) string
}

// opData is what is shown beside the problem.
func (r *eventRow) opData() string {
	if r.now == nil {
		return r.OpData
	}
	return r.now(&r.Problem)
}

// eventRow returns a problem as an event that knows its operational data of now, which tells only of hosts that the caller may see.
func (c *call) eventRow(p *model.Problem) eventRow {
	return eventRow{Problem: *p, now: func(p *model.Problem) string {
		t, ok := c.configuration.Trigger(p.TriggerID)
		if !ok || slices.ContainsFunc(c.triggerHosts(t), func(h model.HostID) bool { return !c.visible.Has(h) }) {
			return p.OpData
		}
		return c.options.Problems.OpData(c.ctx, p)
	}}
}

var eventKind = kind[eventRow]{
	name: "event", id: "eventid",
	fields: []field[eventRow]{
		{name: "eventid", number: true, get: func(r *eventRow) string { return formatID(r.ID) }},
		{name: "source", number: true, get: func(*eventRow) string { return "0" }},
		{name: "object", number: true, get: func(*eventRow) string { return "0" }},
		{name: "objectid", number: true, get: func(r *eventRow) string { return formatID(r.TriggerID) }},
		{name: "clock", number: true, get: func(r *eventRow) string { return seconds(r.At) }},
		{name: "ns", number: true, get: func(r *eventRow) string { return nanos(r.At) }},
		{name: "value", number: true, get: func(*eventRow) string { return "1" }},
		{name: "acknowledged", number: true, get: func(r *eventRow) string { return formatBool(r.Acknowledged) }},
		{name: "name", get: func(r *eventRow) string { return r.Name }},
		{name: "severity", number: true, get: func(r *eventRow) string { return formatInt(int(r.Severity)) }},
		{name: "opdata", get: func(r *eventRow) string { return r.opData() }},
		{name: "r_eventid", number: true, get: func(r *eventRow) string { return formatID(r.RecoveryID) }},
		{name: "r_clock", number: true, get: func(r *eventRow) string { return seconds(r.RecoveredAt) }},
		{name: "r_ns", number: true, get: func(r *eventRow) string { return nanos(r.RecoveredAt) }},
		{name: "suppressed", number: true, get: func(r *eventRow) string { return formatBool(r.suppression.Until != 0) }},
		{name: "cause_eventid", number: true, get: func(*eventRow) string { return "0" }},
	},
}

func eventSelects() []selection[eventRow] {
	updates := func(c *call, o output, r *eventRow) any { return c.updates(o, r.ID) }
	return []selection[eventRow]{
		{"selectTags", "tags", func(_ *call, o output, r *eventRow) any { return pickTags(o, r.Tags) }},
		{"selectHosts", "hosts", func(c *call, o output, r *eventRow) any { return c.pickHosts(o, r.HostID) }},
		{"selectAcknowledges", "acknowledges", updates},
		{"select_acknowledges", "acknowledges", updates},
		{"selectSuppressionData", "suppression_data", func(c *call, o output, r *eventRow) any { return c.suppressionData(o, r) }},
		{"selectRelatedObject", "relatedObject", func(c *call, o output, r *eventRow) any {
			t, ok := c.trigger(r.TriggerID)
			if !ok {
				return []string{}
			}
			row := c.triggerRow(t)
			return pick(o, &triggerKind, &row)
		}},
	}
}

// eventFilter is what problem.get and event.get ask for besides the common parameters.
type eventFilter struct {
	events, objects, hosts, groups idSet
	names                          map[string]bool
	severities                     idSet
	tags                           []tagFilter
	either, nothing                bool
	// acknowledged and suppressed, if not empty, are 0 or 1.
	acknowledged, suppressed string
	first, last              int64
	find                     rest.ProblemFilter
}

func (c *call) eventFilter() (f eventFilter, err error) {
	f = eventFilter{
		events: c.ids("eventids"), objects: c.ids("objectids"), hosts: c.ids("hostids"), groups: c.ids("groupids"), severities: c.ids("severities"),
		first: c.number("eventid_from", 0, math.MaxInt64), last: c.number("eventid_till", math.MaxInt64, math.MaxInt64),
	}
	f.tags, f.either = c.tags()
	f.acknowledged = c.boolText("acknowledged")
	f.suppressed = c.boolText("suppressed")
	// There are no symptoms, only problems of triggers.
	f.nothing = c.boolText("symptom") == "1" || c.number("source", 0, 4) != 0 || c.number("object", 0, 6) != 0
	c.accept("symptom", "source", "object")
	c.noApplications()
	r := c.timeRange()
	if r.From != 0 {
		f.find.From = r.From
	}
	if _, ok := c.get("time_till"); ok {
		f.find.To = r.To
	}
	for s := range f.severities {
		f.find.Severities = append(f.find.Severities, model.Severity(min(s, 255)))
	}
	f.names, err = c.groupNames(f.groups)
	return f, err
}

// boolText reads a boolean that may be left out: empty, 0 or 1.
func (p *params) boolText(name string) string {
	if _, ok := p.get(name); !ok {
		return ""
	}
	return formatBool(p.flag(name))
}

func (f *eventFilter) fits(c *call, p *model.Problem) bool {
	if !c.visible.Has(p.HostID) || f.nothing || !f.events.has(uint64(p.ID)) || !f.objects.has(uint64(p.TriggerID)) || !f.hosts.has(uint64(p.HostID)) {
		return false
	}
	if f.names != nil {
		h, ok := c.host(p.HostID)
		if !ok || !inGroups(f.names, h) {
			return false
		}
	}
	return (f.severities == nil || f.severities[uint64(p.Severity)]) && (f.acknowledged == "" || f.acknowledged == formatBool(p.Acknowledged)) &&
		p.ID >= model.EventID(f.first) && p.ID <= model.EventID(f.last) && (f.find.From == 0 || p.At >= f.find.From) && (f.find.To == 0 || p.At < f.find.To) &&
		matchTags(f.tags, f.either, p.Tags)
}

const (
	// recentTime is for how long problem.get with recent answers problems that are over, recentBegin how long before they may have begun;
	// nanoseconds both.
	recentTime  = 5 * 60 * 1_000_000_000
	recentBegin = 24 * 3600 * 1_000_000_000
)

func getProblems(c *call) ([]byte, error) {
	recent := c.flag("recent")
	f, err := c.eventFilter()
	if err != nil {
		return nil, err
	}
	k := eventKind
	k.selects = slices.DeleteFunc(eventSelects(), func(s selection[eventRow]) bool { return s.param == "selectHosts" || s.param == "selectRelatedObject" })
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	rows := make([]eventRow, 0, 16)
	for _, p := range c.options.Problems.Open() {
		if f.fits(c, &p) {
			rows = append(rows, c.eventRow(&p))
		}
	}
	if recent {
		rows, err = c.addRecent(&f, rows)
	}
	if err != nil {
		return nil, err
	}
	rows = c.suppressed(rows, f.suppressed)
	slices.SortFunc(rows, func(a, b eventRow) int { return cmp.Compare(a.ID, b.ID) })
	return l.encode(c, &k, l.take(&k, rows))
}

// addRecent adds problems that ended a moment ago.
func (c *call) addRecent(f *eventFilter, rows []eventRow) ([]eventRow, error) {
	since := c.options.Now().UnixNano() - recentTime
	young := *f
	young.find.From = max(f.find.From, since-recentBegin)
	err := c.eachProblem(&young, 0, func(p *model.Problem) bool {
		if p.RecoveredAt >= since && f.fits(c, p) {
			rows = append(rows, c.eventRow(p))
		}
		return true
	})
	return rows, err
}

const (
	// pageLimit is how many problems are read at a time, maxProblems how many for one call.
	pageLimit   = 10_000
	maxProblems = 200_000
)

// eachProblem calls fn with the stored problems that can fit, the newest first, until it returns false.
func (c *call) eachProblem(f *eventFilter, before model.EventID, fn func(*model.Problem) bool) error {
	find := f.find
	find.Limit, find.Before, find.Hosts = pageLimit, before, c.visible.IDs()
	if c.visible != nil && len(find.Hosts) == 0 {
		return nil
	}
	if f.last < math.MaxInt64 && (find.Before == 0 || int64(find.Before) > f.last) {
		find.Before = model.EventID(f.last + 1)
	}
	for n := 0; n < maxProblems; {
		list, _, err := c.options.Problems.Find(c.ctx, find)
		if err != nil {
			return err
		}
		for i := range list {
			if list[i].ID < model.EventID(f.first) || !fn(&list[i]) {
				return nil
			}
		}
		if len(list) < pageLimit {
			return nil
		}
		n += len(list)
		find.Before = list[len(list)-1].ID
	}
	return applicationError("The call looks at more than " + strconv.Itoa(maxProblems) + " events; ask for less with time_from, time_till, eventid_from or severities.")
}

// maxEventIDs bounds the events that are asked for by id.
const maxEventIDs = 1000

func getEvents(c *call) ([]byte, error) {
	value, given := c.ids("value"), false
	if _, ok := c.get("value"); ok {
		given = true
	}
	f, err := c.eventFilter()
	if err != nil {
		return nil, err
	}
	k := eventKind
	k.selects = eventSelects()
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	if given && !value[1] {
		f.nothing = true // recoveries are no events of their own here
	}
	var rows []eventRow
	// Where the newest are wanted and nothing else decides, no more is read than can be answered.
	newest := l.limit > 0 && f.suppressed == "" && len(l.filter)+len(l.search) == 0 && len(l.sort) > 0 && l.sort[0].falling && l.sort[0].by.name == "eventid"
	take := func(p *model.Problem) bool {
		if f.fits(c, p) {
			rows = append(rows, c.eventRow(p))
		}
		return !newest || int64(len(rows)) < l.limit
	}
	if f.nothing {
		return l.encode(c, &k, nil)
	}
	if f.events != nil {
		err = c.eachEvent(&f, take)
	} else {
		err = c.eachProblem(&f, 0, take)
	}
	if err != nil {
		return nil, err
	}
	rows = c.suppressed(rows, f.suppressed)
	slices.SortFunc(rows, func(a, b eventRow) int { return cmp.Compare(a.ID, b.ID) })
	return l.encode(c, &k, l.take(&k, rows))
}

// eachEvent calls fn with the problems that were asked for by id.
func (c *call) eachEvent(f *eventFilter, fn func(*model.Problem) bool) error {
	if len(f.events) > maxEventIDs {
		return invalidParams(`Invalid parameter "/eventids": maximum number of ids is %d.`, maxEventIDs)
	}
	for id := range f.events {
		p, ok, err := c.problem(model.EventID(id))
		if err != nil {
			return err
		}
		if ok {
			fn(&p)
		}
	}
	return nil
}

// problem returns a stored problem that the caller may see.
func (c *call) problem(id model.EventID) (model.Problem, bool, error) {
	if id == math.MaxUint64 || id > math.MaxInt64-1 {
		return model.Problem{}, false, nil
	}
	list, _, err := c.options.Problems.Find(c.ctx, rest.ProblemFilter{Before: id + 1, Limit: 1})
	if err != nil || len(list) == 0 || list[0].ID != id || !c.visible.Has(list[0].HostID) {
		return model.Problem{}, false, err
	}
	return list[0], true, nil
}
