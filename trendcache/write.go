package trendcache

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

const (
	// tick is how often something is written.
	tick = time.Second
	// perWrite is how many hours go into one AppendTrends, perRead how many items are read in one query.
	perWrite, perRead = 1000, 256
	// leastPerTick keeps small backlogs from taking the whole spread.
	leastPerTick = 100
	// retry is the pause after a failed write.
	retry = 10 * time.Second
	// stopTimeout bounds what Run still writes when it ends.
	stopTimeout = 10 * time.Second
)

// Run writes until ctx ends, and then for ten seconds at most what is ready. The rest is found in history after the next start.
func (c *Cache) Run(ctx context.Context) error {
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		if err := c.round(ctx); err != nil && ctx.Err() == nil {
			c.failures.Inc()
			c.o.Logger.Warn("trends could not be written, which is tried again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		}
		select {
		case <-ctx.Done():
			return c.stop()
		case <-timer.C:
		}
	}
}

// stop writes what waits, so that late values count also if they are not replayed.
func (c *Cache) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := c.writeWaiting(ctx); err != nil {
		c.o.Logger.Warn("hours that were not written are made from history after the next start", "hours", c.Waiting(), "error", err)
	}
	return nil
}

// round does what is due now.
func (c *Cache) round(ctx context.Context) error {
	now := c.o.Now()
	c.sweep(now)
	if err := c.saveUnsaved(ctx, now); err != nil {
		return err
	}
	n := c.quota(now)
	if err := c.writeReady(ctx, n); err != nil {
		return err
	}
	return c.rebuild(ctx, n)
}

// Flush writes all finished hours at once, without spreading them.
func (c *Cache) Flush(ctx context.Context) error {
	c.sweep(c.o.Now())
	return c.writeWaiting(ctx)
}

func (c *Cache) writeWaiting(ctx context.Context) error {
	if err := c.saveUnsaved(ctx, c.o.Now()); err != nil {
		return err
	}
	for c.Waiting() > 0 {
		if err := c.writeReady(ctx, math.MaxInt); err != nil {
			return err
		}
		if err := c.rebuild(ctx, math.MaxInt); err != nil {
			return err
		}
	}
	return nil
}

// quota is how many of each kind are written in this tick, so that all are when the spread is over.
func (c *Cache) quota(now int64) int {
	since := time.Duration(now - storage.HourOf(now-int64(c.o.Grace)))
	left := max((c.o.Spread-since)/tick, 1)
	return max((c.Waiting()+int(left)-1)/int(left), leastPerTick)
}

