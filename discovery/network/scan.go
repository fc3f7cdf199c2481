package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/discovery"
	"tidemark/model"
)

// looked is what an address answered.
type looked struct {
	address netip.Addr
	answers []answer
	at      time.Time
	// dns is the address's name as a proxy knows it.
	dns string
}

// scan looks at all addresses of a rule. What they answer is worked on in this goroutine, in whatever order it comes. The error is the
// last thing that went wrong; the look goes on.
func (s *Scanner) scan(ctx context.Context, r *running, m *memory) error {
	r.mu.Lock()
	r.state.Running, r.state.Done = true, 0
	r.mu.Unlock()
	var last error
	results := make(chan looked)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure errgroup.Group
	failure.Go(func() error {
		defer close(results)
		return s.ask(ctx, r, results)
	})
	for l := range results {
		if err := s.handOver(ctx, r, m, &l); err != nil {
			last = err
		}
		r.mu.Lock()
		r.state.Done++
		r.mu.Unlock()
	}
	if err := failure.Wait(); err != nil {
		last = err
	}
	return last
}

// ask asks all addresses, so many at once as the rule says and as there is room for.
func (s *Scanner) ask(ctx context.Context, r *running, results chan<- looked) error {
	var mistakes sync.Map
	var g errgroup.Group
	g.SetLimit(r.rule.AtOnce)
	for a := range r.rule.ranges.All() {
		select {
		case <-ctx.Done():
			return g.Wait()
		case s.room <- struct{}{}:
		}
		g.Go(func() error {
			l := looked{address: a, answers: s.askOne(ctx, r.rule, a, &mistakes), at: time.Now()}
			<-s.room
			select {
			case results <- l:
			case <-ctx.Done():
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var err error
	mistakes.Range(func(_, value any) bool { err = value.(error); return false })
	return err
}

// askOne makes the checks of a rule at one address, one after the other.
func (s *Scanner) askOne(ctx context.Context, rule *compiled, a netip.Addr, mistakes *sync.Map) []answer {
	var list []answer
	for i := range rule.checks {
		k := &rule.checks[i]
		for _, port := range k.ports {
			if ctx.Err() != nil {
				return nil
			}
			limited, cancel := context.WithTimeout(ctx, k.timeout)
			value, up, err := s.o.Prober.Probe(limited, Probe{Address: a, Check: &k.Check, Port: port, Timeout: k.timeout})
			cancel()
			s.probes.Inc()
			if err != nil {
				mistakes.Store(k.label, fmt.Errorf("check %s: %w", k.label, err))
			}
			if up {
				s.answers.Inc()
			}
			if len(value) > MaxValueBytes {
				value = value[:MaxValueBytes]
			}
			list = append(list, answer{check: i, port: port, up: up && err == nil, value: value})
		}
	}
	return list
}

// handOver brings what an address answered to who works on it.
func (s *Scanner) handOver(ctx context.Context, r *running, m *memory, l *looked) error {
	if len(l.answers) == 0 {
		return nil // it was cut off
	}
	if s.o.Reporter != nil {
		return s.o.Reporter.Report(ctx, s.asLook(ctx, r.rule, l))
	}
	return errors.Join(s.take(ctx, r, m, l))
}

// take works on what an address answered. lost says why that was not stored; failed is what else went wrong, which the next look may mend.
func (s *Scanner) take(ctx context.Context, r *running, m *memory, l *looked) (lost, failed error) {
	ip := l.address.String()
	h, events, changed := m.learn(ip, l.answers, l.at)
	if h == nil {
		return nil, nil
	}
	s.events.Add(len(events))
	for i := range events {
		events[i].Proxy = r.rule.Proxy
	}
	f := &Found{Host: h, IP: ip, Events: events, DNS: l.dns, Proxy: r.rule.Proxy}
	if f.DNS == "" && f.Proxy == "" && (r.rule.hostName == byDNS || r.rule.visibleName == byDNS) {
		f.DNS = s.o.Prober.Name(ctx, l.address)
	}
	f.HostName, f.VisibleName = r.rule.name(r.rule.hostName, f, l.answers), r.rule.name(r.rule.visibleName, f, l.answers)
	f.Interfaces = r.rule.interfaces(f, l.answers)
	id, failed := s.o.Handler.Found(ctx, f)
	if id != h.HostID {
		h.HostID, changed = id, true
	}
	if !changed {
		return nil, failed
	}
	stored, lost := s.o.Store.RecordNetHost(ctx, h)
	if lost == nil {
		h.ID = stored
	}
	return lost, failed
}

// name is the name that a host gets.
func (c *compiled) name(from int, f *Found, answers []answer) string {
	if from == byDNS && f.DNS != "" {
		return f.DNS
	}
	for _, a := range answers {
		if a.check == from && a.up && a.value != "" {
			return a.value
		}
	}
	return f.IP
}

// interfaces are those by which an address answered; what answered as no agent and no SNMP device is an agent that may come.
func (c *compiled) interfaces(f *Found, answers []answer) []model.Interface {
	var list []model.Interface
	add := func(i discovery.ActionInterface) {
		made := i.At(&discovery.HostEvent{IP: f.IP, DNS: f.DNS})
		if !slices.ContainsFunc(list, func(o model.Interface) bool { return o.Type == made.Type && o.Port == made.Port }) {
			list = append(list, made)
		}
	}
	for _, a := range answers {
		if k := &c.checks[a.check]; a.up && (k.Type == "agent" || k.Type == "snmp") {
			add(discovery.ActionInterface{Type: k.Type, Port: fmt.Sprint(a.port), SNMP: k.SNMP})
		}
	}
	if len(list) == 0 {
		add(discovery.ActionInterface{Type: "agent"})
	}
	return list
}
