package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tidemark/agent/key"
	"tidemark/internal/schedule"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// rediscoverAfter is how often the agent looks for disks, interfaces, processors and file systems that came or went.
const rediscoverAfter = 30 * time.Second

// lateness is how far a tick may begin after its moment and still carry it as its time, as a share of the interval:
// round times are kept in fewer bytes, and 5 ms in a second do not show in a rate.
const lateness = 200

// Slow checks, those that may take seconds, run in a few workers.
const (
	slowWorkers = 4
	maxSlowJobs = 256
)

// list is what the refresher learnt from the server.
type list struct {
	// tidemark is whether the server takes declared items.
	tidemark bool
	// changed is whether checks are to replace those from before.
	changed bool
	checks  []zbx.Check
}

// planned is one item and when it is due.
type planned struct {
	item    *item
	check   *key.Check                // nil for items of the agent itself, and when problem is set
	self    func() (key.Value, error) // items of the agent itself
	problem error                     // the key cannot be measured at all

	every    time.Duration     // declared items: multiples of the interval
	schedule schedule.Schedule // others
	next     time.Time         // when it is due; zero: at once

	busy atomic.Bool // a slow check is under way
	// failure is the reason that was sent last; only the goroutine that measures touches it.
	failure string
}

// measure takes the value.
func (p *planned) measure() (key.Value, error) {
	switch {
	case p.problem != nil:
		return key.Value{}, p.problem
	case p.self != nil:
		return p.self()
	}
	return p.check.Measure()
}

// row makes the row of a result; false when there is nothing to send. A declared item says once why it has no values,
// one that the server asked for says it each time.
func (p *planned) row(at int64, v key.Value, err error) (row, bool) {
	r := row{at: at, item: p.item, value: v}
	switch {
	case errors.Is(err, key.ErrNotYet):
		return r, false
	case err == nil:
		p.failure = ""
		if v.Type == model.Text && len(v.Text) > model.MaxTextBytes {
			r.value.Text = v.Text[:model.MaxTextBytes]
		}
		return r, true
	}
	reason := err.Error()
	known := reason == p.failure
	p.failure = reason
	r.value, r.unsupported = key.Text(reason), true
	return r, p.item.declaration == nil || !known
}

// job is a slow check that is due.
type job struct {
	plan *planned
	at   int64
}

// work runs slow checks.
func (a *Agent) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-a.slow:
			v, err := j.plan.measure()
			r, ok := j.plan.row(j.at, v, err)
			j.plan.busy.Store(false)
			if ok && ctx.Err() == nil {
				a.buffer.put([]row{r})
				a.wake()
			}
		}
	}
}

// collector measures at each tick what is due.
type collector struct {
	agent *Agent

	tidemark   bool
	declared   []*planned
	asked      []*planned
	discovered time.Time // when declared was made
	reported   string    // the last failure of discovery

	self self
	rows []row
}

func newCollector(a *Agent) *collector {
	c := &collector{agent: a, tidemark: a.state.get().Tidemark}
	c.self.agent = a
	return c
}

// run ticks until ctx ends. A tick that comes too late is not made up for: it is counted, and the next one is aligned
// again.
func (c *collector) run(ctx context.Context) {
	interval := min(c.agent.options.Interval, time.Second)
	timer := time.NewTimer(0)
	defer timer.Stop()
	moment := nextMoment(time.Now(), interval)
	for {
		timer.Reset(time.Until(moment))
		select {
		case <-ctx.Done():
			return
		case l := <-c.agent.lists:
			c.apply(l)
			continue
		case <-timer.C:
		}
		c.tick(time.Now(), moment)
		moment = c.nextTick(moment, interval)
	}
}

// nextTick is the moment of the next tick after the one at moment.
func (c *collector) nextTick(moment time.Time, interval time.Duration) time.Time {
	next, after := nextMoment(moment, interval), nextMoment(time.Now(), interval)
	switch {
	case after.After(next):
		// More than a minute is a step of the clock, not a slow tick.
		if missed := after.Sub(next) / interval; missed < time.Minute/interval {
			c.agent.stats.missed.Add(uint64(missed))
		}
		return after
	case next.Sub(after) > interval: // The clock was set back.
		for _, plans := range [...][]*planned{c.declared, c.asked} {
			for _, p := range plans {
				p.next = time.Time{}
			}
		}
		return after
	}
	return next
}

