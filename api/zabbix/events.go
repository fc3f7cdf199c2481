package zabbix

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"

	"tidemark/access"
	"tidemark/api"
	"tidemark/api/rest"
	"tidemark/model"
)

// eventRow is a problem as an event.
type eventRow struct{ model.Problem }

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
		{name: "opdata", get: func(r *eventRow) string { return r.OpData }},
		{name: "r_eventid", number: true, get: func(r *eventRow) string { return formatID(r.RecoveryID) }},
		{name: "r_clock", number: true, get: func(r *eventRow) string { return seconds(r.RecoveredAt) }},
		{name: "r_ns", number: true, get: func(r *eventRow) string { return nanos(r.RecoveredAt) }},
		{name: "suppressed", number: true, get: func(*eventRow) string { return "0" }},
		{name: "cause_eventid", number: true, get: func(*eventRow) string { return "0" }},
	},
}

func eventSelects() []selection[eventRow] {
	remarks := func(c *call, o output, r *eventRow) any { return c.remarks(o, r.ID) }
	return []selection[eventRow]{
		{"selectTags", "tags", func(_ *call, o output, r *eventRow) any { return pickTags(o, r.Tags) }},
		{"selectHosts", "hosts", func(c *call, o output, r *eventRow) any { return c.pickHosts(o, r.HostID) }},
		{"selectAcknowledges", "acknowledges", remarks},
		{"select_acknowledges", "acknowledges", remarks},
		{"selectSuppressionData", "suppression_data", func(*call, output, *eventRow) any { return []string{} }},
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

// remarkRow is a remark of somebody.
type remarkRow struct {
	Remark
	user  model.User
	event model.EventID
	n     int
}

var remarkKind = kind[remarkRow]{
	name: "acknowledgement", id: "acknowledgeid",
	fields: []field[remarkRow]{
		{name: "acknowledgeid", number: true, get: func(r *remarkRow) string { return strconv.FormatUint(uint64(r.event)<<interfaceBits|uint64(r.n+1), 10) }},
		{name: "eventid", number: true, get: func(r *remarkRow) string { return formatID(r.event) }},
		{name: "clock", number: true, get: func(r *remarkRow) string { return seconds(r.At) }},
		{name: "message", get: func(r *remarkRow) string { return r.Message }},
		{name: "action", number: true, get: func(r *remarkRow) string { return formatInt(actionAcknowledge | actionMessage*min(len(r.Message), 1)) }},
		{name: "userid", number: true, get: func(r *remarkRow) string { return formatID(r.user.ID) }},
		{name: "username", get: func(r *remarkRow) string { return r.Author }},
		{name: "name", get: func(*remarkRow) string { return "" }},
		{name: "surname", get: func(*remarkRow) string { return "" }},
		{name: "old_severity", number: true, get: func(*remarkRow) string { return "0" }},
		{name: "new_severity", number: true, get: func(*remarkRow) string { return "0" }},
	},
}

// remarks answers what was said to a problem, the newest first.
func (c *call) remarks(o output, id model.EventID) any {
	list, err := c.options.Objects.Remarks(c.ctx, id)
	if err != nil {
		return []string{}
	}
	rows := make([]remarkRow, 0, len(list))
	for i, r := range list {
		user, _ := c.options.Access.UserNamed(r.Author)
		rows = append(rows, remarkRow{r, user, id, i})
	}
	slices.Reverse(rows)
	return pickAll(o, &remarkKind, rows)
}

// eventFilter is what problem.get and event.get ask for besides the common parameters.
type eventFilter struct {
	events, objects, hosts, groups idSet
	names                          map[string]bool
	severities                     idSet
	tags                           []tagFilter
	either, nothing                bool
	// acknowledged, if not empty, is 0 or 1.
	acknowledged string
	first, last  int64
	find         rest.ProblemFilter
}

func (c *call) eventFilter() (f eventFilter, err error) {
	f = eventFilter{
		events: c.ids("eventids"), objects: c.ids("objectids"), hosts: c.ids("hostids"), groups: c.ids("groupids"), severities: c.ids("severities"),
		first: c.number("eventid_from", 0, math.MaxInt64), last: c.number("eventid_till", math.MaxInt64, math.MaxInt64),
	}
	f.tags, f.either = c.tags()
	f.acknowledged = c.boolText("acknowledged")
	// Nothing is suppressed and there are no symptoms, only problems of triggers.
	f.nothing = c.boolText("suppressed") == "1" || c.boolText("symptom") == "1" || c.number("source", 0, 4) != 0 || c.number("object", 0, 6) != 0
	c.accept("suppressed", "symptom", "source", "object")
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
			rows = append(rows, eventRow{p})
		}
	}
	if recent {
		rows, err = c.addRecent(&f, rows)
	}
	if err != nil {
		return nil, err
	}
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
			rows = append(rows, eventRow{*p})
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
	newest := l.limit > 0 && len(l.filter)+len(l.search) == 0 && len(l.sort) > 0 && l.sort[0].falling && l.sort[0].by.name == "eventid"
	take := func(p *model.Problem) bool {
		if f.fits(c, p) {
			rows = append(rows, eventRow{*p})
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

// The actions of event.acknowledge; the numbers are Zabbix's.
const (
	actionAcknowledge = 2
	actionMessage     = 4
)

// maxMessageBytes bounds a message.
const maxMessageBytes = 4096

// acknowledge marks problems as seen.
func acknowledge(c *call) ([]byte, error) {
	events, action, message := c.ids("eventids"), c.number("action", 0, 1<<20), c.text("message")
	if err := c.done(); err != nil {
		return nil, err
	}
	switch {
	case len(events) == 0:
		return nil, invalidParams(`Invalid parameter "/eventids": cannot be empty.`)
	case len(events) > maxEventIDs:
		return nil, invalidParams(`Invalid parameter "/eventids": maximum number of ids is %d.`, maxEventIDs)
	case action&actionAcknowledge == 0 || action&^(actionAcknowledge|actionMessage) != 0:
		return nil, invalidParams(`Invalid parameter "/action": value must be 2 (acknowledge) or 6 (acknowledge with message); problems are closed and changed on the page.`)
	case len(message) > maxMessageBytes:
		return nil, invalidParams(`Invalid parameter "/message": value is too long, at most %d bytes.`, maxMessageBytes)
	case action&actionMessage != 0 && message == "":
		return nil, invalidParams(`Invalid parameter "/message": cannot be empty.`)
	}
	ids := make([]string, 0, len(events))
	for id := range events {
		if err := c.mayAcknowledge(model.EventID(id)); err != nil {
			return nil, err
		}
		ids = append(ids, strconv.FormatUint(id, 10))
	}
	slices.SortFunc(ids, compareNumbers)
	access.Changed(c.ctx, "problems", nil, map[string]any{"problems": ids, "message": message, "author": c.who.Name})
	for id := range events {
		if err := c.options.Objects.Acknowledge(c.ctx, model.EventID(id), c.who.Name, message); err != nil {
			return nil, notAllowed(err)
		}
	}
	return encodeJSON(map[string]any{"eventids": ids})
}

// mayAcknowledge reports with an error that a problem does not exist, or not for the caller.
func (c *call) mayAcknowledge(id model.EventID) error {
	p, ok, err := c.problem(id)
	if err != nil {
		return err
	}
	if !ok || !c.mayOnHost(p.HostID, model.Operator) {
		return errNotAllowed
	}
	return nil
}

// mayOnHost reports whether the caller has a role on a host.
func (c *call) mayOnHost(id model.HostID, need model.Role) bool {
	if c.visible == nil {
		return c.who.MostRole() >= need
	}
	return c.visible[id] >= need
}

// notAllowed gives the error of an object that is gone Zabbix's words.
func notAllowed(err error) error {
	var e *api.Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return errNotAllowed
	}
	return err
}
