package poller

import (
	"time"

	"tidemark/internal/schedule"
	"tidemark/model"
)

const (
	// tickShift makes a tick of 2^26 ns, 67 ms: each wakes a thread, which costs more than a check.
	tickShift    = 26
	tickInterval = time.Duration(1) << tickShift
	// slotCount ticks are 275 s: most checks come by once, those with longer intervals once a turn.
	slotCount = 4096
)

// state says where a check is.
type state uint8

const (
	waiting state = iota // in the wheel
	ready                // in the queue of its host
	flying               // being asked for
)

// check is a task with its place in time.
type check struct {
	task     *Task
	schedule *schedule.Schedule
	host     *host
	kind     *kind
	// at is the interface.
	at    *iface
	phase time.Duration
	// due is when it was or will be due, Unix nanoseconds.
	due        int64
	next, prev *check
	// slot is that of the wheel, with inWheel.
	slot       int32
	generation uint32
	state      state
	gone       bool
	inWheel    bool
}

// phaseOf gives each item a moment of its own in a day, so that items of one delay are spread over it. Those of a host that one call can ask
// for share its moment: apart from one another, each would be a request of its own.
func (k *kind) phaseOf(host model.HostID, t *Task) time.Duration {
	id := uint64(t.Item.ID)
	if k.MaxBatch > 1 && t.Address != "" {
		id = uint64(host)
	}
	// Multiplying by the golden ratio spreads following ids evenly (Knuth, The Art of Computer Programming, 6.4).
	return time.Duration(id * 0x9e3779b97f4a7c15 % uint64(schedule.MaxDelay))
}

// firstWithin is how soon a new item is asked for.
const firstWithin = time.Minute

// first is when a new check is due: within a minute, but not before its times when it has only such.
func (c *check) first(now int64) int64 {
	due := c.following(now)
	if c.schedule.TimesOnly() {
		return due
	}
	return min(due, now+int64(c.phase%firstWithin))
}

// following is when the check is due after a moment.
func (c *check) following(after int64) int64 {
	at, _ := c.schedule.Next(time.Unix(0, after), c.phase)
	return at.UnixNano()
}

// wheel holds the checks that wait. A slot has those whose time falls into its tick, in this turn or a later one.
type wheel struct {
	slots [slotCount]*check
	// tick is the next one to be looked at.
	tick  int64
	count int
}

func (w *wheel) start(now int64) { w.tick = now >> tickShift }

func (w *wheel) add(c *check) {
	// What is due already comes with the next tick.
	c.slot = int32(max(c.due>>tickShift, w.tick) & (slotCount - 1))
	c.state, c.inWheel = waiting, true
	head := &w.slots[c.slot]
	c.prev, c.next = nil, *head
	if c.next != nil {
		c.next.prev = c
	}
	*head = c
	w.count++
}

func (w *wheel) remove(c *check) {
	if !c.inWheel {
		return
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		w.slots[c.slot] = c.next
	}
	c.next, c.prev, c.inWheel = nil, nil, false
	w.count--
}

// advance takes out what was due before the tick of now, and calls f for each. Nothing comes out before it is due: its
// next time is counted from the moment when it was asked for, and must not be the same again.
func (w *wheel) advance(now int64, f func(*check)) {
	tick := now >> tickShift
	// After a long pause each slot is looked at once.
	for at := max(w.tick, tick-slotCount); at < tick; at++ {
		for c := w.slots[at&(slotCount-1)]; c != nil; {
			next := c.next
			if c.due>>tickShift < tick {
				w.remove(c)
				f(c)
			}
			c = next
		}
	}
	w.tick = max(w.tick, tick)
}

// clockBack reports whether the clock was set back so far that checks would wait for it.
func (w *wheel) clockBack(now int64) bool {
	return now>>tickShift+int64(2*time.Second)>>tickShift < w.tick
}
