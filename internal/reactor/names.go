package reactor

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// freshFor is how long the addresses of a name are believed without asking again, believedFor how long in all: they are asked for again
	// while they are still used, so that no check waits for it.
	freshFor    = 30 * time.Second
	believedFor = time.Minute
	// maxNames bounds the names that are remembered, maxLookups those asked for at once, lookupTimeout how long one is asked for.
	maxNames      = 50_000
	maxLookups    = 32
	lookupTimeout = 5 * time.Second
	// connectTimeout is how long the first address of a name has to connect before the others are tried.
	connectTimeout = time.Second
)

// Names remembers the addresses of names for a minute. It is safe for use by several goroutines.
type Names struct {
	lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)
	now    func() time.Time

	mu      sync.Mutex
	known   map[string]*addresses
	looking int
}

// addresses are those of a name; none when it has none.
type addresses struct {
	list    []netip.Addr
	at      time.Time
	looking bool
}

// NewNames returns Names that ask the system's resolver.
func NewNames() *Names {
	return &Names{lookup: net.DefaultResolver.LookupNetIP, now: time.Now, known: map[string]*addresses{}}
}

// Find returns the address of a name that is tried next, and how long it has to connect when the name has others; zero for as long as it
// takes. It never waits: of a name that is not known it returns false, and asks for it meanwhile.
func (n *Names) Find(name string) (at netip.Addr, limit time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, now := n.known[name], n.now()
	if known == nil {
		if len(n.known) >= maxNames {
			clear(n.known)
		}
		known = &addresses{at: now.Add(-believedFor)}
		n.known[name] = known
	}
	age := now.Sub(known.at)
	if age >= freshFor && !known.looking && n.looking < maxLookups {
		known.looking = true
		n.looking++
		go n.find(name, known)
	}
	if age >= believedFor || len(known.list) == 0 {
		return netip.Addr{}, 0, false
	}
	if len(known.list) > 1 {
		limit = connectTimeout
	}
	return known.list[0], limit, true
}

func (n *Names) find(name string, known *addresses) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	list, err := n.lookup(ctx, "ip", name)
	if err != nil {
		list = nil // Whoever asks without rounds says why.
	}
	for i := range list {
		list[i] = list[i].Unmap()
	}
	list = slices.DeleteFunc(list, func(a netip.Addr) bool { return a.Zone() != "" })
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(known.list) > 0 {
		if at := slices.Index(list, known.list[0]); at > 0 {
			list[0], list[at] = list[at], list[0] // The one that answered.
		}
	}
	known.list, known.at, known.looking = list, n.now(), false
	n.looking--
}

// Failed takes note that a name could not be reached at an address: another of its addresses is tried next, and they are looked up soon.
func (n *Names) Failed(name string, at netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.known[name]
	if known == nil || len(known.list) == 0 || known.list[0] != at {
		return
	}
	known.list = append(known.list[1:], at)
	if old := n.now().Add(-freshFor); known.at.After(old) {
		known.at = old
	}
}
