// Package reactor exchanges requests and answers with many peers together, in rounds.
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
	// linger is how long the goroutine stays when nothing is to be done.
	linger = time.Second
	// doMost is how many exchanges are begun on the goroutine that wants them.
	doMost = 256
)

// loop runs functions and rounds, one at a time: whoever comes while it is at work leaves his function to who is there. So what is begun at a tick
// is sent by the goroutine of the tick, and no other has to be woken. For the rounds that come later it has a goroutine, which is there only while
// something is to be done, and a second more.
type loop struct {
	mu    sync.Mutex
	inbox []func()
	// held says that somebody is at work, due that the alarm has gone off.
	held, due bool
	// idle says that the last round had nothing to wait for.
	idle bool
	// alarm is nil without the goroutine, whose end done tells.
	alarm *Alarm
	done  chan struct{}
	// closing are closed when there is nothing to do.
	closing []chan struct{}

	// round does what can be done now; it returns how long to wait for the next one, and false when there is nothing to wait for.
	round func(now time.Time) (time.Duration, bool)

	// The rest belongs to who is at work.
	closed bool
	work   []func()
}

// Do runs f: now, or soon on the goroutine that is at work. It takes as long as f and what others leave meanwhile; f must not wait.
func (l *loop) Do(f func()) {
	l.mu.Lock()
	l.inbox = append(l.inbox, f)
	if l.held {
		l.mu.Unlock()
		return
	}
	l.held = true
	l.mu.Unlock()
	l.run()
}

// DoAll is Do for a function that begins count exchanges: many are left to the goroutine of the loop.
func (l *loop) DoAll(count int, f func()) {
	if count <= doMost {
		l.Do(f)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inbox = append(l.inbox, f)
	if !l.held {
		l.wait(0)
	}
}

// close waits until there is nothing to do. What comes later is still done.
func (l *loop) close() {
	over := make(chan struct{})
	l.Do(func() {
		l.closed = true
		l.mu.Lock()
		l.closing = append(l.closing, over)
		l.mu.Unlock()
	})
	<-over
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

// run works until there is nothing to do now. The caller has set held.
func (l *loop) run() {
	for {
		l.mu.Lock()
		l.work, l.inbox = l.inbox, l.work[:0]
		l.due = false
		l.mu.Unlock()
		for i, f := range l.work {
			f()
			l.work[i] = nil
		}
		wait, busy := l.round(time.Now())
		l.mu.Lock()
		if len(l.inbox) > 0 || l.due {
			l.mu.Unlock()
			continue
		}
		l.held = false
		l.rest(wait, busy)
		l.mu.Unlock()
		return
	}
}

// rest sees to the next round. The caller holds mu.
func (l *loop) rest(wait time.Duration, busy bool) {
	l.idle = !busy
	switch {
	case busy:
		l.wait(wait)
	case l.closed:
		l.leave()
		for _, over := range l.closing {
			close(over)
		}
		l.closing = nil
	default:
		l.wait(linger)
	}
}

// wait has the next round come in a while. The caller holds mu.
func (l *loop) wait(d time.Duration) {
	if l.alarm == nil {
		before := l.done
		l.alarm, l.done = NewAlarm(), make(chan struct{})
		go l.watch(l.alarm, before, l.done)
	}
	l.alarm.Set(d)
}

// leave ends the goroutine. The caller holds mu.
func (l *loop) leave() {
	if l.alarm != nil {
		l.alarm.Close()
		l.alarm = nil
	}
}

// watch runs a round each time that the alarm goes off.
func (l *loop) watch(a *Alarm, before, done chan struct{}) {
	defer close(done)
	if before != nil {
		<-before // It is at its end.
	}
	for a.Wait() {
		l.ring()
	}
}

// ring has a round run, or ends the goroutine when there was nothing to do for a while.
func (l *loop) ring() {
	l.mu.Lock()
	switch {
	case l.held:
		l.due = true
		l.mu.Unlock()
	case l.idle && len(l.inbox) == 0:
		l.leave()
		l.mu.Unlock()
	default:
		l.held = true
		l.mu.Unlock()
		l.run()
	}
}
