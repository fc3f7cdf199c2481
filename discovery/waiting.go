package discovery

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"tidemark/model"
)

const (
	// keepAfter is how long a value may take until it is kept: most are worked on before, and cost no write of their own.
	keepAfter = 100 * time.Millisecond
	// retryAfter is when a value is worked on again that the store could not take, as with a full disk.
	retryAfter = 5 * time.Second
	// keepTime is how long keeping may take at the end.
	keepTime = 5 * time.Second
	// maxKeptBytes bounds the values of one transaction.
	maxKeptBytes = 16 << 20
)

// errClosed tells who sent a value that it must be sent again.
var errClosed = errors.New("the server is stopping; the value of a discovery rule was not kept")

// payload is a value that waits.
type payload struct {
	host   model.HostID
	text   []byte
	reason string
	// at is when it came by the clock, and the date of what it finds and loses. order rises, even when the clock goes back.
	at    time.Time
	order int64
	sum   uint64
	// done are finished when the value was worked on or is kept.
	done []*model.Completion
	// kept says that the store has the value.
	kept bool
	// notBefore is when it may be worked on; zero for at once.
	notBefore time.Time
}

// finish finishes the completions.
func (p *payload) finish(err error) {
	for _, c := range p.done {
		c.Finish(err)
	}
	p.done = nil
}

// Take takes a value of a rule, or the reason why there is none. The text is copied. It never waits. done are finished when the value would not be
// lost in a crash: it was worked on, is kept in the store, or a newer one took its place.
func (e *Engine) Take(item *model.Item, text []byte, reason string, done []*model.Completion) {
	e.values.Inc()
	p := &payload{host: item.HostID, reason: reason, at: e.now(), sum: maphash.Bytes(e.seed, text)}
	if reason == "" && len(text) > MaxPayloadBytes {
		p.reason = fmt.Sprintf("the value has %d bytes; a discovery rule takes at most %d", len(text), MaxPayloadBytes)
	}
	revision := e.o.Rules().HostRevision(item.HostID)
	e.mu.Lock()
	defer e.mu.Unlock()
	last, waits := e.done[item.ID], false
	if _, waits = e.waiting[item.ID]; !waits && !e.busy[item.HostID] {
		same := p.reason == "" && last.applied && last.sum == p.sum && last.revision >= revision && last.reason == ""
		if same || p.reason != "" && last.reason == p.reason {
			e.unchanged.Inc()
			return
		}
	}
	if p.reason == "" {
		p.text = append([]byte(nil), text...)
		p.done = append(p.done, done...)
		for _, c := range p.done {
			c.Add(1)
		}
	}
	e.put(item.ID, p)
}

// put lets a payload wait; e.mu is held.
func (e *Engine) put(id model.ItemID, p *payload) {
	if e.closed {
		p.finish(errClosed)
		return
	}
	if old := e.waiting[id]; old != nil {
		e.bytes -= len(old.text)
		old.finish(nil)
		e.dropped.Inc()
	} else {
		e.order = append(e.order, id)
	}
	if p.order == 0 {
		p.order = p.at.UnixNano()
	}
	p.order = max(p.order, e.newest+1)
	e.newest = p.order
	if e.bytes+len(p.text) > maxWaitingBytes {
		p.text, p.reason = nil, "too many values of discovery rules wait; this one was left out"
		p.finish(nil)
	}
	e.bytes += len(p.text)
	e.waiting[id] = p
	e.room.Broadcast()
	if len(p.done) > 0 {
		select {
		case e.keep <- struct{}{}:
		default:
		}
	}
}

