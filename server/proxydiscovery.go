package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
	"time"

	"tidemark/discovery/network"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

// ruleID is the number of a rule or, with its label, of a check for proxies, whose protocol has numbers: the same as long as the names are.
func ruleID(names ...string) uint64 {
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(name))
		h.Write([]byte{0})
	}
	return binary.BigEndian.Uint64(h.Sum(nil))>>4 | 1
}

// proxyRules are the rules of network discovery that a proxy works off, macros expanded.
func (n *netDiscovery) proxyRules(proxy string) []proxyconfig.Rule {
	config, _ := n.current()
	expand := n.cache.Snapshot().ExpandGlobal
	var list []proxyconfig.Rule
	for i := range config.Rules {
		r := &config.Rules[i]
		if r.Proxy != proxy || r.Disabled {
			continue
		}
		out := proxyconfig.Rule{ID: ruleID(r.Name), Name: r.Name, Ranges: r.Ranges, Delay: proxyconfig.Seconds(r.Every())}
		for c := range r.Checks {
			k := &r.Checks[c]
			check := proxyconfig.Check{ID: ruleID(r.Name, k.Label()), Type: k.Type, Key: expand(k.Key), Ports: k.PortList(), Unique: r.Unique == k.Label()}
			if k.Type == "snmp" {
				check.SNMP = k.SNMP.Access()
				check.SNMP.Expand(expand)
			}
			out.Checks = append(out.Checks, check)
		}
		list = append(list, out)
	}
	return list
}

// ruleOf finds a rule of a proxy and the labels of its checks by their numbers; nil when the rule is gone.
func (n *netDiscovery) ruleOf(proxy string, id uint64) (*network.Rule, map[uint64]string) {
	config, _ := n.current()
	for i := range config.Rules {
		if r := &config.Rules[i]; r.Proxy == proxy && ruleID(r.Name) == id {
			labels := make(map[uint64]string, len(r.Checks))
			for c := range r.Checks {
				label := r.Checks[c].Label()
				labels[ruleID(r.Name, label)] = label
			}
			return r, labels
		}
	}
	return nil, nil
}

const (
	// maxOpenFinds bounds the addresses of a proxy of which a part has come, in the requests before, maxOpenBytes their answers.
	maxOpenFinds = 10_000
	maxOpenBytes = 32 << 20
	// findBytes is about what an answer takes besides its value.
	findBytes = 128
	// maxDNSBytes bounds the name of an address.
	maxDNSBytes = 255
)

// proxyFinds puts together what a proxy found at one address, which may come in several requests.
type proxyFinds struct {
	mu   sync.Mutex
	open map[findKey]*openFind
	// bytes is about what all of them take.
	bytes int
}

type openFind struct {
	network.Look
	bytes int
}

type findKey struct {
	rule    uint64
	address netip.Addr
}

// Discovered implements trapper.Proxies.
func (p *proxies) Discovered(ctx context.Context, id model.ProxyID, list []zbx.ProxyFind) error {
	p.mu.Lock()
	s := p.byID[id]
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	s.finds.mu.Lock()
	defer s.finds.mu.Unlock()
	rules := map[uint64]func(*zbx.ProxyFind) error{}
	for i := range list {
		f := &list[i]
		take := rules[f.Rule]
		if take == nil {
			take = p.taker(ctx, s, f.Rule)
			rules[f.Rule] = take
		}
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}

// wrongClock is by how much a proxy's clock must be wrong for its times to be put right, as for values that are dated ahead.
const wrongClock = 10 * time.Minute

// findTime is when something was found, by this server's clock. at is when by the proxy's, Unix seconds, which is ahead by so much: with a clock
// that is wrong it counts how long ago it was by the proxy's own.
func findTime(at int64, ahead time.Duration, now time.Time) time.Time {
	if ahead.Abs() > wrongClock {
		at -= int64(ahead / time.Second)
	}
	return time.Unix(min(at, now.Unix()), 0)
}

// taker returns what takes the rows of one rule; the caller holds the lock of the finds.
func (p *proxies) taker(ctx context.Context, s *proxyState, id uint64) func(*zbx.ProxyFind) error {
	rule, labels := p.actions.ruleOf(s.Name, id)
	p.mu.Lock()
	ahead := time.Duration(s.contact.AheadNanos)
	p.mu.Unlock()
	if rule == nil {
		return func(*zbx.ProxyFind) error { return nil } // it was deleted or changed a moment ago
	}
	return func(f *zbx.ProxyFind) error {
		address, err := netip.ParseAddr(f.IP)
		if err != nil || address.Zone() != "" {
			return nil
		}
		key := findKey{id, address.Unmap()}
		look := s.finds.open[key]
		if look == nil {
			look = &openFind{Look: network.Look{Rule: rule.Name, Address: key.address}}
		}
		look.At = findTime(f.At, ahead, time.Now())
		if f.DNS != "" {
			look.DNS = strings.Clone(f.DNS[:min(len(f.DNS), maxDNSBytes)])
		}
		if f.Check != 0 {
			value := strings.Clone(f.Value[:min(len(f.Value), network.MaxValueBytes)])
			look.Put(network.Answer{Check: labels[f.Check], Port: f.Port, Up: !f.Down, Value: value})
			s.finds.keep(key, look, findBytes+len(value))
			return nil
		}
		if err := p.actions.scanner.Take(ctx, s.Name, &look.Look); err != nil {
			return err
		}
		s.finds.forget(key)
		return nil
	}
}

// keep remembers an address of which more is to come, and that it takes so many bytes more. Where there are too many some are forgotten: the
// next look brings them again.
func (f *proxyFinds) keep(key findKey, look *openFind, bytes int) {
	if f.open == nil {
		f.open = make(map[findKey]*openFind)
	}
	if _, has := f.open[key]; !has {
		f.open[key] = look
		bytes += len(look.DNS) + findBytes
	}
	look.bytes += bytes
	f.bytes += bytes
	for old := range f.open {
		if len(f.open) <= maxOpenFinds && f.bytes <= maxOpenBytes {
			break
		}
		if old != key || len(f.open) == 1 {
			f.forget(old)
		}
	}
}

func (f *proxyFinds) forget(key findKey) {
	if look := f.open[key]; look != nil {
		f.bytes -= look.bytes
		delete(f.open, key)
	}
}
