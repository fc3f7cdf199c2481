// Package reactor exchanges requests and answers with many peers from one goroutine, in rounds.
//
// A check that has a goroutine to itself wakes a thread three times: connected, answered, closed. When checks come at a pace that leaves the
// processor idle between them, each of these finds cold caches and costs more than the check. A round does what can be done for all peers at
// once: it connects and sends, lets the peers work for gatherInterval, and then reads what they have answered.
//
// docs/design/0022-pollers.md says what it is used for.
package reactor

import (
	"sync"
	"time"
)

const (
	// gatherInterval is the time between two rounds while answers are awaited; an answer is taken at most so late.
	gatherInterval = 5 * time.Millisecond
	// sweepInterval is the time between two looks for exchanges whose time is over; they end at most so late.
	sweepInterval = 50 * time.Millisecond
	// linger is how long the goroutine stays when nothing is to be done: the next checks find it with its stack grown.
	linger = time.Second
)

// loop is a goroutine that runs functions and rounds, and that is there only while something is to be done, and a second more.
type loop struct {
	mu      sync.Mutex
	inbox   []func()
	running bool
	done    chan struct{}
	wake    chan struct{}

	// round does what can be done now; it returns how long to wait for the next one, and false when there is nothing to wait for.
	round func(now time.Time) (time.Duration, bool)
	// closed belongs to the goroutine.
	closed bool
}

// Do runs f soon on the goroutine of the loop, which starts one if need be. It never waits.
func (l *loop) Do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inbox = append(l.inbox, f)
	if l.running {
		select {
		case l.wake <- struct{}{}:
		default:
		}
		return
	}
	l.running, l.done, l.wake = true, make(chan struct{}), make(chan struct{}, 1)
	go l.run(l.wake, l.done)
}

// close waits until there is nothing to do. What comes later is still done.
func (l *loop) close() {
	l.Do(func() { l.closed = true })
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	<-done
}

func (l *loop) run(wake, done chan struct{}) {
	defer close(done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var work []func()
	lingered := false
	for {
		l.mu.Lock()
		work, l.inbox = l.inbox, work[:0]
		l.mu.Unlock()
		for i, f := range work {
			f()
			work[i] = nil
		}
		wait, busy := l.round(time.Now())
		if !busy {
			if l.ends(lingered && len(work) == 0) {
				return
			}
			wait = linger
		}
		lingered = !busy
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-wake:
		}
	}
}

// ends reports whether the goroutine may end, and takes note of it.
func (l *loop) ends(lingered bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.inbox) > 0 || !lingered && !l.closed {
		return false
	}
	l.running = false
	return true
}
