package collectors

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

// Task makes the task of an item: where it is asked for, and how long that may take. An item that cannot be asked for as it is
// configured becomes not supported, with the reason.
func Task(h *model.Host, item *model.Item) (poller.Task, bool) {
	t := poller.Task{Item: item, Host: h, Interface: h.InterfaceFor(item)}
	// An SNMP item's is the time of one request, of which a call makes many.
	if item.Collect != nil && item.Type != model.SNMPAgent {
		if t.Timeout = item.Collect.Timeout; t.Timeout > 0 && item.Type == model.PassiveAgent {
			t.Timeout += time.Second // The agent is told its limit; its answer needs time to arrive.
		}
	}
	kind := interfaceName(item.Type)
	if kind == "" {
		return t, true
	}
	at := t.Interface
	switch {
	case at == nil && item.Collect != nil && item.Collect.InterfaceRef != "":
		t.Fault = fmt.Sprintf("the host has no interface of type %s with the name %s", kind, item.Collect.InterfaceRef)
	case at == nil:
		t.Fault = fmt.Sprintf("the host has no interface of type %s; give it one", kind)
	case at.Address == "":
		t.Fault = fmt.Sprintf("the host's interface of type %s has no address", kind)
	default:
		if port, err := strconv.ParseUint(at.Port, 10, 16); err != nil || port == 0 {
			t.Fault = fmt.Sprintf("the host's interface of type %s has port %q; expected a number from 1 to 65535", kind, at.Port)
			break
		}
		t.Address = Address(at)
	}
	return t, true
}

// Address is the address of an interface with its port.
func Address(at *model.Interface) string { return net.JoinHostPort(at.Address, at.Port) }

// interfaceName names the type of interface that items of a type need; empty when they need none.
func interfaceName(t model.ItemType) string {
	switch t {
	case model.PassiveAgent:
		return "agent"
	case model.SNMPAgent:
		return "SNMP"
	case model.IPMI:
		return "IPMI"
	case model.JMX:
		return "JMX"
	}
	return ""
}
