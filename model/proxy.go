package model

// ProxyID identifies one proxy. Zero is no proxy.
type ProxyID uint64

// proxyPeer is the bit that tells proxies from hosts where both stand in one table.
const proxyPeer HostID = 1 << 62

// Peer is the id under which a proxy stands in tables of hosts: those of sessions and of TLS settings. No host has such an id.
func (p ProxyID) Peer() HostID { return proxyPeer | HostID(p) }

// Proxy returns the proxy that stands under this id in a table of hosts; zero for a host.
func (h HostID) Proxy() ProxyID {
	if h&proxyPeer == 0 {
		return 0
	}
	return ProxyID(h &^ proxyPeer)
}

// Proxy is something between agents and the server: it asks the hosts that are assigned to it, preprocesses their values, and keeps
// them while the server is away.
type Proxy struct {
	ID ProxyID
	// Name is what the proxy says of itself; unique.
	Name        string
	Description string
	// Address is where the server asks it, host:port; empty for a proxy that connects by itself.
	Address string
	// HostCount is how many hosts are assigned to it.
	HostCount int
}
