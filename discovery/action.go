package discovery

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/expr"
	"tidemark/internal/iprange"
	"tidemark/internal/pcre"
	"tidemark/model"
)

// The sources of HostEvents.
const (
	// FromNetwork is for hosts and services that network discovery found.
	FromNetwork = "discovery"
	// FromAgents is for agents that register themselves.
	FromAgents = "autoregistration"
)

// Action says what is done with hosts that are found or register themselves.
type Action struct {
	Name string `yaml:"name" json:"name"`
	// Event is FromNetwork or FromAgents.
	Event    string `yaml:"event" json:"event"`
	Disabled bool   `yaml:"disabled,omitempty" json:"disabled,omitempty"`
	// Evaluation joins the conditions: and_or (those of the same field with or, the others with and), and, or, or a formula over A, B, …
	Evaluation string            `yaml:"evaluation,omitempty" json:"evaluation,omitempty"`
	Conditions []ActionCondition `yaml:"conditions,omitempty" json:"conditions,omitempty"`
	Operations []ActionOperation `yaml:"operations" json:"operations"`
}

// ActionCondition compares a field of an event.
type ActionCondition struct {
	Field    string `yaml:"field" json:"field"`
	Operator string `yaml:"operator,omitempty" json:"operator,omitempty"`
	Value    string `yaml:"value" json:"value"`
}

// ActionOperation is one thing that is done. Which of the other members it needs depends on Type.
type ActionOperation struct {
	Type     string `yaml:"type" json:"type"`
	Group    string `yaml:"group,omitempty" json:"group,omitempty"`
	Template string `yaml:"template,omitempty" json:"template,omitempty"`
	// Mode is disabled, manual or automatic.
	Mode      string           `yaml:"mode,omitempty" json:"mode,omitempty"`
	Tag       string           `yaml:"tag,omitempty" json:"tag,omitempty"`
	Value     string           `yaml:"value,omitempty" json:"value,omitempty"`
	Interface *ActionInterface `yaml:"interface,omitempty" json:"interface,omitempty"`
	// Identity and PSK, hexadecimal digits, are a pre-shared key.
	Identity string `yaml:"identity,omitempty" json:"identity,omitempty"`
	PSK      string `yaml:"psk,omitempty" json:"psk,omitempty"`
}

// ActionInterface is an interface at the address of the event.
type ActionInterface struct {
	// Type is agent, snmp, ipmi or jmx.
	Type string `yaml:"type" json:"type"`
	Port string `yaml:"port,omitempty" json:"port,omitempty"`
	// UseDNS takes the name instead of the address.
	UseDNS bool  `yaml:"use_dns,omitempty" json:"use_dns,omitempty"`
	SNMP   *SNMP `yaml:"snmp,omitempty" json:"snmp,omitempty"`
}

// SNMP is how SNMP devices are asked, in the words of exports.
type SNMP struct {
	Version        string `yaml:"version,omitempty" json:"version,omitempty"`
	Community      string `yaml:"community,omitempty" json:"community,omitempty"`
	Context        string `yaml:"context,omitempty" json:"context,omitempty"`
	SecurityName   string `yaml:"security_name,omitempty" json:"security_name,omitempty"`
	SecurityLevel  string `yaml:"security_level,omitempty" json:"security_level,omitempty"`
	AuthProtocol   string `yaml:"auth_protocol,omitempty" json:"auth_protocol,omitempty"`
	AuthPassphrase string `yaml:"auth_passphrase,omitempty" json:"auth_passphrase,omitempty"`
	PrivProtocol   string `yaml:"priv_protocol,omitempty" json:"priv_protocol,omitempty"`
	PrivPassphrase string `yaml:"priv_passphrase,omitempty" json:"priv_passphrase,omitempty"`
}

// Access is the same as collectors have it.
func (s *SNMP) Access() *model.SNMPAccess {
	if s == nil {
		s = &SNMP{Community: "{$SNMP_COMMUNITY}"}
	}
	a := &model.SNMPAccess{
		Version: s.Version, Community: s.Community, Context: s.Context, SecurityName: s.SecurityName, SecurityLevel: s.SecurityLevel,
		AuthProtocol: s.AuthProtocol, AuthPassphrase: s.AuthPassphrase, PrivProtocol: s.PrivProtocol, PrivPassphrase: s.PrivPassphrase,
	}
	if a.Version == "" {
		a.Version = "SNMPV2"
	}
	return a
}

