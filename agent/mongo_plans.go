package agent

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"tidemark/agent/key"
	"tidemark/agent/mongodb"
	"tidemark/model"
	"tidemark/sniff/shape"
	"tidemark/wire/queryplan"
	"tidemark/wire/zbx"
)

const (
	// plansPerRound is of how many shapes, the dearest, the plans are asked for in one round.
	plansPerRound = 20
	// firstPlans is when the first round comes: the dearest shapes have shown themselves.
	firstPlans = time.Minute
	// maxSpending bounds the shapes between two rounds, and the items that were declared.
	maxSpending = 4096
)

// mongoPlans gathers which shapes of the server cost most, from the goroutines that count requests. Its zero value gathers nothing.
type mongoPlans struct {
	mu     sync.Mutex
	server string // as the connection string names it; empty gathers nothing
	costs  map[planKey]*planCost
}

type planKey struct {
	instance    string
	fingerprint shape.Fingerprint
}

type planCost struct {
	key   planKey
	of    mongodb.Asked
	nanos uint64
}

func (p *mongoPlans) open(server string) {
	p.server, p.costs = server, map[planKey]*planCost{}
}

// spent adds time that a shape took.
func (p *mongoPlans) spent(instance string, of *shape.Shape, nanos uint64) {
	if p.server == "" || of.Command == shape.OtherText || of.Collection == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := planKey{instance, of.Fingerprint}
	c := p.costs[k]
	if c == nil {
		if len(p.costs) >= maxSpending {
			return
		}
		c = &planCost{key: k, of: mongodb.Asked{Database: of.Database, Collection: of.Collection, Command: of.Command, Text: of.Text}}
		p.costs[k] = c
	}
	c.nanos += nanos
}

// dearest takes the shapes that cost most since the last call, those of the server that is asked.
func (p *mongoPlans) dearest(same func(instance string) bool) []*planCost {
	p.mu.Lock()
	all := p.costs
	p.costs = map[planKey]*planCost{}
	p.mu.Unlock()
	var list []*planCost
	known := map[string]bool{}
	for _, c := range all {
		is, ok := known[c.key.instance]
		if !ok {
			is = same(c.key.instance)
			known[c.key.instance] = is
		}
		if is {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *planCost) int {
		return cmp.Or(cmp.Compare(b.nanos, a.nanos), cmp.Compare(a.key.instance, b.key.instance), cmp.Compare(a.key.fingerprint, b.key.fingerprint))
	})
	return list[:min(len(list), plansPerRound)]
}

// sameServer reports whether an instance that was watched is the server of a connection string: the same address, or, as the agent asks the server on its
// own machine, the same port of one of the machine's addresses.
func sameServer(instance, server string, local []netip.Addr) bool {
	instance, _, _ = strings.Cut(instance, " (") // " (log)"
	if instance == server {
		return true
	}
	host, port, err := net.SplitHostPort(instance)
	_, asked, err2 := net.SplitHostPort(server)
	if err != nil || err2 != nil || port != asked {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && (address.IsLoopback() || slices.Contains(local, address.Unmap()))
}

// localAddresses are those of this machine.
func localAddresses() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// askPlans asks for the plans of the dearest shapes, from time to time, until ctx ends.
func (a *Agent) askPlans(ctx context.Context) {
	planner := a.mongo.Planner()
	known := map[planKey]*item{}
	timer := time.NewTimer(min(firstPlans, a.options.Mongo.Plans))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(a.options.Mongo.Plans)
		if !a.state.get().Tidemark { // Only a Tidemark server takes items that the agent declares.
			continue
		}
		local := localAddresses()
		for _, c := range a.plans.dearest(func(instance string) bool { return sameServer(instance, a.mongo.Instance(), local) }) {
			one, cancel := context.WithTimeout(ctx, mongodb.PlanTimeout)
			plan, ok := planner.Plan(one, c.of)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if ok {
				a.buffer.put([]row{{at: time.Now().UnixNano(), item: planItem(known, c, a.options.Mongo.Plans), value: key.Text(queryplan.Encode(plan))}})
				a.wake()
			}
		}
	}
}

// planItem is the item of a shape's plan: mongo.plan[INSTANCE,FINGERPRINT].
func planItem(known map[planKey]*item, c *planCost, every time.Duration) *item {
	if made := known[c.key]; made != nil {
		return made
	}
	if len(known) >= maxSpending {
		clear(known)
	}
	fingerprint := c.key.fingerprint.String()
	text := "mongo.plan[" + key.Quote(c.key.instance) + "," + fingerprint + "]"
	made := &item{key: text, declaration: &zbx.Declaration{
		Key: text, Name: c.of.Database + "." + c.of.Collection + " " + c.of.Command + ": plan", Type: model.Text, Interval: every,
		Labels: model.Labels{
			{Name: "collection", Value: c.of.Collection},
			{Name: "command", Value: c.of.Command},
			{Name: "db", Value: c.of.Database},
			{Name: "fingerprint", Value: fingerprint},
			{Name: "instance", Value: c.key.instance},
		},
	}}
	known[c.key] = made
	return made
}
