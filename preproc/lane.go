package preproc

import (
	"context"
	"sync"
	"time"

	"tidemark/model"
)

// Values of items with JavaScript leave their batch and go through a lane of the item: one after another, beside all other
// values, so that a slow script holds up nothing but its own item. What they yield follows as a batch of its own, which shares the
// completions of the first: a sender's answer still means that all of its values are stored.
type lanes struct {
	mu      sync.Mutex
	room    sync.Cond
	items   map[model.ItemID]*lane
	waiting int
	bytes   int
	running sync.WaitGroup
	closed  bool
}

const (
	// maxWaiting and maxWaitingBytes bound what waits in all lanes; behind that Put waits.
	maxWaiting      = 10_000
	maxWaitingBytes = 64 << 20
)

// lane holds the values of one item that wait; a goroutine works on it while there are some.
type lane struct{ tasks []task }

// task is a value that waits for its item's steps.
type task struct {
	item      *model.Item
	at        int64
	flags     model.Flag
	in        input
	arrivedAt int64
	done      []*model.Completion
}

// leave moves the value of row i into the lane of its item. It reports false when lanes are closed: the value stays.
func (p *Processor) leave(b *model.Batch, i int, item *model.Item, in input) bool {
	in.value.parsed = nil // it belongs to this goroutine
	in.value.text = append([]byte(nil), in.value.text...)
	t := task{item: item, at: b.At[i], flags: b.Flags[i], in: in, arrivedAt: b.ArrivedAt, done: append([]*model.Completion(nil), b.Done...)}
	l := &p.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && l.waiting > 0 && (l.waiting >= maxWaiting || l.bytes+len(in.value.text) > maxWaitingBytes) {
		l.room.Wait()
	}
	if l.closed {
		return false
	}
	for _, c := range t.done {
		c.Add(1)
	}
	l.waiting++
	l.bytes += len(in.value.text)
	q := l.items[item.ID]
	if q == nil {
		q = &lane{}
		l.items[item.ID] = q
		l.running.Add(1)
		go p.drive(item.ID, q)
	}
	q.tasks = append(q.tasks, t)
	return true
}

// drive works on a lane until it is empty.
func (p *Processor) drive(id model.ItemID, q *lane) {
	l := &p.lanes
	defer l.running.Done()
	for {
		l.mu.Lock()
		if len(q.tasks) == 0 {
			delete(l.items, id)
			l.mu.Unlock()
			return
		}
		t := q.tasks[0]
		q.tasks[0] = task{}
		q.tasks = q.tasks[1:]
		l.mu.Unlock()
		p.follow(t)
		l.mu.Lock()
		l.waiting--
		l.bytes -= len(t.in.value.text)
		l.room.Broadcast()
		l.mu.Unlock()
	}
}

// follow takes a value through its steps and puts what they yield into the sink.
func (p *Processor) follow(t task) {
	start := time.Now()
	b := model.NewBatch()
	b.ArrivedAt = t.arrivedAt
	b.Append(t.item.ID, t.at, model.Raw, 0)
	b.Flags[0] = t.flags
	b.Done = append(b.Done, t.done...)
	if !p.apply(b, 0, t.item, t.in) {
		b.Truncate(0)
		if t.item.RuleID == 0 {
			p.discarded.Inc()
		}
	}
	if b.Len() > 1 {
		p.dependents.Add(b.Len() - 1)
	}
	p.busy.Add(time.Since(start).Seconds())
	if b.Len() == 0 {
		b.Finish(nil)
		b.Free()
		return
	}
	if err := p.sink.Put(context.Background(), b); err != nil {
		// The sender hears of it and sends again.
		b.Finish(err)
		b.Free()
	}
}

// Close waits for the values that are on their way through scripts. Put must not be called any more. A second call does nothing.
func (p *Processor) Close() error {
	p.lanes.mu.Lock()
	p.lanes.closed = true
	p.lanes.room.Broadcast()
	p.lanes.mu.Unlock()
	p.lanes.running.Wait()
	return nil
}
