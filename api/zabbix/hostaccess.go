package zabbix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"tidemark/model"
)

// The names that documents have for the numbers of IPMI.
var (
	ipmiAuth       = map[string]string{"-1": "DEFAULT", "0": "NONE", "1": "MD2", "2": "MD5", "4": "STRAIGHT", "5": "OEM", "6": "RMCP_PLUS"}
	ipmiPrivileges = []string{"", "CALLBACK", "USER", "OPERATOR", "ADMIN", "OEM"}
)

// setAccess sets what is given of how a host is logged in to and of its inventory.
func (p *params) setAccess(o *owner) error {
	if text := p.text("ipmi_authtype"); text != "" {
		if ipmiAuth[text] == "" {
			p.fail("ipmi_authtype", "value must be one of -1, 0, 1, 2, 4, 5, 6")
		}
		if err := o.set("ipmi_authtype", ipmiAuth[text]); err != nil {
			return err
		}
	}
	if _, ok := p.get("ipmi_privilege"); ok {
		n := p.number("ipmi_privilege", 0, int64(len(ipmiPrivileges)-1))
		if n == 0 {
			p.fail("ipmi_privilege", "value must be one of 1, 2, 3, 4, 5")
		}
		if err := o.set("ipmi_privilege", ipmiPrivileges[n]); err != nil {
			return err
		}
	}
	for _, member := range []string{"ipmi_username", "ipmi_password"} {
		if _, ok := p.get(member); ok {
			if err := o.set(member, p.text(member)); err != nil {
				return err
			}
		}
	}
	o.hide("ipmi_password")
	return p.setInventory(o)
}

// keepsTLS takes how the connections of a host are encrypted when it is as it is, and says of all else where it is set.
func (c *call) keepsTLS(p *params, h *model.Host) {
	connect, accept := c.options.Objects.Encryption(h.ID)
	for member, is := range map[string]model.ConnectionKind{"tls_connect": connect, "tls_accept": accept} {
		if p.number(member, int64(is), 7) != int64(is) {
			p.fail(member, fmt.Sprintf(`value must be %d: the encryption of a host is set with "tidemark host tls"`, is))
		}
	}
	for _, member := range []string{"tls_psk_identity", "tls_psk", "tls_issuer", "tls_subject"} {
		if p.text(member) != "" {
			p.fail(member, `the encryption of a host is set with "tidemark host tls"`)
		}
	}
}

// hide keeps the values of a member out of the audit log; that it was changed stays.
func (o *owner) hide(member string) {
	hidden := json.RawMessage(`"********"`)
	for _, side := range []map[string]json.RawMessage{o.before, o.after} {
		if len(side[member]) > 0 {
			side[member] = hidden
		}
	}
}

// maxInventory bounds the fields of an inventory that one call sets.
const maxInventory = 100

// setInventory sets what is given of the inventory; an empty text removes a field, and what is not given stays.
func (p *params) setInventory(o *owner) error {
	one, ok := p.child("inventory")
	if !ok || len(one.object) == 0 {
		return nil
	}
	if len(one.object) > maxInventory {
		return invalidParams(`Invalid parameter "/%sinventory": maximum number of fields is %d.`, p.place, maxInventory)
	}
	fields := make(map[string]string)
	if text := o.members["inventory"]; text != nil {
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
	}
	for name := range one.object {
		if name == "inventory_mode" || !slices.Contains(model.InventoryFields(), name) {
			continue // done refuses it
		}
		if fields[name] = one.text(name); fields[name] == "" {
			delete(fields, name)
		}
	}
	if err := one.done(); err != nil {
		return err
	}
	if len(fields) == 0 {
		return o.set("inventory", nil)
	}
	return o.set("inventory", fields)
}

// snmpMembers answers how an SNMP interface is asked; community and names to those who may change the host, passphrases to nobody.
func snmpMembers(a *model.SNMPAccess, edits bool) map[string]string {
	shown := func(text string) string {
		if !edits {
			return ""
		}
		return text
	}
	version := 2
	for n, name := range snmpVersions {
		if name == a.Version {
			version = int(n)
		}
	}
	members := map[string]string{"version": formatInt(version), "bulk": formatBool(!a.Single)}
	if version < 3 {
		members["community"] = shown(a.Community)
	} else {
		members["securityname"], members["contextname"] = shown(a.SecurityName), shown(a.Context)
		members["authpassphrase"], members["privpassphrase"] = "", ""
		members["securitylevel"] = formatInt(indexOf(snmpLevels, a.SecurityLevel, 0))
		members["authprotocol"], members["privprotocol"] = formatInt(indexOf(snmpAuth, a.AuthProtocol, 0)), formatInt(indexOf(snmpPrivacy, a.PrivProtocol, 0))
	}
	if version > 1 {
		members["max_repetitions"] = formatInt(cmp.Or(a.MaxRepetitions, 10))
	}
	return members
}

// ipmiFields are how a host's management controllers are logged in to: the name to those who may change the host, the password to nobody.
func (c *call) ipmiFields() []field[*model.Host] {
	access := func(h *model.Host) model.IPMIAccess {
		if h.IPMI == nil {
			return model.IPMIAccess{}
		}
		return *h.IPMI
	}
	return []field[*model.Host]{
		{name: "ipmi_authtype", get: func(h **model.Host) string {
			for number, name := range ipmiAuth {
				if name == access(*h).AuthType {
					return number
				}
			}
			return "-1"
		}},
		{name: "ipmi_privilege", number: true, get: func(h **model.Host) string {
			return formatInt(indexOf(ipmiPrivileges[1:], access(*h).Privilege, 1) + 1)
		}},
		{name: "ipmi_username", get: func(h **model.Host) string {
			if !c.editsOn(*h) {
				return ""
			}
			return access(*h).Username
		}},
		{name: "ipmi_password", get: func(**model.Host) string { return "" }},
	}
}

// notedHosts adds what hosts have for people alone and how they are reached to a kind of hosts; read says whether notes are looked at.
func (c *call) notedHosts(k *kind[*model.Host]) {
	notes := c.notes()
	k.field("description").get = func(h **model.Host) string { return notes()[(*h).ID].Description }
	k.field("inventory_mode").get = func(h **model.Host) string {
		return formatInt(indexOf(inventoryModes, notes()[(*h).ID].InventoryMode, 0) - 1)
	}
	connection := func(name string, of func(connect, accept model.ConnectionKind) model.ConnectionKind) field[*model.Host] {
		return field[*model.Host]{name: name, number: true, get: func(h **model.Host) string {
			return formatInt(int(of(c.options.Objects.Encryption((*h).ID))))
		}}
	}
	k.fields = append(k.fields,
		connection("tls_connect", func(connect, _ model.ConnectionKind) model.ConnectionKind { return connect }),
		connection("tls_accept", func(_, accept model.ConnectionKind) model.ConnectionKind { return accept }),
		field[*model.Host]{name: "tls_issuer", get: func(**model.Host) string { return "" }},
		field[*model.Host]{name: "tls_subject", get: func(**model.Host) string { return "" }},
		field[*model.Host]{name: "proxy_groupid", number: true, get: func(**model.Host) string { return "0" }})
	k.fields = append(k.fields, c.ipmiFields()...)
}

// notes returns what hosts have for people alone, read once for a call and only when it is asked for; none when it cannot be read.
func (c *call) notes() func() map[model.HostID]HostNotes {
	return sync.OnceValue(func() map[model.HostID]HostNotes {
		all, err := c.options.Objects.HostNotes(c.ctx)
		if err != nil && c.failed == nil {
			c.failed = err
		}
		return all
	})
}
