package dbengine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

const (
	// defaultReadBytes is what a read may hold at once if the query does not say.
	defaultReadBytes = 64 << 20
	// columnValues and columnBytes end one delivery of merged values.
	columnValues = 4096
	columnBytes  = 1 << 20
	// lookBack is how many values before an hour are searched for one that is a number.
	lookBack = 64
)

// piece is a stretch of a series' values: a page on disk, or numbers or samples in memory.
type piece struct {
	ref       pageRef
	numbers   *numbers
	samples   []sample
	arena     []byte
	valueType model.ValueType
}

func (p *piece) onDisk() bool { return p.ref.pair != nil }

// bounds returns the first and last time of the piece and the number of its values.
func (p *piece) bounds() (from, to int64, count int) {
	switch {
	case p.onDisk():
		return p.ref.from, p.ref.to, int(p.ref.count)
	case p.numbers != nil:
		n := p.numbers
		return n.times[0], n.times[len(n.times)-1], len(n.times)
	}
	return p.samples[0].at, p.samples[len(p.samples)-1].at, len(p.samples)
}

// view is what a series held at one moment in a range of times. The pieces of base follow one another in time, those
// of late overlap anything.
type view struct {
	base, late []piece
	// recent are the pieces of base that no index names.
	recent []piece
}

// viewOf puts what of a series lies in the range into v, whose room it uses. If newest is not zero, pages in closed pairs may be left out
// that hold none of the newest values in the range.
func (db *DB) viewOf(v *view, id model.ItemID, r model.TimeRange, newest int) error {
	v.base, v.late, v.recent = v.base[:0], v.late[:0], v.recent[:0]
	if r.From >= r.To {
		return nil
	}
	sh := db.shardOf(id)
	sh.lockBriefly()
	if sh.closed {
		sh.mu.Unlock()
		return storage.ErrClosed
	}
	indexed := sh.indexed
	if s := sh.find(id); s != nil {
		v.memory(s, r)
	}
	sh.mu.Unlock()
	if err := db.viewIndexed(v, indexed, id, r, newest); err != nil {
		return err
	}
	v.base = append(v.base, v.recent...)
	v.order()
	return nil
}

// memory adds what no index names; the series' shard is locked.
func (v *view) memory(s *series, r model.TimeRange) {
	if s.disk != nil {
		for _, ref := range s.disk.pages[firstPage(s.disk.pages, r.From):] {
			if ref.from >= r.To {
				break
			}
			v.recent = append(v.recent, piece{ref: ref})
		}
		for _, ref := range s.disk.lates {
			if ref.from < r.To && ref.to >= r.From {
				v.late = append(v.late, piece{ref: ref})
			}
		}
	}
	memory := func(to *[]piece, samples []sample, arena []byte, t model.ValueType, owned bool) {
		if samples = between(samples, r.From, r.To); len(samples) > 0 {
			if !owned {
				samples = slices.Clone(samples)
			}
			*to = append(*to, piece{samples: samples, arena: arena, valueType: t})
		}
	}
	numeric := func(n *numbers, t model.ValueType) {
		if k := len(n.times); k > 0 && n.times[0] < r.To && n.times[k-1] >= r.From {
			v.recent = append(v.recent, piece{numbers: n, valueType: t})
		}
	}
	for d := s.dirty; d != nil; d = d.next {
		numeric(&d.numbers, d.valueType)
		memory(&v.recent, d.texts, d.arena, d.valueType, true)
		memory(&v.late, d.late, d.arena, d.valueType, true)
	}
	if s.page.count > 0 {
		hot := s.page.freeze()
		numeric(&hot, s.valueType)
	}
	o := s.rest()
	memory(&v.recent, o.texts, o.arena, s.valueType, true)
	memory(&v.late, o.late, o.arena, s.valueType, false)
}