// SNMPOf is the inverse of Access.
func SNMPOf(a *model.SNMPAccess) *SNMP {
	if a == nil {
		return nil
	}
	return &SNMP{
		Version: a.Version, Community: a.Community, Context: a.Context, SecurityName: a.SecurityName, SecurityLevel: a.SecurityLevel,
		AuthProtocol: a.AuthProtocol, AuthPassphrase: a.AuthPassphrase, PrivProtocol: a.PrivProtocol, PrivPassphrase: a.PrivPassphrase,
	}
}

// HostEvent is what actions are asked about.
type HostEvent struct {
	// Source is FromNetwork or FromAgents.
	Source string
	// Host and Metadata are those of an agent, Proxy what it speaks to, or what looked.
	Host, Metadata, Proxy string
	IP, DNS               string
	// Rule is the rule of network discovery, Check its check (kind and key), Service the kind of the check, Port where it answered.
	Rule, Check, Service string
	Port                 int
	// Object is host or service; Status is up, down, discovered or lost.
	Object, Status string
	// Value is what the check brought, For how long the object has been up or down.
	Value string
	For   time.Duration
}

// Bounds of a set of actions.
const (
	maxActions       = 1000
	maxActionParts   = 500
	maxConditionText = 64 << 10
)

// Actions is a compiled set of actions.
type Actions struct{ list []compiledAction }

type compiledAction struct {
	*Action
	root  *formula
	tests []func(*HostEvent) (bool, error)
}

// CompileActions checks actions; they are worked off in order of their names.
func CompileActions(list []Action) (*Actions, error) {
	if len(list) > maxActions {
		return nil, fmt.Errorf("%d actions; expected at most %d", len(list), maxActions)
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Action) int { return strings.Compare(a.Name, b.Name) })
	out := &Actions{}
	for i := range sorted {
		a := &sorted[i]
		if a.Name == "" || len(a.Name) > 255 {
			return nil, errors.New("an action has no name, or one of more than 255 bytes")
		}
		if i > 0 && sorted[i-1].Name == a.Name {
			return nil, fmt.Errorf("two actions have the name %s", a.Name)
		}
		c, err := compileAction(a)
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", a.Name, err)
		}
		out.list = append(out.list, *c)
	}
	return out, nil
}

