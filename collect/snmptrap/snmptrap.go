// Package snmptrap takes SNMP traps and informs and gives them to items.
//
// A trap belongs to the hosts whose SNMP interface has the address that it came from. Of a host, the items snmptrap[regexp] whose
// expression fits take it, or else snmptrap.fallback. What does not carry the community, or the v3 credentials, of the interface is
// refused. A trap that no item takes is counted and, once a minute, logged.
//
// Sources: RFC 1157, RFC 3416; the public Zabbix manual, "SNMP traps", for the keys and the form of the text.
package snmptrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gosnmp/gosnmp"

	"tidemark/collect"
	"tidemark/expr"
	"tidemark/model"
)

// Target is what takes the traps of one interface.
type Target struct {
	Address netip.Addr
	Access  model.SNMPAccess
	// Items have expressions; Fallback, if not zero, takes what fits none of them.
	Items    []Item
	Fallback model.ItemID
}

// Item takes the traps that an expression fits; Matcher is nil for all.
type Item struct {
	ID      model.ItemID
	Matcher interface{ MatchString(text string) bool }
}

// Options are the settings of a Listener. Sink is needed.
type Options struct {
	Sink    collect.Sink
	Log     *slog.Logger
	Metrics *metrics.Set
}

const (
	// maxPacketBytes is the longest packet of UDP.
	maxPacketBytes = 65_535
	// maxVarbinds bounds the variables of a trap, maxTextBytes its text.
	maxVarbinds  = 1000
	maxTextBytes = 64 << 10
	// queueLength is how many packets wait while values are handed over.
	queueLength = 1024
	// logEvery is how often traps are logged that nobody takes.
	logEvery = time.Minute
)

// Listener takes traps.
type Listener struct {
	o       Options
	targets atomic.Pointer[map[netip.Addr][]*target]
	logged  time.Time

	received, taken, unmatched, refused, dropped *metrics.Counter
}

// target is a Target with its decoder.
type target struct {
	Target
	decoder *gosnmp.GoSNMP
}

// New returns a listener without targets.
func New(o Options) *Listener {
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Listener{o: o}
	for name, to := range map[string]**metrics.Counter{
		"received": &l.received, "taken": &l.taken, "unmatched": &l.unmatched, "refused": &l.refused, "dropped": &l.dropped,
	} {
		*to = o.Metrics.GetOrCreateCounter("tidemark_snmptrap_" + name + "_traps_total")
	}
	l.targets.Store(&map[netip.Addr][]*target{})
	return l
}

// Apply replaces the targets.
func (l *Listener) Apply(list []Target) {
	m := make(map[netip.Addr][]*target, len(list))
	for i := range list {
		t := &target{Target: list[i]}
		var err error
		if t.decoder, err = decoder(&t.Access); err != nil {
			l.o.Log.Warn("traps of an interface are refused", "address", t.Address, "error", err)
			continue
		}
		m[t.Address] = append(m[t.Address], t)
	}
	l.targets.Store(&m)
}

// packet is one from outside.
type packet struct {
	data []byte
	from netip.AddrPort
	at   time.Time
}

// Run takes traps from a socket until ctx ends, and closes it.
func (l *Listener) Run(ctx context.Context, socket net.PacketConn) error {
	queue := make(chan packet, queueLength)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range queue {
			l.take(context.WithoutCancel(ctx), p, socket)
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := l.read(ctx, socket, queue)
	close(queue)
	<-done
	return errors.Join(err, socket.Close())
}

func (l *Listener) read(ctx context.Context, socket net.PacketConn, queue chan<- packet) error {
	buffer := make([]byte, maxPacketBytes)
	for ctx.Err() == nil {
		n, from, err := socket.ReadFrom(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read SNMP traps: %w", err)
		}
		l.received.Inc()
		udp, ok := from.(*net.UDPAddr)
		if !ok {
			continue
		}
		at := udp.AddrPort()
		p := packet{append([]byte{}, buffer[:n]...), netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), time.Now()}
		select {
		case queue <- p:
		default:
			l.dropped.Inc() // The stages behind do not keep up; a trap cannot be held back.
		}
	}
	return nil
}

// take gives one trap to the items that want it.
func (l *Listener) take(ctx context.Context, p packet, socket net.PacketConn) {
	found, text := l.find(p, socket)
	if len(found) == 0 {
		return
	}
	b := model.NewBatch()
	for _, id := range found {
		b.AppendString(id, p.at.UnixNano(), model.Raw, text)
	}
	b.ArrivedAt = p.at.UnixNano()
	if err := l.o.Sink.Put(ctx, b); err != nil {
		l.dropped.Add(len(found))
		l.o.Log.Error("an SNMP trap could not be handed over", "error", err)
		b.Finish(err)
		b.Free()
		return
	}
	l.taken.Inc()
}

// find decodes a trap with the credentials of the interfaces of its address and returns the items that take it; an inform is answered.
func (l *Listener) find(p packet, socket net.PacketConn) (found []model.ItemID, text string) {
	targets := (*l.targets.Load())[p.from.Addr()]
	reason := "no host has an SNMP interface with this address"
	known := false
	for _, t := range targets {
		trap, err := decode(t, p.data)
		if err != nil {
			reason = err.Error()
			continue
		}
		if !known {
			text = describe(trap, p)
			if trap.PDUType == gosnmp.InformRequest && socket != nil {
				answer(trap, p.from, socket)
			}
		}
		known = true
		found = append(found, t.match(text)...)
	}
	switch {
	case !known:
		l.refused.Inc()
		l.tell("an SNMP trap was refused", p, reason)
	case len(found) == 0:
		l.unmatched.Inc()
		l.tell("an SNMP trap fits no item", p, "no item snmptrap[…] fits, and there is no snmptrap.fallback")
	}
	return found, text
}

// tell logs what nobody takes, not more often than once a minute.
func (l *Listener) tell(what string, p packet, why string) {
	if time.Since(l.logged) < logEvery {
		return
	}
	l.logged = time.Now()
	l.o.Log.Warn(what, "from", p.from, "reason", why)
}

func (t *target) match(text string) []model.ItemID {
	var found []model.ItemID
	for _, i := range t.Items {
		if i.Matcher == nil || i.Matcher.MatchString(text) {
			found = append(found, i.ID)
		}
	}
	if len(found) == 0 && t.Fallback != 0 {
		found = append(found, t.Fallback)
	}
	return found
}

// answer acknowledges an inform.
func answer(trap *gosnmp.SnmpPacket, to netip.AddrPort, socket net.PacketConn) {
	trap.PDUType = gosnmp.GetResponse
	trap.MsgFlags &^= gosnmp.Reportable
	data, err := trap.MarshalMsg()
	if err == nil {
		_, _ = socket.WriteTo(data, net.UDPAddrFromAddrPort(to))
	}
}

// KeyPattern returns the expression of a key: empty for snmptrap without one; false when it is no key of traps or the fallback.
func KeyPattern(key string) (pattern string, fallback, ok bool) {
	if key == "snmptrap.fallback" {
		return "", true, true
	}
	rest, ok := strings.CutPrefix(key, "snmptrap")
	switch {
	case !ok:
		return "", false, false
	case rest == "" || rest == "[]":
		return "", false, true
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		pattern = strings.TrimSpace(rest[1 : len(rest)-1])
		if strings.HasPrefix(pattern, `"`) {
			_, params := expr.SplitKey(key)
			pattern = params[0]
		}
		return pattern, false, true
	}
	return "", false, false
}
