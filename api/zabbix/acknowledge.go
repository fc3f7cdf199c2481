package zabbix

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// updateRow is what somebody did to a problem.
type updateRow struct {
	model.ProblemUpdate
	event model.EventID
	n     int
}

var updateKind = kind[updateRow]{
	name: "acknowledgement", id: "acknowledgeid",
	fields: []field[updateRow]{
		{name: "acknowledgeid", number: true, get: func(r *updateRow) string { return strconv.FormatUint(uint64(r.event)<<interfaceBits|uint64(r.n+1), 10) }},
		{name: "eventid", number: true, get: func(r *updateRow) string { return formatID(r.event) }},
		{name: "clock", number: true, get: func(r *updateRow) string { return seconds(r.At) }},
		{name: "message", get: func(r *updateRow) string { return r.Message }},
		{name: "action", number: true, get: func(r *updateRow) string { return formatInt(int(r.Actions)) }},
		{name: "userid", number: true, get: func(r *updateRow) string { return formatID(r.User) }},
		{name: "username", get: func(r *updateRow) string { return r.Author }},
		{name: "name", get: func(*updateRow) string { return "" }},
		{name: "surname", get: func(*updateRow) string { return "" }},
		{name: "old_severity", number: true, get: func(r *updateRow) string { return formatInt(int(r.OldSeverity)) }},
		{name: "new_severity", number: true, get: func(r *updateRow) string { return formatInt(int(r.Severity)) }},
		{name: "suppress_until", number: true, get: func(r *updateRow) string { return endSeconds(r.SuppressedUntil) }},
		{name: "taskid", number: true, get: func(*updateRow) string { return "0" }},
	},
}

// endSeconds is the end of a suppression in Unix seconds, zero for none.
func endSeconds(at int64) string {
	if at == model.Forever {
		return "0"
	}
	return seconds(at)
}

// updates answers what was done to a problem, the newest first.
func (c *call) updates(o output, id model.EventID) any {
	rows := c.updateRows(id)
	slices.Reverse(rows)
	return pickAll(o, &updateKind, rows)
}

func (c *call) updateRows(id model.EventID) []updateRow {
	list, err := c.options.Objects.ProblemUpdates(c.ctx, id)
	if err != nil {
		return []updateRow{}
	}
	rows := make([]updateRow, 0, len(list))
	for i, u := range list {
		if user, ok := c.options.Access.UserNamed(u.Author); ok && u.User == 0 { // what was stored by releases before has names only
			u.User = user.ID
		}
		rows = append(rows, updateRow{u, id, i})
	}
	return rows
}

// suppressionRow is one reason why a problem is suppressed.
type suppressionRow struct{ maintenance, until, user string }

var suppressionKind = kind[suppressionRow]{
	name: "suppression", id: "maintenanceid",
	fields: []field[suppressionRow]{
		{name: "maintenanceid", number: true, get: func(r *suppressionRow) string { return r.maintenance }},
		{name: "suppress_until", number: true, get: func(r *suppressionRow) string { return r.until }},
		{name: "userid", number: true, get: func(r *suppressionRow) string { return r.user }},
	},
}

// suppressionData answers why a problem is suppressed.
func (c *call) suppressionData(o output, r *eventRow) any {
	rows := []suppressionRow{}
	if name := r.suppression.Maintenance; name != "" {
		rows = append(rows, suppressionRow{stableID(0, "maintenance "+name), endSeconds(r.suppression.Until), "0"})
	}
	if r.suppression.Until != 0 && r.SuppressedUntil > c.options.Now().UnixNano() {
		row := suppressionRow{"0", endSeconds(r.SuppressedUntil), "0"}
		for _, u := range c.updateRows(r.ID) {
			if u.Actions.Has(model.ActionSuppress) {
				row.user = formatID(u.User)
			}
		}
		rows = append(rows, row)
	}
	return pickAll(o, &suppressionKind, rows)
}

// suppressed fills in whether problems are suppressed, and leaves those that were asked for; want is empty for all, else 0 or 1.
func (c *call) suppressed(rows []eventRow, want string) []eventRow {
	problems := make([]model.Problem, len(rows))
	for i := range rows {
		problems[i] = rows[i].Problem
	}
	for i, s := range c.options.Objects.Suppressions(problems) {
		rows[i].suppression = s
	}
	if want == "" {
		return rows
	}
	return slices.DeleteFunc(rows, func(r eventRow) bool { return formatBool(r.suppression.Until != 0) != want })
}

// The actions of event.acknowledge that there are not: there are no causes and symptoms here.
const (
	actionCause   = 128
	actionSymptom = 256
)

// maxMessageBytes bounds a message.
const maxMessageBytes = 4096

