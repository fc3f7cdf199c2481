// Package poller asks for values at the time when they are due.
//
// One timer wheel holds all checks. A check that is due waits in the queue of its host; hosts take turns, so that one with
// many or slow checks cannot keep others out, and neither a host nor a kind of checks has more of them under way than it
// may. A check under way is a goroutine; what it brings is gathered into batches. An interface that does not answer is
// asked by one check at a time and ever more seldom, until it answers again.
//
// How checks are made is not known here: each kind has a Checker. docs/design/0022-pollers.md has the reasons.
package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/internal/schedule"
	"tidemark/model"
)

// Task is one item to be asked for. The Item is only read.
type Task struct {
	Item *model.Item
	// Address is where to ask, as the checker understands it ("host:port"); tasks of a host with the same address and item
	// type share an interface, whose availability is kept. Empty for checks without one.
	Address string
	// Timeout bounds one check; zero is that of the kind.
	Timeout time.Duration
	// Interface is the host's interface that the item uses, Host the host; both are only read, and nil where checks need none.
	Interface *model.Interface
	Host      *model.Host
	// Fault is why the item cannot be asked for as it is configured: it becomes not supported for that at its times. Such a task has no
	// Address.
	Fault string
}

// Outcome says what became of a check.
type Outcome uint8

// The outcomes.
const (
	// Nothing is an answer without a value.
	Nothing Outcome = iota
	// Value is a value, in Text.
	Value
	// NotSupported makes the item unsupported for the reason in Text; the interface is there.
	NotSupported
	// Unreachable says that the interface did not answer, for the reason in Text.
	Unreachable
)

// Result is what a check brought.
type Result struct {
	Outcome Outcome
	Text    []byte
}

// Checker makes checks of one kind.
type Checker interface {
	// Check makes the checks of tasks, which are of one host and one address, before ctx ends, and sets the result of
	// each. It must return soon after ctx ended. What results point at may be reused after the next call on the same
	// goroutine only.
	Check(ctx context.Context, tasks []*Task, results []Result)
}

// Kind is a kind of checks with limits of its own.
type Kind struct {
	// Name is for metrics and internal items: "agent", "snmp".
	Name    string
	Types   []model.ItemType
	Checker Checker
	// MaxInFlight bounds the calls of Check at once; zero is 10,000.
	MaxInFlight int
	// MaxPerHost bounds those for one host; zero is 4, because classic agents serve three at once.
	MaxPerHost int
	// MaxBatch bounds the tasks of one call; zero is 1.
	MaxBatch int
	// Timeout bounds a call whose tasks say nothing else; zero is 3 s.
	Timeout time.Duration
}

// Availability tells of interfaces that come and go.
type Availability interface {
	// Changed says that an interface of a host is available, or not and why. It must not call the poller.
	Changed(s InterfaceState)
}

// Options are the settings of a Poller. Sink and Kinds are needed.
type Options struct {
	Sink  collect.Sink
	Kinds []Kind
	// Availability hears of interfaces; nil for nobody.
	Availability Availability
	// UnreachableDelay is the pause after a failure; zero is 15 s. UnreachablePeriod is how long an interface may fail
	// before it is unavailable; zero is 45 s. UnavailableDelay is the pause from then on; zero is 60 s.
	UnreachableDelay, UnreachablePeriod, UnavailableDelay time.Duration
	// FlushInterval is how long values wait for others to travel with, to the next tick; zero is 100 ms.
	FlushInterval time.Duration
	// Ticks makes ticks with this time between them; see SystemTicks; nil is for those of Go's runtime, which
	// also tick in a bubble of testing/synctest.
	Ticks   func(interval time.Duration) Ticks
	Log     *slog.Logger
	Metrics *metrics.Set
}

func (o Options) withDefaults() Options {
	or := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&o.UnreachableDelay, 15*time.Second)
	or(&o.UnreachablePeriod, 45*time.Second)
	or(&o.UnavailableDelay, time.Minute)
	or(&o.FlushInterval, 100*time.Millisecond)
	if o.Ticks == nil {
		o.Ticks = newTicks
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	return o
}

// ErrNotPolled says that an item is not one that is asked for.
var ErrNotPolled = errors.New("the item is not asked for by this server")

// Poller asks for values.
type Poller struct {
	o      Options
	kinds  []*kind
	byType map[model.ItemType]*kind
	out    *output

	mu    sync.Mutex
	wheel wheel
	hosts map[model.HostID]*host
	items map[model.ItemID]*check
	// delays are the schedules in use, by their text.
	delays map[string]*schedule.Schedule
	// running is set while Run is; ctx is that of the checks under way.
	running bool
	ctx     context.Context //nolint:containedctx // of the goroutines that Run waits for
	flights sync.WaitGroup
}

// New returns a poller without tasks.
func New(o Options) *Poller {
	o = o.withDefaults()
	p := &Poller{
		o: o, byType: make(map[model.ItemType]*kind), hosts: make(map[model.HostID]*host),
		items: make(map[model.ItemID]*check), delays: make(map[string]*schedule.Schedule),
	}
	// Not when Run begins: what came due between would wait for a whole turn.
	p.wheel.start(time.Now().UnixNano())
	p.out = newOutput(o.Sink, o.Log, o.Metrics)
	for i := range o.Kinds {
		k := p.newKind(i)
		p.kinds = append(p.kinds, k)
		for _, t := range k.Types {
			p.byType[t] = k
		}
	}
	o.Metrics.GetOrCreateGauge("tidemark_poller_items", func() float64 { return float64(p.ItemCount()) })
	o.Metrics.GetOrCreateGauge("tidemark_poller_late_items", func() float64 { return float64(p.Queue(queueFrom, 0)) })
	return p
}

