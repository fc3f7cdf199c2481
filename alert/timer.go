package alert

import "container/heap"

// timers are moments at which an escalation or a lane is due. A timer whose owner has moved to another moment is stale and passed over.
type timers []timer

type timer struct {
	at         int64
	escalation *escalation
	lane       *lane
}

func (t *timer) stale() bool {
	if t.escalation != nil {
		return t.escalation.dueAt() != t.at
	}
	return t.lane.readyAt != t.at
}

// Len implements heap.Interface, as do Less, Swap, Push and Pop.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push appends a timer.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }

// Pop removes the last timer.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = timer{}
	*t = (*t)[:len(*t)-1]
	return last
}

func (t *timers) add(one timer) {
	if one.at != 0 {
		heap.Push(t, one)
	}
}

// next returns the earliest moment.
func (t *timers) next() (int64, bool) {
	for len(*t) > 0 && (*t)[0].stale() {
		heap.Pop(t)
	}
	if len(*t) == 0 {
		return 0, false
	}
	return (*t)[0].at, true
}

// take returns a timer that is due at a moment.
func (t *timers) take(now int64) (timer, bool) {
	if at, ok := t.next(); !ok || at > now {
		return timer{}, false
	}
	return heap.Pop(t).(timer), true
}