// nextMoment is the first multiple of interval since 1970 after t, on the wall clock.
func nextMoment(t time.Time, interval time.Duration) time.Time {
	nanos := t.UnixNano()
	return time.Unix(0, nanos-nanos%int64(interval)+int64(interval))
}

// stamp is the time that a tick's values get: its moment, or now if that is too long ago.
func stamp(now, moment time.Time, interval time.Duration) time.Time {
	if late := now.Sub(moment).Abs(); late > interval/lateness {
		return now
	}
	return moment
}

// tick measures everything that is due at moment, with one time for all.
func (c *collector) tick(now, moment time.Time) {
	a := c.agent
	at := stamp(now, moment, min(a.options.Interval, time.Second)).UnixNano()
	c.rows = c.rows[:0]
	fresh := false
	if c.tidemark && now.Sub(c.discovered).Abs() >= rediscoverAfter {
		a.machine.Tick(now)
		c.discover(now)
		fresh = true
	}
	for _, plans := range [...][]*planned{c.declared, c.asked} {
		for _, p := range plans {
			if p.next.After(moment) {
				continue
			}
			if !fresh {
				a.machine.Tick(now)
				fresh = true
			}
			p.advance(moment)
			c.measure(p, at)
		}
	}
	a.stats.items.Store(int64(len(c.declared) + len(c.asked)))
	if fresh {
		a.stats.collectNanos.Store(int64(time.Since(now)))
	}
	a.buffer.put(c.rows)
	clear(c.rows)
	a.buffer.tick()
	if len(c.rows) > 0 {
		a.wake()
	}
}

// advance sets when the item is due again.
func (p *planned) advance(moment time.Time) {
	if p.every > 0 {
		p.next = nextMoment(moment, p.every)
		return
	}
	p.next, _ = p.schedule.Next(moment, 0)
}

func (c *collector) measure(p *planned, at int64) {
	if p.check != nil && p.check.Slow {
		if p.busy.Swap(true) {
			c.agent.stats.missed.Add(1) // Its check of the time before still runs.
			return
		}
		select {
		case c.agent.slow <- &job{p, at}:
		default:
			p.busy.Store(false)
			c.agent.stats.missed.Add(1)
		}
		return
	}
	v, err := p.measure()
	if r, ok := p.row(at, v, err); ok {
		c.rows = append(c.rows, r)
	}
}

// apply takes a new list. Items that were there before keep their plan.
func (c *collector) apply(l list) {
	if l.tidemark != c.tidemark {
		c.tidemark = l.tidemark
		c.discovered = time.Time{}
		if !l.tidemark {
			c.declared = nil
		}
		if err := c.agent.state.setTidemark(l.tidemark); err != nil {
			c.agent.log.Error("the agent's state cannot be written", "error", err)
		}
	}
	if !l.changed {
		return
	}
	before := make(map[askedKey]*planned, len(c.asked))
	for _, p := range c.asked {
		before[askedKey{p.item.key, p.item.id, p.item.delay}] = p
	}
	c.asked = c.asked[:0:0]
	now := time.Now()
	for i := range l.checks {
		k := askedKey{l.checks[i].Key, l.checks[i].ItemID, delayOf(&l.checks[i])}
		p := before[k]
		if p == nil {
			p = c.plan(k, now)
		}
		c.asked = append(c.asked, p)
	}
	c.discovered = time.Time{} // What is asked for is not declared.
}

// askedKey is what makes an item of the list the same as before.
type askedKey struct {
	key   string
	id    uint64
	delay string
}

// plan makes the plan of an item that the server asked for.
func (c *collector) plan(k askedKey, now time.Time) *planned {
	p := &planned{item: &item{key: k.key, id: k.id, delay: k.delay}}
	if p.self = c.self.measure(k.key); p.self == nil {
		p.check, p.problem = c.agent.machine.Compile(k.key)
	}
	var err error
	if p.schedule, err = schedule.Parse(k.delay); err != nil {
		p.problem = err
		p.schedule = schedule.Every(time.Minute)
	}
	if p.schedule.TimesOnly() { // At its times only, not at once.
		p.next, _ = p.schedule.Next(now, 0)
	}
	return p
}
