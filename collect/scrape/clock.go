package scrape

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"tidemark/internal/reactor"
)

// clock wakes targets at their times, all of them by one alarm: see reactor.Alarm for what a timer for each costs.
type clock struct {
	alarm *reactor.Alarm

	mu      sync.Mutex
	waiting sleepers
}

// sleeper is who waits; it is good for one wait after another.
type sleeper struct {
	due  time.Time
	wake chan struct{}
	// place is the index in the heap, -1 when it is not there.
	place int
}

func newSleeper() *sleeper { return &sleeper{wake: make(chan struct{}, 1), place: -1} }

// wait waits for so long, or until ctx ends; then it returns false.
func (c *clock) wait(ctx context.Context, s *sleeper, d time.Duration) bool {
	c.mu.Lock()
	s.due = time.Now().Add(d)
	if heap.Push(&c.waiting, s); s.place == 0 {
		c.alarm.Set(d)
	}
	c.mu.Unlock()
	select {
	case <-s.wake:
		return true
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.place >= 0 {
		heap.Remove(&c.waiting, s.place)
	} else {
		<-s.wake
	}
	return false
}

// run wakes who waits while fn runs.
func (c *clock) run(fn func() error) error {
	c.alarm = reactor.NewAlarm()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for c.alarm.Wait() {
			c.ring(time.Now())
		}
	}()
	err := fn()
	c.alarm.Close()
	<-over
	return err
}

// ring wakes those whose time has come.
func (c *clock) ring(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 {
		if left := c.waiting[0].due.Sub(now); left > 0 {
			c.alarm.Set(left)
			return
		}
		heap.Pop(&c.waiting).(*sleeper).wake <- struct{}{}
	}
}

// sleepers are a heap, the next one first.
type sleepers []*sleeper

func (h sleepers) Len() int           { return len(h) }
func (h sleepers) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h sleepers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *sleepers) Push(x any) {
	s := x.(*sleeper)
	s.place = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *sleepers) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last], s.place = nil, -1
	*h = (*h)[:last]
	return s
}
