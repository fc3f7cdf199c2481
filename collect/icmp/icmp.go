// Package icmp pings: icmpping, icmppingsec and icmppingloss.
//
// One socket per address family sends and receives for all checks; a random token in each packet tells to which it belongs. A
// datagram socket is tried first, which needs no privilege where net.ipv4.ping_group_range allows it, then a raw one.
//
// Sources: RFC 792, RFC 4443; the public Zabbix manual, "Simple checks".
package icmp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"tidemark/expr"
	"tidemark/internal/guard"
)

// Options are the settings of a Pinger.
type Options struct {
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
	// Metrics may be nil.
	Metrics *metrics.Set
}

// Pinger sends echo requests. Its methods may be called by several goroutines.
type Pinger struct {
	o                        Options
	sent, received, stranger *metrics.Counter

	mu      sync.Mutex
	sockets [2]*socket
	closed  bool
}

// New returns a pinger, which opens its sockets when they are needed.
func New(o Options) *Pinger {
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	return &Pinger{
		o: o, sent: o.Metrics.GetOrCreateCounter("tidemark_icmp_sent_packets_total"),
		received: o.Metrics.GetOrCreateCounter("tidemark_icmp_received_packets_total"),
		stranger: o.Metrics.GetOrCreateCounter("tidemark_icmp_foreign_packets_total"),
	}
}

// Close closes the sockets and waits for their readers. A second call does nothing.
func (p *Pinger) Close() error {
	p.mu.Lock()
	p.closed = true
	sockets := p.sockets
	p.sockets = [2]*socket{}
	p.mu.Unlock()
	var errs []error
	for _, s := range sockets {
		if s != nil {
			errs = append(errs, s.conn.Close())
			<-s.done
		}
	}
	return errors.Join(errs...)
}

// query is a check.
type query struct {
	name, target   string
	count, size    int
	pause, timeout time.Duration
	mode           string
}

// The bounds of parameters.
const (
	maxCount   = 10_000
	minPause   = 20 * time.Millisecond
	minTimeout = 50 * time.Millisecond
	minSize    = 24
	maxSize    = 65_507
	// maxTotal bounds a check.
	maxTotal = 10 * time.Minute
)

// parse reads a key: name[target,packets,interval,size,timeout,mode or options].
func parse(key, target string) (*query, error) {
	name, params := expr.SplitKey(key)
	q := &query{name: name, target: target, count: 3, size: 56, pause: time.Second, timeout: 500 * time.Millisecond, mode: "avg"}
	if name != "icmpping" && name != "icmppingsec" && name != "icmppingloss" {
		return nil, fmt.Errorf("key %s is not known; expected icmpping, icmppingsec or icmppingloss", name)
	}
	if len(params) > 7 {
		return nil, fmt.Errorf("%s has %d parameters, expected at most 7", name, len(params))
	}
	for len(params) < 7 {
		params = append(params, "")
	}
	if params[0] != "" {
		q.target = params[0]
	}
	if q.target == "" {
		return nil, errors.New("the key has no target and the host no interface; give it one of both")
	}
	var errs []error
	number := func(i int, what string, low, high int, to func(int)) {
		if params[i] == "" {
			return
		}
		n, err := strconv.Atoi(params[i])
		if err != nil || n < low || n > high {
			errs = append(errs, fmt.Errorf("%s is %q, expected %d to %d", what, params[i], low, high))
			return
		}
		to(n)
	}
	millis := func(d time.Duration) int { return int(d / time.Millisecond) }
	number(1, "number of packets", 1, maxCount, func(n int) { q.count = n })
	number(2, "interval in milliseconds", millis(minPause), millis(maxTotal), func(n int) { q.pause = time.Duration(n) * time.Millisecond })
	number(3, "size", minSize, maxSize, func(n int) { q.size = n })
	number(4, "timeout in milliseconds", millis(minTimeout), millis(maxTotal), func(n int) { q.timeout = time.Duration(n) * time.Millisecond })
	if name == "icmppingsec" && params[5] != "" {
		q.mode = params[5]
		if q.mode != "min" && q.mode != "avg" && q.mode != "max" {
			errs = append(errs, fmt.Errorf("mode is %q, expected min, avg or max", q.mode))
		}
	}
	if time.Duration(q.count-1)*q.pause+q.timeout > maxTotal {
		errs = append(errs, fmt.Errorf("packets, interval and timeout add up to more than %v", maxTotal))
	}
	return q, errors.Join(errs...)
}

