package server

import (
	"sync"
	"time"

	"tidemark/model"
)

const (
	// valueSeenFor is how long what was found of a host is kept: looking costs a lookup for each of its items when none is new.
	valueSeenFor = 10 * time.Second
	// freshAtLeast is how old the newest value may be on a host whose items come often.
	freshAtLeast = 3 * time.Minute
	// freshWithoutInterval is how old a value may be of which nobody says how often it comes: a backup that reports once a night is well.
	freshWithoutInterval = 25 * time.Hour
	// freshIntervals is how many intervals a value may be old.
	freshIntervals = 3
	// asksPerSecond and askedItems bound how often the store is asked after a start, and for how many items of a host.
	asksPerSecond = 50
	askedItems    = 20
)

// valueSeen knows when a value of a host last came, for hosts that no agent speaks for.
type valueSeen struct {
	items  func(model.HostID) []model.ItemID
	item   func(model.ItemID) (model.Entry, bool)
	lastAt func(model.ItemID) int64
	// stored asks the engine for the newest value of items; lastAt knows only what came since the start.
	stored   func([]model.ItemID) int64
	now      func() time.Time
	mu       sync.Mutex
	hosts    map[model.HostID]valueSeenHost
	forgotAt time.Time
	second   int64
	askedNow int
}

type valueSeenHost struct {
	lookedAt time.Time
	// asked: the engine was asked for values from before the start.
	asked bool
	at    int64
	fresh bool
}

// Host implements rest.Options.ValueSeen.
func (v *valueSeen) Host(id model.HostID) (at int64, fresh bool) {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if h, ok := v.hosts[id]; ok && now.Sub(h.lookedAt) < valueSeenFor {
		return h.at, h.fresh
	}
	if now.Sub(v.forgotAt) > time.Hour {
		v.hosts, v.forgotAt = make(map[model.HostID]valueSeenHost), now // hosts that were deleted
	}
	h := valueSeenHost{lookedAt: now, asked: v.hosts[id].asked}
	items := v.items(id)
	for _, item := range items {
		last := v.lastAt(item)
		if last == 0 {
			continue
		}
		age := now.UnixNano() - last
		h.at, h.fresh = max(h.at, last), h.fresh || v.isFresh(item, age)
		if age <= int64(valueSeenFor) {
			break // none is newer by more than what is kept here may be old
		}
	}
	if h.at == 0 && len(items) > 0 {
		h = v.ask(h, v.hosts[id], items, now)
	}
	v.hosts[id] = h
	return h.at, h.fresh
}

// ask looks into the store for a host of which nothing came since the start: once, and for few hosts a second, because it reads from disk.
func (v *valueSeen) ask(h, before valueSeenHost, items []model.ItemID, now time.Time) valueSeenHost {
	if h.asked {
		h.at = before.at
		return h
	}
	if second := now.Unix(); second != v.second {
		v.second, v.askedNow = second, 0
	}
	if v.askedNow++; v.askedNow > asksPerSecond {
		h.lookedAt = time.Time{} // again with the next look
		return h
	}
	items = items[:min(len(items), askedItems)]
	h.asked, h.at = true, v.stored(items)
	for _, item := range items {
		h.fresh = h.fresh || h.at != 0 && v.isFresh(item, now.UnixNano()-h.at)
	}
	return h
}

func (v *valueSeen) isFresh(id model.ItemID, age int64) bool {
	if age <= int64(freshAtLeast) {
		return true
	}
	e, ok := v.item(id)
	switch {
	case !ok:
		return false
	case e.Silence == 0 && e.Interval == 0:
		return age <= int64(freshWithoutInterval)
	}
	return age <= freshIntervals*int64(max(e.Silence, e.Interval))
}
