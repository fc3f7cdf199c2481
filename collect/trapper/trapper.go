// Package trapper receives values from Zabbix senders, Zabbix agents with active checks, and our own agent.
//
// One connection carries one request and its answer. A connection is read, bounded in time and memory, by its own
// goroutine; that goroutine looks up the items, fills a batch, Puts it, waits until the values are durable, and only
// then answers. So what a peer was told to be processed is on disk, and what could not be stored is never answered: the
// peer keeps it and sends it again.
//
// docs/protocol/zabbix.md is the protocol, docs/design/0012-trapper.md the reasons.
package trapper

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// Options are the settings of a Server. Sink and Items are needed.
type Options struct {
	Sink  collect.Sink
	Items Items
	// Registrar takes unknown agents in; nil refuses them.
	Registrar Registrar
	// Declarer makes items that our own agent declares; nil refuses declarations.
	Declarer Declarer
	// Presence hears of every sign of life of a host; nil for nobody.
	Presence Presence
	// Proxies knows the proxies; nil refuses them.
	Proxies Proxies
	// Passive is the proxy that a server asks here; nil: this is none.
	Passive Passive
	// Access says which peer may speak for which host; nil lets every peer speak for every host.
	Access Access
	// TLS serves connections that start with TLS; nil refuses them.
	TLS *TLS
	// Resolver finds the addresses of DNS names in items' lists of allowed hosts; nil is the system's.
	Resolver Resolver
	// Marks is where sessions and log positions of an earlier run are read from, once, in New; nil for none.
	Marks Marks

	// MaxConnections bounds the connections that are served at once; zero is 2,048. Further ones wait in the
	// listener's queue, and connections that have been sending their request for more than 2 s are closed for them.
	MaxConnections int
	// MaxBodyBytes bounds a request as sent and after inflating; zero is 128 MiB.
	MaxBodyBytes int
	// MaxInFlightBytes bounds the memory of all requests that are being read or stored; zero is 512 MiB.
	MaxInFlightBytes int64
	// MaxSessions bounds the sessions that are remembered; zero is 100,000. The longest unused are forgotten.
	MaxSessions int
	// FirstByteTimeout is how long a connection may be silent after it was opened; zero is 10 s.
	FirstByteTimeout time.Duration
	// HandshakeTimeout is how long a TLS handshake may take; zero is 10 s.
	HandshakeTimeout time.Duration
	// ReadTimeout is how long a request may take to arrive; zero is 60 s.
	ReadTimeout time.Duration
	// StoreTimeout is how long values may take to become durable before the connection is closed without an answer;
	// zero is 60 s.
	StoreTimeout time.Duration
	// WriteTimeout is how long the answer may take; zero is 10 s.
	WriteTimeout time.Duration

	// Regexp finds a global regular expression that keys of log items name; nil knows none.
	Regexp func(name string) (model.GlobalRegexp, bool)

	// Capped, if not nil, says that agents should keep their values for now; senders cannot, and wait.
	Capped func() bool

	// Refusal, if not nil, says why this server takes nothing: another one has its place. Peers are told, and keep their values.
	Refusal func() error

	// Now is the clock, Unix nanoseconds; nil is the system's.
	Now func() int64
	// Log gets rate-limited lines about refused peers; nil discards them.
	Log *slog.Logger
	// Metrics gets the counters; nil for none.
	Metrics *metrics.Set
}

func (o Options) withDefaults() Options {
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	orDuration := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&o.MaxConnections, 2048)
	orInt(&o.MaxBodyBytes, zbx.DefaultMaxBodyBytes)
	orInt(&o.MaxSessions, 100_000)
	if o.MaxInFlightBytes <= 0 {
		o.MaxInFlightBytes = 512 << 20
	}
	orDuration(&o.FirstByteTimeout, 10*time.Second)
	orDuration(&o.HandshakeTimeout, 10*time.Second)
	orDuration(&o.ReadTimeout, time.Minute)
	orDuration(&o.StoreTimeout, time.Minute)
	orDuration(&o.WriteTimeout, 10*time.Second)
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	return o
}

// Server is the trapper.
type Server struct {
	o        Options
	sessions *sessions
	logs     logPositions
	offered  offers
	allowed  allowedLists
	budget   budget
	meters   *meters
	quiet    quieter
	workers  sync.Pool
	slots    chan struct{}

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	stop   []context.CancelFunc
	serves sync.WaitGroup
}

