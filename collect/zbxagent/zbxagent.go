// Package zbxagent asks Zabbix agents for values: passive checks.
//
// One connection carries one key and its answer, unencrypted, with a pre-shared key or with certificates. Agents from 7.0
// are asked in JSON; one that does not understand it is asked again with the key alone, and so for an hour. An agent that
// closes without a word does not allow this server: that is a failure of the interface, not of the item.
//
// Source of the protocol: the public Zabbix manual, "Passive and active agent checks"; docs/protocol/zabbix.md.
package zbxagent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/reactor"
	"tidemark/internal/tlspsk"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// Access knows how agents are connected to.
type Access interface {
	// HostTLS returns the settings of a host; false for unencrypted.
	HostTLS(host model.HostID) (model.HostTLS, bool)
}

// Options are the settings of a Checker.
type Options struct {
	// Access says how agents are connected to; nil: all unencrypted.
	Access Access
	// Certificates are this side's certificate and the authorities (RootCAs) for agents that are connected to with
	// certificates; nil: such agents fail. Names of machines are not checked, issuer and subject are where they are set.
	Certificates *tls.Config
	// Source is the address that connections come from; the zero value leaves it to the system.
	Source netip.Addr
	// MaxAnswerBytes bounds an answer; zero is 16 MiB.
	MaxAnswerBytes int
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Checker asks agents. It implements poller.Caller.
type Checker struct {
	o       Options
	dialer  net.Dialer
	readers sync.Pool
	names   *reactor.Names
	asker   *asker

	mu sync.Mutex
	// plain are the addresses of agents that do not read JSON, with the time until which that is believed.
	plain map[string]time.Time
	// old are the addresses of agents that have not got their new key yet.
	old map[string]bool
}

const (
	// plainFor is how long an agent is believed not to read JSON.
	plainFor = time.Hour
	// maxRemembered bounds the agents that are remembered for one reason.
	maxRemembered = 200_000
	// readBufferBytes holds a header and most answers.
	readBufferBytes = 512
	// maxBareBytes bounds an answer without a header.
	maxBareBytes = 64 << 10
	// grace is what an agent's own time limit is shorter by, so that its answer still arrives.
	grace = time.Second
)

// New returns a checker.
func New(o Options) *Checker {
	if o.MaxAnswerBytes <= 0 {
		o.MaxAnswerBytes = 16 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	// A connection is for one key and ends with its deadline, so keep-alive would only cost its four system calls.
	c := &Checker{o: o, dialer: net.Dialer{KeepAlive: -1}, names: reactor.NewNames(), plain: make(map[string]time.Time), old: make(map[string]bool)}
	if o.Source.IsValid() {
		c.dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.Source, 0))
	}
	c.readers.New = func() any {
		r := &reader{buffered: bufio.NewReaderSize(nil, readBufferBytes)}
		r.frames.MaxBodyBytes, r.frames.MaxInflatedBytes = o.MaxAnswerBytes, o.MaxAnswerBytes
		return r
	}
	c.asker = newAsker(c)
	return c
}

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "agent", Types: []model.ItemType{model.PassiveAgent}, Checker: c, Timeout: 3*time.Second + grace}
}

// reader is what reading an answer needs; readers are pooled.
type reader struct {
	buffered *bufio.Reader
	frames   zbx.FrameReader
	out      []byte
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		q := Query{Address: t.Address, Key: t.Item.CheckKey()}
		if c.o.Access != nil {
			q.TLS, _ = c.o.Access.HostTLS(t.Item.HostID)
		}
		results[i] = result(c.Get(ctx, q))
	}
}

// result is what an answer means for an item.
func result(a Answer, err error) poller.Result {
	switch {
	case err != nil:
		return poller.Result{Outcome: poller.Unreachable, Text: []byte(err.Error())}
	case a.NoValue:
		return poller.Result{Outcome: poller.Nothing}
	case a.NotSupported != "":
		return poller.Result{Outcome: poller.NotSupported, Text: []byte(a.NotSupported)}
	}
	return poller.Result{Outcome: poller.Value, Text: a.Value}
}

// Query is one key to be asked for.
type Query struct {
	// Address is that of the agent, "host:port".
	Address string
	Key     string
	// TLS says how to connect; its zero value is unencrypted.
	TLS model.HostTLS
}

// Answer is what an agent answered.
type Answer struct {
	Value []byte
	// NotSupported is why the agent cannot measure the key; empty when it can.
	NotSupported string
	// NoValue is set when the agent has none now.
	NoValue bool
	// Version is what agents from 7.0 say.
	Version string
}

