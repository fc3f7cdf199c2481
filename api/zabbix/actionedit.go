package zabbix

import (
	"slices"
	"strconv"
	"strings"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/model"
)

func actionName(a *alert.Action) string { return a.Name }

func createActions(c *call) ([]byte, error) {
	var made []alert.Action
	return c.changeAlerting(func(p *params, known *alert.Config) error {
		p.require("operations")
		if err := unused(p, "Action", known.Actions, made, actionName); err != nil {
			return err
		}
		a := alert.Action{Name: p.text("name"), Recovery: []alert.Operation{}}
		err := c.fillAction(p, &a, known)
		made = append(made, a)
		return err
	}, func() ([]byte, error) { return c.putActions(made) })
}

// updateActions changes what is given of actions; what calls do not have, such as the delay, stays.
func updateActions(c *call) ([]byte, error) {
	var changed []alert.Action
	return c.changeAlerting(func(p *params, known *alert.Config) error {
		old, err := named(p, "actionid", known.Actions, actionID, actionName)
		if err != nil {
			return err
		}
		a := *old
		err = c.fillAction(p, &a, known)
		changed = append(changed, a)
		return err
	}, func() ([]byte, error) { return c.putActions(changed) })
}

// tellActions tells the audit log of changed actions.
func (c *call) tellActions(before, after []alert.Action) {
	for i := range after {
		var old any
		if at := slices.IndexFunc(before, func(a alert.Action) bool { return a.Name == after[i].Name }); at >= 0 {
			old = before[at]
		}
		access.Changed(c.ctx, "action "+after[i].Name, old, after[i])
	}
}

func (c *call) putActions(all []alert.Action) ([]byte, error) {
	before := c.options.Objects.Alerting().Actions
	if err := c.options.Objects.ApplyAlerting(c.ctx, &alert.Config{Actions: all}); err != nil {
		return nil, err
	}
	ids := []string{}
	for i := range all {
		ids = append(ids, actionID(&all[i]))
	}
	c.tellActions(before, all)
	return encodeJSON(map[string]any{"actionids": ids})
}

func (c *call) fillAction(p *params, a *alert.Action, known *alert.Config) error {
	if source := p.number("eventsource", 0, 4); source != 0 {
		p.fail("eventsource", "value must be 0: actions here are for problems; what network discovery and registration do is said on the page and by tidemark discovery")
		return p.failed // before what such actions have is looked at
	}
	if _, ok := p.get("status"); ok {
		a.Disabled = p.number("status", 0, 1) == 1
	}
	if text := p.text("esc_period"); text != "" && a.StepDuration.UnmarshalText([]byte(text)) != nil {
		p.fail("esc_period", "a time unit is expected")
	}
	if _, ok := p.get("pause_suppressed"); ok {
		a.SendSuppressed = p.number("pause_suppressed", 0, 1) == 0
	}
	if _, ok := p.get("notify_if_canceled"); ok {
		a.QuietCancel = p.number("notify_if_canceled", 0, 1) == 0
	}
	p.accept("pause_symptoms", "def_shortdata", "def_longdata", "r_shortdata", "r_longdata", "ack_shortdata", "ack_longdata")
	if v, ok := p.get("filter"); ok {
		f, err := newParams(v)
		if err != nil {
			return err
		}
		f.place = p.place + "filter/"
		if err := c.fillFilter(f, a); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		name   string
		into   *[]alert.Operation
		number int
	}{{"operations", &a.Operations, 0}, {"recovery_operations", &a.Recovery, 1}, {"update_operations", &a.Update, 2}, {"acknowledge_operations", &a.Update, 2}} {
		given, ok := p.children(kind.name)
		if !ok {
			continue
		}
		if len(given) > alert.MaxOperations {
			return invalidParams(`Invalid parameter "/%s%s": at most %d are possible.`, p.place, kind.name, alert.MaxOperations)
		}
		list := []alert.Operation{}
		for _, one := range given {
			o, err := c.readOperation(one, kind.number, known)
			if err != nil {
				return err
			}
			list = append(list, o)
		}
		*kind.into = list
	}
	return p.done()
}