// Ping makes the check of a key. target is used where the key has none.
func (p *Pinger) Ping(ctx context.Context, key, target string) (string, error) {
	q, err := parse(key, target)
	if err != nil {
		return "", err
	}
	at, err := resolve(ctx, q.target)
	if err != nil {
		return "", err
	}
	if err := p.o.Rules.Check(netip.AddrPortFrom(at, 0)); err != nil {
		return "", err
	}
	s, err := p.socket(at)
	if err != nil {
		return "", err
	}
	times, err := p.ping(ctx, s, at, q)
	if err != nil {
		return "", err
	}
	return q.value(times), nil
}

// resolve finds the address of a name; IPv4 goes first.
func resolve(ctx context.Context, target string) (netip.Addr, error) {
	if at, err := netip.ParseAddr(strings.Trim(target, "[]")); err == nil {
		return at.Unmap(), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", target)
	if err != nil || len(list) == 0 {
		return netip.Addr{}, fmt.Errorf("the address of %q cannot be found: %w", target, err)
	}
	for _, at := range list {
		if at.Unmap().Is4() {
			return at.Unmap(), nil
		}
	}
	return list[0], nil
}

// value is what the times of the answers that came make of the check.
func (q *query) value(times []time.Duration) string {
	switch q.name {
	case "icmpping":
		if len(times) > 0 {
			return "1"
		}
		return "0"
	case "icmppingloss":
		return strconv.FormatFloat(100*float64(q.count-len(times))/float64(q.count), 'f', 6, 64)
	}
	if len(times) == 0 {
		return "0"
	}
	low, high, sum := times[0], times[0], time.Duration(0)
	for _, d := range times {
		low, high, sum = min(low, d), max(high, d), sum+d
	}
	took := sum / time.Duration(len(times))
	switch q.mode {
	case "min":
		took = low
	case "max":
		took = high
	}
	// Never zero, which stands for no answer.
	return strconv.FormatFloat(max(took.Seconds(), 0.000001), 'f', 6, 64)
}

// ping sends the packets and returns the times of the answers that came.
func (p *Pinger) ping(ctx context.Context, s *socket, at netip.Addr, q *query) ([]time.Duration, error) {
	var token [8]byte
	_, _ = rand.Read(token[:]) // never fails
	w := &waiter{at: at, answers: make(chan time.Duration, q.count), seen: make([]bool, q.count)}
	s.add(binary.BigEndian.Uint64(token[:]), w)
	defer s.drop(binary.BigEndian.Uint64(token[:]))
	payload := make([]byte, q.size)
	copy(payload, token[:])
	tick := time.NewTimer(0)
	defer tick.Stop()
	var times []time.Duration
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return nil, errors.New("the time for the check was over before its packets were sent")
		case d := <-w.answers:
			if d <= q.timeout {
				times = append(times, d)
			}
			if len(times) == q.count {
				return times, nil
			}
			continue
		case <-tick.C:
		}
		if sent == q.count {
			return times, nil
		}
		if err := s.send(at, sent, payload); err != nil && sent == 0 && !unreachable(err) {
			return nil, fmt.Errorf("send an echo request to %s: %w", at, err)
		}
		p.sent.Inc()
		if sent++; sent < q.count {
			tick.Reset(q.pause)
		} else {
			tick.Reset(q.timeout)
		}
	}
}

// socket returns the socket for an address, which is opened if need be.
func (p *Pinger) socket(at netip.Addr) (*socket, error) {
	i := 0
	if at.Is6() {
		i = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the server stops")
	}
	if p.sockets[i] != nil {
		return p.sockets[i], nil
	}
	s, err := p.open(i == 1)
	if err != nil {
		return nil, fmt.Errorf("this server may not ping: %w; allow it with sysctl net.ipv4.ping_group_range, or give it CAP_NET_RAW", err)
	}
	p.sockets[i] = s
	return s, nil
}

func (p *Pinger) open(six bool) (*socket, error) {
	s := &socket{pinger: p, six: six, waiting: make(map[uint64]*waiter), done: make(chan struct{})}
	names := []string{"udp4", "ip4:icmp", "0.0.0.0"}
	if six {
		names = []string{"udp6", "ip6:ipv6-icmp", "::"}
	}
	var err error
	if s.conn, err = icmp.ListenPacket(names[0], names[2]); err != nil {
		var id [2]byte
		_, _ = rand.Read(id[:]) // never fails
		s.raw, s.id = true, int(binary.BigEndian.Uint16(id[:]))
		if s.conn, err = icmp.ListenPacket(names[1], names[2]); err != nil {
			return nil, err
		}
	}
	go s.receive()
	return s, nil
}

// echo are the types of request and answer.
func (s *socket) echo() (request, reply icmp.Type, protocol int) {
	if s.six {
		return ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58
	}
	return ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, 1
}
