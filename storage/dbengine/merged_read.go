package dbengine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

// maxSteps bounds how far one looks whether a stretch of time is covered.
const maxSteps = 4096

// coverage says which instants of a range are read from the tiers of a pair: those of hours and minutes that lie in the range, and in one cell,
// as a whole.
type coverage struct {
	r    model.TimeRange
	cell func(at int64) int
	// hour and minute say which tiers there are.
	hour, minute bool
}

// whole reports whether the step of a length that ends at end is in the range and in one cell.
func (c *coverage) whole(end, step int64) bool {
	if end < math.MinInt64+step || end == math.MaxInt64 {
		return false
	}
	begin := end - step + 1
	return c.r.Contains(begin) && c.r.Contains(end) && (c.cell == nil || c.cell(begin) == c.cell(end))
}

// byHour reports whether an instant is read from the tier of hours.
func (c *coverage) byHour(at int64) bool {
	return c.hour && c.whole(stepEnd(at, storage.Hour), storage.Hour)
}

// covered reports whether an instant is read from a tier.
func (c *coverage) covered(at int64) bool {
	return c.byHour(at) || c.minute && c.whole(stepEnd(at, minute), minute)
}

// all reports whether all instants of a stretch are covered, by hours alone or by any tier; false also if it is too long to say.
func (c *coverage) all(from, to int64, hours bool) bool {
	for range maxSteps {
		switch {
		case c.byHour(from):
			from = stepEnd(from, storage.Hour) + 1
		case !hours && c.covered(from):
			from = stepEnd(from, minute) + 1
		default:
			return false
		}
		if from > to {
			return true
		}
	}
	return false
}

// mergeSource is a pair of values, nil if it is gone, and what is there of its tiers: several of each if it stands for several pairs.
type mergeSource struct {
	raw            *indexedPair
	minutes, hours []*indexedPair
}

// merges reports whether pairs of a tier hold all that the values of the source merge to.
func (s *mergeSource) merges(tier []*indexedPair) bool {
	if s.raw == nil {
		return len(tier) > 0
	}
	members := uint32(0)
	for _, e := range tier {
		if !e.pair.merged {
			return false
		}
		members += e.pair.members
	}
	return members >= s.raw.pair.members
}

// merging is one Merged.
type merging struct {
	db   *DB
	ctx  context.Context
	q    storage.Query
	cell func(at int64) int
	fn   func(*model.Columns) error
	page decoded
	out  model.Columns
}

// Merged streams what binary values merge to. See storage.Merger.
func (db *DB) Merged(ctx context.Context, q storage.Query, cell func(at int64) int, fn func(*model.Columns) error) error {
	defer db.readers.leave(db.readers.enter())
	if q.MaxBytes <= 0 {
		q.MaxBytes = defaultReadBytes
	}
	m := &merging{db: db, ctx: ctx, q: q, cell: cell, fn: fn}
	for _, id := range q.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if q.Range.From >= q.Range.To {
			continue
		}
		if err := m.item(id); err != nil {
			return err
		}
	}
	return nil
}

