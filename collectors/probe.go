package collectors

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/collect/zbxagent"
	"tidemark/confcache"
	"tidemark/discovery/network"
	"tidemark/internal/guard"
	"tidemark/model"
)

// Prober makes the checks of network discovery with the collectors of items. It implements network.Prober.
type Prober struct {
	agents, devices, services poller.Checker
	rules                     *guard.Rules
	cache                     *confcache.Cache
}

// Prober returns what makes checks with the collectors of s, under the rules that o has. Agents are asked unencrypted, as nothing is known of
// them. Macros are those of the cache.
func (s *Set) Prober(o *Options, cache *confcache.Cache) *Prober {
	p := &Prober{agents: zbxagent.New(zbxagent.Options{}), rules: guard.New(o.Rules()), cache: cache}
	for _, k := range s.Kinds {
		for _, t := range k.Types {
			switch t {
			case model.SNMPAgent:
				p.devices = k.Checker
			case model.SimpleCheck:
				p.services = k.Checker
			}
		}
	}
	return p
}

// Probe implements network.Prober.
func (p *Prober) Probe(ctx context.Context, q network.Probe) (value string, up bool, err error) {
	// The port is checked too: this server's own is never asked.
	if err := p.rules.Check(netip.AddrPortFrom(q.Address, uint16(q.Port))); err != nil {
		return "", false, err
	}
	address := q.Address.String()
	at := &model.Interface{Address: address, IP: address, Port: strconv.Itoa(q.Port), Main: true}
	item := &model.Item{Collect: &model.Collect{Timeout: q.Timeout}}
	task := &poller.Task{Item: item, Interface: at, Host: &model.Host{}, Timeout: q.Timeout}
	checker := p.services
	switch q.Check.Type {
	case "icmp":
		item.Type, item.Key = model.SimpleCheck, fmt.Sprintf("icmpping[%s,1,,,%d]", address, max(50, q.Timeout.Milliseconds()))
	case "agent":
		checker = p.agents
		item.Type, item.Key, at.Type = model.PassiveAgent, q.Check.Key, model.AgentInterface
		task.Address = net.JoinHostPort(address, at.Port)
	case "snmp":
		checker = p.devices
		item.Type, item.Key, at.Type, at.SNMP = model.SNMPAgent, "discovery", model.SNMPInterface, p.access(q.Check)
		item.Collect.SNMPOID, task.Address = p.cache.Snapshot().ExpandGlobal(q.Check.Key), net.JoinHostPort(address, at.Port)
		// One request and one more when it gets lost have the time of the check.
		item.Collect.Timeout = max(q.Timeout/2, 10*time.Millisecond)
	default:
		item.Type, item.Key = model.SimpleCheck, fmt.Sprintf("net.tcp.service[%s,%s,%d]", q.Check.Type, address, q.Port)
	}
	results := make([]poller.Result, 1)
	checker.Check(ctx, []*poller.Task{task}, results)
	text := strings.ToValidUTF8(string(results[0].Text), "?")
	switch {
	case results[0].Outcome == poller.Value && item.Type == model.SimpleCheck:
		return "", text == "1", nil
	case q.Check.Type == "agent" && strings.HasPrefix(text, "HTTP/"):
		// Old agents answer without a header; a web server or a gateway that answers for whole networks does so too, and is no agent.
		return "", false, nil
	case results[0].Outcome == poller.Value:
		return text, true, nil
	case results[0].Outcome == poller.NotSupported && item.Type == model.SimpleCheck:
		return "", false, fmt.Errorf("%s", text)
	}
	// An agent that does not know the key, and a device without the variable, are not what is looked for.
	return "", false, nil
}

// access is how a device is asked, its macros expanded.
func (p *Prober) access(k *network.Check) *model.SNMPAccess {
	a := k.SNMP.Access()
	a.Expand(p.cache.Snapshot().ExpandGlobal)
	return a
}

// nameTimeout bounds the look for a name.
const nameTimeout = 5 * time.Second

// Name implements network.Prober.
func (p *Prober) Name(ctx context.Context, a netip.Addr) string {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	names, err := net.DefaultResolver.LookupAddr(ctx, a.String())
	if err != nil || len(names) == 0 {
		return ""
	}
	return strings.TrimSuffix(names[0], ".")
}
