package zabbix

import (
	"encoding/json"
	"slices"
	"strconv"

	"tidemark/model"
)

// newHost is a host as host.create takes it.
type newHost struct {
	Host        string          `json:"host"`
	Name        string          `json:"name"`
	Status      json.RawMessage `json:"status"`
	Description string          `json:"description"`
	Groups      []struct {
		ID json.RawMessage `json:"groupid"`
	} `json:"groups"`
	Templates []struct {
		ID json.RawMessage `json:"templateid"`
	} `json:"templates"`
	Tags   []exportTag `json:"tags"`
	Macros []struct {
		Macro       string          `json:"macro"`
		Value       string          `json:"value"`
		Type        json.RawMessage `json:"type"`
		Description string          `json:"description"`
	} `json:"macros"`
	Interfaces []struct {
		Type  json.RawMessage `json:"type"`
		Main  json.RawMessage `json:"main"`
		UseIP json.RawMessage `json:"useip"`
		IP    string          `json:"ip"`
		DNS   string          `json:"dns"`
		Port  json.RawMessage `json:"port"`
	} `json:"interfaces"`
}

// What an export has for a host.
type (
	exportTag struct {
		Tag   string `json:"tag"`
		Value string `json:"value"`
	}
	exportName struct {
		Name string `json:"name"`
	}
	exportMacro struct {
		Macro       string `json:"macro"`
		Value       string `json:"value"`
		Type        string `json:"type,omitempty"`
		Description string `json:"description,omitempty"`
	}
	exportInterface struct {
		Default string `json:"default"`
		Type    string `json:"type"`
		UseIP   string `json:"useip"`
		IP      string `json:"ip,omitempty"`
		DNS     string `json:"dns,omitempty"`
		Port    string `json:"port"`
		Ref     string `json:"interface_ref"`
	}
	exportHost struct {
		Host        string            `json:"host"`
		Name        string            `json:"name"`
		Description string            `json:"description,omitempty"`
		Status      string            `json:"status,omitempty"`
		Groups      []exportName      `json:"groups"`
		Templates   []exportName      `json:"templates,omitempty"`
		Tags        []exportTag       `json:"tags,omitempty"`
		Macros      []exportMacro     `json:"macros,omitempty"`
		Interfaces  []exportInterface `json:"interfaces,omitempty"`
	}
)

