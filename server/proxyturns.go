package server

import (
	"slices"
	"sync"
	"time"

	"tidemark/model"
)

const (
	// Values of proxies are refused when the history cache is filled to proxyStop percent. Below proxyGo they are taken from one proxy
	// after the other, in the order in which they asked, and from proxyFree down from all.
	proxyStop, proxyGo, proxyFree = 80, 60, 20
	// turnTime is how long a proxy may need to use its turn; they ask every second. One that is gone must not keep out the others.
	turnTime = 10 * time.Second
)

// proxyTurns says which proxies may bring values, by how full the history cache is. The zero value is ready.
type proxyTurns struct {
	mu sync.Mutex
	// stopped is set from proxyStop to proxyGo.
	stopped bool
	// queue are the proxies that wait, the first of them since turn.
	queue []model.ProxyID
	turn  time.Time
}

// takes reports whether values of a proxy are taken now. brings says that it brings some; one that only asks keeps its turn.
func (t *proxyTurns) takes(id model.ProxyID, percent int, brings bool, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if percent <= proxyFree {
		t.stopped, t.queue = false, nil
		return true
	}
	t.stopped = percent >= proxyStop || t.stopped && percent >= proxyGo
	if !t.stopped && len(t.queue) == 0 {
		return true
	}
	if !slices.Contains(t.queue, id) {
		t.queue = append(t.queue, id)
	}
	if t.stopped {
		t.turn = now // turns begin when values are taken again
		return false
	}
	if t.queue[0] != id && now.Sub(t.turn) > turnTime {
		t.next(now)
	}
	if t.queue[0] != id {
		return false
	}
	if brings {
		t.next(now)
	}
	return true
}

// next ends the turn of the first proxy.
func (t *proxyTurns) next(now time.Time) { t.queue, t.turn = t.queue[1:], now }

// state returns whether values of all proxies are refused, and how many proxies wait.
func (t *proxyTurns) state() (stopped bool, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped, len(t.queue)
}