func compileAction(a *Action) (*compiledAction, error) {
	if a.Event != FromNetwork && a.Event != FromAgents {
		return nil, fmt.Errorf("event %q; expected %s or %s", a.Event, FromNetwork, FromAgents)
	}
	if len(a.Operations) == 0 || len(a.Operations) > maxActionParts || len(a.Conditions) > maxActionParts {
		return nil, fmt.Errorf("%d operations and %d conditions; expected 1 to %d operations and at most as many conditions", len(a.Operations), len(a.Conditions), maxActionParts)
	}
	c := &compiledAction{Action: a}
	f := &model.Filter{}
	for i, x := range a.Conditions {
		test, err := compileCondition(a.Event, x)
		if err != nil {
			return nil, fmt.Errorf("condition %s: %w", conditionID(i), err)
		}
		c.tests = append(c.tests, test)
		f.Conditions = append(f.Conditions, model.Condition{ID: conditionID(i), Macro: x.Field})
	}
	for i := range a.Operations {
		if err := checkOperation(&a.Operations[i], a.Event); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	switch a.Evaluation {
	case "", "and_or":
		f.Kind = model.FilterAndOr
	case "and":
		f.Kind = model.FilterAnd
	case "or":
		f.Kind = model.FilterOr
	default:
		f.Kind, f.Formula = model.FilterFormula, a.Evaluation
	}
	if len(f.Conditions) == 0 {
		return c, nil
	}
	var err error
	if f.Kind == model.FilterFormula {
		c.root, err = parseFormula(f)
	} else {
		c.root = joined(f)
	}
	return c, err
}

// conditionID names conditions A to Z, then AA and so on, as formulas do.
func conditionID(n int) string {
	id := string(rune('A' + n%26))
	if n >= 26 {
		return conditionID(n/26-1) + id
	}
	return id
}

// fields are what events can be compared by; agents says for which source.
var fields = map[string]struct {
	network, agents bool
	text            func(*HostEvent) string
}{
	"host_name": {false, true, func(e *HostEvent) string { return e.Host }},
	"metadata":  {false, true, func(e *HostEvent) string { return e.Metadata }},
	"proxy":     {true, true, func(e *HostEvent) string { return e.Proxy }},
	"ip":        {true, true, func(e *HostEvent) string { return e.IP }},
	"rule":      {true, false, func(e *HostEvent) string { return e.Rule }},
	"check":     {true, false, func(e *HostEvent) string { return e.Check }},
	"service":   {true, false, func(e *HostEvent) string { return e.Service }},
	"port":      {true, false, func(e *HostEvent) string { return strconv.Itoa(e.Port) }},
	"object":    {true, false, func(e *HostEvent) string { return e.Object }},
	"status":    {true, false, func(e *HostEvent) string { return e.Status }},
	"value":     {true, false, func(e *HostEvent) string { return e.Value }},
	"uptime":    {true, false, nil},
	"downtime":  {true, false, nil},
}

func compileCondition(event string, x ActionCondition) (func(*HostEvent) (bool, error), error) {
	field, ok := fields[x.Field]
	if !ok || event == FromNetwork && !field.network || event == FromAgents && !field.agents {
		return nil, fmt.Errorf("field %q is none of an event of %s", x.Field, event)
	}
	if len(x.Value) > maxConditionText {
		return nil, fmt.Errorf("the value has %d bytes; expected at most %d", len(x.Value), maxConditionText)
	}
	operator := x.Operator
	if operator == "" {
		operator = "equals"
	}
	switch x.Field {
	case "uptime", "downtime":
		return timeCondition(x.Field, operator, x.Value)
	case "ip":
		return addressCondition(operator, x.Value)
	}
	return textCondition(field.text, operator, x)
}

// textCondition compares texts; a port may be compared with "22,8000-8100".
func textCondition(text func(*HostEvent) string, operator string, x ActionCondition) (func(*HostEvent) (bool, error), error) {
	matches := func(string) (bool, error) { return false, nil }
	positive, negated := strings.CutPrefix(operator, "not_")
	switch positive {
	case "equals":
		matches = func(s string) (bool, error) { return s == x.Value, nil }
		if x.Field == "port" {
			ports, err := ParsePorts(x.Value)
			if err != nil {
				return nil, err
			}
			matches = func(s string) (bool, error) {
				n, err := strconv.Atoi(s)
				return err == nil && slices.Contains(ports, n), nil
			}
		}
	case "contains":
		matches = func(s string) (bool, error) { return strings.Contains(s, x.Value), nil }
	case "matches":
		re, err := pcre.Compile(x.Value)
		if err != nil {
			return nil, err
		}
		matches = func(s string) (bool, error) { return re.Match([]byte(s)) }
	case "greater_equal", "less_equal":
		want, err := strconv.ParseFloat(x.Value, 64)
		if err != nil || negated || x.Field != "value" {
			return nil, fmt.Errorf("operator %s compares numbers of the field value; found %s %q", operator, x.Field, x.Value)
		}
		matches = func(s string) (bool, error) {
			n, err := strconv.ParseFloat(s, 64)
			return err == nil && (positive == "greater_equal" && n >= want || positive == "less_equal" && n <= want), nil
		}
	default:
		return nil, fmt.Errorf("operator %q; expected equals, contains, matches, the same with not_, greater_equal or less_equal", operator)
	}
	return func(e *HostEvent) (bool, error) {
		ok, err := matches(text(e))
		return ok != negated && err == nil, err
	}, nil
}

func timeCondition(field, operator, value string) (func(*HostEvent) (bool, error), error) {
	d, ok := expr.ParseDuration(value, false)
	if !ok || operator != "greater_equal" && operator != "less_equal" {
		return nil, fmt.Errorf("%s %s %q; expected greater_equal or less_equal and a time such as 30m", field, operator, value)
	}
	up := field == "uptime"
	return func(e *HostEvent) (bool, error) {
		if isUp := e.Status == "up" || e.Status == "discovered"; isUp != up {
			return false, nil
		}
		if operator == "greater_equal" {
			return e.For >= d, nil
		}
		return e.For <= d, nil
	}, nil
}

func addressCondition(operator, value string) (func(*HostEvent) (bool, error), error) {
	list, err := iprange.Parse(value)
	if err != nil {
		return nil, err
	}
	if operator != "equals" && operator != "not_equals" {
		return nil, fmt.Errorf("operator %q; expected equals or not_equals for the field ip", operator)
	}
	return func(e *HostEvent) (bool, error) {
		a, err := netip.ParseAddr(e.IP)
		return err == nil && list.Contains(a) == (operator == "equals"), nil
	}, nil
}

// maxPorts bounds the ports of one check.
const maxPorts = 1024

// ParsePorts reads a list of ports such as "22,8000-8100".
func ParsePorts(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(low, 10, 16)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || from == 0 || from > to || len(list)+int(to-from) >= maxPorts {
			return nil, fmt.Errorf("ports %.100q; expected numbers from 1 to 65535 and ranges, such as 22,8000-8100, at most %d of them", text, maxPorts)
		}
		for p := from; p <= to; p++ {
			list = append(list, int(p))
		}
	}
	return list, nil
}