// Takes reports whether items of a type are asked for.
func (p *Poller) Takes(t model.ItemType) bool { return p.byType[t] != nil }

// ItemCount returns the number of items that are asked for.
func (p *Poller) ItemCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.items)
}

// Apply replaces the tasks of a host; none removes it. A task that was there before keeps its place in time unless its
// interval changed. A new one is first asked for within a minute, or at its times when it has only such. The error names the
// tasks whose interval cannot be read, which are left out.
func (p *Poller) Apply(id model.HostID, tasks []Task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UnixNano()
	h := p.hosts[id]
	if h == nil {
		if len(tasks) == 0 {
			return nil
		}
		h = newHost(id, len(p.kinds))
		p.hosts[id] = h
	}
	h.generation++
	var errs []error
	for i := range tasks {
		if err := p.apply(h, &tasks[i], now); err != nil {
			errs = append(errs, err)
		}
	}
	p.sweep(h)
	if len(h.checks) == 0 {
		delete(p.hosts, id)
	}
	return errors.Join(errs...)
}

func (p *Poller) apply(h *host, t *Task, now int64) error {
	k := p.byType[t.Item.Type]
	if k == nil {
		return fmt.Errorf("item %s: %w: it has type %d", t.Item.Key, ErrNotPolled, t.Item.Type)
	}
	s := p.delays[t.Item.Delay]
	if s == nil {
		parsed, err := schedule.Parse(t.Item.Delay)
		if err != nil {
			return fmt.Errorf("item %s: %w", t.Item.Key, err)
		}
		if len(p.delays) >= maxDelays {
			// Those in use stay with their checks.
			p.delays = make(map[string]*schedule.Schedule)
		}
		s = &parsed
		p.delays[t.Item.Delay] = s
	}
	c := p.items[t.Item.ID]
	if c != nil && (c.host != h || c.kind != k) {
		p.remove(c)
		c = nil
	}
	fresh := c == nil
	if fresh {
		c = &check{host: h, kind: k, phase: k.phaseOf(h.id, t)}
		p.items[t.Item.ID] = c
		h.checks = append(h.checks, c)
	}
	changed := fresh || c.task.Item.Delay != t.Item.Delay
	task := *t
	c.task, c.schedule, c.generation = &task, s, h.generation
	c.at = h.interfaceOf(k, t.Address)
	if changed && c.state == waiting {
		p.wheel.remove(c)
		c.due = c.first(now)
		p.wheel.add(c)
	}
	return nil
}

// maxDelays bounds the schedules that are shared by text.
const maxDelays = 10_000

// sweep removes the checks that the last Apply did not name.
func (p *Poller) sweep(h *host) {
	kept := h.checks[:0]
	for _, c := range h.checks {
		if c.generation == h.generation {
			kept = append(kept, c)
			continue
		}
		p.remove(c)
	}
	clear(h.checks[len(kept):])
	h.checks = kept
	h.forgetInterfaces()
}

// remove takes a check out. One that is under way is let go when it comes back.
func (p *Poller) remove(c *check) {
	if c.state == waiting {
		p.wheel.remove(c)
	}
	c.gone = true
	if p.items[c.task.Item.ID] == c {
		delete(p.items, c.task.Item.ID)
	}
}

// CheckNow asks for an item as soon as its turn comes, whatever its interval says; the interval goes on as before.
func (p *Poller) CheckNow(id model.ItemID) error {
	p.mu.Lock()
	c := p.items[id]
	if c == nil {
		p.mu.Unlock()
		return fmt.Errorf("item %d: %w", id, ErrNotPolled)
	}
	var flights []*flight
	if c.state == waiting { // Else its turn is coming, or it is being asked for.
		p.wheel.remove(c)
		c.due = time.Now().UnixNano()
		p.enqueue(c)
		flights = p.dispatch(c.kind)
	}
	p.mu.Unlock()
	p.call(c.kind, flights)
	return nil
}

// Run asks until ctx ends, then waits for the checks under way and hands over what they brought. It runs once.
func (p *Poller) Run(ctx context.Context) error {
	ticks := p.o.Ticks(tickInterval)
	defer ticks.Stop()
	flying, land := context.WithCancel(ctx)
	defer land()
	p.mu.Lock()
	p.running, p.ctx = true, flying
	p.mu.Unlock()

	flushed := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(flushed)
		// Outlives ctx: what was asked for is stored.
		p.out.run(context.WithoutCancel(ctx), stop)
	}()
	ends := context.AfterFunc(ctx, ticks.Stop)
	defer ends()
	for ticks.Wait() && ctx.Err() == nil {
		now := time.Now().UnixNano()
		p.advance(now)
		p.out.due(now, p.o.FlushInterval)
	}
	p.mu.Lock()
	p.running = false
	p.mu.Unlock()
	p.flights.Wait()
	close(stop)
	<-flushed
	return ctx.Err()
}

// advance makes ready what is due and starts what there is room for.
func (p *Poller) advance(now int64) {
	p.mu.Lock()
	if p.wheel.clockBack(now) {
		p.restart(now)
	}
	p.wheel.advance(now, p.enqueue)
	flights := make([][]*flight, len(p.kinds))
	for i, k := range p.kinds {
		k.sample(now)
		flights[i] = p.dispatch(k)
	}
	p.mu.Unlock()
	for i, k := range p.kinds {
		p.call(k, flights[i])
	}
}

// restart gives every waiting check a new time, because the clock was set back.
func (p *Poller) restart(now int64) {
	p.o.Log.Warn("poller: the clock was set back; all items get new times")
	p.wheel.start(now)
	for _, c := range p.items {
		if c.state == waiting {
			p.wheel.remove(c)
			c.due = c.first(now)
			p.wheel.add(c)
		}
	}
}
