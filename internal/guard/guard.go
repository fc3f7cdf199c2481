// Package guard keeps checks away from places that they must not reach: whoever may edit items could otherwise make the server ask
// what only the server can reach, such as the credentials that clouds serve on a link-local address, or the server itself.
package guard

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Options are the settings of Rules.
type Options struct {
	// Allowed, if not empty, are the only networks that are reached; Denied are never.
	Allowed, Denied []netip.Prefix
	// OwnPorts are TCP ports of this server that are denied on every address of this machine.
	OwnPorts []uint16
}

// Rules say which addresses may be reached. Nil rules allow everything.
type Rules struct {
	o Options

	mu   sync.Mutex
	own  map[netip.Addr]bool
	read time.Time
}

// ownFor is how long the machine's addresses are believed.
const ownFor = time.Minute

// New returns rules.
func New(o Options) *Rules { return &Rules{o: o} }

// Error says that an address must not be reached.
type Error struct {
	Address netip.Addr
	Why     string
}

// Error names the address and the reason.
func (e *Error) Error() string { return fmt.Sprintf("checks must not reach %s: %s", e.Address, e.Why) }

// Check reports whether an address may be reached; the error is *Error.
func (r *Rules) Check(at netip.AddrPort) error {
	if r == nil {
		return nil
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, p := range r.o.Denied {
		if p.Contains(ip) {
			return &Error{ip, fmt.Sprintf("%s is in collect.denied_networks", p)}
		}
	}
	for _, port := range r.o.OwnPorts {
		if port == at.Port() && r.isOwn(ip) {
			return &Error{ip, fmt.Sprintf("port %d there is this server's", port)}
		}
	}
	if len(r.o.Allowed) == 0 {
		return nil
	}
	for _, p := range r.o.Allowed {
		if p.Contains(ip) {
			return nil
		}
	}
	return &Error{ip, "it is not in collect.allowed_networks"}
}

// isOwn reports whether an address is one of this machine.
func (r *Rules) isOwn(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil || time.Since(r.read) > ownFor {
		r.own, r.read = make(map[netip.Addr]bool), time.Now()
		list, err := net.InterfaceAddrs()
		if err != nil {
			return true // Rather too careful.
		}
		for _, a := range list {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				r.own[p.Addr().Unmap().WithZone("")] = true
			}
		}
	}
	return r.own[ip]
}

// Control is a net.Dialer's: it refuses a connection before it is made, whatever name led to the address.
func (r *Rules) Control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	return r.Check(at)
}