// viewIndexed adds the pages in closed pairs, the newest pair first: for the newest values it is done when the rest is older than those.
func (db *DB) viewIndexed(v *view, indexed []indexedPair, id model.ItemID, r model.TimeRange, newest int) error {
	cut, enough := v.newestFrom(v.recent, r, newest)
	start := len(v.base)
	for i := len(indexed) - 1; i >= 0; i-- {
		e := &indexed[i]
		if !e.mayHold(id) || !e.values.Reaches(r.From, r.To) || enough && e.values.To < cut {
			continue
		}
		before := len(v.base)
		_, err := db.indexedPages(e.pair, id, func(ref *pageRef) {
			switch {
			case ref.from >= r.To || ref.to < r.From || ref.kind > extent.Late:
			case ref.kind == extent.Values:
				v.base = append(v.base, piece{ref: *ref})
			default:
				v.late = append(v.late, piece{ref: *ref})
			}
		})
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return err
		}
		slices.Reverse(v.base[before:])
		if newest > 0 && !enough {
			cut, enough = v.newestFrom(append(slices.Clip(v.base), v.recent...), r, newest)
		}
	}
	slices.Reverse(v.base[start:])
	return nil
}

// newestFrom returns a time from which on pieces hold at least n values in a range, if they do.
func (*view) newestFrom(pieces []piece, r model.TimeRange, n int) (cut int64, enough bool) {
	if n == 0 {
		return 0, false
	}
	cut, count := int64(math.MaxInt64), 0
	for i := range pieces {
		if from, to, size := pieces[i].bounds(); from >= r.From && to < r.To {
			cut, count = min(cut, from), count+size
		}
	}
	return cut, count >= n
}

// order sees to it that the pieces of base follow one another. They do, but for damage that put older pages behind newer ones.
func (v *view) order() {
	start := func(p piece) int64 {
		from, _, _ := p.bounds()
		return from
	}
	last, sorted := int64(math.MinInt64), true
	for i := range v.base {
		from, to, _ := v.base[i].bounds()
		sorted = sorted && (i == 0 || from > last)
		last = to
	}
	if sorted {
		return
	}
	slices.SortStableFunc(v.base, func(a, b piece) int { return cmp.Compare(start(a), start(b)) })
	kept := v.base[:0]
	for _, p := range v.base {
		if from, to, _ := p.bounds(); len(kept) == 0 || from > last {
			kept, last = append(kept, p), to
		} else {
			v.late = append(v.late, p)
		}
	}
	v.base = kept
}

