package network

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/discovery"
	"tidemark/expr"
	"tidemark/internal/iprange"
)

// Rule says where hosts are looked for and how.
type Rule struct {
	Name     string `yaml:"name" json:"name"`
	Disabled bool   `yaml:"disabled,omitempty" json:"disabled,omitempty"`
	// Proxy is the name of the proxy that looks; empty for the server itself.
	Proxy string `yaml:"proxy,omitempty" json:"proxy,omitempty"`
	// Ranges are addresses: "10.0.0.1-254, 10.0.1.0/24".
	Ranges string `yaml:"ranges" json:"ranges"`
	// Delay is the time from one look to the next; an hour if not given.
	Delay  string  `yaml:"delay,omitempty" json:"delay,omitempty"`
	Checks []Check `yaml:"checks" json:"checks"`
	// Unique is what tells hosts apart: ip, or the name of the check whose value does.
	Unique string `yaml:"unique,omitempty" json:"unique,omitempty"`
	// HostName is what names a host that is made: ip, dns, or the name of the check whose value does. VisibleName the same for its visible name.
	HostName    string `yaml:"host_name,omitempty" json:"host_name,omitempty"`
	VisibleName string `yaml:"visible_name,omitempty" json:"visible_name,omitempty"`
	// AtOnce is how many addresses are asked at the same time; 32 if not given. A proxy does not hear of it, nor of the time limits of checks.
	AtOnce int `yaml:"at_once,omitempty" json:"at_once,omitempty"`
	// Forget is how long what is down is remembered; 30 days if not given.
	Forget string `yaml:"forget,omitempty" json:"forget,omitempty"`
}

// Check is one thing that is asked of each address.
type Check struct {
	// Name is by what the rule and conditions name the check; its type and key if not given.
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	// Type is icmp, agent, snmp, or a service: tcp, http, https, ssh, smtp, ftp, pop, imap, nntp, ldap or telnet.
	Type string `yaml:"type" json:"type"`
	// Ports is a list such as "22,8000-8100"; the usual port of the type if not given.
	Ports string `yaml:"ports,omitempty" json:"ports,omitempty"`
	// Key is the item key of an agent, or the OID of an SNMP device.
	Key     string          `yaml:"key,omitempty" json:"key,omitempty"`
	SNMP    *discovery.SNMP `yaml:"snmp,omitempty" json:"snmp,omitempty"`
	Timeout string          `yaml:"timeout,omitempty" json:"timeout,omitempty"`
}

// Label is the check's name, or what stands for it when it has none.
func (k *Check) Label() string {
	if k.Name != "" {
		return k.Name
	}
	return strings.TrimSpace(k.Type + " " + k.Key)
}

// PortList is the list of the check's ports: those of its type when it names none, empty for a type without ports.
func (k *Check) PortList() string {
	if usual := usualPorts[k.Type]; k.Ports == "" && usual > 0 {
		return strconv.Itoa(usual)
	}
	return k.Ports
}

// Every is the time from one look to the next; an hour when the text cannot be read.
func (r *Rule) Every() time.Duration {
	d, err := duration("delay", r.Delay, time.Hour, minDelay, maxDelay)
	if err != nil {
		return time.Hour
	}
	return d
}

// The bounds of rules.
const (
	maxRules     = 1000
	maxChecks    = 50
	maxAddresses = 65_536
	// maxProbes bounds what one look asks: addresses times ports.
	maxProbes = 1 << 20
	minDelay  = 10 * time.Second
	maxDelay  = 7 * 24 * time.Hour
	maxAtOnce = 256
)

// usualPorts are those of the types of checks; zero is for those without a port, and -1 for those that must name one.
var usualPorts = map[string]int{
	"icmp": 0, "agent": 10050, "snmp": 161, "tcp": -1, "http": 80, "https": 443, "ssh": 22, "smtp": 25, "ftp": 21, "pop": 110, "imap": 143, "nntp": 119, "ldap": 389, "telnet": 23,
}

// compiled is a rule that was checked.
type compiled struct {
	Rule
	ranges        iprange.List
	delay, forget time.Duration
	checks        []compiledCheck
	// unique, hostName and visibleName are numbers of checks; byIP and byDNS stand for the others.
	unique, hostName, visibleName int
}

type compiledCheck struct {
	Check
	// label is the check's name.
	label   string
	ports   []int
	timeout time.Duration
}

const (
	byIP  = -1
	byDNS = -2
)

// CheckRules reports the first mistake in rules.
func CheckRules(rules []Rule) error {
	_, err := compileRules(rules)
	return err
}

