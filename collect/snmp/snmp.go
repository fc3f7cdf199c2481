// Package snmp asks devices by SNMP v1, v2c and v3.
//
// The items of a device that are due together are asked for in one request, of as many variables as the device answers. walk[…] reads
// subtrees in bulk and gives them as text that preprocessing steps take apart; discovery[…] gives the rows of tables as JSON for
// low-level discovery. A device that does not answer is unreachable; one that refuses makes items unsupported.
//
// Sources: RFC 1157, RFC 3416 (operations), RFC 3414 (v3 security); the public Zabbix manual, "SNMP agent". The protocol itself is
// left to gosnmp.
package snmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gosnmp/gosnmp"

	"tidemark/collect/poller"
	"tidemark/model"
)

// Options are the settings of a Checker.
type Options struct {
	// Timeout is how long a device may take for one request; zero is 3 s. Items may say something else.
	Timeout time.Duration
	// Metrics may be nil.
	Metrics *metrics.Set
}

const (
	// maxBatch bounds the variables of one request; Zabbix has 128.
	maxBatch = 128
	// defaultRepetitions is how many rows are asked for at once in a walk.
	defaultRepetitions = 10
	maxRepetitions     = 1000
	// maxVariables and maxWalkBytes bound one walk.
	maxVariables = 500_000
	maxWalkBytes = 32 << 20
	// maxIdle bounds the sessions that are kept; each has a socket and a buffer of 64 KiB.
	maxIdle = 256
	// maxLearned bounds the devices of which something is remembered.
	maxLearned = 200_000
	// retries is how often a device that does not answer is asked again.
	retries = 1
	// callTimeout bounds a call with all its requests.
	callTimeout = time.Minute
)

// Checker asks devices. It implements poller.Caller.
type Checker struct {
	o                          Options
	asker                      *asker
	requests, timeouts, halved *metrics.Counter

	mu   sync.Mutex
	idle map[sessionKey][]*session
	// count is how many are idle.
	count int
	// sizes are how many variables a device answers at once, where that is fewer than maxBatch.
	sizes map[string]int
	// indexes are where dynamic indexes were found last.
	indexes map[dynamicKey]string
	closed  bool
}

// New returns a checker.
func New(o Options) *Checker {
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	c := &Checker{
		o: o, idle: make(map[sessionKey][]*session), sizes: make(map[string]int), indexes: make(map[dynamicKey]string),
		requests: o.Metrics.GetOrCreateCounter("tidemark_snmp_requests_total"),
		timeouts: o.Metrics.GetOrCreateCounter("tidemark_snmp_timed_out_requests_total"),
		halved:   o.Metrics.GetOrCreateCounter("tidemark_snmp_halved_requests_total"),
	}
	c.asker = newAsker(c)
	o.Metrics.GetOrCreateGauge("tidemark_snmp_idle_sessions", func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.count)
	})
	return c
}

// Kind returns the kind of checks that a poller makes with the checker. A device is asked by one call at a time: many lose packets
// otherwise.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{
		Name: "snmp", Types: []model.ItemType{model.SNMPAgent}, Checker: c, MaxInFlight: 2000, MaxPerHost: 1, MaxBatch: maxBatch, Timeout: callTimeout,
	}
}