// saveUnsaved makes the hours that a crash, or a long absence of the database, kept from being written.
func (c *Cache) saveUnsaved(ctx context.Context, now int64) error {
	c.mu.Lock()
	unsaved := c.unsaved
	c.mu.Unlock()
	if !unsaved {
		return nil
	}
	// Hours that end later than this are in entries, or will be.
	before := storage.HourOf(now - int64(c.o.Grace))
	var hours []finished
	write := func() error {
		err := c.write(ctx, hours)
		c.rebuilt.Add(len(hours))
		hours = hours[:0]
		return err
	}
	err := c.o.Engine.UnsavedTrends(ctx, before, func(t *storage.TrendColumns) error {
		for _, trend := range t.Trends {
			hours = append(hours, finished{t.Item, t.Type, trend})
		}
		if len(hours) < perWrite {
			return nil
		}
		return write()
	})
	if err == nil {
		err = write()
	}
	if err != nil {
		return fmt.Errorf("make unsaved hours: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsaved = false
	return nil
}

// writeReady writes up to n hours that are ready. Those that cannot be written stay.
func (c *Cache) writeReady(ctx context.Context, n int) error {
	for n > 0 {
		c.mu.Lock()
		hours := make([]finished, 0, min(n, perWrite, len(c.ready)))
		for _, f := range c.ready {
			if len(hours) == cap(hours) {
				break
			}
			hours = append(hours, f)
		}
		c.mu.Unlock()
		if len(hours) == 0 {
			return nil
		}
		if err := c.write(ctx, hours); err != nil {
			return err
		}
		n -= len(hours)
		c.mu.Lock()
		for _, f := range hours {
			delete(c.ready, hour{f.item, f.trend.At})
		}
		c.mu.Unlock()
	}
	return nil
}

func (c *Cache) write(ctx context.Context, hours []finished) error {
	if len(hours) == 0 {
		return nil
	}
	columns := make([]storage.TrendColumns, len(hours))
	for i, h := range hours {
		columns[i] = storage.TrendColumns{Item: h.item, Type: h.valueType, Trends: []model.Trend{h.trend}}
	}
	if err := c.o.Engine.AppendTrends(ctx, columns); err != nil {
		return err
	}
	c.written.Add(len(hours))
	return nil
}

// rebuild sums up to n stale hours from history.
func (c *Cache) rebuild(ctx context.Context, n int) error {
	for n > 0 {
		at, ids, late := c.takeStale(n)
		if len(ids) == 0 {
			return nil
		}
		n -= len(ids)
		for len(ids) > 0 {
			part := ids[:min(perRead, len(ids))]
			if err := c.rebuildHour(ctx, at, part, late); err != nil {
				c.putBack(at, ids, late)
				return err
			}
			c.rebuilt.Add(len(part))
			ids = ids[len(part):]
		}
	}
	return nil
}

// putBack makes hours stale again that could not be rebuilt.
func (c *Cache) putBack(at int64, ids []model.ItemID, late map[model.ItemID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.markStale(hour{id, at}, late[id])
	}
}

// takeStale removes up to n items of one stale hour, the oldest, and says which of them got late values.
func (c *Cache) takeStale(n int) (at int64, ids []model.ItemID, late map[model.ItemID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, late = math.MaxInt64, map[model.ItemID]bool{}
	for h := range c.stale {
		at = min(at, h.at)
	}
	for h, isLate := range c.stale {
		if h.at != at || len(ids) >= n {
			continue
		}
		ids = append(ids, h.item)
		if isLate {
			late[h.item] = true
		}
	}
	for _, id := range ids {
		delete(c.stale, hour{id, at})
	}
	slices.Sort(ids)
	return at, ids, late
}

// summary is one hour of one item in the making.
type summary struct {
	previous    uint64
	hasPrevious bool
	valueType   model.ValueType
	hours       []finished
}

// rebuildHour sums up an hour of several items and writes it. For those that got late values the next hour is stale then.
func (c *Cache) rebuildHour(ctx context.Context, at int64, ids []model.ItemID, late map[model.ItemID]bool) error {
	sums, err := c.valuesBefore(ctx, at, ids)
	if err != nil {
		return err
	}
	whole := model.TimeRange{From: at, To: at + storage.Hour}
	err = c.o.Engine.Read(ctx, storage.Query{Items: ids, Range: whole}, func(v *model.Columns) error {
		sums[v.Item].add(at, v)
		return nil
	})
	if err != nil {
		return err
	}
	old := map[model.ItemID][]finished{}
	err = c.o.Engine.Trends(ctx, storage.Query{Items: ids, Range: model.TimeRange{From: at, To: at + 1}}, func(t *storage.TrendColumns) error {
		old[t.Item] = append(old[t.Item], finished{t.Item, t.Type, t.Trends[0]})
		return nil
	})
	if err != nil {
		return err
	}
	var hours []finished
	for _, id := range ids {
		for _, h := range sums[id].hours {
			o := find(old[id], h.valueType)
			if o != nil && o.trend.Count > h.trend.Count {
				continue // part of the hour's history is gone already: what is stored knows more
			}
			hours = append(hours, h)
		}
	}
	if err := c.write(ctx, hours); err != nil {
		return err
	}
	return c.markNext(ctx, at, slices.DeleteFunc(slices.Clone(ids), func(id model.ItemID) bool { return !late[id] }))
}

func find(hours []finished, vt model.ValueType) *finished {
	for i := range hours {
		if hours[i].valueType == vt {
			return &hours[i]
		}
	}
	return nil
}

// add sums up values of the hour.
func (s *summary) add(at int64, v *model.Columns) {
	s.hasPrevious = s.hasPrevious && s.valueType == v.Type
	if !v.Type.Numeric() {
		return
	}
	s.valueType = v.Type
	h := find(s.hours, v.Type)
	if h == nil {
		s.hours = append(s.hours, finished{v.Item, v.Type, model.Trend{At: at}})
		h = &s.hours[len(s.hours)-1]
	}
	for _, bits := range v.Bits {
		if storage.AddToTrend(&h.trend, v.Type, bits, s.previous, s.hasPrevious) {
			s.previous, s.hasPrevious = bits, true
		}
	}
	if h.trend.Count == 0 {
		s.hours = slices.DeleteFunc(s.hours, func(f finished) bool { return f.trend.Count == 0 })
	}
}

// valuesBefore returns a summary for each item that knows the last number before a time, if the type did not change after it.
func (c *Cache) valuesBefore(ctx context.Context, at int64, ids []model.ItemID) (map[model.ItemID]*summary, error) {
	sums := make(map[model.ItemID]*summary, len(ids))
	for _, id := range ids {
		sums[id] = &summary{}
	}
	const furthest = 1024 // so many NaN are stepped over
	for newest, left := 1, ids; len(left) > 0 && newest <= furthest; newest *= 32 {
		var again []model.ItemID
		q := storage.Query{Items: left, Range: model.TimeRange{From: math.MinInt64, To: at}, Newest: newest}
		err := c.o.Engine.Read(ctx, q, func(v *model.Columns) error {
			s := sums[v.Item]
			s.hasPrevious, s.valueType = false, v.Type
			again = slices.DeleteFunc(again, func(id model.ItemID) bool { return id == v.Item })
			for i := len(v.Bits) - 1; i >= 0 && v.Type.Numeric(); i-- {
				if v.Type == model.Uint || !math.IsNaN(math.Float64frombits(v.Bits[i])) {
					s.previous, s.hasPrevious = v.Bits[i], true
					return nil
				}
			}
			if v.Type == model.Float {
				again = append(again, v.Item)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		left = again
	}
	return sums, nil
}

// markNext makes the hour behind at that each item has values in stale: its increase begins with another value now.
func (c *Cache) markNext(ctx context.Context, at int64, ids []model.ItemID) error {
	if len(ids) == 0 {
		return nil
	}
	next := map[model.ItemID]int64{}
	q := storage.Query{Items: ids, Range: model.TimeRange{From: at + storage.Hour, To: math.MaxInt64}}
	err := c.o.Engine.Trends(ctx, q, func(t *storage.TrendColumns) error {
		if old, ok := next[t.Item]; !ok || t.Trends[0].At < old {
			next[t.Item] = t.Trends[0].At
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, start := range next {
		e := c.entries.Get(id)
		if e != nil && e.trend.At == start && !e.closed {
			e.incomplete = true
		} else {
			c.markStale(hour{id, start}, false)
		}
	}
	return nil
}
