package trapper

import (
	"fmt"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// The reasons why a value is refused. Each has a counter.
const (
	badRow       = "bad_row"
	noHost       = "no_host"
	unknownHost  = "unknown_host"
	unknownItem  = "unknown_item"
	otherHost    = "item_of_other_host"
	disabled     = "disabled"
	wrongType    = "wrong_item_type"
	duplicate    = "duplicate_id"
	noValue      = "no_value"
	valueTooLong = "value_too_long"
	badBinary    = "bad_binary"
	notAllowed   = "not_allowed"
	// otherProxy is for values of items that another proxy, or the server itself, collects.
	otherProxy = "other_proxy"
)

// The reasons why a request or a connection is refused. Each has a counter; those of zbx.FrameError join them.
const (
	tlsUnsupported = "tls"
	timedOut       = "timeout"
	evicted        = "evicted"
	noMemory       = "no_memory"
	badSyntax      = "syntax"
	badForm        = "form"
	unknownRequest = "unknown_request"
	unknownAgent   = "unknown_agent"
	badSession     = "bad_session"
	notStored      = "not_stored"
	redeclare      = "redeclare"
	answerFailed   = "answer_not_delivered"
	kindNotAllowed = "connection_kind"
	paused         = "paused"
	// handshakeFailed is for TLS handshakes, also with an unknown identity or a wrong key.
	handshakeFailed = "tls_handshake"
	unknownProxy    = "unknown_proxy"
	// proxyWaits is for values of proxies for which there is no room now.
	proxyWaits = "proxy_waits"
	// notPrimary is for requests to a server that another one took the place of.
	notPrimary = "not_primary"
)

var (
	valueReasons = []string{
		badRow, noHost, unknownHost, unknownItem, otherHost, disabled, wrongType, duplicate, noValue, valueTooLong, badBinary,
		notAllowed, otherProxy,
	}
	requestReasons = []string{
		tlsUnsupported, timedOut, evicted, noMemory, badSyntax, badForm, unknownRequest, unknownAgent, badSession, notStored, redeclare,
		answerFailed, kindNotAllowed, paused, handshakeFailed, unknownProxy, proxyWaits, notPrimary, otherProxy, "magic", "flags", "too_large", "truncated", "zlib",
	}
	requestNames = []string{"sender data", "agent data", "active checks", "active check heartbeat", "proxy config", "proxy data", "proxy heartbeat", "text", "other"}
)

// meters are the counters of a server.
type meters struct {
	connections, full, received, processed, unsupported *metrics.Counter
	declared, undeclared                                *metrics.Counter
	requests, refusedRequests, refusedValues, secured   map[string]*metrics.Counter
	stored                                              *metrics.Histogram
	busy                                                *metrics.FloatCounter
}

func newMeters(set *metrics.Set, s *Server) *meters {
	m := &meters{
		connections:     set.GetOrCreateCounter("tidemark_trapper_connections_total"),
		full:            set.GetOrCreateCounter("tidemark_trapper_connections_full_total"),
		received:        set.GetOrCreateCounter("tidemark_trapper_received_bytes_total"),
		processed:       set.GetOrCreateCounter("tidemark_trapper_values_total"),
		unsupported:     set.GetOrCreateCounter("tidemark_trapper_unsupported_values_total"),
		declared:        set.GetOrCreateCounter("tidemark_trapper_declarations_total"),
		undeclared:      set.GetOrCreateCounter("tidemark_trapper_refused_declarations_total"),
		stored:          set.GetOrCreateHistogram("tidemark_trapper_store_seconds"),
		busy:            set.GetOrCreateFloatCounter("tidemark_trapper_busy_seconds_total"),
		requests:        counters(set, "tidemark_trapper_requests_total", "request", requestNames),
		refusedRequests: counters(set, "tidemark_trapper_refused_requests_total", "reason", requestReasons),
		secured:         counters(set, "tidemark_trapper_tls_connections_total", "kind", []string{"psk", "cert"}),
		refusedValues:   counters(set, "tidemark_trapper_refused_values_total", "reason", valueReasons),
	}
	set.GetOrCreateGauge("tidemark_trapper_connections", func() float64 { return float64(len(s.slots)) })
	set.GetOrCreateGauge("tidemark_trapper_connections_limit", func() float64 { return float64(cap(s.slots)) })
	set.GetOrCreateGauge("tidemark_trapper_in_flight_bytes", func() float64 { return float64(s.budget.inUse()) })
	set.GetOrCreateGauge("tidemark_trapper_in_flight_limit_bytes", func() float64 { return float64(s.budget.limit) })
	set.GetOrCreateGauge("tidemark_trapper_sessions", func() float64 { return float64(s.sessions.count()) })
	set.GetOrCreateGauge("tidemark_trapper_sessions_limit", func() float64 { return float64(s.sessions.limit) })
	return m
}

func counters(set *metrics.Set, name, label string, values []string) map[string]*metrics.Counter {
	all := make(map[string]*metrics.Counter, len(values))
	for _, v := range values {
		all[v] = set.GetOrCreateCounter(fmt.Sprintf("%s{%s=%q}", name, label, v))
	}
	return all
}

// quietInterval is how long a reason stays out of the log after a line about it.
const quietInterval = 10 * time.Second

// quieter lets one log line per reason and interval through and counts the others.
type quieter struct {
	mu      sync.Mutex
	reasons map[string]*quietReason
}

type quietReason struct {
	next  time.Time
	count uint64
}

// allow reports whether a line about reason may be written now, and how many were not since the last one. Reasons
// are constants of this package.
func (q *quieter) allow(reason string) (suppressed uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reasons == nil {
		q.reasons = make(map[string]*quietReason)
	}
	r := q.reasons[reason]
	if r == nil {
		r = new(quietReason)
		q.reasons[reason] = r
	}
	now := time.Now()
	if now.Before(r.next) {
		r.count++
		return 0, false
	}
	suppressed, r.count, r.next = r.count, 0, now.Add(quietInterval)
	return suppressed, true
}

// refuse counts a refused request and logs it, now and then.
func (s *Server) refuse(c *conn, reason, message string, args ...any) {
	if counter := s.meters.refusedRequests[reason]; counter != nil {
		counter.Inc()
	}
	if suppressed, ok := s.quiet.allow(reason); ok {
		args = append([]any{"peer", c.RemoteAddr().String(), "reason", reason, "suppressed", suppressed}, args...)
		s.o.Log.Warn("trapper: "+message, args...)
	}
}
