package valuecache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tidemark/expr"
	"tidemark/model"
	"tidemark/storage"
)

// ensureFrom makes sure that every value from a time on is at hand, for an evaluation at another time.
func (c *Cache) ensureFrom(ctx context.Context, s *series, from, at int64) error {
	if s.coveredFrom <= from {
		c.hits.Inc()
		return nil
	}
	if err := c.mayRead(s, at); err != nil {
		return err
	}
	// One more than fits tells that there are too many.
	room := MaxValues - s.length()
	n, err := c.load(ctx, s, storage.Query{Range: model.TimeRange{From: from, To: min(s.coveredFrom, latest)}, Newest: room + 1})
	if err != nil {
		return err
	}
	if n > room {
		return c.refuse(s, expr.ErrTooMany)
	}
	s.coveredFrom = from
	return nil
}

// ensureCount makes sure that count values at or before a time are at hand, or all that there are.
func (c *Cache) ensureCount(ctx context.Context, s *series, count int, at int64) error {
	have := s.upper(at)
	if have >= count || s.coveredFrom == earliest {
		c.hits.Inc()
		return nil
	}
	if err := c.mayRead(s, at); err != nil {
		return err
	}
	if count > MaxValues {
		return expr.ErrTooMany
	}
	if at+1 < s.coveredFrom {
		// What is stored behind the time must be at hand too, else there would be a hole.
		n, err := c.load(ctx, s, storage.Query{Range: model.TimeRange{From: at + 1, To: min(s.coveredFrom, latest)}, Newest: MaxValues/2 + 1})
		if err != nil {
			return err
		}
		if n > MaxValues/2 {
			return c.refuse(s, expr.ErrTooOld)
		}
		s.coveredFrom = at + 1
	}
	wanted := max(count, s.count) - s.upper(at)
	n, err := c.load(ctx, s, storage.Query{Range: model.TimeRange{From: earliest, To: s.coveredFrom}, Newest: wanted})
	if err != nil {
		return err
	}
	if n < wanted {
		s.coveredFrom = earliest
	} else {
		s.coveredFrom = s.at[s.start]
	}
	return nil
}

// mayRead refuses reads that would come with every value: for times far before an item's newest value, and shortly after
// a read failed.
func (c *Cache) mayRead(s *series, at int64) error {
	if s.retryErr != nil {
		if c.now().UnixNano() < s.retryAt {
			return s.retryErr
		}
		s.retryErr = nil
	}
	if s.length() == 0 {
		return nil
	}
	behind := time.Duration(s.at[len(s.at)-1] - at)
	if behind > maxBack {
		return expr.ErrTooOld
	}
	// Keep that much more from now on, so that the next evaluation as late as this one reads nothing.
	s.back = max(s.back, behind)
	return nil
}

// refuse remembers an error, so that the read is not tried again at once.
func (c *Cache) refuse(s *series, err error) error {
	s.retryErr, s.retryAt = err, c.now().Add(retryAfter).UnixNano()
	return err
}

// load reads values that lie before all that are at hand and returns their number. The series stays locked meanwhile,
// so that whoever needs the same values waits for this read.
func (c *Cache) load(ctx context.Context, s *series, q storage.Query) (int, error) {
	if q.Range.From >= q.Range.To {
		return 0, nil
	}
	q.Items = []model.ItemID{s.item}
	loaded := model.Columns{Item: s.item, Type: s.valueType}
	c.reads.Inc()
	err := c.history.Read(ctx, q, func(part *model.Columns) error {
		collect(&loaded, part)
		return nil
	})
	switch {
	case errors.Is(err, storage.ErrTooMuch):
		return 0, c.refuse(s, expr.ErrTooMany)
	case err != nil:
		if ctx.Err() == nil {
			c.logger.Error("value cache: read history", "item", uint64(s.item), "error", err)
		}
		return 0, c.refuse(s, err)
	}
	n := len(loaded.At)
	if extra := n - (MaxValues - s.length()); extra > 0 {
		// Too many: the newest are kept, and the caller sees the whole number.
		loaded.At, loaded.Bits = loaded.At[extra:], loaded.Bits[extra:]
		s.prepend(&loaded)
		s.coveredFrom = s.at[s.start]
		c.account(s)
		return n, nil
	}
	s.prepend(&loaded)
	c.account(s)
	return n, nil
}

// collect appends a part of an item's values; values of another type, from before the item changed, are passed over.
func collect(dst, part *model.Columns) {
	if part.Type != dst.Type {
		return
	}
	dst.At = append(dst.At, part.At...)
	if !part.Type.InArena() {
		dst.Bits = append(dst.Bits, part.Bits...)
		return
	}
	for i := range part.Bits {
		payload := part.Bytes(i)
		dst.Bits = append(dst.Bits, model.Span(len(dst.Arena), len(payload)))
		dst.Arena = append(dst.Arena, payload...)
	}
}

// warmItems is how many items one read of Warm asks for.
const warmItems = 500

// Warm reads what windows of time need as of a time (Unix nanoseconds), many items at once, so that the first evaluations
// after a start cause no reads. It must not run at the same time as Add. Items without a window of time need no reading: a new
// value is all that they ask for, and what they need besides is read when it is needed. So is what could not be read now;
// the error is that of ctx only.
func (c *Cache) Warm(ctx context.Context, at int64) error {
	cold := c.cold()
	for len(cold) > 0 {
		n := 1
		for n < len(cold) && n < warmItems && cold[n].span == cold[0].span {
			n++
		}
		if err := c.warm(ctx, cold[:n], at-int64(cold[0].span)-int64(minBack)); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.logger.Warn("value cache: read history ahead of need", "items", n, "error", err)
		}
		cold = cold[n:]
		if c.usedBytes.Load() > c.maxBytes*3/4 {
			return nil
		}
	}
	return nil
}

// cold returns the series with a window of time and no values, short windows first.
func (c *Cache) cold() []*series {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var cold []*series
	for _, s := range c.all {
		if s.span > 0 && s.coveredFrom == nothing {
			cold = append(cold, s)
		}
	}
	slices.SortFunc(cold, func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.item, b.item))
	})
	return cold
}

// warm reads the values of several items from a time on.
func (c *Cache) warm(ctx context.Context, group []*series, from int64) error {
	q := storage.Query{Range: model.TimeRange{From: from, To: latest}, Newest: MaxValues}
	for _, s := range group {
		q.Items = append(q.Items, s.item)
	}
	c.reads.Inc()
	var loaded model.Columns
	err := c.history.Read(ctx, q, func(part *model.Columns) error {
		s := c.find(part.Item)
		if s == nil || part.Type != s.valueType {
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		loaded = model.Columns{Type: part.Type, At: loaded.At[:0], Bits: loaded.Bits[:0], Arena: loaded.Arena[:0]}
		collect(&loaded, part)
		s.extend(&loaded)
		c.account(s)
		return nil
	})
	if err != nil {
		for _, s := range group {
			s.mu.Lock()
			s.clear()
			c.account(s)
			s.mu.Unlock()
		}
		return err
	}
	for _, s := range group {
		s.mu.Lock()
		s.coveredFrom = from
		if s.length() >= MaxValues {
			s.coveredFrom = s.at[s.start]
		}
		s.mu.Unlock()
	}
	return nil
}

// extend appends values that are newer than all that are here.
func (s *series) extend(c *model.Columns) {
	for i := range c.At {
		var payload []byte
		if s.valueType.InArena() {
			payload = c.Bytes(i)
		}
		s.at = append(s.at, c.At[i])
		s.bits = append(s.bits, s.store(c.Bits[i], payload))
	}
}
