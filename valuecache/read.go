package valuecache

import (
	"context"
	"strconv"

	"tidemark/expr"
	"tidemark/model"
)

var _ expr.Values = (*Cache)(nil)

// Last finds the n-th newest value of an item (n ≥ 1) at or before a time.
func (c *Cache) Last(ctx context.Context, item model.ItemID, n int, at int64, dst *expr.Sample) (bool, error) {
	s := c.lock(item)
	if s == nil {
		return false, nil
	}
	defer s.mu.Unlock()
	if err := c.ensureCount(ctx, s, n, at); err != nil {
		return false, err
	}
	i := s.upper(at) - n
	if i < 0 {
		return false, nil
	}
	s.sample(i, dst)
	return true, nil
}

// First finds the oldest value of a range.
func (c *Cache) First(ctx context.Context, item model.ItemID, r expr.Range, dst *expr.Sample) (bool, error) {
	s := c.lock(item)
	if s == nil {
		return false, nil
	}
	defer s.mu.Unlock()
	from, to, err := c.indexes(ctx, s, r)
	if err != nil || from == to {
		return false, err
	}
	s.sample(from, dst)
	return true, nil
}

// Summary aggregates the values of a range. Of items that nobody asks for it finds nothing.
func (c *Cache) Summary(ctx context.Context, item model.ItemID, r expr.Range, want expr.Aggregate, dst *expr.Summary) error {
	*dst = expr.Summary{}
	s := c.lock(item)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	from, to, err := c.indexes(ctx, s, r)
	if err != nil {
		return err
	}
	dst.Count = uint64(to - from)
	if want == expr.WantCount || from == to || !s.valueType.Numeric() {
		return nil
	}
	if to-from > smallWindow {
		if w := s.window(r, want, s.gone+int64(to)); w != nil {
			before := cap(w.best)
			w.slide(s, s.gone+int64(from), s.gone+int64(to))
			if cap(w.best) != before {
				c.account(s)
			}
			if w.result(s, dst) {
				return nil
			}
			dst.Sum = 0
		}
	}
	s.plain(from, to, want, dst)
	return nil
}

// Read replaces the contents of dst by the values of a range; dst keeps no reference into the cache.
func (c *Cache) Read(ctx context.Context, item model.ItemID, r expr.Range, dst *model.Columns) error {
	*dst = model.Columns{Item: item, At: dst.At[:0], Bits: dst.Bits[:0], Arena: dst.Arena[:0]}
	s := c.lock(item)
	if s == nil {
		return nil
	}
	defer s.mu.Unlock()
	from, to, err := c.indexes(ctx, s, r)
	if err != nil {
		return err
	}
	dst.Type = s.valueType
	dst.At = append(dst.At, s.at[s.start+from:s.start+to]...)
	values := s.bits[s.start+from : s.start+to]
	if !s.valueType.InArena() {
		dst.Bits = append(dst.Bits, values...)
		return nil
	}
	for _, v := range values {
		payload := model.SpanBytes(s.arena, v)
		dst.Bits = append(dst.Bits, model.Span(len(dst.Arena), len(payload)))
		dst.Arena = append(dst.Arena, payload...)
	}
	return nil
}

// LastText returns the newest value of an item at or before a time as text without units; false for an item without one, or
// one that nobody asks for.
func (c *Cache) LastText(ctx context.Context, item model.ItemID, at int64) (string, bool) {
	var sample expr.Sample
	found, err := c.Last(ctx, item, 1, at, &sample)
	if err != nil || !found {
		return "", false
	}
	switch sample.Type {
	case model.Float:
		return strconv.FormatFloat(asFloat(model.Float, sample.Bits), 'f', -1, 64), true
	case model.Uint:
		return strconv.FormatUint(sample.Bits, 10), true
	case model.LogEntry:
		text, err := model.LogText(sample.Text)
		return string(text), err == nil
	case model.Binary:
		return "", false
	}
	return string(sample.Text), true
}

// lock returns the locked series of an item, nil when nobody asks for it.
func (c *Cache) lock(item model.ItemID) *series {
	s := c.find(item)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.usedEpoch = s.epoch
	s.merge()
	return s
}

// indexes returns the values of a range, which are read from the history if they are not at hand.
func (c *Cache) indexes(ctx context.Context, s *series, r expr.Range) (from, to int, err error) {
	if r.Count > 0 {
		if err := c.ensureCount(ctx, s, r.Count, r.To-1); err != nil {
			return 0, 0, err
		}
		to = s.upper(r.To - 1)
		return max(0, to-r.Count), to, nil
	}
	if err := c.ensureFrom(ctx, s, r.From, r.To-1); err != nil {
		return 0, 0, err
	}
	to = s.upper(r.To - 1)
	return min(to, s.firstOf(r, to)), to, nil
}

// firstOf returns the index of the first value of a time range. It begins where the sliding window of the same span
// begins now, which is mostly one value off, so that the search does not depend on the window's length.
func (s *series) firstOf(r expr.Range, to int) int {
	for _, w := range s.windows {
		if w.span != r.Span || w.count != 0 || w.shift != r.Shift {
			continue
		}
		i := int(w.from - s.gone)
		if i < 0 || i > s.length() || i > 0 && s.at[s.start+i-1] >= r.From {
			continue
		}
		for range 8 {
			if i >= to || s.at[s.start+i] >= r.From {
				return i
			}
			i++
		}
	}
	return s.lower(r.From)
}

// sample copies a value.
func (s *series) sample(i int, dst *expr.Sample) {
	dst.At, dst.Type, dst.Bits = s.at[s.start+i], s.valueType, s.bits[s.start+i]
	dst.Text = dst.Text[:0]
	if s.valueType.InArena() {
		dst.Text = append(dst.Text, model.SpanBytes(s.arena, dst.Bits)...)
	}
}
