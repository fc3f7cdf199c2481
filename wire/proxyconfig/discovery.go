package proxyconfig

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"tidemark/model"
)

// Rule is a rule of network discovery.
type Rule struct {
	// ID stands for the rule in what is found; so does that of a check. Both are less than 2^63.
	ID   uint64
	Name string
	// Ranges are addresses, Delay the time from one look to the next; as text it may be a macro.
	Ranges, Delay string
	Checks        []Check
}

// Check is one thing that is asked of each address.
type Check struct {
	ID uint64
	// Type is icmp, agent, snmp, or a service: tcp, http and so on. Key is that of an agent, or the OID of a device.
	Type, Key string
	// Ports is a list such as "22,8000-8100"; empty for icmp.
	Ports string
	// SNMP is how devices are asked; nil for other types.
	SNMP *model.SNMPAccess
	// Unique says that the check's value tells hosts apart.
	Unique bool
}

// checkTypes are the numbers of the types; those of SNMP go by version.
var checkTypes = map[string]int{
	"ssh": 0, "ldap": 1, "smtp": 2, "ftp": 3, "http": 4, "pop": 5, "nntp": 6, "imap": 7, "tcp": 8, "agent": 9, "icmp": 12, "https": 14, "telnet": 15,
}

var snmpChecks = map[string]int{"SNMPV1": 10, "SNMPV2": 11, "SNMPV3": 13}

// CheckNumber is the number of a type of checks; those of SNMP go by version.
func CheckNumber(kind, version string) int {
	if kind == "snmp" {
		return index(snmpChecks, version, snmpChecks["SNMPV2"])
	}
	return checkTypes[kind]
}

// CheckOf is the type with a number, and for SNMP the version; empty for none.
func CheckOf(n int) (kind, version string) {
	if version = nameOf(snmpChecks, n); version != "" {
		return "snmp", version
	}
	return nameOf(checkTypes, n), ""
}

const (
	ruleFields  = "druleid name iprange delay"
	checkFields = "dcheckid druleid type key_ snmp_community ports snmpv3_securityname snmpv3_securitylevel snmpv3_authpassphrase snmpv3_privpassphrase " +
		"uniq snmpv3_authprotocol snmpv3_privprotocol snmpv3_contextname"
)

// discoveryTables are the tables of rules and of their checks.
func discoveryTables(rules []Rule) []named {
	drules, dchecks := newTable(ruleFields), newTable(checkFields)
	for i := range rules {
		r := &rules[i]
		drules.add(r.ID, r.Name, r.Ranges, r.Delay)
		for n := range r.Checks {
			k := &r.Checks[n]
			kind, s := checkTypes[k.Type], model.SNMPAccess{}
			if k.SNMP != nil {
				s = *k.SNMP
				kind = index(snmpChecks, s.Version, snmpChecks["SNMPV2"])
			}
			dchecks.add(k.ID, r.ID, kind, k.Key, s.Community, cmp.Or(k.Ports, "0"), s.SecurityName, index(snmpLevels, s.SecurityLevel, 0), s.AuthPassphrase, s.PrivPassphrase,
				number(k.Unique), index(snmpAuth, s.AuthProtocol, 0), index(snmpPriv, s.PrivProtocol, 0), s.Context)
		}
	}
	return []named{{"drules", drules}, {"dchecks", dchecks}}
}

// Seconds writes a delay as every proxy reads it.
func Seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

func (d *decoder) rule(r *reader) {
	d.rules[r.id("druleid")] = len(d.out.Discovery)
	d.out.Discovery = append(d.out.Discovery, Rule{ID: r.id("druleid"), Name: r.text("name"), Ranges: r.text("iprange"), Delay: r.text("delay")})
}

// check adds a check to its rule; one of a type that is not known has the number as its type.
func (d *decoder) check(r *reader) {
	at, known := d.rules[r.id("druleid")]
	kind := r.number("type")
	if !known || r.err != nil {
		return
	}
	k := Check{ID: r.id("dcheckid"), Type: nameOf(checkTypes, kind), Key: r.text("key_"), Ports: strings.TrimSpace(r.text("ports")), Unique: r.yes("uniq")}
	if version := nameOf(snmpChecks, kind); version != "" {
		k.Type = "snmp"
		k.SNMP = &model.SNMPAccess{
			Version: version, Community: r.text("snmp_community"), Context: r.text("snmpv3_contextname"),
			SecurityName: r.text("snmpv3_securityname"), SecurityLevel: nameOf(snmpLevels, r.number("snmpv3_securitylevel")),
			AuthProtocol: nameOf(snmpAuth, r.number("snmpv3_authprotocol")), AuthPassphrase: r.text("snmpv3_authpassphrase"),
			PrivProtocol: nameOf(snmpPriv, r.number("snmpv3_privprotocol")), PrivPassphrase: r.text("snmpv3_privpassphrase"),
		}
	}
	if k.Type == "" {
		k.Type = strconv.Itoa(kind)
	}
	if k.Type == "icmp" {
		k.Ports = ""
	}
	d.out.Discovery[at].Checks = append(d.out.Discovery[at].Checks, k)
}
