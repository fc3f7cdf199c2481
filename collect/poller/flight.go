package poller

import (
	"time"

	"tidemark/model"
)

// enqueue puts a due check into the queue of its host, and the host into the ring.
func (p *Poller) enqueue(c *check) {
	c.state = ready
	q := &c.host.queues[c.kind.number]
	q.due = append(q.due, c)
	p.ring(c.kind, q)
}

func (p *Poller) ring(k *kind, q *queue) {
	if !q.queued && len(q.due) > 0 && q.flying < k.MaxPerHost {
		q.queued = true
		k.ring = append(k.ring, q)
	}
}

// dispatch takes checks of a kind, one host after another, while there is room. The caller holds the lock, and starts them without it.
func (p *Poller) dispatch(k *kind) []*flight {
	if !p.running {
		return nil
	}
	now := time.Now().UnixNano()
	var flights []*flight
	for len(k.ring) > 0 && k.flying < k.MaxInFlight && !p.out.full() {
		q := k.ring[0]
		k.ring[0] = nil
		k.ring = k.ring[1:]
		q.queued = false
		if f := p.take(k, q, now); f != nil {
			k.change(now, 1)
			q.flying++
			flights = append(flights, f)
		}
		p.ring(k, q)
	}
	if len(k.ring) == 0 {
		k.ring = nil // Its room is at its end.
	}
	p.flights.Add(len(flights))
	return flights
}

// flight is one call of a checker.
type flight struct {
	Call
	kind    *kind
	queue   *queue
	at      *iface
	checks  []*check
	timeout time.Duration

	// What a call of one check needs, so that it is one piece of memory.
	check1  [1]*check
	task1   [1]*Task
	result1 [1]Result
}

// newFlight returns a flight with room for checks.
func newFlight(k *kind, q *queue, c *check, room int) *flight {
	f := &flight{kind: k, queue: q, at: c.at, timeout: c.timeout()}
	if f.checks, f.Tasks = f.check1[:0], f.task1[:0]; room > 1 {
		f.checks, f.Tasks = make([]*check, 0, room), make([]*Task, 0, room)
	}
	return f
}

// take takes the next checks of one interface off a queue; nil when none of them may be made now.
func (p *Poller) take(k *kind, q *queue, now int64) *flight {
	var f *flight
	rest := q.due[:0]
	for n, c := range q.due {
		if f != nil && len(f.checks) >= k.MaxBatch {
			if len(rest) == 0 {
				q.due = q.due[n:]
				return f
			}
			rest = append(rest, q.due[n:]...)
			break
		}
		switch {
		case c.gone:
		case f != nil && (c.at != f.at || f.timeout != c.timeout() || (c.task.Fault == "") != (f.Tasks[0].Fault == "")):
			rest = append(rest, c)
		case f == nil && c.at.closed(now):
			c.due = c.postponed(now)
			p.wheel.add(c)
		default:
			if f == nil {
				f = newFlight(k, q, c, min(len(q.due)-n, k.MaxBatch))
				if c.at != nil && c.at.state.FailingSince != 0 {
					c.at.probing = true
				}
			}
			c.state = flying
			k.late.Update(float64(now-c.due) / float64(time.Second))
			f.checks, f.Tasks = append(f.checks, c), append(f.Tasks, c.task)
		}
	}
	clear(q.due[len(rest):])
	if q.due = rest; len(rest) == 0 {
		q.due = nil
	}
	return f
}

func (c *check) timeout() time.Duration {
	if c.task.Timeout > 0 {
		return c.task.Timeout
	}
	return c.kind.Timeout
}