// Close closes the sockets that are kept. A second call does nothing.
func (c *Checker) Close() error {
	errs := []error{c.asker.datagrams.Close()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for key, list := range c.idle {
		for _, s := range list {
			errs = append(errs, s.Close())
		}
		delete(c.idle, key)
	}
	c.count = 0
	return errors.Join(errs...)
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	c.checkAll(ctx, tasks, results, false)
}

// checkAll is Check; asked says that the device was asked once already and did not answer.
func (c *Checker) checkAll(ctx context.Context, tasks []*poller.Task, results []poller.Result, asked bool) {
	s, err := c.session(ctx, tasks[0])
	if err != nil {
		outcome := poller.NotSupported
		if isNetwork(err) {
			outcome = poller.Unreachable
		}
		fill(results, outcome, err.Error())
		return
	}
	if s.Retries = retries; asked {
		s.Retries = 0
	}
	err = c.check(s, tasks, results)
	c.giveBack(s, err == nil)
	if err == nil {
		return
	}
	outcome, text := judge(tasks[0].Address, err)
	for i := range results {
		if results[i].Text == nil {
			results[i] = poller.Result{Outcome: outcome, Text: []byte(text)}
		}
	}
}

func fill(results []poller.Result, outcome poller.Outcome, text string) {
	for i := range results {
		results[i] = poller.Result{Outcome: outcome, Text: []byte(text)}
	}
}

// check asks for what tasks say: all plain variables together, the others one after another. An error is one of the device.
func (c *Checker) check(s *session, tasks []*poller.Task, results []poller.Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its answer broke the decoder: %v", p)
		}
	}()
	plain := make([]variable, 0, len(tasks))
	var others []int
	queries := make([]query, len(tasks))
	for i, t := range tasks {
		q, err := parseOID(oidOf(t.Item))
		switch {
		case err != nil:
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
		case q.kind == get:
			plain = append(plain, variable{oid: q.oids[0], task: i})
		default:
			queries[i] = q
			others = append(others, i)
		}
	}
	if err := c.get(s, plain); err != nil {
		return err
	}
	for i := range plain {
		results[plain[i].task] = plain[i].result()
	}
	for _, i := range others {
		text, err := c.ask(s, &queries[i])
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(refused.Error())}
		case err != nil && errors.Is(s.Context.Err(), context.DeadlineExceeded) && len(tasks) > 1 && results[0].Text != nil:
			// The device answers; the time of the call is over.
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte("the device did not answer all of it within a minute")}
		case err != nil:
			return err
		default:
			results[i] = poller.Result{Outcome: poller.Value, Text: text}
		}
	}
	return nil
}

func oidOf(i *model.Item) string {
	if i.Collect == nil {
		return ""
	}
	return i.Collect.SNMPOID
}

// ask makes a query that is not a plain variable.
func (c *Checker) ask(s *session, q *query) ([]byte, error) {
	switch q.kind {
	case walk:
		return c.walkText(s, q.oids)
	case discovery:
		return c.discover(s, q)
	}
	return c.dynamic(s, q)
}

// refusal is what makes one item unsupported and says nothing of the device.
type refusal struct{ why string }

// Error is the reason.
func (r *refusal) Error() string { return r.why }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// isNetwork reports whether an error is one of the connection: the device may come back.
func isNetwork(err error) bool {
	var timeout net.Error
	return errors.Is(err, gosnmp.ErrMaxRetriesExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &timeout)
}

// judge says what an error of the device means.
func judge(address string, err error) (poller.Outcome, string) {
	hint := ""
	switch {
	case errors.Is(err, gosnmp.ErrUnknownUsername):
		hint = "it does not know the security name"
	// The library has no error of its own for a refusal that is not signed, which is how devices answer to wrong keys.
	case errors.Is(err, gosnmp.ErrWrongDigest), strings.Contains(err.Error(), "not authentic"):
		hint = "it does not take the security name, or authentication protocol or passphrase are wrong"
	case errors.Is(err, gosnmp.ErrDecryption):
		hint = "privacy protocol or passphrase are wrong"
	case errors.Is(err, gosnmp.ErrUnknownSecurityLevel):
		hint = "it does not take this security level for the security name"
	case isTimeout(err):
		return poller.Unreachable, fmt.Sprintf("device %s did not answer in time; do its address, community or privacy passphrase, and access list fit", address)
	case isNetwork(err):
		return poller.Unreachable, fmt.Sprintf("device %s: %v", address, err)
	default:
		return poller.Unreachable, fmt.Sprintf("device %s: %v", address, err)
	}
	return poller.NotSupported, fmt.Sprintf("device %s: %s", address, hint)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, gosnmp.ErrMaxRetriesExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
