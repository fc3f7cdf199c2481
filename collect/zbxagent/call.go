package zbxagent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/reactor"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// asker makes the unencrypted checks of many agents together.
type asker struct {
	c       *Checker
	streams *reactor.Streams

	// The rest is used in functions given to streams only.
	reader *reader
	bytes  bytes.Reader
	// over are the calls that ended in this round, by who waits for them.
	over  []*poller.Call
	ended func([]*poller.Call)
}

func newAsker(c *Checker) *asker {
	a := &asker{c: c, reader: c.readers.New().(*reader)}
	a.streams = reactor.NewStreams(reactor.StreamOptions{Round: a.flush})
	return a
}

// Call implements poller.Caller. Agents that are asked with encryption, or from an address of choice, are asked by Check; so are names whose
// addresses are not known yet.
func (c *Checker) Call(ctx context.Context, calls []*poller.Call, ended func([]*poller.Call)) {
	a := c.asker
	a.streams.DoAll(len(calls), func() {
		a.ended = ended
		for _, call := range calls {
			if at, ok := c.plainly(call); ok {
				a.begin(ctx, call, at)
			} else {
				call.ByCheck(ctx, c, ended)
			}
		}
	})
}

// place is where an agent is asked: name is that of its address, if it has one, and limit how long it has to connect then.
type place struct {
	to    netip.AddrPort
	name  string
	limit time.Duration
}

// plainly reports whether a call is one that asker makes, and where to.
func (c *Checker) plainly(call *poller.Call) (place, bool) {
	p, ok := c.placeOf(call.Tasks[0].Address)
	if !ok || len(call.Tasks) != 1 || c.o.Source.IsValid() {
		return p, false
	}
	if c.o.Access != nil {
		if t, _ := c.o.Access.HostTLS(call.Tasks[0].Item.HostID); t.Connect != 0 && t.Connect != model.Unencrypted {
			return p, false
		}
	}
	return p, true
}

// placeOf is where an address leads; false also for a name that has to be looked up first.
func (c *Checker) placeOf(address string) (p place, ok bool) {
	var err error
	if p.to, err = netip.ParseAddrPort(address); err == nil {
		return p, p.to.Addr().Zone() == ""
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return p, false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || name == "" {
		return p, false
	}
	p.name = name
	var at netip.Addr
	if at, p.limit, ok = c.names.Find(name); !ok {
		return p, false
	}
	p.to = netip.AddrPortFrom(at, uint16(number))
	return p, true
}

// flush hands over what ended in a round.
func (a *asker) flush() {
	if over := a.over; len(over) > 0 {
		a.over = nil
		a.ended(over)
	}
}

// asking is a call under way.
type asking struct {
	reactor.Exchange
	a      *asker
	ctx    context.Context //nolint:containedctx // of the call
	call   *poller.Call
	at     place
	query  Query
	asJSON bool
}

func (a *asker) begin(ctx context.Context, call *poller.Call, at place) {
	t := call.Tasks[0]
	k := &asking{a: a, ctx: ctx, call: call, at: at, query: Query{Address: t.Address, Key: t.Item.CheckKey()}, asJSON: !a.c.isPlain(t.Address)}
	k.Exchange = reactor.Exchange{Context: ctx, Deadline: call.Deadline, To: at.to, Handler: k}
	k.start()
}

func (k *asking) start() {
	r := k.a.reader
	r.out = append(r.out[:0], k.query.Key...)
	if k.asJSON {
		r.out = zbx.AppendPassiveRequest(r.out[:0], k.query.Key, limitToTell(time.Until(k.Deadline)))
	}
	k.Request = zbx.AppendFrame(k.Request[:0], r.out)
	if k.at.limit > 0 {
		k.ConnectBy = time.Now().Add(k.at.limit)
	}
	k.a.streams.Start(&k.Exchange)
}

// Take implements reactor.Handler. The answer is read by the same reader as from a connection of Check, as soon as it is whole.
func (k *asking) Take(got []byte, ended bool) (whole, keep bool) {
	if !ended && !isWhole(got, k.a.c.o.MaxAnswerBytes) {
		return false, false
	}
	r := k.a.reader
	k.a.bytes.Reset(got)
	r.buffered.Reset(&k.a.bytes)
	body, err := r.read()
	var answer Answer
	if err == nil {
		answer, err = decode(body, k.asJSON)
	} else {
		err = k.a.c.explain(k.ctx, k.query, err)
	}
	r.buffered.Reset(nil)
	r.frames.Shrink()
	if errors.Is(err, errNotJSON) {
		k.a.c.setPlain(k.query.Address)
		return true, false // End asks again.
	}
	k.asJSON = false
	k.call.Results[0] = result(answer, err)
	return true, false
}

// End implements reactor.Handler.
func (k *asking) End(err error) {
	var dialing *net.OpError
	switch {
	case k.at.name != "" && errors.As(err, &dialing) && dialing.Op == "dial":
		// Check looks the name up and tries all its addresses.
		k.a.c.names.Failed(k.at.name, k.at.to.Addr())
		k.call.ByCheck(k.ctx, k.a.c, k.a.ended)
		return
	case err != nil:
		k.call.Results[0] = result(Answer{}, k.a.c.explain(k.ctx, k.query, err))
	case k.asJSON:
		k.asJSON = false
		k.start()
		return
	}
	k.a.over = append(k.a.over, k.call)
}

// isWhole reports whether reading an answer would not have to wait for more.
func isWhole(got []byte, most int) bool {
	if len(got) >= 4 && string(got[:4]) != "ZBXD" {
		return len(got) > maxBareBytes
	}
	h, n, err := zbx.DecodeHeader(got)
	if err != nil {
		return !errors.Is(err, io.ErrUnexpectedEOF) && len(got) >= 4
	}
	return h.BodyBytes > uint64(most) || uint64(len(got)-n) >= h.BodyBytes
}