// acknowledge changes problems.
func acknowledge(c *call) ([]byte, error) {
	events, action := c.ids("eventids"), c.number("action", 0, math.MaxInt32)
	u, err := c.readUpdate(action)
	if err != nil {
		return nil, err
	}
	switch {
	case len(events) == 0:
		return nil, invalidParams(`Invalid parameter "/eventids": cannot be empty.`)
	case len(events) > maxEventIDs:
		return nil, invalidParams(`Invalid parameter "/eventids": maximum number of ids is %d.`, maxEventIDs)
	}
	ids := make([]string, 0, len(events))
	problems := make([]model.EventID, 0, len(events))
	for id := range events {
		if err := c.mayUpdate(model.EventID(id), &u); err != nil {
			return nil, err
		}
		ids, problems = append(ids, strconv.FormatUint(id, 10)), append(problems, model.EventID(id))
	}
	slices.Sort(problems)
	slices.SortFunc(ids, compareNumbers)
	if err := c.options.Objects.UpdateProblems(c.ctx, problems, u); err != nil {
		return nil, notAllowed(err)
	}
	access.Changed(c.ctx, "problems", nil, map[string]any{"problems": ids, "action": action, "done": u.Actions, "message": u.Message, "severity": u.Severity.String(), "author": u.Author})
	return encodeJSON(map[string]any{"eventids": ids})
}

// readUpdate reads what event.acknowledge is to do.
func (c *call) readUpdate(action int64) (model.ProblemUpdate, error) {
	const known = model.ActionClose | model.ActionAcknowledge | model.ActionMessage | model.ActionSeverity | model.ActionUnacknowledge | model.ActionSuppress | model.ActionUnsuppress
	u := model.ProblemUpdate{
		User: c.who.User, Author: c.who.Name, Actions: model.ProblemActions(action & int64(known)), Message: c.text("message"),
		Severity: model.Severity(c.number("severity", 0, int64(model.Disaster))),
	}
	_, severity := c.get("severity")
	_, ends := c.get("suppress_until")
	until := c.number("suppress_until", 0, math.MaxInt32)
	c.accept("cause_eventid")
	if err := c.done(); err != nil {
		return u, err
	}
	both := func(x, y model.ProblemActions) bool { return u.Actions.Has(x) && u.Actions.Has(y) }
	switch {
	case action&(actionCause|actionSymptom) != 0:
		return u, invalidParams(`Invalid parameter "/action": 128 and 256 (cause and symptom) are not supported: there are no ranks of events here.`)
	case action == 0 || action&^int64(known) != 0:
		return u, invalidParams(`Invalid parameter "/action": value must be one of %d-%d.`, int64(model.ActionClose), int64(known))
	case both(model.ActionAcknowledge, model.ActionUnacknowledge):
		return u, invalidParams(`Invalid parameter "/action": value must be one of 2 (acknowledge), 16 (unacknowledge), not both.`)
	case both(model.ActionSuppress, model.ActionUnsuppress):
		return u, invalidParams(`Invalid parameter "/action": value must be one of 32 (suppress), 64 (unsuppress), not both.`)
	case len(u.Message) > maxMessageBytes:
		return u, invalidParams(`Invalid parameter "/message": value is too long.`)
	case u.Actions.Has(model.ActionMessage) && u.Message == "":
		return u, invalidParams(`Invalid parameter "/message": cannot be empty.`)
	case u.Actions.Has(model.ActionSeverity) && !severity:
		return u, invalidParams(`Invalid parameter "/": the parameter "severity" is missing.`)
	case u.Actions.Has(model.ActionSuppress) && !ends:
		return u, invalidParams(`Invalid parameter "/": the parameter "suppress_until" is missing.`)
	}
	if !u.Actions.Has(model.ActionMessage) {
		u.Message = ""
	}
	if u.Actions.Has(model.ActionSuppress) {
		if u.SuppressedUntil = until * 1e9; until == 0 {
			u.SuppressedUntil = model.Forever
		} else if u.SuppressedUntil <= c.options.Now().UnixNano() {
			return u, invalidParams(`Invalid parameter "/suppress_until": value must be in the future.`)
		}
	}
	return u, nil
}

// mayUpdate reports with an error that a problem does not exist, not for the caller, or cannot be changed so.
func (c *call) mayUpdate(id model.EventID, u *model.ProblemUpdate) error {
	p, ok, err := c.problem(id)
	if err != nil {
		return err
	}
	if !ok || !c.mayOnHost(p.HostID, model.Operator) {
		return errNotAllowed
	}
	over := p.RecoveredAt != 0
	t, known := c.trigger(p.TriggerID)
	switch {
	case u.Actions.Has(model.ActionClose) && over:
		return invalidParams("Cannot close problem: event is not in PROBLEM state.")
	case u.Actions.Has(model.ActionClose) && (!known || !t.ManualClose):
		return invalidParams("Cannot close problem: trigger does not allow manual closing.")
	case u.Actions.Has(model.ActionSuppress) && over:
		return invalidParams("Cannot suppress problem: event is not in PROBLEM state.")
	case u.Actions.Has(model.ActionUnsuppress) && over:
		return invalidParams("Cannot unsuppress problem: event is not in PROBLEM state.")
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
