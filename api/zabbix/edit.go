package zabbix

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// owner is a host or template as its document has it; members that are not named here stay as they are.
type owner struct {
	kind, name string
	// create says that it is to be made.
	create   bool
	document exported
	members  map[string]json.RawMessage
	// changed are the members that were set, as they were and are, for the audit log.
	before, after map[string]json.RawMessage
	// decoded are members as objects knows them.
	decoded map[string][]object
}

// exported is a document: an export of one host or template.
type exported struct {
	Export map[string]json.RawMessage `json:"zabbix_export"`
}

// readOwner reads the document of a host or template.
func (c *call) readOwner(kind, name string) (*owner, error) {
	text, err := c.options.Objects.Document(c.ctx, kind, name)
	if err != nil {
		return nil, notAllowed(err)
	}
	var d exported
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(d.Export[kind+"s"], &list); err != nil || len(list) != 1 {
		return nil, errNotAllowed
	}
	o := newOwner(kind, name)
	o.members = list[0]
	o.document = d
	return o, nil
}

func newOwner(kind, name string) *owner {
	return &owner{
		kind: kind, name: name, members: make(map[string]json.RawMessage), before: make(map[string]json.RawMessage), after: make(map[string]json.RawMessage),
		document: exported{map[string]json.RawMessage{"version": json.RawMessage(`"7.0"`)}},
	}
}

// set gives a member a value; an empty text or list removes it.
func (o *owner) set(member string, value any) error {
	text, err := encodeJSON(value)
	if err != nil {
		return err
	}
	delete(o.decoded, member)
	if _, ok := o.before[member]; !ok { // what it was before the call, not before this object of it
		o.before[member] = o.members[member]
	}
	o.after[member] = withoutSecretTexts(text)
	if string(text) == `""` || string(text) == "[]" || string(text) == "null" {
		delete(o.members, member)
		return nil
	}
	o.members[member] = text
	return nil
}

// withoutSecretTexts is a part of a document for the audit log: without the values of secret macros, wherever they are.
func withoutSecretTexts(text json.RawMessage) json.RawMessage {
	var all any
	if !bytes.Contains(text, []byte(secretText)) || json.Unmarshal(text, &all) != nil {
		return text
	}
	hideSecretTexts(all)
	hidden, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("null") // nothing is better than a secret
	}
	return hidden
}

func hideSecretTexts(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			hideSecretTexts(one)
		}
	case map[string]any:
		if v["type"] == secretText {
			delete(v, "value")
		}
		for _, one := range v {
			hideSecretTexts(one)
		}
	}
}

