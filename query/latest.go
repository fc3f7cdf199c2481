package query

import (
	"context"
	"fmt"
	"math"
	"sync"

	"tidemark/internal/idtable"
	"tidemark/model"
)

// maxLatestTextBytes is the longest text that the table keeps; longer ones are read from the engine when asked for.
const maxLatestTextBytes = 4 << 10

// Latest keeps the last two values of every item. The history syncer tells it of each batch; what was stored before
// the start is read from the engine when somebody asks.
type Latest struct {
	querier *Querier
	// mu is held for a whole batch: there is one syncer, and a reader can wait for the millisecond that a batch takes.
	mu    sync.RWMutex
	items idtable.Table[model.ItemID, latestState]
}

// latestState is the last two values of one item. Texts are in extra, because most items are numbers.
type latestState struct {
	lastAt, previousAt     int64
	lastBits, previousBits uint64
	extra                  *latestExtra
	lastType, previousType model.ValueType
	haveLast, havePrevious bool
	// seeded: the engine was asked, so nothing older is missing.
	seeded bool
}

type latestExtra struct {
	last, previous []byte
	// The texts that were too long to be kept.
	lastCut, previousCut bool
	// reason is why the item could not be measured, empty when it can.
	reason string
}

// LastValues is what Latest knows of one item.
type LastValues struct {
	Item model.ItemID
	// Last and Previous are the two newest values; nil when there are none.
	Last, Previous *Value
	// Reason is why the item cannot be measured at present; empty when it can.
	Reason string
}

// NewLatest returns an empty table that reads older values through q.
func NewLatest(q *Querier) *Latest {
	return &Latest{querier: q}
}

// Observe takes over the values of a batch. It keeps nothing of the batch and never waits for anything but a lock.
func (l *Latest) Observe(b *model.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cursor := l.items.Cursor()
	for i, id := range b.Items {
		if b.Flags[i].Skipped() || b.Types[i] == model.Raw {
			continue
		}
		state := cursor.Get(id)
		if state == nil {
			state = l.state(id)
			cursor = l.items.Cursor()
		}
		if b.Types[i] == model.Unsupported {
			state.unsupported(b.Bytes(i))
		} else {
			state.supported()
			state.observe(b.At[i], b.Types[i], b.Bits[i], b.Arena)
		}
	}
}

// state returns the state of an item, made if need be; l.mu is held for writing.
func (l *Latest) state(id model.ItemID) *latestState {
	s := l.items.Get(id)
	if s == nil {
		s = new(latestState)
		l.items.Set(id, s)
	}
	return s
}

// complete reports whether the engine need not be asked about an item.
func (l *Latest) complete(id model.ItemID) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.items.Get(id)
	return s != nil && s.complete()
}

func (s *latestState) unsupported(reason []byte) {
	if s.extra == nil {
		s.extra = new(latestExtra)
	}
	if s.extra.reason != string(reason) {
		s.extra.reason = string(reason[:min(len(reason), maxLatestTextBytes)])
	}
}

func (s *latestState) supported() {
	if s.extra != nil {
		s.extra.reason = ""
	}
}

// observe puts a value in its place in time.
func (s *latestState) observe(at int64, vt model.ValueType, bits uint64, arena []byte) {
	switch {
	case !s.haveLast || at > s.lastAt:
		s.previousAt, s.previousBits, s.previousType, s.havePrevious = s.lastAt, s.lastBits, s.lastType, s.haveLast
		if s.extra != nil {
			s.extra.previous, s.extra.previousCut = s.extra.last, s.extra.lastCut
			s.extra.last, s.extra.lastCut = nil, false
		}
		s.lastAt, s.lastBits, s.lastType, s.haveLast = at, bits, vt, true
		if vt.InArena() {
			s.keepText(model.SpanBytes(arena, bits), true)
		}
	case at < s.lastAt && (!s.havePrevious || at > s.previousAt):
		s.previousAt, s.previousBits, s.previousType, s.havePrevious = at, bits, vt, true
		if vt.InArena() {
			s.keepText(model.SpanBytes(arena, bits), false)
		}
	}
}

func (s *latestState) keepText(text []byte, last bool) {
	if s.extra == nil {
		s.extra = new(latestExtra)
	}
	long := len(text) > maxLatestTextBytes
	var kept []byte
	if !long {
		kept = append(kept, text...)
	}
	if last {
		s.extra.last, s.extra.lastCut = kept, long
	} else {
		s.extra.previous, s.extra.previousCut = kept, long
	}
}

