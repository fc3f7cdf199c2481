// Package rounds lets goroutines wait for the next round of work that another one does.
package rounds

import "sync"

// Waiters are those who wait. The zero value has none.
type Waiters struct {
	mu sync.Mutex
	ch chan struct{}
}

// Next returns a channel that is closed at the next announcement. Whoever waits takes it before looking whether there is something to wait for.
func (w *Waiters) Next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

// Announce wakes all who wait.
func (w *Waiters) Announce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}
