package poller

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// busySamples is how many seconds busy looks back.
const busySamples = 60

// kind is a Kind at work. All of it is guarded by the poller's lock but the metrics.
type kind struct {
	Kind
	// caller is the Checker, when it makes many calls at once.
	caller Caller
	number int
	flying int
	// ring are the hosts with due checks, in turn.
	ring []*queue

	// used is the sum of checks under way times nanoseconds until changed.
	used    float64
	changed int64
	samples [busySamples]sample
	sampled int

	checks, unsupported, unreachable *metrics.Counter
	late                             *metrics.Histogram
}

type sample struct {
	at   int64
	used float64
}

// newKind makes the kind of this number.
func (p *Poller) newKind(number int) *kind {
	o, set := p.o.Kinds[number], p.o.Metrics
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&o.MaxInFlight, 10_000)
	orInt(&o.MaxPerHost, 4)
	orInt(&o.MaxBatch, 1)
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	name := func(metric string) string { return fmt.Sprintf("tidemark_poller_%s{kind=%q}", metric, o.Name) }
	k := &kind{
		Kind:        o,
		number:      number,
		checks:      set.GetOrCreateCounter(name("checks_total")),
		unsupported: set.GetOrCreateCounter(name("unsupported_checks_total")),
		unreachable: set.GetOrCreateCounter(name("unreachable_checks_total")),
		late:        set.GetOrCreateHistogram(name("late_seconds")),
	}
	k.caller, _ = o.Checker.(Caller)
	locked := func(f func() float64) func() float64 {
		return func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return f()
		}
	}
	set.GetOrCreateGauge(name("in_flight_checks"), locked(func() float64 { return float64(k.flying) }))
	set.GetOrCreateGauge(name("in_flight_checks_limit"), func() float64 { return float64(k.MaxInFlight) })
	set.GetOrCreateGauge(name("busy_percent"), locked(func() float64 { return k.busy(time.Now().UnixNano()) }))
	return k
}

// change adds to the checks under way.
func (k *kind) change(now int64, n int) {
	k.settle(now)
	k.flying += n
}

func (k *kind) settle(now int64) {
	if k.changed != 0 && now > k.changed {
		k.used += float64(k.flying) * float64(now-k.changed)
	}
	k.changed = now
}

// sample keeps the state of each second.
func (k *kind) sample(now int64) {
	if k.sampled > 0 && now-k.samples[(k.sampled-1)%busySamples].at < int64(time.Second) {
		return
	}
	k.settle(now)
	k.samples[k.sampled%busySamples] = sample{now, k.used}
	k.sampled++
}

// busy is the share of the room for checks that was in use over the last minute, 0 to 100.
func (k *kind) busy(now int64) float64 {
	if k.sampled == 0 {
		return 0
	}
	k.settle(now)
	first := k.samples[0]
	if k.sampled > busySamples {
		first = k.samples[k.sampled%busySamples]
	}
	if now <= first.at {
		return 0
	}
	return 100 * (k.used - first.used) / float64(now-first.at) / float64(k.MaxInFlight)
}

func (k *kind) count(results []Result) {
	k.checks.Add(len(results))
	for i := range results {
		switch results[i].Outcome {
		case NotSupported:
			k.unsupported.Inc()
		case Unreachable:
			k.unreachable.Inc()
		case Nothing, Value:
		}
	}
}

// Busy is how much of the room of a kind is in use.
type Busy struct {
	Kind string
	// InFlight are the calls under way now, of at most Limit.
	InFlight, Limit int
	// Percent is the share in use over the last minute.
	Percent float64
	// Due are the checks that wait for room.
	Due int
}

// Busy returns how busy each kind is, in the order of Options.Kinds.
func (p *Poller) Busy() []Busy {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UnixNano()
	list := make([]Busy, len(p.kinds))
	for i, k := range p.kinds {
		list[i] = Busy{Kind: k.Name, InFlight: k.flying, Limit: k.MaxInFlight, Percent: k.busy(now)}
	}
	for _, h := range p.hosts {
		for i := range h.queues {
			list[i].Due += len(h.queues[i].due)
		}
	}
	return list
}