// errNotJSON is what ask returns for the answer of an agent that does not read JSON.
var errNotJSON = errors.New("not JSON")

// Get asks an agent for one key, until ctx ends. An error is one of the connection or of the protocol.
func (c *Checker) Get(ctx context.Context, q Query) (Answer, error) {
	if !c.isPlain(q.Address) {
		a, err := c.ask(ctx, q, true)
		if !errors.Is(err, errNotJSON) {
			return a, err
		}
		c.setPlain(q.Address)
	}
	return c.ask(ctx, q, false)
}

func (c *Checker) isPlain(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.plain[address]
	return ok && c.o.Now().Before(until)
}

func (c *Checker) setPlain(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.plain) >= maxRemembered {
		clear(c.plain)
	}
	c.plain[address] = c.o.Now().Add(plainFor)
}

// ask makes one connection.
func (c *Checker) ask(ctx context.Context, q Query, asJSON bool) (Answer, error) {
	nc, err := c.connect(ctx, q)
	if err != nil {
		return Answer{}, c.explain(ctx, q, err)
	}
	defer nc.Close()
	r := c.readers.Get().(*reader)
	r.buffered.Reset(nc)
	defer func() {
		r.buffered.Reset(nil)
		r.frames.Shrink()
		c.readers.Put(r)
	}()
	body := append(r.out[:0], q.Key...)
	if asJSON {
		body = zbx.AppendPassiveRequest(body[:0], q.Key, told(ctx))
	}
	r.out = body
	if _, err := nc.Write(zbx.AppendFrame(nil, body)); err != nil {
		return Answer{}, c.explain(ctx, q, err)
	}
	got, err := r.read()
	if err != nil {
		return Answer{}, c.explain(ctx, q, err)
	}
	return decode(got, asJSON)
}

// told is the time limit that the agent is told.
func told(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 3 * time.Second
	}
	return limitToTell(time.Until(deadline))
}

// limitToTell is the time limit that an agent is told when so much time is left.
func limitToTell(left time.Duration) time.Duration {
	left = left.Round(time.Second)
	if left > 2*grace {
		left -= grace
	}
	return left
}

// read reads an answer. It is valid until the next one.
func (r *reader) read() ([]byte, error) {
	start, err := r.buffered.Peek(4)
	if string(start) == "ZBXD" {
		_, body, err := r.frames.Read(r.buffered)
		return body, err
	}
	if len(start) == 0 {
		return nil, err
	}
	// Devices that play an agent answer without a header, up to the end of the connection.
	body, err := io.ReadAll(io.LimitReader(r.buffered, maxBareBytes+1))
	if len(body) > maxBareBytes {
		return nil, fmt.Errorf("an answer without a header is longer than %d bytes", maxBareBytes)
	}
	return body, err
}

func decode(body []byte, asJSON bool) (Answer, error) {
	if !asJSON {
		return answer(zbx.DecodePassiveText(body))
	}
	a, isJSON, err := zbx.DecodePassiveJSON(body)
	if err != nil {
		return Answer{}, fmt.Errorf("the agent's answer cannot be read: %w", err)
	}
	if !isJSON {
		return Answer{}, errNotJSON
	}
	return answer(a)
}

// answer copies what must outlive the body.
func answer(a zbx.PassiveAnswer) (Answer, error) {
	out := Answer{Version: string(a.Version)}
	switch a.Kind {
	case zbx.PassiveValue:
		out.Value = append([]byte{}, a.Text...)
	case zbx.PassiveNone:
		out.NoValue = true
	case zbx.PassiveNotSupported:
		out.NotSupported = string(a.Text)
	case zbx.PassiveFailed:
		return out, fmt.Errorf("the agent refuses the request: %s", a.Text)
	}
	return out, nil
}

// explain turns an error of the connection into one that says what to do.
func (c *Checker) explain(ctx context.Context, q Query, err error) error {
	kind := q.TLS.Connect
	if kind == 0 {
		kind = model.Unencrypted
	}
	var frame *zbx.FrameError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("agent %s did not answer in time (%s)", q.Address, kind)
	case errors.Is(err, tlspsk.ErrHandshake):
		return fmt.Errorf("agent %s: %w; do its TLSAccept, TLSPSKIdentity and TLSPSKFile fit the host's settings", q.Address, err)
	case errors.As(err, &frame):
		return fmt.Errorf("agent %s: %w", q.Address, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		return fmt.Errorf("agent %s closed the connection without an answer; does its Server= list have this server, and its TLSAccept %s", q.Address, kind)
	}
	return fmt.Errorf("agent %s: %w", q.Address, err)
}
