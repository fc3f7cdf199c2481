package query

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// Limits of live subscriptions.
const (
	// MaxSubscriptions is how many may be open at the same time.
	MaxSubscriptions = 1000
	// maxPending is how many updates one subscription may have waiting; at one message in 100 ms that is 80,000 values
	// per second.
	maxPending = 8192
	// maxPendingBytes bounds the text among them.
	maxPendingBytes = 1 << 20
)

// ErrTooManySubscriptions means that a new subscription must wait until others end.
var ErrTooManySubscriptions = errors.New("too many live subscriptions are open; close some and try again")

// Update is one new value of one item.
type Update struct {
	Item  model.ItemID
	Value Value
}

// Hub hands new values to those who look at them. Publish never waits for a reader: one that is too slow loses its
// oldest updates, which is counted.
type Hub struct {
	open atomic.Int64

	mu     sync.RWMutex
	byItem map[model.ItemID][]*Subscription
	all    map[*Subscription]struct{}

	dropped *metrics.Counter
}

// NewHub returns a hub without subscribers. set may be nil.
func NewHub(set *metrics.Set) *Hub {
	if set == nil {
		set = metrics.NewSet()
	}
	h := &Hub{
		byItem: make(map[model.ItemID][]*Subscription), all: make(map[*Subscription]struct{}),
		dropped: set.NewCounter("tidemark_query_live_dropped_updates_total"),
	}
	set.NewGauge("tidemark_query_live_subscriptions", func() float64 { return float64(h.open.Load()) })
	return h
}

// Subscription receives updates of a set of items.
type Subscription struct {
	hub    *Hub
	signal chan struct{}
	items  []model.ItemID // guarded by hub.mu

	mu       sync.Mutex
	pending  []Update
	bytes    int
	problems bool
	dropped  uint64
}

// Subscribe begins to collect updates of items. The subscription must be closed.
func (h *Hub) Subscribe(items []model.ItemID) (*Subscription, error) {
	if h.open.Add(1) > MaxSubscriptions {
		h.open.Add(-1)
		return nil, ErrTooManySubscriptions
	}
	s := &Subscription{hub: h, signal: make(chan struct{}, 1)}
	h.mu.Lock()
	h.all[s] = struct{}{}
	h.mu.Unlock()
	s.SetItems(items)
	return s, nil
}

// SetItems replaces the items that the subscription listens to.
func (s *Subscription) SetItems(items []model.ItemID) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.all[s]; !open {
		return
	}
	s.leave()
	seen := make(map[model.ItemID]bool, len(items))
	for _, id := range items {
		if !seen[id] {
			seen[id] = true
			s.items = append(s.items, id)
			h.byItem[id] = append(h.byItem[id], s)
		}
	}
}

// leave takes the subscription out of the items' lists. The caller holds hub.mu.
func (s *Subscription) leave() {
	h := s.hub
	for _, id := range s.items {
		list := h.byItem[id]
		kept := make([]*Subscription, 0, len(list))
		for _, other := range list {
			if other != s {
				kept = append(kept, other)
			}
		}
		if len(kept) == 0 {
			delete(h.byItem, id)
		} else {
			h.byItem[id] = kept
		}
	}
	s.items = nil
}

// Close ends the subscription. A second call does nothing.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.all[s]; !open {
		return
	}
	s.leave()
	delete(h.all, s)
	h.open.Add(-1)
}

// Ready gets a signal when there is something to Take.
func (s *Subscription) Ready() <-chan struct{} { return s.signal }

// Take returns what came since the last call, in order, and whether problems changed. The updates belong to the caller.
func (s *Subscription) Take() (updates []Update, problems bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	updates, problems = s.pending, s.problems
	s.pending, s.bytes, s.problems = nil, 0, false
	return updates, problems
}

// Dropped returns how many updates were lost because they were not taken in time.
func (s *Subscription) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Publish hands the values of a batch to their subscribers. It keeps nothing of the batch.
func (h *Hub) Publish(b *model.Batch) {
	if h.open.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.byItem) == 0 {
		return
	}
	for i, id := range b.Items {
		subscribers := h.byItem[id]
		if len(subscribers) == 0 || b.Flags[i].Skipped() || b.Types[i] >= model.Raw {
			continue
		}
		v := Value{At: b.At[i], Type: b.Types[i], Bits: b.Bits[i]}
		if v.Type.InArena() {
			v.Bits, v.Bytes = 0, append([]byte(nil), b.Bytes(i)...)
		}
		for _, s := range subscribers {
			h.dropped.Add(s.push(Update{Item: id, Value: v}))
		}
	}
}

// push queues an update and returns how many older ones were dropped for it.
func (s *Subscription) push(u Update) (dropped int) {
	s.mu.Lock()
	for len(s.pending) > 0 && (len(s.pending) >= maxPending || s.bytes+len(u.Value.Bytes) > maxPendingBytes) {
		// A quarter goes at once, so that a slow reader does not cost a move per value.
		n := max(len(s.pending)/4, 1)
		for _, old := range s.pending[:n] {
			s.bytes -= len(old.Value.Bytes)
		}
		s.pending = append(s.pending[:0], s.pending[n:]...)
		dropped += n
	}
	s.pending = append(s.pending, u)
	s.bytes += len(u.Value.Bytes)
	s.dropped += uint64(dropped)
	s.mu.Unlock()
	s.wake()
	return dropped
}

func (s *Subscription) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// ProblemsChanged tells all subscribers that a problem began, ended or was acknowledged.
func (h *Hub) ProblemsChanged() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.all {
		s.mu.Lock()
		s.problems = true
		s.mu.Unlock()
		s.wake()
	}
}