// list reads a member that is a list of objects.
func list[T any](o *owner, member string) (all []T, err error) {
	if text := o.members[member]; text != nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// setTags sets tags that are given.
func (p *params) setTags(o *owner) error {
	given, ok := p.children("tags")
	if !ok {
		return nil
	}
	tags := []exportTag{}
	for _, t := range given {
		t.require("tag")
		tags = append(tags, exportTag{Tag: t.text("tag"), Value: t.text("value")})
		if err := t.done(); err != nil {
			return err
		}
	}
	return o.set("tags", tags)
}

// macroOf reads a macro; known are those that there are, of which a change may name one by its id.
func (p *params) macroOf(host uint64, known []exportMacro) (exportMacro, error) {
	var m exportMacro
	if id := p.text("hostmacroid"); id != "" {
		i := slices.IndexFunc(known, func(k exportMacro) bool { return stableID(host, k.Macro) == id })
		if i < 0 {
			return m, errNotAllowed
		}
		m = known[i]
	} else if name := p.text("macro"); name == "" {
		p.require("macro")
	} else if i := slices.IndexFunc(known, func(k exportMacro) bool { return k.Macro == name }); i >= 0 {
		m = known[i]
	}
	if name := p.text("macro"); name != "" {
		if !model.IsMacroName(name) {
			p.fail("macro", "incorrect syntax near "+strconv.Quote(name))
		}
		m.Macro = name
	}
	if _, ok := p.get("value"); ok {
		m.Value = p.text("value")
	}
	if _, ok := p.get("type"); ok {
		m.Type = ""
		if p.number("type", 0, 1) == 1 {
			m.Type = "SECRET_TEXT"
		}
	}
	if _, ok := p.get("description"); ok {
		m.Description = p.text("description")
	}
	p.accept("automatic")
	return m, p.done()
}

// setMacros replaces the macros by those that are given. A secret one without a value keeps what it had.
func (p *params) setMacros(o *owner, host uint64) error {
	given, ok := p.children("macros")
	if !ok {
		return nil
	}
	known, err := list[exportMacro](o, "macros")
	if err != nil {
		return err
	}
	macros := []exportMacro{}
	for _, one := range given {
		m, err := one.macroOf(host, known)
		if err != nil {
			return err
		}
		macros = append(macros, m)
	}
	return o.setMacroList(macros)
}

// setMacroList sets macros and keeps values of secrets out of the audit log.
func (o *owner) setMacroList(macros []exportMacro) error {
	if err := o.set("macros", macros); err != nil {
		return err
	}
	text, err := encodeJSON(withoutSecrets(macros))
	o.after["macros"] = text
	return err
}

// withoutSecrets are macros for the audit log.
func withoutSecrets(macros []exportMacro) []exportMacro {
	shown := slices.Clone(macros)
	for i := range shown {
		if shown[i].Type != "" {
			shown[i].Value = ""
		}
	}
	return shown
}

// setGroups makes a host a member of the groups with these ids and of no others. Groups that it enters or leaves must be the caller's.
func (c *call) setGroups(o *owner, ids idSet) error {
	groups, err := c.groups()
	if err != nil {
		return err
	}
	have, err := list[exportName](o, "groups")
	if err != nil {
		return err
	}
	next := []exportName{}
	found := 0
	for _, g := range groups {
		was := slices.Contains(have, exportName{g.Name})
		if ids[g.ID] {
			found++
			next = append(next, exportName{g.Name})
		}
		if ids[g.ID] != was && c.who.OnHost([]string{g.Name}) < model.Editor {
			return errNotAllowed
		}
	}
	if found != len(ids) {
		return errNotAllowed
	}
	if len(next) == 0 {
		return invalidParams(`Invalid parameter "/groups": cannot be empty.`)
	}
	return o.set("groups", next)
}

// The names of exports for the numbers of interfaces.
var (
	interfaceTypes = map[int64]string{1: "ZABBIX", 2: "SNMP", 3: "IPMI", 4: "JMX"}
	snmpVersions   = map[int64]string{1: "SNMPV1", 2: "SNMPV2", 3: "SNMPV3"}
	snmpLevels     = []string{"NOAUTHNOPRIV", "AUTHNOPRIV", "AUTHPRIV"}
	snmpAuth       = []string{"MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512"}
	snmpPrivacy    = []string{"DES", "AES128", "AES192", "AES256", "AES192C", "AES256C"}
)

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// fillInterface sets what is given of an interface, in the form of exports.
func (p *params) fillInterface(face map[string]any, fresh bool) error {
	if fresh {
		for _, name := range []string{"type", "main", "useip", "port"} {
			p.require(name)
		}
	}
	p.accept("interfaceid", "hostid", "bulk", "available", "error", "errors_from", "disable_until")
	if _, ok := p.get("type"); ok {
		name := interfaceTypes[p.number("type", 0, 4)]
		if name == "" {
			p.fail("type", "value must be one of 1, 2, 3, 4")
		}
		face["type"] = name
	}
	for member, of := range map[string]string{"main": "default", "useip": "useip"} {
		if _, ok := p.get(member); ok {
			face[of] = yesNo(p.flag(member))
		}
	}
	for _, member := range []string{"ip", "dns", "port"} {
		if _, ok := p.get(member); ok {
			face[member] = p.text(member)
		}
	}
	if !isInterfaceIP(p.text("ip")) {
		p.fail("ip", wantIP)
	}
	if !isInterfacePort(p.text("port")) {
		p.fail("port", wantPort)
	}
	ip, dns := textOf(face, "ip", ""), textOf(face, "dns", "")
	if missing := missingAddress(face["useip"] != "NO", ip, dns); missing != "" && (fresh || p.has("useip") || p.has("ip") || p.has("dns")) {
		p.keep(invalidParams(`Invalid parameter "/%s": %s`, strings.TrimSuffix(p.place, "/"), missing))
	}
	d, ok := p.child("details")
	if !ok || len(d.object) == 0 {
		return p.done()
	}
	details := d.snmp()
	if old, ok := face["details"].(map[string]any); ok { // passphrases are never answered, so that who gives back what was answered does not have them
		for _, member := range []string{"authpassphrase", "privpassphrase"} {
			if _, given := details[member]; !given && details["version"] == old["version"] && old[member] != nil {
				details[member] = old[member]
			}
		}
	}
	if err := d.done(); err != nil {
		return err
	}
	face["details"] = details
	return p.done()
}

// snmp reads how an SNMP interface is asked.
func (p *params) snmp() map[string]any {
	details := make(map[string]any)
	if version := p.number("version", 2, 3); snmpVersions[version] == "" {
		p.fail("version", "value must be one of 1, 2, 3")
	} else {
		details["version"] = snmpVersions[version]
	}
	for _, member := range []string{"community", "contextname", "securityname", "authpassphrase", "privpassphrase"} {
		if text := p.text(member); text != "" {
			details[member] = text
		}
	}
	for member, names := range map[string][]string{"securitylevel": snmpLevels, "authprotocol": snmpAuth, "privprotocol": snmpPrivacy} {
		if _, ok := p.get(member); ok {
			details[member] = names[p.number(member, 0, int64(len(names)-1))]
		}
	}
	if _, ok := p.get("bulk"); ok {
		details["bulk"] = yesNo(p.flag("bulk"))
	}
	if n := p.number("max_repetitions", 0, math.MaxInt32); n > 0 {
		details["max_repetitions"] = strconv.FormatInt(n, 10)
	}
	return details
}

// interfaceRef finds a free name for an interface of an export.
func interfaceRef(faces []map[string]any) string {
	for n := 1; ; n++ {
		ref := "if" + strconv.Itoa(n)
		if !slices.ContainsFunc(faces, func(f map[string]any) bool { return f["interface_ref"] == ref }) {
			return ref
		}
	}
}

// setInterfaces replaces the interfaces by those that are given: what has an id changes the one that there is.
func (p *params) setInterfaces(o *owner, host uint64) error {
	given, ok := p.children("interfaces")
	if !ok {
		return nil
	}
	known, err := list[map[string]any](o, "interfaces")
	if err != nil {
		return err
	}
	next := []map[string]any{}
	for _, one := range given {
		face, fresh := map[string]any{"interface_ref": interfaceRef(append(slices.Clone(known), next...))}, true
		if id := one.number("interfaceid", 0, math.MaxInt64); id != 0 {
			i := int(id&(1<<interfaceBits-1)) - 1
			if uint64(id)>>interfaceBits != host || i < 0 || i >= len(known) {
				return errNotAllowed
			}
			face, fresh = known[i], false
		}
		if err := one.fillInterface(face, fresh); err != nil {
			return err
		}
		next = append(next, face)
	}
	return o.set("interfaces", next)
}

// common sets what hosts and templates have alike.
func (p *params) common(o *owner, id uint64) error {
	for _, member := range []string{"name", "description"} {
		if _, ok := p.get(member); ok {
			if err := o.set(member, p.text(member)); err != nil {
				return err
			}
		}
	}
	if err := p.setTags(o); err != nil {
		return err
	}
	return p.setMacros(o, id)
}

// keepsName refuses another technical name.
func (p *params) keepsName(member, name string) error {
	if text := p.text(member); text != "" && text != name {
		return invalidParams(`Invalid parameter "/%s%s": the technical name stays; change "name", which is shown.`, p.place, member)
	}
	return nil
}