// complete reports whether the engine need not be asked.
func (s *latestState) complete() bool {
	return (s.seeded || s.haveLast && s.havePrevious) && !s.cut()
}

func (s *latestState) cut() bool { return s.extra != nil && (s.extra.lastCut || s.extra.previousCut) }

// Sweep drops what is kept of items that do not exist any more and returns how many they were. The server calls it
// now and then; exists must not ask Latest.
func (l *Latest) Sweep(exists func(model.ItemID) bool) (dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items.Each(func(id model.ItemID, _ *latestState) bool {
		if !exists(id) {
			l.items.Set(id, nil)
			dropped++
		}
		return true
	})
	return dropped
}

// LastAt returns the time of an item's newest value since the start, Unix nanoseconds; zero when none came yet. It does
// not ask the engine.
func (l *Latest) LastAt(id model.ItemID) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s := l.items.Get(id); s != nil {
		return s.lastAt
	}
	return 0
}

// Get returns the last two values of items, in their order.
func (l *Latest) Get(ctx context.Context, ids []model.ItemID) ([]LastValues, error) {
	var unknown []model.ItemID
	for _, id := range ids {
		if !l.complete(id) {
			unknown = append(unknown, id)
		}
	}
	long, err := l.seed(ctx, unknown)
	if err != nil {
		return nil, fmt.Errorf("read the last values of %d items: %w", len(unknown), err)
	}
	values := make([]LastValues, len(ids))
	for i, id := range ids {
		if v, ok := long[id]; ok {
			values[i] = v
			continue
		}
		values[i] = l.values(id)
	}
	return values, nil
}

// values copies what is known of an item.
func (l *Latest) values(id model.ItemID) LastValues {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s := l.items.Get(id); s != nil {
		return s.values(id)
	}
	return LastValues{Item: id}
}

// values copies what a state holds.
func (s *latestState) values(id model.ItemID) LastValues {
	v := LastValues{Item: id}
	var last, previous []byte
	if s.extra != nil {
		last, previous, v.Reason = s.extra.last, s.extra.previous, s.extra.reason
	}
	if s.haveLast {
		v.Last = stateValue(s.lastAt, s.lastType, s.lastBits, last)
	}
	if s.havePrevious {
		v.Previous = stateValue(s.previousAt, s.previousType, s.previousBits, previous)
	}
	return v
}

func stateValue(at int64, vt model.ValueType, bits uint64, text []byte) *Value {
	v := &Value{At: at, Type: vt, Bits: bits}
	if vt.InArena() {
		// The table never changes a text it keeps, so it can be shared.
		v.Bits, v.Bytes = 0, text
	}
	return v
}

// seed asks the engine for the last two values of items and merges them with what came meanwhile. Items with texts
// that are too long for the table are returned.
func (l *Latest) seed(ctx context.Context, ids []model.ItemID) (map[model.ItemID]LastValues, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, end, err := l.querier.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	texts := make(map[model.ItemID]LastValues)
	budget := l.querier.MaxBytes()
	always := model.TimeRange{From: math.MinInt64, To: math.MaxInt64}
	err = l.querier.Read(ctx, ids, always, 2, func(c *model.Columns) error {
		l.update(c.Item, func(s *latestState) {
			for i := range c.At {
				s.observe(c.At[i], c.Type, c.Bits[i], c.Arena)
			}
		})
		if !c.Type.InArena() {
			return nil
		}
		v := texts[c.Item]
		for i := range c.At {
			value := copyValue(c, i)
			v.Previous, v.Last = v.Last, &value
			if budget -= int64(len(value.Bytes)); budget < 0 {
				return &LimitError{"the last values need more memory than allowed; ask for fewer items", l.querier.MaxBytes()}
			}
		}
		texts[c.Item] = v
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		l.update(id, func(s *latestState) {
			s.seeded = true
			if v, ok := texts[id]; ok && s.cut() {
				v.Item, v.Reason = id, s.extra.reason
				texts[id] = v
			} else {
				delete(texts, id)
			}
		})
	}
	return texts, nil
}

// update changes the state of one item under its lock.
func (l *Latest) update(id model.ItemID, change func(*latestState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.state(id))
}
