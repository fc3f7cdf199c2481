package collectors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/collect/snmptrap"
	"tidemark/confcache"
	"tidemark/internal/pcre"
	"tidemark/model"
)

// TrapOptions are what taking SNMP traps needs; all are set.
type TrapOptions struct {
	// Socket is where traps come; Run closes it.
	Socket  net.PacketConn
	Sink    collect.Sink
	Cache   *confcache.Cache
	Log     *slog.Logger
	Metrics *metrics.Set
}

// Traps takes SNMP traps for the items of a configuration. A nil one takes none.
type Traps struct {
	listener *snmptrap.Listener
	socket   net.PacketConn
	// wake says that the configuration changed; the newest snapshot is taken when its turn comes.
	wake  chan struct{}
	cache *confcache.Cache
	log   *slog.Logger
}

// namesEvery is how often the names of interfaces are looked up again.
const namesEvery = 5 * time.Minute

// NewTraps returns a listener that takes nothing before Run.
func NewTraps(o TrapOptions) *Traps {
	return &Traps{
		listener: snmptrap.New(snmptrap.Options{Sink: o.Sink, Log: o.Log, Metrics: o.Metrics}), socket: o.Socket,
		wake: make(chan struct{}, 1), cache: o.Cache, log: o.Log,
	}
}

func (t *Traps) warn(host, key string, err error) {
	t.log.Warn("an item for traps cannot be used", "host", host, "key", key, "error", err)
}

// Changed brings a change of the configuration into force soon.
func (t *Traps) Changed() {
	if t == nil {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run takes traps until ctx ends.
func (t *Traps) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- t.listener.Run(ctx, t.socket) }()
	tick := time.NewTicker(namesEvery)
	defer tick.Stop()
	for {
		t.listener.Apply(t.targets(ctx, t.cache.Snapshot()))
		select {
		case err := <-done:
			return err
		case <-t.wake:
		case <-tick.C:
		}
	}
}

// targets are the interfaces of hosts with items for traps.
func (t *Traps) targets(ctx context.Context, s *confcache.Snapshot) []snmptrap.Target {
	var list []snmptrap.Target
	for h := range s.Hosts() {
		if !h.Enabled {
			continue
		}
		byInterface := make(map[*model.Interface]*snmptrap.Target)
		items := s.Items(h.ID)
		for i := range items {
			item := &items[i]
			if item.Type != model.SNMPTrap || !item.Enabled || item.Remote {
				continue
			}
			at := h.InterfaceFor(item)
			if at == nil || at.SNMP == nil {
				t.warn(h.Host, item.Key, errors.New("the host has no interface of type SNMP"))
				continue
			}
			to := byInterface[at]
			if to == nil {
				to = &snmptrap.Target{Access: *at.SNMP}
				byInterface[at] = to
			}
			if err := addTrapItem(to, item); err != nil {
				t.warn(h.Host, item.Key, err)
			}
		}
		for at, to := range byInterface {
			for _, address := range lookUp(ctx, at.Address) {
				each := *to
				each.Address = address
				list = append(list, each)
			}
		}
	}
	return list
}

func addTrapItem(to *snmptrap.Target, item *model.Item) error {
	pattern, fallback, ok := snmptrap.KeyPattern(item.CheckKey())
	switch {
	case !ok:
		return errors.New("expected snmptrap[regexp] or snmptrap.fallback")
	case fallback:
		to.Fallback = item.ID
	case pattern == "":
		to.Items = append(to.Items, snmptrap.Item{ID: item.ID})
	default:
		re, err := pcre.Compile(pattern)
		if err != nil {
			return err
		}
		to.Items = append(to.Items, snmptrap.Item{ID: item.ID, Matcher: trapMatcher{re}})
	}
	return nil
}

// trapMatcher looks for an expression in the text of a trap; one that takes too long does not fit.
type trapMatcher struct{ re *pcre.Regexp }

// MatchString reports whether the expression fits.
func (m trapMatcher) MatchString(text string) bool {
	ok, err := m.re.Match([]byte(text))
	return ok && err == nil
}

// lookUpTime bounds looking for the addresses of a name.
const lookUpTime = 2 * time.Second

// lookUp returns the addresses of an interface.
func lookUp(ctx context.Context, text string) []netip.Addr {
	if at, err := netip.ParseAddr(text); err == nil {
		return []netip.Addr{at.Unmap().WithZone("")}
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", text)
	if err != nil {
		return nil
	}
	for i := range list {
		list[i] = list[i].Unmap().WithZone("")
	}
	return list
}
