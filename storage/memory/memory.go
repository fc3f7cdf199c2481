// Package memory is a storage engine without files, plain enough to be the reference that others are compared with.
package memory

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// Options configure an engine.
type Options struct {
	// History is how long values are kept; zero is for ever.
	History time.Duration
	// Now returns Unix nanoseconds; nil means the system's clock.
	Now func() int64
}

// Engine keeps values in memory.
type Engine struct {
	o Options

	mu      sync.RWMutex
	closed  bool
	items   map[model.ItemID][]value
	marks   map[string]model.Mark
	records []record
	lsn     model.LSN
}

type value struct {
	at        int64
	bits      uint64
	text      []byte
	valueType model.ValueType
}

// record is a batch as it was appended.
type record struct {
	lsn   model.LSN
	batch *model.Batch
}

var (
	_ storage.Engine   = (*Engine)(nil)
	_ storage.Replayer = (*Engine)(nil)
	_ storage.Marker   = (*Engine)(nil)
	_ storage.Statter  = (*Engine)(nil)
)

// New returns an empty engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	return &Engine{o: o, items: map[model.ItemID][]value{}, marks: map[string]model.Mark{}}
}

// Append stores the values of b. See storage.Engine.
func (e *Engine) Append(ctx context.Context, b *model.Batch) (model.LSN, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, storage.ErrClosed
	}
	kept := &model.Batch{ArrivedAt: b.ArrivedAt, Marks: slices.Clone(b.Marks)}
	for i := range b.Items {
		e.appendRow(b, i, kept)
	}
	for _, m := range b.Marks {
		e.marks[m.Key] = m
	}
	if kept.Len() > 0 || len(kept.Marks) > 0 {
		e.lsn++
		e.records = append(e.records, record{lsn: e.lsn, batch: kept})
	}
	b.Finish(nil)
	return e.lsn, nil
}

// appendRow stores row i of b and adds it to kept unless it is skipped.
func (e *Engine) appendRow(b *model.Batch, i int, kept *model.Batch) {
	v := value{at: b.At[i], bits: b.Bits[i], valueType: b.Types[i]}
	if v.valueType > model.Binary {
		return
	}
	if v.valueType.InArena() {
		v.text = bytes.Clone(b.Bytes(i))
	}
	if e.o.History > 0 && v.at < e.o.Now()-int64(e.o.History) {
		b.Flags[i] |= model.Expired
		return
	}
	values := e.items[b.Items[i]]
	flag := model.Flag(0)
	k := find(values, v.at)
	for ; k < len(values) && values[k].at == v.at; k++ {
		if values[k].same(&v) {
			b.Flags[i] |= model.Duplicate
			return
		}
		flag |= model.Moved
		v.at++
	}
	if k < len(values) {
		flag |= model.Late
	}
	b.Flags[i] |= flag
	b.At[i] = v.at
	e.items[b.Items[i]] = slices.Insert(values, k, v)
	if v.valueType.InArena() {
		kept.AppendBytes(b.Items[i], v.at, v.valueType, v.text)
	} else {
		kept.Append(b.Items[i], v.at, v.valueType, v.bits)
	}
	kept.Flags[kept.Len()-1] = b.Flags[i]
}

// find returns where at is or belongs.
func find(values []value, at int64) int {
	k, _ := slices.BinarySearchFunc(values, at, func(v value, at int64) int {
		switch {
		case v.at < at:
			return -1
		case v.at > at:
			return 1
		}
		return 0
	})
	return k
}

func (v *value) same(o *value) bool {
	if v.valueType != o.valueType {
		return false
	}
	if v.valueType.InArena() {
		return bytes.Equal(v.text, o.text)
	}
	return v.bits == o.bits
}

// Read streams values. See storage.Engine.
func (e *Engine) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, err := e.values(id, q.Range)
		if err != nil {
			return err
		}
		if q.Newest > 0 && len(values) > q.Newest {
			values = values[len(values)-q.Newest:]
		}
		if err := deliver(id, values, fn); err != nil {
			return err
		}
	}
	return nil
}

// values returns a copy of the values of an item in a range.
func (e *Engine) values(id model.ItemID, r model.TimeRange) ([]value, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return nil, storage.ErrClosed
	}
	if r.From >= r.To {
		return nil, nil
	}
	all := e.items[id]
	return slices.Clone(all[find(all, r.From):find(all, r.To)]), nil
}

