package scrape

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestClock: those who wait are woken in order and not before their time, and those who give up are forgotten.
func TestClock(t *testing.T) {
	c := &clock{}
	err := c.run(func() error {
		var mu sync.Mutex
		var order []int
		var waiting sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			waiting.Go(func() {
				s, d := newSleeper(), time.Duration(20-i)*5*time.Millisecond
				if !c.wait(t.Context(), s, d) {
					t.Error("not woken")
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				if took := time.Since(start); took < d {
					t.Errorf("woken after %v, want %v", took, d)
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			waiting.Go(func() {
				s := newSleeper()
				if c.wait(ctx, s, time.Hour) {
					t.Error("woken an hour before its time")
				}
				if !c.wait(t.Context(), s, time.Millisecond) {
					t.Error("not woken after it had given up")
				}
			})
		}
		cancel()
		waiting.Wait()
		if len(order) != 20 || len(c.waiting) != 0 {
			t.Errorf("%d woken, %d left", len(order), len(c.waiting))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
