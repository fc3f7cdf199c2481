package media

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrAddress says that a webhook would have reached an address that is not allowed.
var ErrAddress = errors.New("address is not allowed")

// refused are the networks that no webhook reaches unless it is allowed to: the machine itself, private and shared networks, link-local
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

// CheckAddress reports whether a webhook may connect to an address. allowed are networks that are permitted although they are not public.
func CheckAddress(addr netip.Addr, allowed []netip.Prefix) error {
	// A zone chooses an interface and says nothing of the address.
	addr = addr.Unmap().WithZone("")
	for _, p := range allowed {
		if p.Contains(addr) {
			return nil
		}
	}
	judged := addr
	switch bytes := addr.As16(); {
	case nat64.Contains(addr):
		judged = netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixTo4.Contains(addr):
		judged = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	for _, p := range refused {
		if p.Contains(judged) {
			return fmt.Errorf("%s is in %s, which is not public: %w; to permit it, add it to the media type's allow", addr, p, ErrAddress)
		}
	}
	return nil
}

// The limits of a webhook's connection.
const (
	dialTimeout      = 10 * time.Second
	maxHeaderBytes   = 64 << 10
	maxRedirects     = 3
	webhookTimeout   = 30 * time.Second
	idleTimeout      = 30 * time.Second
	maxIdlePerClient = 4
)

// guardedClient returns a client that connects to allowed addresses only. The address is judged after the name was looked up and
// before the connection is made, so that a name cannot answer differently the second time. It follows redirects to the same host and
// scheme only, since headers with secrets travel along.
func guardedClient(allowed []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%q is no address: %w", address, err)
		}
		return CheckAddress(at.Addr(), allowed)
	}}
	return &http.Client{
		Timeout: webhookTimeout,
		Transport: &http.Transport{
			// No proxy: it would connect where the guard does not look.
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: webhookTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: maxIdlePerClient, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			first := via[0].URL
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects: %w", maxRedirects, ErrAddress)
			case r.URL.Scheme != first.Scheme || r.URL.Host != first.Host:
				return fmt.Errorf("redirected from %s to %s://%s; put the final address into the url: %w", first.Host, r.URL.Scheme, r.URL.Host, ErrAddress)
			}
			return nil
		},
	}
}
