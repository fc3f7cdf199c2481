package confdb

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tidemark/model"
)

const (
	// maxScenarios bounds the web scenarios of a host or template, maxWebSteps the steps of one.
	maxScenarios = 1000
	maxWebSteps  = 250
	// maxWebPairs bounds each list of variables, headers and fields.
	maxWebPairs = 1000
	// scenarioPrefix begins the column extra of the items that a web scenario has. No export has such a field.
	scenarioPrefix = `{"scenario":`
)

// scenarioExtra is the column extra of an item of a web scenario: of the one that runs it, or of one that takes a number from that.
type scenarioExtra struct {
	Scenario string             `json:"scenario"`
	Master   *masterExtra       `json:"master_item,omitempty"`
	Web      *model.WebScenario `json:"web,omitempty"`
}

type masterExtra struct {
	Key string `json:"key"`
}

// ofScenario reports whether the row is there for a web scenario, which its owner's column extra has as exports do.
func (f *itemFields) ofScenario() bool { return strings.HasPrefix(f.extra, scenarioPrefix) }

// reportedAs is the kind under which a report counts an item; a scenario is counted once, whatever items it has.
func (f *itemFields) reportedAs(kind string) string {
	switch {
	case !f.ofScenario():
		return kind
	case f.kind == model.WebTest:
		return kindScenario
	}
	return ""
}

// scenarios decodes the web scenarios of a host or template into their items: one that runs the scenario, whose value is not stored,
// and those that take their value out of it, with the keys that Zabbix gives them.
func (d *decoder) scenarios(n *node, owner string) []itemDef {
	list := d.objects(n, "httptests")
	var items []itemDef
	seen := make(map[string]bool)
	for i, o := range list {
		d.bad, d.path = false, owner+", web scenario"
		name := d.name(o, "name")
		d.path += " " + name
		switch {
		case i >= maxScenarios:
			d.fault(o, "the owner has %d web scenarios; at most %d are taken; not taken", len(list), maxScenarios)
		case seen[name]:
			d.fault(o, "another web scenario has the name; not taken")
		}
		seen[name] = true
		made := d.scenario(o, name)
		if d.bad {
			d.report.count(kindScenario, refused)
			continue
		}
		if !d.collected[model.WebTest] {
			d.idle[kindScenario]++
		}
		items = append(items, made...)
	}
	return items
}

var authTypes = map[string]string{"NONE": "NONE", "BASIC": "BASIC", "NTLM": "NTLM", "KERBEROS": "KERBEROS", "DIGEST": "DIGEST"}

func (d *decoder) scenario(n *node, name string) []itemDef {
	w := &model.WebScenario{
		Name: name, Agent: d.text(n, "agent", "Zabbix"), Proxy: d.text(n, "http_proxy", ""), Variables: d.pairs(n, "variables"), Headers: d.pairs(n, "headers"),
		AuthType: choose(d, n, "authentication", authTypes, "NONE"), Username: d.text(n, "http_user", ""), Password: d.text(n, "http_password", ""),
		CertFile: d.text(n, "ssl_cert_file", ""), KeyFile: d.text(n, "ssl_key_file", ""), KeyPassword: d.text(n, "ssl_key_password", ""),
		VerifyPeer: choose(d, n, "verify_peer", yesNames, false), VerifyHost: choose(d, n, "verify_host", yesNames, false),
	}
	attempts := d.text(n, "attempts", "1")
	var err error
	if w.Attempts, err = strconv.Atoi(attempts); err != nil || w.Attempts < 1 || w.Attempts > 10 {
		d.fault(n, "attempts is %q; expected 1 to 10; not taken", attempts)
	}
	for _, v := range w.Variables {
		d.checkVariable(n, v.Name)
	}
	enabled, delay := choose(d, n, "status", enabledNames, true), d.text(n, "delay", "1m")
	tags, uuid := d.tags(n), d.text(n, "uuid", "")
	steps := d.objects(n, "steps")
	if len(steps) == 0 || len(steps) > maxWebSteps {
		d.fault(n, "%d steps; expected 1 to %d; not taken", len(steps), maxWebSteps)
		return nil
	}
	seen := make(map[string]bool)
	for _, o := range steps {
		s := d.webStep(o)
		if seen[s.Name] {
			d.fault(o, "another step has the name %s; not taken", s.Name)
		}
		seen[s.Name] = true
		w.Steps = append(w.Steps, s)
	}
	return scenarioItems(w, itemFields{uuid: uuid, enabled: enabled, delay: delay, tags: tags}, n.line)
}