// load lets what the store kept before the last stop wait again, but for what came meanwhile.
func (e *Engine) load(ctx context.Context) {
	var kept []model.RuleValue
	newest, err := e.o.Store.KeptRuleValues(ctx, func(v model.RuleValue) { kept = append(kept, v) })
	if err != nil && ctx.Err() == nil {
		e.logger.Error("values of discovery rules that waited at the last stop could not be read; each comes again with its rule's next value", "error", err)
	}
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	came := len(e.waiting)
	for _, v := range kept {
		if e.waiting[v.Item] == nil {
			at := now
			if then := time.Unix(0, v.Order); then.Before(now) {
				at = then
			}
			e.put(v.Item, &payload{host: v.Host, text: v.Text, at: at, order: v.Order, sum: maphash.Bytes(e.seed, v.Text), kept: true})
		}
	}
	if e.newest < newest {
		e.newest = newest
	}
	for _, id := range e.order[:came] {
		e.newest++
		e.waiting[id].order = e.newest
	}
}

func (e *Engine) work(ctx context.Context) {
	for {
		id, p, ok := e.next()
		if !ok {
			return
		}
		r := e.Process(ctx, id, p.text, p.reason, p.at, p.order)
		r.sum = p.sum
		e.mu.Lock()
		delete(e.busy, p.host)
		delete(e.working, id)
		e.done[id] = r
		if r.undone && e.waiting[id] == nil {
			e.putBack(id, p)
		} else {
			p.finish(nil)
		}
		e.room.Broadcast()
		e.mu.Unlock()
	}
}

// putBack lets a value wait again that the store could not take, or that the end cut off; e.mu is held.
func (e *Engine) putBack(id model.ItemID, p *payload) {
	p.notBefore = time.Now().Add(retryAfter)
	time.AfterFunc(retryAfter, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.room.Broadcast()
	})
	e.waiting[id] = p
	e.order = append(e.order, id)
	e.bytes += len(p.text)
}

// next waits for a value that is due and whose host nobody works on.
func (e *Engine) next() (model.ItemID, *payload, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.closed {
			return 0, nil, false
		}
		for i, id := range e.order {
			p := e.waiting[id]
			if e.busy[p.host] || time.Now().Before(p.notBefore) {
				continue
			}
			e.order = append(e.order[:i:i], e.order[i+1:]...)
			delete(e.waiting, id)
			e.bytes -= len(p.text)
			e.busy[p.host] = true
			e.working[id] = p
			return id, p, true
		}
		e.room.Wait()
	}
}

// keepSlow keeps values for which somebody waits and that were not worked on soon.
func (e *Engine) keepSlow(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.keep:
		}
		pause.Reset(keepAfter)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		e.keepWaiting(ctx, false)
	}
}

// keepWaiting keeps the values for which somebody waits, or all, and tells those who wait.
func (e *Engine) keepWaiting(ctx context.Context, all bool) {
	for {
		list, values := e.unkept(all)
		if len(list) == 0 {
			return
		}
		err := e.o.Store.KeepRuleValues(ctx, values)
		if err != nil && ctx.Err() != nil && !all {
			return // Cut off by the end, which keeps all.
		}
		e.mu.Lock()
		for _, p := range list {
			// Without the store it stays in memory: to refuse it would stop its sender for as long as the store has its trouble.
			p.kept = err == nil
			p.finish(nil)
		}
		e.mu.Unlock()
		if err != nil {
			e.logger.Error("values of discovery rules could not be kept; what a crash takes comes again with the rule's next value", "values", len(values), "error", err)
			return
		}
	}
}

// unkept returns values that must be kept, as many as fit into one transaction.
func (e *Engine) unkept(all bool) (list []*payload, values []model.RuleValue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, from := range []map[model.ItemID]*payload{e.waiting, e.working} {
		for id, p := range from {
			if p.kept || len(p.text) == 0 || len(p.done) == 0 && !all {
				continue
			}
			if len(list) > 0 && n+len(p.text) > maxKeptBytes {
				return list, values
			}
			n += len(p.text)
			list = append(list, p)
			values = append(values, model.RuleValue{Item: id, Host: p.host, Order: p.order, Text: p.text})
		}
	}
	return list, values
}