// item streams one item: what is in no closed pair, and then pair by pair, each from its tiers as far as they cover the range.
func (m *merging) item(id model.ItemID) error {
	r := readings.Get().(*reading)
	r.db, r.ctx, r.r, r.budget = m.db, m.ctx, m.q.Range, m.q.MaxBytes
	defer r.free()
	sh := m.db.shardOf(id)
	v := &r.view
	v.base, v.late, v.recent = v.base[:0], v.late[:0], v.recent[:0]
	sh.lockBriefly()
	if sh.closed {
		sh.mu.Unlock()
		return storage.ErrClosed
	}
	indexed, minutes, hours := sh.indexed, sh.minutes, sh.hours
	if s := sh.find(id); s != nil {
		v.memory(s, m.q.Range)
	}
	sh.mu.Unlock()
	v.base = append(v.base, v.recent...)
	v.order()
	if err := m.values(r, id, nil); err != nil {
		return err
	}
	sources := sourcesOf(entries(indexed, minutes, hours))
	for i := range sources {
		if err := m.source(r, id, &sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// entries joins lists.
func entries(lists ...[]indexedPair) (all []*indexedPair) {
	for _, list := range lists {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// sourcesOf puts pairs and their tiers together, in order.
func sourcesOf(all []*indexedPair) []mergeSource {
	// Pairs of values stand before what sums them up, what sums up more before what sums up less.
	slices.SortStableFunc(all, func(a, b *indexedPair) int {
		return cmp.Or(cmp.Compare(a.pair.first, b.pair.first), -cmp.Compare(a.pair.order(), b.pair.order()), cmp.Compare(a.pair.tier, b.pair.tier))
	})
	var sources []mergeSource
	first, last := uint32(0), uint32(0) // of the last source
	for _, e := range all {
		p := e.pair
		if len(sources) == 0 || p.first > last {
			sources, first, last = append(sources, mergeSource{}), p.first, p.order()
		}
		s := &sources[len(sources)-1]
		switch {
		case p.tier == header.Raw:
			s.raw = e
		case s.raw == nil && (p.first != first || p.order() != last):
			// A part of what another tier sums up as a whole, and the values are gone: that has it too.
		case p.tier == header.Minute:
			s.minutes = append(s.minutes, e)
		default:
			s.hours = append(s.hours, e)
		}
	}
	return sources
}

// source streams what one pair adds.
func (m *merging) source(r *reading, id model.ItemID, s *mergeSource) error {
	// What bounds a pair from which pages were left out says nothing of those.
	if s.raw != nil && !s.raw.pair.thinned() && (!s.raw.mayHold(id) || !s.raw.values.Reaches(m.q.Range.From, m.q.Range.To)) {
		return nil
	}
	// Without its pages a tier says nothing, and without its values a pair does not: it is as if they were gone.
	away := func(e *indexedPair) bool { return m.db.thinnedAway(e, id) }
	s.minutes, s.hours = slices.DeleteFunc(s.minutes, away), slices.DeleteFunc(s.hours, away)
	if s.raw != nil && away(s.raw) {
		parts := sourcesOf(slices.Concat(s.minutes, s.hours))
		for i := range parts {
			if err := m.source(r, id, &parts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if s.raw == nil && len(s.minutes)+len(s.hours) == 0 {
		return nil
	}
	c := coverage{
		r: m.q.Range, cell: m.cell,
		hour: s.merges(s.hours), minute: s.merges(s.minutes),
	}
	hours, minutes, err := m.rows(id, s, &c)
	if unreadable(err) && s.raw != nil {
		m.db.damaged(err)
		c.hour, c.minute, hours, minutes, err = false, false, nil, nil, nil
	}
	if err != nil {
		return err
	}
	gone := s.raw == nil
	err = m.give(id, hours, func(end int64) bool {
		return c.whole(end, storage.Hour) || gone && !c.minute && m.q.Range.Contains(end)
	})
	if err == nil {
		err = m.give(id, minutes, func(end int64) bool {
			return !c.byHour(end) && (c.whole(end, minute) || gone && m.q.Range.Contains(end))
		})
	}
	if err != nil || gone {
		return err
	}
	v := &r.view
	v.base, v.late, v.recent = v.base[:0], v.late[:0], v.recent[:0]
	if err := m.db.viewIndexed(v, []indexedPair{*s.raw}, id, m.q.Range, 0); err != nil {
		return err
	}
	needless := func(p piece) bool {
		from, to, _ := p.bounds()
		return p.ref.valueType != model.Binary || c.all(max(from, m.q.Range.From), min(to, m.q.Range.To-1), false)
	}
	v.base, v.late = slices.DeleteFunc(v.base, needless), slices.DeleteFunc(v.late, needless)
	v.order()
	return m.values(r, id, &c)
}

// values streams the values of a reading's view that are not covered.
func (m *merging) values(r *reading, id model.ItemID, c *coverage) error {
	r.fn = func(given *model.Columns) error {
		if given.Type != model.Binary {
			return nil
		}
		if c == nil || !c.hour && !c.minute {
			return m.fn(given)
		}
		return m.pick(given, func(at int64) bool { return !c.covered(at) })
	}
	return r.stream(id, &r.view)
}

// pick delivers some values of columns.
func (m *merging) pick(c *model.Columns, want func(at int64) bool) error {
	m.out = model.Columns{Item: c.Item, Type: c.Type, At: m.out.At[:0], Bits: m.out.Bits[:0], Arena: c.Arena}
	for i, at := range c.At {
		if want(at) {
			m.out.At, m.out.Bits = append(m.out.At, at), append(m.out.Bits, c.Bits[i])
		}
	}
	if len(m.out.At) == 0 {
		return nil
	}
	return m.fn(&m.out)
}

// unreadable reports whether something is damaged or was deleted.
func unreadable(err error) bool {
	_, damaged := errors.AsType[*storage.CorruptionError](err)
	return damaged || isDamage(err) || errors.Is(err, errGone)
}

// rows reads the pages of the tiers that may be needed. All are read before the first is delivered, since one that is damaged makes
// the values the source.
func (m *merging) rows(id model.ItemID, s *mergeSource, c *coverage) (hours, minutes []extent.Page, err error) {
	held := int64(0)
	read := func(to []extent.Page, e *indexedPair, needless func(from, to int64) bool) ([]extent.Page, error) {
		if !e.mayHold(id) || !e.rows.Reaches(m.q.Range.From, m.q.Range.To) {
			return to, nil
		}
		var refs []pageRef
		_, err := m.db.indexedPages(e.pair, id, func(ref *pageRef) {
			if ref.kind == extent.Merged && ref.from < m.q.Range.To && ref.to >= m.q.Range.From && !needless(ref.from, ref.to) {
				refs = append(refs, *ref)
			}
		})
		for i := range refs {
			if err != nil {
				break
			}
			var p extent.Page
			if p, err = m.db.readPage(&refs[i]); unreadable(err) && s.raw == nil {
				m.db.damaged(err)
				err = nil
				continue
			}
			if held += int64(len(p.Times) + len(p.Values)); held > m.q.MaxBytes {
				return nil, storage.ErrTooMuch
			}
			to = append(to, p)
		}
		if unreadable(err) && s.raw == nil {
			m.db.damaged(err)
			err = nil
		}
		return to, err
	}
	for i := 0; c.hour && i < len(s.hours); i++ {
		if hours, err = read(hours, s.hours[i], func(int64, int64) bool { return false }); err != nil {
			return nil, nil, err
		}
	}
	for i := 0; c.minute && i < len(s.minutes); i++ {
		minutes, err = read(minutes, s.minutes[i], func(from, to int64) bool {
			return c.all(max(from, m.q.Range.From), min(to, m.q.Range.To-1), true)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return hours, minutes, err
}

// give delivers rows of pages.
func (m *merging) give(id model.ItemID, pages []extent.Page, want func(end int64) bool) error {
	for i := range pages {
		if err := m.page.decode(&pages[i]); err != nil { // its checksum is right
			m.db.damaged(err)
			continue
		}
		c := model.Columns{Item: id, Type: model.Binary, At: m.page.at, Bits: m.page.bits, Arena: m.page.arena}
		if err := m.pick(&c, want); err != nil {
			return err
		}
	}
	return nil
}