// The numbers of conditions and operators are Zabbix's (API, "action object", "action filter condition").
var (
	conditionKinds = map[int64]string{
		0: "host_group", 1: "host", 2: "trigger", 3: "name", 4: "severity", 6: "time", 13: "template", 16: "suppressed", 25: "tag", 26: "tag_value",
	}
	conditionOperators = []string{"equals", "not_equals", "contains", "not_contains", "in", "at_least", "at_most", "not_in", "matches", "not_matches", "yes", "no"}
	evaluations        = []string{"and_or", "and", "or", "formula"}
)

// fillFilter sets the conditions of an action.
func (c *call) fillFilter(p *params, a *alert.Action) error {
	p.require("evaltype")
	a.Evaluation, a.Formula = evaluations[p.number("evaltype", 0, 3)], p.text("formula")
	if a.Evaluation != "formula" {
		a.Formula = ""
	}
	p.accept("eval_formula")
	given, _ := p.children("conditions")
	if len(given) > alert.MaxConditions {
		return invalidParams(`Invalid parameter "/%sconditions": at most %d are possible.`, p.place, alert.MaxConditions)
	}
	a.Conditions = nil
	for _, one := range given {
		condition, err := c.readCondition(one)
		if err != nil {
			return err
		}
		a.Conditions = append(a.Conditions, condition)
	}
	return p.done()
}

func (c *call) readCondition(p *params) (out alert.Condition, err error) {
	p.require("conditiontype")
	number := p.number("conditiontype", 0, 1000)
	value, second := p.text("value"), p.text("value2")
	out = alert.Condition{Label: p.text("formulaid"), Type: conditionKinds[number], Operator: conditionOperators[p.number("operator", 0, 11)], Value: value}
	p.accept("conditionid")
	if out.Type == "" {
		p.fail("conditiontype", "value must be one of 0, 1, 2, 3, 4, 6, 13, 16, 25, 26")
	}
	switch out.Type {
	case "host_group", "host", "template":
		if out.Operator == "equals" || out.Operator == "not_equals" {
			out.Value, err = c.conditionName(out.Type, value)
		}
	case "severity":
		n, wrong := strconv.Atoi(value)
		if wrong != nil || n < 0 || n > int(model.Disaster) {
			p.fail("value", "value must be one of 0-5")
		}
		out.Value = model.Severity(n).String()
	case "suppressed":
		out.Value, out.Operator = strconv.FormatBool(out.Operator != "no"), "equals"
	case "name", "tag": // every text contains the empty one: the action would tell of all
		if p.require("value"); value == "" {
			p.fail("value", "cannot be empty")
		}
	case "tag_value":
		if out.Tag = second; second == "" {
			p.fail("value2", "cannot be empty")
		}
	}
	if err == nil {
		err = p.done()
	}
	return out, err
}

// conditionName is the name of the host group, host or template that a condition names by id.
func (c *call) conditionName(kind, id string) (string, error) {
	switch kind {
	case "host_group":
		groups, err := c.groups()
		if err != nil {
			return "", err
		}
		for _, g := range groups {
			if strconv.FormatUint(g.ID, 10) == id {
				return g.Name, nil
			}
		}
	case "host":
		n, wrong := strconv.ParseUint(id, 10, 64)
		if h, ok := c.host(model.HostID(n)); wrong == nil && ok {
			return h.Host, nil
		}
	default:
		templates, err := c.templates()
		if err != nil {
			return "", err
		}
		for _, t := range templates {
			if templateID(t.ID) == id {
				return t.Template, nil
			}
		}
	}
	return "", errNotAllowed
}

// The kinds of operations that send messages; the others run commands or change hosts.
const (
	operationMessage     = 0
	operationAllInvolved = 11
	operationInvolved    = 12
)