// New returns a server that listens nowhere yet.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		o:        o,
		sessions: newSessions(o.MaxSessions),
		budget:   budget{limit: o.MaxInFlightBytes},
		slots:    make(chan struct{}, o.MaxConnections),
		conns:    make(map[*conn]struct{}),
	}
	s.allowed.resolver = o.Resolver
	s.meters = newMeters(o.Metrics, s)
	s.workers.New = func() any { return newWorker(s) }
	if o.Marks != nil {
		o.Marks.Marks(s.seed)
	}
	return s
}

// seed takes a fact of an earlier run.
func (s *Server) seed(m model.Mark) {
	if !s.sessions.seed(m) {
		s.logs.seed(m)
	}
}

// Serve accepts connections until ctx ends or Close is called, closes ln, and returns when every connection is done:
// requests that are still being read are cut off, those that are being stored are answered first. It returns nil then,
// and otherwise the error of ln. Several listeners may be served at the same time.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.starts(cancel) {
		return errors.Join(net.ErrClosed, ln.Close())
	}
	defer s.serves.Done()
	stopped := context.AfterFunc(ctx, func() {
		// The accept loop reports what matters.
		_ = ln.Close()
		s.cutReaders()
	})
	defer stopped()

	var served sync.WaitGroup
	defer served.Wait()
	defer func() {
		cancel()
		_ = ln.Close()
	}()
	for {
		if !s.takeSlot(ctx) {
			return nil
		}
		nc, err := ln.Accept()
		if err != nil {
			<-s.slots
			if ctx.Err() != nil {
				return nil
			}
			if waitAfter(ctx, err) {
				continue
			}
			return err
		}
		c := s.admit(nc)
		served.Go(func() {
			defer s.dismiss(c)
			s.handle(ctx, c)
		})
	}
}

// waitAfter reports whether accepting may go on after err, and pauses when the process is out of descriptors.
func waitAfter(ctx context.Context, err error) bool {
	var ne net.Error
	if errors.Is(err, net.ErrClosed) || !errors.As(err, &ne) {
		return false
	}
	select {
	case <-time.After(50 * time.Millisecond):
		return true
	case <-ctx.Done():
		return true
	}
}

func (s *Server) starts(cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.stop = append(s.stop, cancel)
	s.serves.Add(1)
	return true
}

// Close ends every Serve and waits for it. A second call does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.stop {
		cancel()
	}
	s.stop = nil
	s.mu.Unlock()
	s.serves.Wait()
	return nil
}

// takeSlot waits for room for one more connection; while there is none it closes connections that have been sending
// their request for long, so that peers that never finish cannot keep others out.
func (s *Server) takeSlot(ctx context.Context) bool {
	for {
		select {
		case s.slots <- struct{}{}:
			return true
		default:
		}
		s.meters.full.Inc()
		s.evict()
		timer := time.NewTimer(evictPause)
		select {
		case s.slots <- struct{}{}:
			timer.Stop()
			return true
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

const (
	// evictPause is how often a full server looks for connections to close.
	evictPause = 100 * time.Millisecond
	// evictAfter is how long a request may always take to arrive, even when the server is full.
	evictAfter = 2 * time.Second
	// evictCount bounds the connections that are closed at once.
	evictCount = 64
)

func (s *Server) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := time.Now().Add(-evictAfter)
	count := 0
	for c := range s.conns {
		if count == evictCount {
			return
		}
		if c.reading.Load() && !c.evicted.Load() && c.opened.Before(limit) {
			c.evicted.Store(true)
			_ = c.SetReadDeadline(time.Unix(1, 0))
			count++
		}
	}
}

func (s *Server) admit(nc net.Conn) *conn {
	c := &conn{Conn: nc, opened: time.Now(), peer: collect.Peer{Kind: model.Unencrypted}}
	c.reading.Store(true)
	s.meters.connections.Inc()
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return c
}

func (s *Server) dismiss(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	_ = c.Close()
	<-s.slots
}

// cutReaders makes every connection that is still sending its request fail at once.
func (s *Server) cutReaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.reading.Load() {
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}
	}
}
