package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"tidemark/collect"
	"tidemark/internal/tlsdial"
	"tidemark/model"
)

// ownPeer stands for the server among the peers of a passive proxy.
func ownPeer() model.HostID { return model.ProxyID(1).Peer() }

// maxServers bounds the addresses from which a passive proxy is asked.
const maxServers = 64

// passive answers the server of a passive proxy. It implements trapper.Passive.
type passive struct {
	proxy *Proxy
	// networks and names are whence the server may ask.
	networks []netip.Prefix
	names    []string
	// tls is what the server must show.
	tls model.HostTLS

	// offering has one token: one offer at a time waits for the server's word.
	offering chan struct{}
	// cutMu guards cut, which ends the wait of the offer that has the token.
	cutMu sync.Mutex
	cut   func()
	// configuring is held by one configuration at a time.
	configuring sync.Mutex
}

func newPassive(p *Proxy) (*passive, error) {
	out := &passive{proxy: p, offering: make(chan struct{}, 1)}
	for part := range strings.SplitSeq(p.o.Server, ",") {
		part = strings.TrimSpace(part)
		address, err := netip.ParseAddr(part)
		network, netErr := netip.ParsePrefix(part)
		switch {
		case part == "":
		case err == nil:
			out.networks = append(out.networks, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
		case netErr == nil:
			out.networks = append(out.networks, network)
		case strings.ContainsAny(part, "/: "):
			return nil, fmt.Errorf("server %q of a passive proxy: expected addresses, networks or names without ports, with commas between: the server connects to the proxy", part)
		default:
			out.names = append(out.names, part)
		}
	}
	if n := len(out.networks) + len(out.names); n == 0 || n > maxServers {
		return nil, fmt.Errorf("server of a passive proxy: %d addresses, expected 1 to %d from which it may be asked", n, maxServers)
	}
	out.tls = model.HostTLS{HostID: ownPeer(), Connect: model.Unencrypted, Issuer: p.o.TLS.ServerIssuer, Subject: p.o.TLS.ServerSubject}
	switch p.o.TLS.Connect {
	case tlsdial.PSK:
		key, err := p.o.TLS.Key("proxy.tls")
		if err != nil {
			return nil, err
		}
		out.tls.Accept, out.tls.Identity, out.tls.Key = model.PSK, p.o.TLS.PSKIdentity, key
	case tlsdial.Certificate:
		if p.o.Certificates == nil {
			return nil, errors.New("proxy.tls.connect is cert in a passive proxy, whose certificate is that of its port: expected trapper.tls.ca_file, trapper.tls.certificate_file and trapper.tls.key_file")
		}
		out.tls.Accept = model.Certificate
	default:
		out.tls.Accept = model.Unencrypted
	}
	return out, nil
}

// resolveTime bounds the look for the addresses of the server's name.
const resolveTime = 2 * time.Second

// Admit implements trapper.Passive.
func (p *passive) Admit(ctx context.Context, peer collect.Peer, from netip.Addr) error {
	if !p.from(ctx, from.Unmap().WithZone("")) {
		return fmt.Errorf("connection from %s rejected: the proxy is asked by %s only", from.Unmap(), p.proxy.o.Server)
	}
	if !p.proxy.configuration.keys.Allows(ownPeer(), peer) {
		return fmt.Errorf("connection of type %q is not allowed for the server of this proxy", peer.Kind)
	}
	return nil
}

func (p *passive) from(ctx context.Context, address netip.Addr) bool {
	for _, n := range p.networks {
		if n.Contains(address) {
			return true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	for _, name := range p.names {
		found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name) // a name without addresses allows nobody
		for _, a := range found {
			if a.Unmap() == address {
				return true
			}
		}
	}
	return false
}

// Version implements trapper.Passive.
func (p *passive) Version() string { return protocol }

// Configure implements trapper.Passive.
func (p *passive) Configure(ctx context.Context, tables []byte) error {
	p.configuring.Lock()
	defer p.configuring.Unlock()
	return p.proxy.useConfiguration(ctx, tables)
}

// errOffering says that what was offered before is still being read from the disk or written to the server.
var errOffering = errors.New("another request for the proxy's data is under way")

// offerWait is how long an offer waits for the end of the one before, whose wait it has ended: longer than an answer may take to be written.
const (
	offerWait = 15 * time.Second
	cutEvery  = 200 * time.Millisecond
)

// begin shows the configuration of the last run.
func (p *passive) begin(ctx context.Context) {
	p.configuring.Lock()
	defer p.configuring.Unlock()
	p.proxy.follow(ctx)
}

// Offer implements trapper.Passive.
func (p *passive) Offer(ctx context.Context, dst []byte, cut func()) ([]byte, func([]byte, error) error, error) {
	return p.offer(ctx, dst, cut, p.proxy.sender.gather)
}

// Results implements trapper.Passive.
func (p *passive) Results(ctx context.Context, dst []byte, cut func()) ([]byte, func([]byte, error) error, error) {
	return p.offer(ctx, dst, cut, p.proxy.sender.gatherResults)
}

// take takes the token, from an offer that waits for the server's word if need be: a server that asks anew has ended that exchange, and only
// the network did not say so. What it was offered comes again under the same ids.
func (p *passive) take(ctx context.Context, cut func()) error {
	ctx, cancel := context.WithTimeout(ctx, offerWait)
	defer cancel()
	again := time.NewTicker(cutEvery)
	defer again.Stop()
	for {
		p.cutOther()
		select {
		case p.offering <- struct{}{}:
			p.setCut(cut)
			return nil
		case <-again.C: // The other one may have had nothing to cut yet.
		case <-ctx.Done():
			return errOffering
		}
	}
}

func (p *passive) cutOther() {
	p.cutMu.Lock()
	defer p.cutMu.Unlock()
	if p.cut != nil {
		p.cut()
	}
}

func (p *passive) setCut(cut func()) {
	p.cutMu.Lock()
	defer p.cutMu.Unlock()
	p.cut = cut
}

// leave gives the token back.
func (p *passive) leave() {
	p.setCut(nil)
	<-p.offering
}

func (p *passive) offer(ctx context.Context, dst []byte, cut func(), gather func(context.Context) (*offer, error)) ([]byte, func([]byte, error) error, error) {
	if err := p.take(ctx, cut); err != nil {
		return dst, nil, err
	}
	s := p.proxy.sender
	s.requests.Inc()
	// Whether the server takes values again it says in its answer only.
	o, err := gather(ctx)
	if err != nil {
		p.leave()
		s.failed(err)
		return dst, nil, err
	}
	return s.encode(dst, o, ""), func(answer []byte, err error) error {
		defer p.leave()
		taken := false
		if err == nil {
			taken, err = s.hear(answer)
		}
		if err == nil && taken {
			err = s.taken(o)
		}
		if err != nil {
			s.failed(err)
		}
		return err
	}, nil
}
