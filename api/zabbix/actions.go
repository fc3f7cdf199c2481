package zabbix

import (
	"slices"
	"strconv"
	"strings"

	"tidemark/alert"
	"tidemark/model"
)

// conditionNumber is the number of a condition's type.
func conditionNumber(kind string) string {
	for n, name := range conditionKinds {
		if name == kind {
			return strconv.FormatInt(n, 10)
		}
	}
	return "0"
}

// shownFilter is the conditions of an action.
func (c *call) shownFilter(_ output, a *alert.Action) any {
	conditions, labels := []any{}, []string{}
	for i := range a.Conditions {
		condition := &a.Conditions[i]
		label := condition.LabelAt(i)
		shown := c.shownCondition(condition)
		shown["formulaid"] = label
		conditions, labels = append(conditions, shown), append(labels, label)
	}
	evaluation := max(slices.Index(evaluations, a.Evaluation), 0)
	formula := a.Formula
	if evaluation != 3 {
		formula = strings.Join(labels, map[bool]string{true: " or ", false: " and "}[evaluation == 2])
	}
	return map[string]any{"evaltype": formatInt(evaluation), "formula": a.Formula, "eval_formula": formula, "conditions": conditions}
}

func (c *call) shownCondition(condition *alert.Condition) map[string]string {
	operator, value := condition.OperatorOr(), condition.Value
	number := formatInt(max(slices.Index(conditionOperators, operator), 0))
	switch condition.Type {
	case "host_group", "host", "template":
		if operator == "equals" || operator == "not_equals" {
			value = c.conditionID(condition.Type, value)
		}
	case "severity":
		for s := model.NotClassified; s <= model.Disaster; s++ {
			if strings.EqualFold(strings.ReplaceAll(value, "_", " "), s.String()) {
				value = formatInt(int(s))
			}
		}
	case "suppressed":
		number = map[bool]string{true: "10", false: "11"}[(value == "true") == (operator == "equals")]
		value = ""
	}
	return map[string]string{"conditiontype": conditionNumber(condition.Type), "operator": number, "value": value, "value2": condition.Tag}
}

// conditionID is the id of what a condition names; 0 for what is gone.
func (c *call) conditionID(kind, name string) string {
	switch kind {
	case "host_group":
		groups, _ := c.groups() // what cannot be read is answered as what is gone
		for _, g := range groups {
			if g.Name == name {
				return strconv.FormatUint(g.ID, 10)
			}
		}
	case "host":
		for h := range c.configuration.Hosts() {
			if h.Host == name && c.visible.Has(h.ID) {
				return formatID(h.ID)
			}
		}
	default:
		templates, _ := c.templates()
		for _, t := range templates {
			if t.Template == name {
				return templateID(t.ID)
			}
		}
	}
	return "0"
}

// shownOperations are operations of problems (0), recoveries (1) or updates (2).
func (c *call) shownOperations(list []alert.Operation, of int) any {
	shown := []any{}
	for i := range list {
		o := &list[i]
		one := map[string]any{"operationid": formatInt(i + 1), "operationtype": "0", "evaltype": "0", "opmessage": c.shownMessage(o)}
		if of == 0 {
			one["esc_period"], one["esc_step_from"], one["esc_step_to"] = wholeSeconds(o.Duration.Or(0)), formatInt(max(o.From, 1)), formatInt(max(o.To, o.From, 1))
			if o.Duration == 0 {
				one["esc_period"] = "0"
			}
			if o.To < 0 {
				one["esc_step_to"] = "0"
			}
			one["opconditions"] = shownOperationConditions(o)
		}
		if o.Involved && of != 0 {
			one["operationtype"] = map[int]string{1: "11", 2: "12"}[of]
		}
		users, groups := c.shownReceivers(o)
		one["opmessage_usr"], one["opmessage_grp"] = users, groups
		shown = append(shown, one)
	}
	return shown
}

func shownOperationConditions(o *alert.Operation) []any {
	if o.If == "" {
		return []any{}
	}
	return []any{map[string]string{"conditiontype": "14", "operator": "0", "value": formatBool(o.If == "acknowledged")}}
}

func (c *call) shownMessage(o *alert.Operation) map[string]string {
	m := map[string]string{"default_msg": formatBool(o.Subject+o.Message == ""), "subject": o.Subject, "message": o.Message, "mediatypeid": "0"}
	if len(o.Media) > 0 {
		m["mediatypeid"] = mediaTypeID(&alert.Media{Name: o.Media[0]})
	}
	return m
}

// shownReceivers are the users and user groups that have the names of an operation's receivers; other receivers have no id here.
func (c *call) shownReceivers(o *alert.Operation) (users, groups []any) {
	users, groups = []any{}, []any{}
	for _, name := range o.Receivers {
		if u, ok := c.options.Access.UserNamed(name); ok {
			users = append(users, map[string]string{"userid": formatID(u.ID)})
			continue
		}
		for _, g := range c.options.Access.Groups() {
			if strings.EqualFold(g.Name, name) {
				groups = append(groups, map[string]string{"usrgrpid": userGroupID(g.Name)})
			}
		}
	}
	return users, groups
}

func actionSelects() []selection[alert.Action] {
	operations := func(of int, list func(*alert.Action) []alert.Operation) func(*call, output, *alert.Action) any {
		return func(c *call, _ output, a *alert.Action) any { return c.shownOperations(list(a), of) }
	}
	updates := operations(2, func(a *alert.Action) []alert.Operation { return a.Update })
	return []selection[alert.Action]{
		{"selectFilter", "filter", func(c *call, o output, a *alert.Action) any { return c.shownFilter(o, a) }},
		{"selectOperations", "operations", operations(0, func(a *alert.Action) []alert.Operation { return a.Operations })},
		{"selectRecoveryOperations", "recovery_operations", operations(1, func(a *alert.Action) []alert.Operation {
			if a.Recovery == nil { // all who were told of the problem are told
				return []alert.Operation{{Involved: true}}
			}
			return a.Recovery
		})},
		{"selectUpdateOperations", "update_operations", updates},
		{"selectAcknowledgeOperations", "acknowledge_operations", updates},
	}
}