// land sets when the checks of calls are due again, and starts what there is room for now.
func (p *Poller) land(calls []*Call, now int64) {
	var changes []InterfaceState
	p.mu.Lock()
	for _, c := range calls {
		f := c.flight
		if state, changed := p.judge(f, now); changed {
			changes = append(changes, state)
		}
		f.kind.change(now, -1)
		f.queue.flying--
		for _, c := range f.checks {
			if c.gone {
				continue
			}
			c.due = c.following(now)
			if c.at != nil && c.at.state.FailingSince != 0 {
				c.due = c.postponed(now)
			}
			p.wheel.add(c)
		}
		p.ring(f.kind, f.queue)
	}
	k := calls[0].flight.kind
	flights := p.dispatch(k)
	p.mu.Unlock()
	p.call(k, flights)
	if p.o.Availability != nil {
		for _, state := range changes {
			p.o.Availability.Changed(state)
		}
	}
}

// judge says what the results mean for the interface.
func (p *Poller) judge(f *flight, now int64) (InterfaceState, bool) {
	if f.at == nil {
		return InterfaceState{}, false
	}
	for i := range f.Results {
		if r := &f.Results[i]; r.Outcome == Unreachable {
			changed := p.failed(f.at, clip(r.Text), now)
			if changed {
				p.o.Log.Warn("poller: an interface became unavailable", "host", f.at.state.Host, "kind", f.kind.Name, "address", f.at.address, "error", f.at.state.Error)
			}
			return f.at.state, changed
		}
	}
	for i := range f.Results {
		if f.Results[i].Outcome != Nothing {
			changed := f.at.answered()
			return f.at.state, changed
		}
	}
	f.at.probing = false
	return f.at.state, false
}

// clip bounds a reason that comes from outside.
func clip(text []byte) string {
	const limit = 2048
	if len(text) > limit {
		text = text[:limit]
	}
	return string(text)
}

// queueFrom is how late an item must be to be in the queue, unless the caller says so.
const queueFrom = 6 * time.Second

// Queue returns how many items are late by at least from and, unless to is zero, less than to; zero for from is 6 s. Items of
// interfaces that are not available are not counted. It is zabbix[queue,from,to].
func (p *Poller) Queue(from, to time.Duration) int {
	if from <= 0 {
		from = queueFrom
	}
	count := 0
	p.eachLate(from, func(_ *check, late time.Duration) {
		if to == 0 || late < to {
			count++
		}
	})
	return count
}

// Delays are how many items of a type are late: by 5 s, 10 s, 30 s, 1 min, 5 min and 10 min, each up to the next.
type Delays [6]int

var delaySteps = [...]time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute}

// QueueByType returns the late items by type, of the hosts that of is true for; nil is all.
func (p *Poller) QueueByType(of func(model.HostID) bool) map[model.ItemType]Delays {
	all := make(map[model.ItemType]Delays)
	p.eachLate(delaySteps[0], func(c *check, late time.Duration) {
		if of != nil && !of(c.host.id) {
			return
		}
		d := all[c.task.Item.Type]
		for i := len(delaySteps) - 1; i >= 0; i-- {
			if late >= delaySteps[i] {
				d[i]++
				break
			}
		}
		all[c.task.Item.Type] = d
	})
	return all
}

// Late is an item that is late.
type Late struct {
	Item model.ItemID
	Host model.HostID
	// Due is when it should have been asked for, Unix nanoseconds.
	Due int64
}

// QueueDetails returns items that are late by more than 5 s, at most limit, of the hosts that of is true for; nil is all.
func (p *Poller) QueueDetails(limit int, of func(model.HostID) bool) []Late {
	var list []Late
	p.eachLate(delaySteps[0], func(c *check, _ time.Duration) {
		if len(list) < limit && (of == nil || of(c.host.id)) {
			list = append(list, Late{c.task.Item.ID, c.host.id, c.due})
		}
	})
	return list
}

func (p *Poller) eachLate(from time.Duration, f func(*check, time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UnixNano()
	for _, c := range p.items {
		if late := time.Duration(now - c.due); late >= from && (c.at == nil || c.at.state.Available != Unavailable) {
			f(c, late)
		}
	}
}
