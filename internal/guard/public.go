package guard

import "net/netip"

// refused are the networks that are not public: the machine itself, private and shared networks, link-local
// addresses with the metadata services of clouds, and what else IANA lists as not global (special-purpose address registries).
var refused = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("ff00::/8"),
}

// The IPv6 networks that carry an IPv4 address, which is judged instead.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

// Private returns the network that makes an address not public; false for a public one. An address in IPv6 that carries one of IPv4 is judged
// by that.
func Private(addr netip.Addr) (netip.Prefix, bool) {
	// A zone chooses an interface and says nothing of the address.
	addr = addr.Unmap().WithZone("")
	switch bytes := addr.As16(); {
	case nat64.Contains(addr):
		addr = netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixTo4.Contains(addr):
		addr = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	for _, p := range refused {
		if p.Contains(addr) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}