// createHosts makes one host, or several from an array.
func createHosts(c *call) ([]byte, error) {
	texts := c.list
	if texts == nil {
		whole, err := json.Marshal(c.object)
		if err != nil {
			return nil, errParse
		}
		texts = []json.RawMessage{whole}
	}
	if len(texts) > maxHosts {
		return nil, invalidParams(`Invalid parameter "/": maximum number of hosts is %d.`, maxHosts)
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	c.configuration = c.options.Configuration() // a call that held the lock may have made a host of the same name
	var names []string
	for i, text := range texts {
		h, err := c.readHost(strconv.Itoa(i+1), text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, h.Host) {
			return nil, invalidParams(`Invalid parameter "/%d": value (host)=(%s) already exists.`, i+1, h.Host)
		}
		names = append(names, h.Host)
		if err := c.makeHost(h); err != nil {
			return nil, err
		}
	}
	if err := c.putAll(); err != nil {
		return nil, err
	}
	ids := make([]string, len(names))
	for h := range c.options.Configuration().Hosts() {
		if i := slices.Index(names, h.Host); i >= 0 {
			ids[i] = formatID(h.ID)
		}
	}
	return encodeJSON(map[string]any{"hostids": ids})
}

// makeHost adds a host to those that are to be made.
func (c *call) makeHost(h *exportHost) error {
	text, err := encodeJSON(h)
	if err != nil {
		return err
	}
	o := newOwner("host", h.Host)
	if err := json.Unmarshal(text, &o.members); err != nil {
		return err
	}
	shown := *h
	shown.Macros = withoutSecrets(h.Macros)
	if text, err = encodeJSON(shown); err != nil {
		return err
	}
	c.made(o)
	return json.Unmarshal(text, &o.after) // what the audit log is told
}

// readHost reads a host that is to be made and checks that it may be.
func (c *call) readHost(place string, text json.RawMessage) (*exportHost, error) {
	var n newHost
	if err := decodeStrict(text, &n); err != nil {
		return nil, invalidParams(`Invalid parameter "/%s": %s; the members are host, name, status, description, groups, templates, tags, macros and interfaces.`, place, err)
	}
	switch {
	case n.Host == "":
		return nil, invalidParams(`Invalid parameter "/%s": the parameter "host" is missing.`, place)
	case len(n.Groups) == 0:
		return nil, invalidParams(`Invalid parameter "/%s": the parameter "groups" is missing.`, place)
	}
	for h := range c.configuration.Hosts() {
		if h.Host == n.Host {
			return nil, invalidParams("Host with the same name %q already exists.", n.Host)
		}
	}
	h := &exportHost{Host: n.Host, Name: cmpOr(n.Name, n.Host), Description: n.Description, Tags: n.Tags}
	if s, _ := scalar(n.Status); s == "1" {
		h.Status = "DISABLED"
	}
	if err := c.placeHost(h, &n); err != nil {
		return nil, err
	}
	for i, m := range n.Macros {
		if !model.IsMacroName(m.Macro) {
			return nil, invalidParams(`Invalid parameter "/%s/macros/%d/macro": incorrect syntax near %q.`, place, i+1, m.Macro)
		}
		secret := exportMacro{Macro: m.Macro, Value: m.Value, Description: m.Description}
		if s, _ := scalar(m.Type); s == "1" {
			secret.Type = "SECRET_TEXT"
		}
		h.Macros = append(h.Macros, secret)
	}
	return h, addInterfaces(place, h, &n)
}

// placeHost gives a new host its groups and templates.
func (c *call) placeHost(h *exportHost, n *newHost) error {
	groups, err := c.groups()
	if err != nil {
		return err
	}
	for _, ref := range n.Groups {
		id, _ := scalar(ref.ID)
		i := slices.IndexFunc(groups, func(g Group) bool { return formatID(g.ID) == id })
		if i < 0 || c.who.OnHost([]string{groups[i].Name}) < model.Editor {
			return errNotAllowed
		}
		h.Groups = append(h.Groups, exportName{groups[i].Name})
	}
	known, err := c.templates()
	if err != nil {
		return err
	}
	for _, ref := range n.Templates {
		id, _ := scalar(ref.ID)
		i := slices.IndexFunc(known, func(t Template) bool { return templateID(t.ID) == id })
		if i < 0 || !c.mayLink(known[i].ID) {
			return errNotAllowed
		}
		h.Templates = append(h.Templates, exportName{known[i].Template})
	}
	return nil
}

func addInterfaces(place string, h *exportHost, n *newHost) error {
	types := map[string]string{"1": "ZABBIX", "3": "IPMI", "4": "JMX"}
	yes := func(v json.RawMessage) string {
		if s, _ := scalar(v); s == "1" {
			return "YES"
		}
		return "NO"
	}
	for i, face := range n.Interfaces {
		kind, _ := scalar(face.Type)
		port, ok := scalar(face.Port)
		if types[kind] == "" || !ok {
			return invalidParams(`Invalid parameter "/%s/interfaces/%d": a port and the type 1 (agent), 3 (IPMI) or 4 (JMX) are expected; SNMP interfaces come with configuration.import.`, place, i+1)
		}
		if !isInterfaceIP(face.IP) {
			return invalidParams(`Invalid parameter "/%s/interfaces/%d/ip": %s.`, place, i+1, wantIP)
		}
		if !isInterfacePort(port) {
			return invalidParams(`Invalid parameter "/%s/interfaces/%d/port": %s.`, place, i+1, wantPort)
		}
		if missing := missingAddress(yes(face.UseIP) == "YES", face.IP, face.DNS); missing != "" {
			return invalidParams(`Invalid parameter "/%s/interfaces/%d": %s`, place, i+1, missing)
		}
		h.Interfaces = append(h.Interfaces, exportInterface{
			Default: yes(face.Main), Type: types[kind], UseIP: yes(face.UseIP), IP: face.IP, DNS: face.DNS, Port: port, Ref: "if" + strconv.Itoa(i+1),
		})
	}
	return nil
}
