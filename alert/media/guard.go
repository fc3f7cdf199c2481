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

	"tidemark/internal/guard"
)

// ErrAddress says that a webhook would have reached an address that is not allowed.
var ErrAddress = errors.New("address is not allowed")

// CheckAddress reports whether a webhook may connect to an address. allowed are networks that are permitted although they are not public.
func CheckAddress(addr netip.Addr, allowed []netip.Prefix) error {
	// A zone chooses an interface and says nothing of the address.
	addr = addr.Unmap().WithZone("")
	for _, p := range allowed {
		if p.Contains(addr) {
			return nil
		}
	}
	if p, private := guard.Private(addr); private {
		return fmt.Errorf("%s is in %s, which is not public: %w; to permit it, add it to the media type's allow", addr, p, ErrAddress)
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