func (d *decoder) webStep(n *node) model.WebStep {
	s := model.WebStep{
		Name: d.name(n, "name"), URL: d.text(n, "url", ""), Query: d.pairs(n, "query_fields"), Variables: d.pairs(n, "variables"), Headers: d.pairs(n, "headers"),
		FollowRedirects: choose(d, n, "follow_redirects", yesNames, true), Retrieve: d.text(n, "retrieve_mode", "BODY"),
		TimeoutText: d.text(n, "timeout", "15s"), Required: d.text(n, "required", ""), StatusCodes: d.text(n, "status_codes", ""),
	}
	if f := n.field("posts"); f != nil && f.kind == listNode {
		s.Form = d.pairs(n, "posts")
	} else {
		s.Posts = d.text(n, "posts", "")
	}
	if s.URL == "" {
		d.fault(n, "step %s has no url; not taken", s.Name)
	}
	switch s.Retrieve {
	case "BODY", "HEADERS", "BOTH":
	default:
		d.fault(n, "retrieve_mode is %q; expected BODY, HEADERS or BOTH; not taken", s.Retrieve)
	}
	for _, v := range s.Variables {
		d.checkVariable(n, v.Name)
	}
	return s
}

// checkVariable checks the name of a variable, which is written with its braces.
func (d *decoder) checkVariable(n *node, name string) {
	if len(name) < 3 || name[0] != '{' || name[len(name)-1] != '}' || name[1] == '$' {
		d.fault(n, "variable %q; expected the form {name}; not taken", name)
	}
}

// pairs decodes a list of names with values.
func (d *decoder) pairs(n *node, key string) []model.Pair {
	list := d.objects(n, key)
	if len(list) > maxWebPairs {
		d.fault(n, "%s has %d entries; at most %d are taken; not taken", key, len(list), maxWebPairs)
		return nil
	}
	var out []model.Pair
	for _, o := range list {
		out = append(out, model.Pair{Name: d.text(o, "name", ""), Value: d.text(o, "value", "")})
	}
	return out
}

// scenarioItems are the items of a scenario; like gives what they have in common.
func scenarioItems(w *model.WebScenario, like itemFields, line int) []itemDef {
	name := model.QuoteKeyParam(w.Name)
	run := itemDef{line: line, itemFields: like}
	run.key, run.name = model.WebScenarioKey(w.Name), fmt.Sprintf("Web scenario %q", w.Name)
	run.kind, run.valueType, run.history, run.trends = model.WebTest, model.Text, "0", "0"
	run.extra = packScenario(scenarioExtra{Scenario: w.Name, Web: w})
	items := []itemDef{run}
	add := func(key, title, path, units string, kind model.ValueType) {
		i := itemDef{line: line, itemFields: like}
		i.uuid, i.delay = "", ""
		i.key, i.name, i.units, i.kind, i.valueType = key, title, units, model.Dependent, kind
		i.history, i.trends = "30d", "90d"
		if kind == model.Character {
			i.trends = "0"
		}
		i.steps = pack([]packedStep{{Type: model.StepJSONPath, Params: []string{path}, OnFail: model.FailDiscard}})
		i.extra = packScenario(scenarioExtra{Scenario: w.Name, Master: &masterExtra{Key: run.key}})
		items = append(items, i)
	}
	add("web.test.in["+name+",,bps]", fmt.Sprintf("Download speed for scenario %q.", w.Name), "$.in", "Bps", model.Float)
	add("web.test.fail["+name+"]", fmt.Sprintf("Failed step of scenario %q.", w.Name), "$.fail", "", model.Uint)
	add("web.test.error["+name+"]", fmt.Sprintf("Last error message of scenario %q.", w.Name), "$.error", "", model.Character)
	for n := range w.Steps {
		s := w.Steps[n].Name
		step, of := model.QuoteKeyParam(s), fmt.Sprintf(" for step %q of scenario %q.", s, w.Name)
		at := fmt.Sprintf("$.steps[%d].", n)
		add("web.test.in["+name+","+step+",bps]", "Download speed"+of, at+"in", "Bps", model.Float)
		add("web.test.time["+name+","+step+",resp]", "Response time"+of, at+"time", "s", model.Float)
		add("web.test.rspcode["+name+","+step+"]", "Response code"+of, at+"rspcode", "", model.Uint)
	}
	return items
}

// packScenario has no way to fail: there are only texts and numbers.
func packScenario(e scenarioExtra) string {
	text, err := json.Marshal(e)
	if err != nil {
		panic("confdb: scenario: " + err.Error())
	}
	return string(text)
}
