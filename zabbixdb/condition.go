package zabbixdb

import "strings"

// severityNames are those of severities, from 0.
var severityNames = []string{"NOT_CLASSIFIED", "INFORMATION", "WARNING", "AVERAGE", "HIGH", "DISASTER"}

// conditionKinds are the types of conditions of actions for problems (API, "action object", condition types of trigger actions).
var conditionKinds = map[string]string{
	"0": "host_group", "1": "host", "3": "name", "4": "severity", "6": "time", "13": "template", "16": "suppressed", "25": "tag", "26": "tag_value",
}

// conditionOperators are their operators.
var conditionOperators = map[string]string{
	"0": "equals", "1": "not_equals", "2": "contains", "3": "not_contains", "4": "in", "5": "at_least", "6": "at_most", "7": "not_in",
	"8": "matches", "9": "not_matches", "10": "equals", "11": "equals",
}

// conditions makes those of an action, and its formula; ok is false when one of them cannot be.
func (a *alerts) conditions(path, formula string, rows []row) (list []object, named string, ok bool) {
	for i, r := range rows {
		kind, label := conditionKinds[orZero(r["conditiontype"])], letters(i)
		o := object{"type": kind, "label": label, "operator": conditionOperators[orZero(r["operator"])], "value": r["value"]}
		switch kind {
		case "":
			what := "the condition of type " + orZero(r["conditiontype"])
			if r["conditiontype"] == "2" {
				what = "the condition on a single trigger"
			}
			a.out.remark(path, "is not taken: "+what+" has no counterpart, and without it the action would be for other problems too; use conditions on name, host or tags")
			return nil, "", false
		case "host_group":
			o["value"] = a.groups[r.id("value")]
		case "host", "template":
			o["value"] = a.hosts[r.id("value")]
		case "severity":
			o["value"] = severityNames[min(max(r.num("value"), 0), severityCount-1)]
		case "suppressed":
			o["value"] = "true"
			if r["operator"] == "11" {
				o["value"] = "false"
			}
		case "tag_value":
			o["tag"] = r["value2"]
		}
		if o["value"] == "" && kind != "tag_value" {
			a.out.remark(path, "is not taken: a condition names a "+strings.ReplaceAll(kind, "_", " ")+" that is not there any more")
			return nil, "", false
		}
		formula = strings.ReplaceAll(formula, "{"+r["conditionid"]+"}", label)
		list = append(list, o)
	}
	return list, formula, true
}