func compileRules(rules []Rule) ([]*compiled, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules; expected at most %d", len(rules), maxRules)
	}
	var list []*compiled
	seen := make(map[string]bool)
	for i := range rules {
		if name := rules[i].Name; name == "" || len(name) > 255 || seen[name] {
			return nil, fmt.Errorf("rule %d has the name %.255q; expected one of at most 255 bytes that no other rule has", i+1, name)
		}
		seen[rules[i].Name] = true
		c, err := compile(&rules[i])
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", rules[i].Name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

func compile(r *Rule) (*compiled, error) {
	c := &compiled{Rule: *r}
	if len(r.Proxy) > 128 {
		return nil, fmt.Errorf("the name of its proxy has %d bytes; expected at most 128", len(r.Proxy))
	}
	var err error
	if c.ranges, err = iprange.Parse(r.Ranges); err != nil {
		return nil, err
	}
	if n := c.ranges.Count(); n > maxAddresses {
		return nil, fmt.Errorf("the ranges have %d addresses; expected at most %d; split the rule", n, maxAddresses)
	}
	if c.delay, err = duration("delay", r.Delay, time.Hour, minDelay, maxDelay); err != nil {
		return nil, err
	}
	if c.forget, err = duration("forget", r.Forget, 30*24*time.Hour, time.Minute, 10*365*24*time.Hour); err != nil {
		return nil, err
	}
	if c.AtOnce == 0 {
		c.AtOnce = 32
	}
	if c.AtOnce < 1 || c.AtOnce > maxAtOnce {
		return nil, fmt.Errorf("at_once is %d; expected 1 to %d", r.AtOnce, maxAtOnce)
	}
	if err := c.compileChecks(); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		what, text string
		to         *int
	}{{"unique", r.Unique, &c.unique}, {"host_name", r.HostName, &c.hostName}, {"visible_name", r.VisibleName, &c.visibleName}} {
		if *x.to, err = c.source(x.what, x.text); err != nil {
			return nil, err
		}
	}
	if c.unique == byDNS {
		return nil, errors.New("unique is dns; expected ip or the name of a check")
	}
	return c, nil
}

func (c *compiled) compileChecks() error {
	if len(c.Checks) == 0 || len(c.Checks) > maxChecks {
		return fmt.Errorf("%d checks; expected 1 to %d", len(c.Checks), maxChecks)
	}
	probes := 0
	for i := range c.Checks {
		x, err := compileCheck(&c.Checks[i])
		if err != nil {
			return fmt.Errorf("check %d: %w", i+1, err)
		}
		if slices.ContainsFunc(c.checks, func(o compiledCheck) bool { return o.label == x.label }) {
			return fmt.Errorf("two checks have the name %s; give them different ones", x.label)
		}
		c.checks = append(c.checks, *x)
		probes += len(x.ports)
	}
	if n := probes * c.ranges.Count(); n > maxProbes {
		return fmt.Errorf("%d addresses with %d ports are %d questions; expected at most %d; split the rule", c.ranges.Count(), probes, n, maxProbes)
	}
	return nil
}

func compileCheck(k *Check) (*compiledCheck, error) {
	usual, ok := usualPorts[k.Type]
	if !ok {
		return nil, fmt.Errorf("type %q; expected icmp, agent, snmp, tcp, http, https, ssh, smtp, ftp, pop, imap, nntp, ldap or telnet", k.Type)
	}
	x := &compiledCheck{Check: *k, label: k.Label()}
	if len(x.label) > 255 || len(k.Key) > 2048 {
		return nil, errors.New("its name has more than 255 bytes, or its key more than 2,048; give it a shorter one")
	}
	var err error
	switch {
	case usual == 0 && k.Ports != "":
		return nil, errors.New("icmp has no ports")
	case k.Ports != "":
		if x.ports, err = discovery.ParsePorts(k.Ports); err != nil {
			return nil, err
		}
	case usual < 0:
		return nil, errors.New("tcp needs ports")
	default:
		x.ports = []int{usual}
	}
	if asked := k.Type == "agent" || k.Type == "snmp"; asked != (k.Key != "") {
		return nil, errors.New("checks of type agent and snmp have a key, such as system.uname or .1.3.6.1.2.1.1.1.0, and others none")
	}
	if k.SNMP != nil && k.Type != "snmp" {
		return nil, errors.New("snmp is for checks of that type")
	}
	x.timeout, err = duration("timeout", k.Timeout, 3*time.Second, 100*time.Millisecond, time.Minute)
	return x, err
}

// source is what a name or an identity is made of.
func (c *compiled) source(what, text string) (int, error) {
	switch text {
	case "", "ip":
		return byIP, nil
	case "dns":
		return byDNS, nil
	}
	i := slices.IndexFunc(c.checks, func(x compiledCheck) bool { return x.label == text })
	if i < 0 || c.checks[i].Key == "" {
		return 0, fmt.Errorf("%s is %q; expected ip, dns, or the name of a check of type agent or snmp", what, text)
	}
	return i, nil
}

func duration(what, text string, missing, low, high time.Duration) (time.Duration, error) {
	if text == "" {
		return missing, nil
	}
	d, ok := expr.ParseDuration(text, false)
	if !ok {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			d = 0
		}
	}
	if d < low || d > high {
		return 0, fmt.Errorf("%s is %q; expected %s to %s", what, text, low, high)
	}
	return d, nil
}