// firstPage returns the index of the first of pages, which rise in time, that reaches to an instant.
func firstPage(pages []pageRef, from int64) int {
	low, high := 0, len(pages)
	for low < high {
		if mid := int(uint(low+high) >> 1); pages[mid].to < from {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Read streams values. See storage.Engine.
func (db *DB) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	budget := q.MaxBytes
	if budget <= 0 {
		budget = defaultReadBytes
	}
	defer db.readers.leave(db.readers.enter())
	r := readings.Get().(*reading)
	r.db, r.ctx, r.r, r.budget, r.fn = db, ctx, q.Range, budget, fn
	defer r.free()
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if q.Newest > 0 {
			err = r.newest(id, q.Newest)
		} else {
			err = r.item(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reading is one Read.
type reading struct {
	db     *DB
	ctx    context.Context
	r      model.TimeRange
	budget int64
	fn     func(*model.Columns) error
	// passing means that pages are read once and not kept in the cache.
	passing bool
	past    *extentReader
	view    view
	page    decoded
	out     model.Columns
	// given is what fn gets of a page that needs no merging.
	given model.Columns
}

// readings keep their room from one read to the next.
var readings = sync.Pool{New: func() any { return new(reading) }}

// keptArena is how much room for texts is kept.
const keptArena = 1 << 20

func (r *reading) free() {
	clear(r.view.base[:cap(r.view.base)])
	clear(r.view.late[:cap(r.view.late)])
	clear(r.view.recent[:cap(r.view.recent)])
	r.db, r.ctx, r.fn, r.given, r.passing, r.past = nil, nil, nil, model.Columns{}, false, nil
	if cap(r.view.base) <= 1024 && cap(r.page.arena)+cap(r.out.Arena) <= keptArena {
		readings.Put(r)
	}
}

// lateValue is a value of a late page.
type lateValue struct {
	at, bits  uint64
	arena     []byte
	valueType model.ValueType
}

func (r *reading) item(id model.ItemID) error {
	if err := r.db.viewOf(&r.view, id, r.r, 0); err != nil {
		return err
	}
	return r.stream(id, &r.view)
}

// stream delivers the values of a view.
func (r *reading) stream(id model.ItemID, v *view) error {
	late, err := r.lateValues(v)
	if err != nil {
		return err
	}
	r.out = model.Columns{Item: id, At: r.out.At[:0], Bits: r.out.Bits[:0], Arena: r.out.Arena[:0]}
	for i := range v.base {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		ok, err := r.load(&v.base[i])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if late, err = r.merge(late); err != nil {
			return err
		}
	}
	for i := range late {
		if err := r.push(int64(late[i].at), late[i].bits, late[i].valueType, late[i].arena); err != nil {
			return err
		}
	}
	return r.deliver()
}

// load puts the values of a piece that lie in the range into r.page, and reports whether there are any. A damaged page is
// left out.
func (r *reading) load(p *piece) (bool, error) {
	d := &r.page
	if n := p.numbers; n != nil {
		low, high := searchTimes(n.times, r.r.From), searchTimes(n.times, r.r.To)
		d.at, d.bits = append(d.at[:0], n.times[low:high]...), n.decodeFrom(d.bits[:0], low, high)
		d.arena, d.valueType = d.arena[:0], p.valueType
		return low < high, nil
	}
	if p.onDisk() {
		ok, err := r.loadPage(&p.ref)
		if err != nil {
			if _, damaged := errors.AsType[*storage.CorruptionError](err); damaged || errors.Is(err, errGone) {
				r.db.damaged(err)
				return false, nil
			}
			return false, err
		}
		return ok, nil
	}
	d.at, d.bits = d.at[:0], d.bits[:0]
	d.add(p.samples)
	d.arena, d.valueType = append(d.arena[:0], p.arena...), p.valueType
	return true, nil
}

// loadPage puts the values of a page on disk that lie in the range into r.page, and reports whether there are any. Times
// that are one step apart, as most are, are not decoded but counted.
func (r *reading) loadPage(ref *pageRef) (bool, error) {
	p, err := r.db.fetchPage(ref, fetching{keep: !r.passing, past: r.past})
	if err != nil {
		return false, err
	}
	d := &r.page
	step, low, high, linear := linearRange(&p, r.r)
	if !linear {
		if err := d.decode(&p); err != nil {
			return false, ref.locate(err)
		}
		return d.cut(r.r), nil
	}
	if low >= high {
		return false, nil
	}
	d.valueType, d.arena = p.Type, d.arena[:0]
	if p.Type == model.Float {
		d.bits, err = page.DecodeFloatsRange(d.bits[:0], p.Values, p.Count, low, high)
	} else {
		d.bits, err = page.DecodeUintsRange(d.bits[:0], p.Values, p.Count, low, high)
	}
	if err != nil {
		return false, ref.locate(err)
	}
	d.at = slices.Grow(d.at[:0], high-low)[:high-low]
	at := p.From + int64(low)*step
	for i := range d.at {
		d.at[i] = at
		at += step
	}
	return true, nil
}

// linearRange returns which values of a page of numbers lie in a range, if its times are one step apart, as most are.
func linearRange(p *extent.Page, r model.TimeRange) (step int64, low, high int, linear bool) {
	first, step, linear := page.LinearTimes(p.Times)
	if !linear || step <= 0 || !p.Type.Numeric() || first != p.From || first+step*int64(p.Count-1) != p.To || uint64(p.To-p.From) > 1<<62 {
		return 0, 0, 0, false
	}
	high = p.Count
	if r.From > p.From {
		low = int((r.From - p.From + step - 1) / step)
	}
	if r.To <= p.To {
		high = int((r.To - p.From + step - 1) / step)
	}
	return step, low, high, true
}

// cut keeps the values in a range, and reports whether there are any.
func (d *decoded) cut(r model.TimeRange) bool {
	low, high := searchTimes(d.at, r.From), searchTimes(d.at, r.To)
	if low > 0 && !d.valueType.InArena() { // the room in front is used again
		d.at, d.bits = d.at[:copy(d.at, d.at[low:high])], d.bits[:copy(d.bits, d.bits[low:high])]
		return low < high
	}
	d.at, d.bits = d.at[low:high], d.bits[low:high]
	return low < high
}

// lateValues gathers the values of late pieces in order of time.
func (r *reading) lateValues(v *view) ([]lateValue, error) {
	var late []lateValue
	held := int64(0)
	for i := range v.late {
		ok, err := r.load(&v.late[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		arena := []byte(nil)
		if r.page.valueType.InArena() {
			arena = slices.Clone(r.page.arena)
		}
		for k, at := range r.page.at {
			late = append(late, lateValue{at: uint64(at), bits: r.page.bits[k], arena: arena, valueType: r.page.valueType})
		}
		if held += int64(len(r.page.at))*48 + int64(len(arena)); held > r.budget {
			return nil, storage.ErrTooMuch
		}
	}
	slices.SortStableFunc(late, func(a, b lateValue) int { return cmp.Compare(int64(a.at), int64(b.at)) })
	return late, nil
}

// merge delivers r.page with the late values that come before its end, and returns the other late values.
func (r *reading) merge(late []lateValue) ([]lateValue, error) {
	d := &r.page
	last := d.at[len(d.at)-1]
	if len(late) == 0 || int64(late[0].at) > last {
		if err := r.deliver(); err != nil {
			return nil, err
		}
		r.given = model.Columns{Item: r.out.Item, Type: d.valueType, At: d.at, Bits: d.bits, Arena: d.arena}
		return late, r.fn(&r.given)
	}
	for i, at := range d.at {
		for len(late) > 0 && int64(late[0].at) < at {
			if err := r.push(int64(late[0].at), late[0].bits, late[0].valueType, late[0].arena); err != nil {
				return nil, err
			}
			late = late[1:]
		}
		if err := r.push(at, d.bits[i], d.valueType, d.arena); err != nil {
			return nil, err
		}
	}
	return late, nil
}

// push adds a value to what is delivered next. The same value at the same instant, which damage can bring back, is passed over.
func (r *reading) push(at int64, bits uint64, t model.ValueType, arena []byte) error {
	o := &r.out
	if o.Type != t || len(o.At) >= columnValues || len(o.Arena) >= columnBytes {
		if err := r.deliver(); err != nil {
			return err
		}
		o.Type = t
	}
	if n := len(o.At); n > 0 && o.At[n-1] == at {
		v := value{at: at, bits: bits, valueType: t}
		if t.InArena() {
			v.text = model.SpanBytes(arena, bits)
		}
		if v.same(t, o.Bits[n-1], o.Arena) {
			return nil
		}
	}
	if t.InArena() {
		text := model.SpanBytes(arena, bits)
		bits = model.Span(len(o.Arena), len(text))
		o.Arena = append(o.Arena, text...)
	}
	o.At, o.Bits = append(o.At, at), append(o.Bits, bits)
	return nil
}

// deliver hands what was pushed to the caller.
func (r *reading) deliver() error {
	o := &r.out
	if len(o.At) == 0 {
		return nil
	}
	err := r.fn(o)
	o.At, o.Bits, o.Arena = o.At[:0], o.Bits[:0], o.Arena[:0]
	return err
}
