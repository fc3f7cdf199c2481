package access

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

// The limits of failed attempts: so many are free, then each further one waits twice as long as the one before.
const (
	freeByUser    = 10  // of one name from one address
	freeByAddress = 100 // from one address
	firstWait     = time.Minute
	longestWait   = time.Hour
	// forgetAfter is how long without a failure one begins anew.
	forgetAfter = time.Minute
	// maxKept bounds what is remembered.
	maxKept = 20_000
)

// limiter slows down guessing.
type limiter struct {
	now  func() time.Time
	mu   sync.Mutex
	kept map[string]*attempts
}

type attempts struct {
	failed int
	last   time.Time
	until  time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, kept: make(map[string]*attempts)}
}

// keysOf returns what attempts are counted under, and how many of each are free.
func keysOf(name, address string) map[string]int {
	from := network(address)
	return map[string]int{strings.ToLower(name) + "\x00" + from: freeByUser, "\x00" + from: freeByAddress}
}

// network is an address without port; of IPv6 the 64 bits that one customer has.
func network(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// begin counts an attempt as failed before it is looked at, so that many at once are not free. It is a *LimitedError when it must wait.
func (l *limiter) begin(name, address string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	keys := keysOf(name, address)
	for key := range keys {
		if a := l.kept[key]; a != nil && now.Before(a.until) {
			return &LimitedError{After: a.until.Sub(now)}
		}
	}
	l.bound(now)
	for key, free := range keys {
		a := l.kept[key]
		if a == nil || now.Sub(a.last) > forgetAfter && now.Sub(a.until) > forgetAfter {
			a = &attempts{}
			l.kept[key] = a
		}
		a.failed++
		a.last = now
		if over := a.failed - free; over >= 0 {
			a.until = now.Add(min(firstWait<<min(over, 10), longestWait))
		}
	}
	return nil
}

// succeed forgets the failures of a name from an address, and takes back the one that begin counted against the address.
func (l *limiter) succeed(name, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, free := range keysOf(name, address) {
		a := l.kept[key]
		switch {
		case a == nil:
		case free == freeByUser:
			delete(l.kept, key)
		default:
			if a.failed--; a.failed < free {
				a.until = time.Time{}
			}
		}
	}
}

// bound keeps room for two more. It makes room for many at once, so that a flood of names does not look through all each time.
func (l *limiter) bound(now time.Time) {
	if len(l.kept) < maxKept-2 {
		return
	}
	for key, a := range l.kept {
		if now.Sub(a.last) > forgetAfter && !now.Before(a.until) {
			delete(l.kept, key)
		}
	}
	for key := range l.kept { // any, when all are recent: the addresses' own keys are made again at once
		if len(l.kept) < maxKept/2 {
			return
		}
		delete(l.kept, key)
	}
}