// readOperation reads an operation: of problems (0), of recoveries (1) or of updates (2).
func (c *call) readOperation(p *params, of int, known *alert.Config) (out alert.Operation, err error) {
	p.require("operationtype")
	p.accept("operationid", "actionid", "evaltype", "recovery", "eventsource")
	switch p.number("operationtype", 0, 100) {
	case operationMessage:
	case operationAllInvolved, operationInvolved:
		if out.Involved = of != 0; !out.Involved {
			p.fail("operationtype", "value must be 0")
		}
	default:
		p.fail("operationtype", "operations here send messages; to run a command on the host, make a media type of kind command on the page, and give the operation a receiver that has it")
	}
	if of == 0 {
		out.From, out.To = int(p.number("esc_step_from", 1, 10_000)), int(p.number("esc_step_to", 1, 10_000))
		if out.To == 0 {
			out.To = -1
		}
		if text := p.text("esc_period"); text != "" && out.Duration.UnmarshalText([]byte(text)) != nil {
			p.fail("esc_period", "a time unit is expected")
		}
		c.readOperationConditions(p, &out)
	}
	if err := c.readMessage(p, &out, known); err != nil {
		return out, err
	}
	if !out.Involved {
		if out.Receivers, err = c.readReceivers(p, known); err != nil {
			return out, err
		}
	}
	return out, p.done()
}

// readOperationConditions reads on what an operation depends: whether the problem is acknowledged is all that there is.
func (c *call) readOperationConditions(p *params, out *alert.Operation) {
	given, _ := p.children("opconditions")
	for _, one := range given {
		if one.number("conditiontype", 14, 1000) != 14 {
			one.fail("conditiontype", "value must be 14")
		}
		one.accept("operator", "opconditionid")
		out.If = "not_acknowledged"
		if one.flag("value") {
			out.If = "acknowledged"
		}
		p.keep(one.done())
	}
}

// readMessage reads the text of an operation and over which media type it goes.
func (c *call) readMessage(p *params, out *alert.Operation, known *alert.Config) error {
	v, ok := p.get("opmessage")
	if !ok || string(v) == "[]" {
		return nil
	}
	m, err := newParams(v)
	if err != nil {
		return err
	}
	m.place = p.place + "opmessage/"
	if id := m.text("mediatypeid"); id != "" && id != "0" {
		i := slices.IndexFunc(known.Media, func(k alert.Media) bool { return mediaTypeID(&k) == id })
		if i < 0 {
			return errNotAllowed
		}
		out.Media = []string{known.Media[i].Name}
	}
	subject, message := m.text("subject"), m.text("message")
	if m.number("default_msg", 1, 1) == 0 {
		out.Subject, out.Message = subject, message
	}
	m.accept("operationid")
	return m.done()
}

// readReceivers reads whom an operation tells: a user is the receiver of the user's name, a user group the receiver of its name or, without
// one, the receivers of its users now.
func (c *call) readReceivers(p *params, known *alert.Config) (names []string, err error) {
	add := func(name string) bool {
		i := slices.IndexFunc(known.Receivers, func(r alert.Receiver) bool { return strings.EqualFold(r.Name, name) })
		if i >= 0 && !slices.Contains(names, known.Receivers[i].Name) {
			names = append(names, known.Receivers[i].Name)
		}
		return i >= 0
	}
	users := c.options.Access.Users()
	ids, _ := p.references("opmessage_usr", "userid", "userids")
	for _, id := range sortedIDs(ids) {
		i := slices.IndexFunc(users, func(u model.User) bool { return uint64(u.ID) == id })
		if i < 0 {
			return nil, errNotAllowed
		}
		if !add(users[i].Name) {
			return nil, invalidParams(`Invalid parameter "/%sopmessage_usr": the user %q has no address. Give some with user.update, medias, or add a receiver of this name on the page Alerting.`, p.place, users[i].Name)
		}
	}
	groups := c.options.Access.Groups()
	ids, _ = p.references("opmessage_grp", "usrgrpid", "usrgrpids")
	for _, id := range sortedIDs(ids) {
		i := slices.IndexFunc(groups, func(g model.UserGroup) bool { return userGroupID(g.Name) == strconv.FormatUint(id, 10) })
		if i < 0 {
			return nil, errNotAllowed
		}
		found := add(groups[i].Name)
		for _, u := range users {
			if !found && slices.Contains(u.Groups, groups[i].Name) {
				add(u.Name)
			}
		}
	}
	if len(names) == 0 && p.failed == nil {
		return nil, invalidParams(`Invalid parameter "/%s": nobody of those who are to be told has an address.`, strings.TrimSuffix(p.place, "/"))
	}
	return names, nil
}
