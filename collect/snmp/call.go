package snmp

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/reactor"
)

// asker asks many devices for plain variables together, by versions 1 and 2c. At the first thing that is not plain (an error, a value of a rare
// type, an answer that does not come) it leaves a call to Check, which asks the library.
type asker struct {
	c         *Checker
	datagrams *reactor.Datagrams

	// The rest is used in functions given to datagrams only.
	variables []byte
	// over are the calls that ended in this round.
	over  []*poller.Call
	ended func([]*poller.Call)
}

func newAsker(c *Checker) *asker {
	a := &asker{c: c}
	a.datagrams = reactor.NewDatagrams(reactor.DatagramOptions{ID: idOf, Round: a.flush})
	return a
}

// Call implements poller.Caller.
func (c *Checker) Call(ctx context.Context, calls []*poller.Call, ended func([]*poller.Call)) {
	a := c.asker
	a.datagrams.DoAll(len(calls), func() {
		a.ended = ended
		for _, call := range calls {
			a.begin(ctx, call)
		}
	})
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
	reactor.Question
	a       *asker
	ctx     context.Context //nolint:containedctx // of the call
	call    *poller.Call
	version byte
	limit   time.Duration
	size    int
	// from and to are the tasks that the question is for.
	from, to int
	// texts holds the values.
	texts []byte
}

// begin makes a call, if it is a plain one.
func (a *asker) begin(ctx context.Context, call *poller.Call) {
	t := call.Tasks[0]
	at, err := netip.ParseAddrPort(t.Address)
	if err != nil || at.Addr().Zone() != "" || t.Interface == nil || t.Interface.SNMP == nil {
		call.ByCheck(ctx, a.c, a.ended)
		return
	}
	k := &asking{a: a, ctx: ctx, call: call, limit: a.c.limit(t), size: a.c.sizeOf(t.Address, t.Interface.SNMP)}
	switch t.Interface.SNMP.Version {
	case "SNMPV1":
	case "SNMPV2", "":
		k.version = 1
	default:
		call.ByCheck(ctx, a.c, a.ended)
		return
	}
	k.Question = reactor.Question{Context: ctx, To: at, Asker: k}
	k.ask()
}

// ask asks for the variables that come next.
func (k *asking) ask() {
	a, tasks := k.a, k.call.Tasks
	k.from, k.to = k.to, min(k.to+k.size, len(tasks))
	list := a.variables[:0]
	for _, t := range tasks[k.from:k.to] {
		start := len(list)
		list = append(list, tagSequence, 0)
		var ok bool
		if list, ok = appendOID(list, oidOf(t.Item)); !ok || len(list)-start > 0x7f {
			k.leave(a.c)
			return
		}
		list = append(list, tagNull, 0)
		list[start+1] = byte(len(list) - start - 2)
	}
	a.variables = list
	for k.ID = 0; k.ID == 0 || a.datagrams.Taken(k.ID); {
		k.ID = rand.Uint32() >> 1
	}
	k.Packet = appendGet(k.Packet[:0], k.version, tasks[0].Interface.SNMP.Community, k.ID, list)
	k.Deadline = time.Now().Add(k.limit)
	if k.call.Deadline.Before(k.Deadline) {
		k.Deadline = k.call.Deadline
	}
	a.c.requests.Inc()
	a.datagrams.Ask(&k.Question)
}

// leave leaves the call to a checker.
func (k *asking) leave(c poller.Checker) {
	clear(k.call.Results)
	k.call.ByCheck(k.ctx, c, k.a.ended)
}

// Answer implements reactor.Asker.
func (k *asking) Answer(packet []byte) bool {
	version, _, status, variables, _ := answerOf(packet)
	switch {
	case byte(version) != k.version:
		return false
	case status != 0 || !k.take(variables, len(packet)):
		k.leave(k.a.c)
	case k.to < len(k.call.Tasks):
		k.ask()
	default:
		k.a.over = append(k.a.over, k.call)
	}
	return true
}

// take takes the values of an answer, which has the variables of the question in order; false when something is not plain.
func (k *asking) take(variables []byte, size int) bool {
	if k.texts == nil {
		k.texts = make([]byte, 0, size)
	}
	asked := variablesOf(k.Packet)
	for i := k.from; i < k.to; i++ {
		var one, name, body []byte
		var tag byte
		var ok bool
		if one, variables, ok = inside(variables, tagSequence); !ok {
			return false
		}
		if name, one, ok = inside(one, tagOID); !ok {
			return false
		}
		if tag, body, _, ok = element(one); !ok {
			return false
		}
		var wanted []byte
		wanted, asked, _ = inside(asked, tagSequence)
		if wanted, _, _ = inside(wanted, tagOID); !bytes.Equal(name, wanted) {
			return false
		}
		start := len(k.texts)
		var what verdict
		k.texts, what = appendValue(k.texts, tag, body)
		if what == unsure {
			return false
		}
		r := &k.call.Results[i]
		if what != asValue {
			oid, _ := cleanOID(oidOf(k.call.Tasks[i].Item)) // it was encoded
			*r = poller.Result{Outcome: poller.NotSupported, Text: []byte(missing(what) + oid)}
			continue
		}
		*r = poller.Result{Outcome: poller.Value, Text: k.texts[start:len(k.texts):len(k.texts)]}
	}
	return len(variables) == 0
}

// variablesOf are the variables of a request of appendGet.
func variablesOf(packet []byte) []byte {
	packet, _, _ = inside(packet, tagSequence)
	_, packet, _ = inside(packet, tagInteger)
	_, packet, _ = inside(packet, tagOctets)
	packet, _, _ = inside(packet, tagGetRequest)
	for range 3 {
		_, packet, _ = inside(packet, tagInteger)
	}
	packet, _, _ = inside(packet, tagSequence)
	return packet
}

// Failed implements reactor.Asker.
func (k *asking) Failed(err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		// Asking again and for less is left to Check, which has one try less.
		k.a.c.timeouts.Inc()
		k.leave(again{k.a.c})
	default:
		k.leave(k.a.c)
	}
}

// again is a Checker for a device that was asked once and did not answer.
type again struct{ *Checker }

// Check implements poller.Checker.
func (a again) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	a.checkAll(ctx, tasks, results, true)
}
