package dbengine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage"
)

// newest delivers the last n values in the range.
func (r *reading) newest(id model.ItemID, n int) error {
	if err := r.db.viewOf(&r.view, id, r.r, n); err != nil {
		return err
	}
	r.view.tail(n, r.r)
	var kept tail
	fn := r.fn
	defer func() { r.fn = fn }()
	r.fn = func(c *model.Columns) error {
		kept.add(c, n)
		if kept.size() > r.budget {
			return storage.ErrTooMuch
		}
		return nil
	}
	if err := r.stream(id, &r.view); err != nil {
		return err
	}
	return kept.deliver(n, fn)
}

// tail drops pieces at the start that cannot hold one of the last n values.
func (v *view) tail(n int, r model.TimeRange) {
	count := 0
	for i := len(v.base) - 1; i >= 0 && count < n; i-- {
		from, to, size := v.base[i].bounds()
		if from < r.From || to >= r.To {
			continue // it may hold fewer in the range
		}
		if count += size; count < n {
			continue
		}
		v.base = v.base[:copy(v.base, v.base[i:])]
		v.late = slices.DeleteFunc(v.late, func(l piece) bool {
			_, to, _ := l.bounds()
			return to < from
		})
	}
}

// tail keeps the last values of a stream.
type tail struct {
	columns []model.Columns
	count   int
}

// add keeps a copy of c and drops what is not among the last n any more.
func (t *tail) add(c *model.Columns, n int) {
	from := max(len(c.At)-n, 0)
	t.columns = append(t.columns, model.Columns{
		Item: c.Item, Type: c.Type, At: slices.Clone(c.At[from:]), Bits: slices.Clone(c.Bits[from:]), Arena: slices.Clone(c.Arena),
	})
	t.count += len(c.At) - from
	for len(t.columns) > 0 && t.count-len(t.columns[0].At) >= n {
		t.count -= len(t.columns[0].At)
		t.columns = t.columns[1:]
	}
}

func (t *tail) size() int64 {
	total := int64(0)
	for i := range t.columns {
		total += int64(16*len(t.columns[i].At) + len(t.columns[i].Arena))
	}
	return total
}

func (t *tail) deliver(n int, fn func(*model.Columns) error) error {
	for i := range t.columns {
		c := &t.columns[i]
		if extra := t.count - n; extra > 0 && i == 0 {
			c.At, c.Bits = c.At[extra:], c.Bits[extra:]
		}
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}

// before returns the last value of a type that is older than at.
func (db *DB) before(ctx context.Context, id model.ItemID, at int64, t model.ValueType) (bits uint64, found bool, err error) {
	r := reading{db: db, ctx: ctx, r: model.TimeRange{From: math.MinInt64, To: at}, budget: defaultReadBytes}
	r.fn = func(c *model.Columns) error {
		if c.Type != t { // a change of type starts anew
			found = false
			return nil
		}
		for i, b := range c.Bits {
			if t != model.Float || !math.IsNaN(c.Float(i)) {
				bits, found = b, true
			}
		}
		return nil
	}
	if err := r.newest(id, lookBack); err != nil {
		return 0, false, fmt.Errorf("item %d: value before its hour: %w", id, err)
	}
	return bits, found, nil
}
