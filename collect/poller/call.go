package poller

import (
	"context"
	"errors"
	"time"
)

// Caller is a Checker that makes many calls at once without a goroutine for each.
type Caller interface {
	Checker
	// Call makes the calls as Check does. Each is given to ended once, together with others that ended at the same time. Call does not wait for
	// an answer. When ctx ends, the calls end soon.
	Call(ctx context.Context, calls []*Call, ended func([]*Call))
}

// Call is one call of a Caller: what Check is given.
type Call struct {
	Tasks   []*Task
	Results []Result
	// Deadline is when the call must have ended.
	Deadline time.Time

	flight *flight
}

// ByCheck makes a call by Check, on a goroutine of its own.
func (c *Call) ByCheck(ctx context.Context, checker Checker, ended func([]*Call)) {
	go func() {
		c.check(ctx, checker)
		ended([]*Call{c})
	}()
}

func (c *Call) check(ctx context.Context, checker Checker) {
	ctx, cancel := context.WithDeadline(ctx, c.Deadline)
	defer cancel()
	checker.Check(ctx, c.Tasks, c.Results)
}

// call starts flights. The poller's lock is not held: they may end at once.
func (p *Poller) call(k *kind, flights []*flight) {
	if len(flights) == 0 {
		return
	}
	now := time.Now()
	calls := make([]*Call, 0, len(flights))
	for _, f := range flights {
		if f.Results = f.result1[:]; len(f.Tasks) != 1 {
			f.Results = make([]Result, len(f.Tasks))
		}
		f.Deadline, f.flight = now.Add(f.timeout), f
		switch {
		case f.Tasks[0].Fault != "":
			go p.refuse(f)
		case k.caller != nil:
			calls = append(calls, &f.Call)
		default:
			go p.fly(f)
		}
	}
	if len(calls) > 0 {
		k.caller.Call(p.ctx, calls, p.ended)
	}
}

// fly makes a call by Check.
func (p *Poller) fly(f *flight) {
	f.check(p.ctx, f.kind.Checker)
	p.ended([]*Call{&f.Call})
}

// refuse ends a call that cannot be made as it is configured.
func (p *Poller) refuse(f *flight) {
	for i, t := range f.Tasks {
		f.Results[i] = Result{NotSupported, []byte(t.Fault)}
	}
	p.ended([]*Call{&f.Call})
}

// ended hands over what calls brought, and sets when their checks are due again.
func (p *Poller) ended(calls []*Call) {
	now := time.Now().UnixNano()
	for _, c := range calls {
		if errors.Is(p.ctx.Err(), context.Canceled) {
			// The server stops; that the check was cut off says nothing of the host.
			for i := range c.Results {
				if c.Results[i].Outcome == Unreachable {
					c.Results[i].Outcome = Nothing
				}
			}
		}
		c.flight.kind.count(c.Results)
	}
	p.out.put(calls, now)
	p.land(calls, now)
	p.flights.Add(-len(calls))
}
