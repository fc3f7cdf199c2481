package network

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Look is what the checks of a rule brought at one address.
type Look struct {
	Rule    string
	Address netip.Addr
	// DNS is the name of the address; empty for none.
	DNS     string
	At      time.Time
	Answers []Answer

	// at finds those that were put; nil while there are few.
	at map[place]int
}

// place is whence an answer is.
type place struct {
	check string
	port  int
}

// manyAnswers is how many are found one by one.
const manyAnswers = 32

// Answer is what one check brought at one port; zero for a check without ports.
type Answer struct {
	// Check is the label of the check.
	Check string
	Port  int
	Up    bool
	Value string
}

// Up reports whether anything answered.
func (l *Look) Up() bool { return slices.ContainsFunc(l.Answers, func(a Answer) bool { return a.Up }) }

// maxLookAnswers bounds the answers of one address: checks times ports.
const maxLookAnswers = maxChecks * 1024

// Put adds an answer, or puts it in place of the one of the same check and port.
func (l *Look) Put(a Answer) {
	i, known := l.find(place{a.Check, a.Port})
	switch {
	case known:
		l.Answers[i] = a
	case len(l.Answers) < maxLookAnswers:
		l.Answers = append(l.Answers, a)
		if l.at != nil {
			l.at[place{a.Check, a.Port}] = len(l.Answers) - 1
		}
	}
}

// find returns the index of the answer from a place.
func (l *Look) find(p place) (i int, known bool) {
	if len(l.Answers) < manyAnswers {
		i = slices.IndexFunc(l.Answers, func(o Answer) bool { return o.Check == p.check && o.Port == p.port })
		return i, i >= 0
	}
	if l.at == nil {
		l.at = make(map[place]int, 2*manyAnswers)
		for n, o := range l.Answers {
			l.at[place{o.Check, o.Port}] = n
		}
	}
	i, known = l.at[p]
	return i, known
}

// asLook makes what others are told of an address out of what it answered.
func (s *Scanner) asLook(ctx context.Context, rule *compiled, l *looked) *Look {
	out := &Look{Rule: rule.Name, Address: l.address, At: l.at}
	for _, a := range l.answers {
		out.Answers = append(out.Answers, Answer{Check: rule.checks[a.check].label, Port: a.port, Up: a.up, Value: a.value})
	}
	if out.Up() {
		out.DNS = s.o.Prober.Name(ctx, l.address)
	}
	return out
}

// report works one rule off for others, look after look. What it found is not remembered here: each look tells everything.
func (s *Scanner) report(ctx context.Context, r *running) {
	for ctx.Err() == nil {
		start := time.Now()
		err := s.scan(ctx, r, nil)
		if ctx.Err() != nil {
			return
		}
		s.scans.Inc()
		r.finish(start, time.Now())
		if err != nil {
			s.fail(r, err)
		}
		wait(ctx, time.Until(start.Add(r.rule.delay)), r.now)
	}
}

// finish notes the end of a look.
func (r *running) finish(start, end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Running, r.state.LastAt, r.state.LastSeconds, r.state.Error = false, end.Unix(), end.Sub(start).Seconds(), ""
}

// Take works on what a proxy found at an address. What does not fit the rule as it is now is passed over: the rule may have changed since.
// The error says that it could not be stored; it is to be brought again.
func (s *Scanner) Take(ctx context.Context, proxy string, l *Look) error {
	s.mu.Lock()
	r := s.rules[l.Rule]
	s.mu.Unlock()
	if r == nil || r.rule.Disabled || r.rule.Proxy != proxy || !r.rule.ranges.Contains(l.Address) {
		s.strange.Add(max(1, len(l.Answers)))
		return nil
	}
	if l.At.Before(time.Now().Add(-r.rule.forget)) {
		s.old.Add(max(1, len(l.Answers))) // it would be forgotten at once, and what is known is newer
		return nil
	}
	in := &looked{address: l.Address, dns: l.DNS, at: l.At, answers: s.known(r.rule, l)}
	if len(in.answers) == 0 {
		return nil
	}
	r.taking.Lock()
	defer r.taking.Unlock()
	if err := s.recall(ctx, r); err != nil {
		return err
	}
	lost, failed := s.take(ctx, r, r.memory, in)
	if lost != nil {
		r.memory = nil // it is ahead of what is stored
		s.fail(r, lost)
		return lost
	}
	r.count(r.memory)
	r.mu.Lock()
	r.state.LastAt = time.Now().Unix()
	if failed == nil {
		r.state.Error = ""
	}
	r.mu.Unlock()
	if failed != nil {
		s.fail(r, failed)
	}
	return nil
}

// known are the answers of checks and ports that the rule has.
func (s *Scanner) known(rule *compiled, l *Look) []answer {
	var list []answer
	for _, a := range l.Answers {
		i := slices.IndexFunc(rule.checks, func(k compiledCheck) bool { return k.label == a.Check })
		if i < 0 || !slices.Contains(rule.checks[i].ports, a.Port) {
			s.strange.Inc()
			continue
		}
		if a.Up {
			s.answers.Inc()
		}
		list = append(list, answer{check: i, port: a.Port, up: a.Up, value: a.Value[:min(len(a.Value), MaxValueBytes)]})
	}
	return list
}

// recall reads what is known of the hosts of a rule; the caller holds taking.
func (s *Scanner) recall(ctx context.Context, r *running) error {
	if r.memory != nil {
		return nil
	}
	list, last, err := s.o.Store.NetHosts(ctx, r.rule.Name)
	if err != nil {
		s.fail(r, err)
		return err
	}
	r.memory = newMemory(r.rule, list)
	r.count(r.memory)
	r.mu.Lock()
	r.state.LastAt = max(r.state.LastAt, last)
	r.mu.Unlock()
	return nil
}

// tend looks after what is known of a rule whose proxy looks.
func (s *Scanner) tend(ctx context.Context, r *running) {
	for {
		if err := s.forgetOld(ctx, r); err != nil && ctx.Err() == nil {
			s.fail(r, err)
		}
		if !wait(ctx, r.rule.delay, nil) {
			return
		}
	}
}

// forgetOld forgets what has been down for too long.
func (s *Scanner) forgetOld(ctx context.Context, r *running) error {
	r.taking.Lock()
	defer r.taking.Unlock()
	if err := s.recall(ctx, r); err != nil {
		return err
	}
	before := time.Now().Add(-r.rule.forget).Unix()
	r.memory.forget(before)
	r.count(r.memory)
	r.mu.Lock()
	last := r.state.LastAt
	r.mu.Unlock()
	return s.o.Store.EndNetScan(ctx, r.rule.Name, last, before)
}