// deliver hands values to fn, one call for each run of one type.
func deliver(id model.ItemID, values []value, fn func(*model.Columns) error) error {
	for len(values) > 0 {
		c := model.Columns{Item: id, Type: values[0].valueType}
		n := 0
		for ; n < len(values) && values[n].valueType == c.Type; n++ {
			v := &values[n]
			bits := v.bits
			if c.Type.InArena() {
				bits = model.Span(len(c.Arena), len(v.text))
				c.Arena = append(c.Arena, v.text...)
			}
			c.At = append(c.At, v.at)
			c.Bits = append(c.Bits, bits)
		}
		values = values[n:]
		if err := fn(&c); err != nil {
			return err
		}
	}
	return nil
}

// Trends streams hourly summaries, made from the values each time.
func (e *Engine) Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, err := e.values(id, model.TimeRange{From: math.MinInt64, To: math.MaxInt64})
		if err != nil {
			return err
		}
		runs := summarize(id, values, q.Range)
		if q.Newest > 0 {
			runs = newest(runs, q.Newest)
		}
		for i := range runs {
			if err := fn(&runs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// summarize returns the hours of a range, one element for each run of one type.
func summarize(id model.ItemID, values []value, r model.TimeRange) []storage.TrendColumns {
	var runs []storage.TrendColumns
	var trend model.Trend
	var valueType model.ValueType
	finish := func() {
		if trend.Count == 0 || !r.Contains(trend.At) {
			return
		}
		if n := len(runs); n == 0 || runs[n-1].Type != valueType {
			runs = append(runs, storage.TrendColumns{Item: id, Type: valueType})
		}
		last := &runs[len(runs)-1]
		last.Trends = append(last.Trends, trend)
	}
	previous, hasPrevious := uint64(0), false
	for _, v := range values {
		if hour := storage.HourOf(v.at); hour != trend.At || v.valueType != valueType {
			finish()
			trend = model.Trend{At: hour}
			hasPrevious = hasPrevious && v.valueType == valueType
			valueType = v.valueType
		}
		if valueType.Numeric() && storage.AddToTrend(&trend, valueType, v.bits, previous, hasPrevious) {
			previous, hasPrevious = v.bits, true
		}
	}
	finish()
	return runs
}

// newest keeps the last n hours.
func newest(runs []storage.TrendColumns, n int) []storage.TrendColumns {
	for i := len(runs) - 1; i >= 0; i-- {
		if k := len(runs[i].Trends); k >= n {
			runs[i].Trends = runs[i].Trends[k-n:]
			return runs[i:]
		} else {
			n -= k
		}
	}
	return runs
}

// Prune drops values past their retention and returns the bytes of memory that they took.
func (e *Engine) Prune(ctx context.Context, now int64) (freedBytes int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, storage.ErrClosed
	}
	if e.o.History == 0 {
		return 0, ctx.Err()
	}
	for id, values := range e.items {
		k := find(values, now-int64(e.o.History))
		for i := range k {
			freedBytes += int64(16 + len(values[i].text))
		}
		if k == len(values) {
			delete(e.items, id)
		} else {
			e.items[id] = values[k:]
		}
	}
	return freedBytes, ctx.Err()
}

// Replay calls fn for every record behind LSN from.
func (e *Engine) Replay(ctx context.Context, from model.LSN, fn func(model.LSN, *model.Batch) error) error {
	e.mu.RLock()
	records := e.records
	e.mu.RUnlock()
	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.lsn <= from {
			continue
		}
		if err := fn(r.lsn, r.batch); err != nil {
			return err
		}
	}
	return nil
}

// Release lets records up to lsn go.
func (e *Engine) Release(lsn model.LSN) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := 0
	for k < len(e.records) && e.records[k].lsn <= lsn {
		k++
	}
	e.records = slices.Clone(e.records[k:])
}

// LastLSN is the LSN behind the last record.
func (e *Engine) LastLSN() model.LSN {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.lsn
}

// Marks calls fn for every mark, in no order.
func (e *Engine) Marks(fn func(model.Mark)) {
	e.mu.RLock()
	marks := make([]model.Mark, 0, len(e.marks))
	for _, m := range e.marks {
		marks = append(marks, m)
	}
	e.mu.RUnlock()
	for _, m := range marks {
		fn(m)
	}
}

// Stats counts what is stored.
func (e *Engine) Stats() storage.Stats {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s := storage.Stats{Durable: e.lsn}
	for _, values := range e.items {
		if len(values) == 0 {
			continue
		}
		from, to := values[0].at, values[len(values)-1].at
		if s.Items == 0 || from < s.From {
			s.From = from
		}
		if s.Items == 0 || to > s.To {
			s.To = to
		}
		s.Items++
		s.Values += uint64(len(values))
	}
	return s
}

// Close releases the engine.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}
