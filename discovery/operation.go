package discovery

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"tidemark/model"
)

// Outcome is what the actions that fit an event ask for.
type Outcome struct {
	// Names are the actions that fit.
	Names []string
	// Change is what becomes of the host; nil when no action fits.
	Change *model.HostChange
	// TLS, if not nil, is how the host's agent is spoken to from now on.
	TLS *model.HostTLS
	// Failed are actions whose conditions could not be evaluated, and why.
	Failed []error
}

// Fit adds what the actions ask for on an event to o.
func (a *Actions) Fit(e *HostEvent, o *Outcome) {
	if a == nil {
		return
	}
	for i := range a.list {
		c := &a.list[i]
		if c.Disabled || c.Event != e.Source {
			continue
		}
		if c.root != nil {
			ok, err := c.root.holds(func(n int) (bool, error) { return c.tests[n](e) })
			if err != nil {
				o.Failed = append(o.Failed, fmt.Errorf("action %s: %w", c.Name, err))
			}
			if !ok || err != nil {
				continue
			}
		}
		if !slices.Contains(o.Names, c.Name) {
			o.Names = append(o.Names, c.Name)
		}
		if o.Change == nil {
			o.Change = &model.HostChange{}
		}
		for n := range c.Operations {
			c.Operations[n].add(e, o)
		}
	}
}

// Count is how many actions look at events of a source.
func (a *Actions) Count(source string) int {
	n := 0
	if a != nil {
		for i := range a.list {
			if c := &a.list[i]; !c.Disabled && c.Event == source {
				n++
			}
		}
	}
	return n
}

// needs are the members that operations need.
var needs = map[string]string{
	"add_host": "", "remove_host": "", "enable_host": "", "disable_host": "", "add_group": "group", "remove_group": "group",
	"link_template": "template", "unlink_template": "template", "set_inventory_mode": "mode", "add_tag": "tag", "set_interface": "interface", "set_psk": "psk",
}

var interfaceKinds = map[string]model.InterfaceType{
	"agent": model.AgentInterface, "snmp": model.SNMPInterface, "ipmi": model.IPMIInterface, "jmx": model.JMXInterface,
}

var defaultPorts = map[string]string{"agent": "10050", "snmp": "161", "ipmi": "623", "jmx": "12345"}

func checkOperation(o *ActionOperation, event string) error {
	need, ok := needs[o.Type]
	if !ok {
		return fmt.Errorf("type %q; expected one of add_host, remove_host, enable_host, disable_host, add_group, remove_group, link_template, unlink_template, "+
			"set_inventory_mode, add_tag, set_interface, set_psk", o.Type)
	}
	if event == FromAgents && (o.Type == "remove_host" || o.Type == "remove_group" || o.Type == "unlink_template") {
		return fmt.Errorf("%s is for events of network discovery only", o.Type)
	}
	given := map[string]string{"group": o.Group, "template": o.Template, "mode": o.Mode, "tag": o.Tag, "psk": o.PSK}
	switch {
	case need == "interface":
		return checkInterface(o.Interface)
	case need != "" && given[need] == "":
		return fmt.Errorf("%s has no %s", o.Type, need)
	case len(o.Group) > 255 || len(o.Template) > 255 || len(o.Tag) > 255 || len(o.Value) > 255:
		return errors.New("a name of more than 255 bytes")
	case need == "mode" && o.Mode != "disabled" && o.Mode != "manual" && o.Mode != "automatic":
		return fmt.Errorf("mode %q; expected disabled, manual or automatic", o.Mode)
	case need == "psk":
		key, err := hex.DecodeString(o.PSK)
		if err != nil || len(key) < 16 || len(key) > 256 || o.Identity == "" || len(o.Identity) > 128 {
			return errors.New("set_psk; expected an identity of at most 128 bytes and a psk of 32 to 512 hexadecimal digits")
		}
	}
	return nil
}

func checkInterface(i *ActionInterface) error {
	if i == nil {
		return errors.New("set_interface has no interface")
	}
	if _, ok := interfaceKinds[i.Type]; !ok {
		return fmt.Errorf("interface of type %q; expected agent, snmp, ipmi or jmx", i.Type)
	}
	if i.Port != "" && !strings.HasPrefix(i.Port, "{$") {
		if ports, err := ParsePorts(i.Port); err != nil || len(ports) != 1 {
			return fmt.Errorf("port %q; expected a number from 1 to 65535 or a macro", i.Port)
		}
	}
	return nil
}

// add adds the operation to what is done.
func (o *ActionOperation) add(e *HostEvent, out *Outcome) {
	c := out.Change
	if o.Type == "remove_host" {
		c.Delete = true
		return
	}
	// What takes something away makes no host.
	c.Make = c.Make || o.Type != "remove_group" && o.Type != "unlink_template"
	switch o.Type {
	case "enable_host", "disable_host":
		enabled := o.Type == "enable_host"
		c.Enabled = &enabled
	case "add_group":
		c.AddGroups = with(c.AddGroups, o.Group)
	case "remove_group":
		c.RemoveGroups = with(c.RemoveGroups, o.Group)
	case "link_template":
		c.LinkTemplates = with(c.LinkTemplates, o.Template)
	case "unlink_template":
		c.DropTemplates = with(c.DropTemplates, o.Template)
	case "set_inventory_mode":
		c.InventoryMode = strings.ToUpper(o.Mode)
	case "add_tag":
		if t := (model.Tag{Name: o.Tag, Value: o.Value}); !slices.Contains(c.Tags, t) {
			c.Tags = append(c.Tags, t)
		}
	case "set_interface":
		if i := o.Interface.At(e); i.Address != "" {
			c.Interfaces = append(c.Interfaces, i)
		}
	case "set_psk":
		key, _ := hex.DecodeString(o.PSK) // checkOperation did
		out.TLS = &model.HostTLS{Connect: model.PSK, Accept: model.PSK, Identity: o.Identity, Key: key}
	}
}

func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// At is the interface at the address of an event.
func (i *ActionInterface) At(e *HostEvent) model.Interface {
	out := model.Interface{Type: interfaceKinds[i.Type], IP: e.IP, DNS: e.DNS, Address: e.IP, Port: i.Port}
	if net.ParseIP(e.IP) == nil || i.UseDNS && e.DNS != "" {
		out.Address = e.DNS
	}
	if out.Port == "" {
		out.Port = defaultPorts[i.Type]
	}
	if out.Type == model.SNMPInterface {
		out.SNMP = i.SNMP.Access()
	}
	return out
}
