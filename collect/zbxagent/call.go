package zbxagent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
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

	// The rest belongs to the goroutine of streams.
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

// Call implements poller.Caller. Agents that are asked with encryption or by name, or from an address of choice, are asked by Check.
func (c *Checker) Call(ctx context.Context, calls []*poller.Call, ended func([]*poller.Call)) {
	a := c.asker
	a.streams.Do(func() {
		a.ended = ended
		for _, call := range calls {
			if to, ok := c.plainly(call); ok {
				a.begin(ctx, call, to)
			} else {
				call.ByCheck(ctx, c, ended)
			}
		}
	})
}

// plainly reports whether a call is one that asker makes, and where to.
func (c *Checker) plainly(call *poller.Call) (netip.AddrPort, bool) {
	to, err := netip.ParseAddrPort(call.Tasks[0].Address)
	if err != nil || to.Addr().Zone() != "" || len(call.Tasks) != 1 || c.o.Source.IsValid() {
		return to, false
	}
	if c.o.Access != nil {
		if t, _ := c.o.Access.HostTLS(call.Tasks[0].Item.HostID); t.Connect != 0 && t.Connect != model.Unencrypted {
			return to, false
		}
	}
	return to, true
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
	query  Query
	asJSON bool
}

func (a *asker) begin(ctx context.Context, call *poller.Call, to netip.AddrPort) {
	t := call.Tasks[0]
	k := &asking{a: a, ctx: ctx, call: call, query: Query{Address: t.Address, Key: t.Item.CheckKey()}, asJSON: !a.c.isPlain(t.Address)}
	k.Exchange = reactor.Exchange{Context: ctx, Deadline: call.Deadline, To: to, Handler: k}
	k.start()
}

func (k *asking) start() {
	r := k.a.reader
	r.out = append(r.out[:0], k.query.Key...)
	if k.asJSON {
		r.out = zbx.AppendPassiveRequest(r.out[:0], k.query.Key, limitToTell(time.Until(k.Deadline)))
	}
	k.Request = zbx.AppendFrame(k.Request[:0], r.out)
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
	switch {
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
