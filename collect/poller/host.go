package poller

import (
	"time"

	"tidemark/model"
)

// host is a host with its checks. Each kind has its own queue of those that are due.
type host struct {
	id         model.HostID
	checks     []*check
	generation uint32
	queues     []queue
	interfaces []*iface
}

// queue holds the due checks of one host and kind.
type queue struct {
	due    []*check
	flying int
	// queued says that the queue is in the ring of its kind.
	queued bool
	host   *host
}

func newHost(id model.HostID, kinds int) *host {
	h := &host{id: id, queues: make([]queue, kinds)}
	for i := range h.queues {
		h.queues[i].host = h
	}
	return h
}

// InterfaceState is what is known of an interface.
type InterfaceState struct {
	Host    model.HostID
	Kind    string
	Address string
	// Available is 0 for not known yet, 1 for yes, 2 for no, as Zabbix numbers it.
	Available int
	// Error is why it is not, or why the last check failed; FailingSince when that began, Unix nanoseconds.
	Error        string
	FailingSince int64
}

// The values of InterfaceState.Available.
const (
	Unknown     = 0
	Available   = 1
	Unavailable = 2
)

// iface is an interface: the address of a host that checks of a kind use.
type iface struct {
	kind    *kind
	address string
	state   InterfaceState
	// disabledUntil is when it may be tried again; probing is set while one check tries.
	disabledUntil int64
	probing       bool
}

// interfaceOf returns the interface of an address, nil for none.
func (h *host) interfaceOf(k *kind, address string) *iface {
	if address == "" {
		return nil
	}
	for _, i := range h.interfaces {
		if i.kind == k && i.address == address {
			return i
		}
	}
	i := &iface{kind: k, address: address, state: InterfaceState{Host: h.id, Kind: k.Name, Address: address}}
	h.interfaces = append(h.interfaces, i)
	return i
}

// forgetInterfaces drops those that no check uses any more.
func (h *host) forgetInterfaces() {
	if len(h.interfaces) < 2 && len(h.checks) > 0 {
		return
	}
	used := make(map[*iface]bool, len(h.interfaces))
	for _, c := range h.checks {
		used[c.at] = true
	}
	kept := h.interfaces[:0]
	for _, i := range h.interfaces {
		if used[i] {
			kept = append(kept, i)
		}
	}
	clear(h.interfaces[len(kept):])
	h.interfaces = kept
}

// closed reports whether the interface may not be tried now. One check at a time tries an interface that fails.
func (i *iface) closed(now int64) bool {
	return i != nil && i.state.FailingSince != 0 && (i.probing || now < i.disabledUntil)
}

// postponed is when a check of a closed interface comes again: when the interface is open, each item a bit apart.
func (c *check) postponed(now int64) int64 {
	return max(c.at.disabledUntil, now+int64(time.Second)) + int64(c.phase%time.Second)
}

// failed takes note that the interface did not answer, and reports whether it became unavailable by that.
func (p *Poller) failed(i *iface, why string, now int64) bool {
	i.state.Error = why
	i.probing = false
	if i.state.FailingSince == 0 {
		i.state.FailingSince = now
	}
	if i.state.Available == Unavailable || now-i.state.FailingSince >= int64(p.o.UnreachablePeriod) {
		i.disabledUntil = now + int64(p.o.UnavailableDelay)
		became := i.state.Available != Unavailable
		i.state.Available = Unavailable
		return became
	}
	i.disabledUntil = now + int64(p.o.UnreachableDelay)
	return false
}

// answered takes note that the interface answered, and reports whether it became available by that.
func (i *iface) answered() bool {
	i.probing, i.disabledUntil = false, 0
	became := i.state.Available != Available
	i.state.Available, i.state.Error, i.state.FailingSince = Available, "", 0
	return became
}

// Interfaces returns the interfaces of a host.
func (p *Poller) Interfaces(id model.HostID) []InterfaceState {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[id]
	if h == nil {
		return nil
	}
	list := make([]InterfaceState, len(h.interfaces))
	for n, i := range h.interfaces {
		list[n] = i.state
	}
	return list
}
