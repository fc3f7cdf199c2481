package storagetest

import (
	"context"
	"math"
	"math/bits"

	"tidemark/model"
	"tidemark/storage"
)

// Fold sums up what read gives, one value after the other: what storage.Folder says, in the simplest way.
func Fold(read func(context.Context, storage.Query, func(*model.Columns) error) error, q storage.Query, step int64, fn func(*storage.FoldColumns) error) error {
	q.Newest = 0
	var out storage.FoldColumns
	emit := func() error {
		if len(out.Folds) == 0 {
			return nil
		}
		err := fn(&out)
		out.Folds = nil
		return err
	}
	err := read(context.Background(), q, func(c *model.Columns) error {
		if !c.Type.Numeric() {
			return nil
		}
		for i, at := range c.At {
			if out.Item != c.Item || out.Type != c.Type {
				if err := emit(); err != nil {
					return err
				}
				out.Item, out.Type = c.Item, c.Type
			}
			start := at - int64(uint64(at-q.Range.From)%uint64(step))
			if n := len(out.Folds); n == 0 || out.Folds[n-1].At != start {
				out.Folds = append(out.Folds, storage.Fold{At: start, FirstAt: at})
			}
			foldValue(&out.Folds[len(out.Folds)-1], at, c, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return emit()
}

func foldValue(f *storage.Fold, at int64, c *model.Columns, i int) {
	f.Dense = f.Dense || f.Count+f.NaNs > 0 && at-f.LastAt < 1e6
	f.LastAt = at
	v, x := c.Bits[i], c.Float(i)
	if math.IsNaN(x) {
		f.NaNs++
		return
	}
	less := func(a, b uint64) bool {
		if c.Type == model.Uint {
			return a < b
		}
		return math.Float64frombits(a) < math.Float64frombits(b)
	}
	if f.Count++; f.Count == 1 {
		f.Min, f.Max, f.First = v, v, v
	}
	if less(v, f.Min) {
		f.Min = v
	}
	if less(f.Max, v) {
		f.Max = v
	}
	f.Last = v
	if c.Type == model.Uint {
		var carry uint64
		f.SumLow, carry = bits.Add64(f.SumLow, v, 0)
		f.SumHigh += carry
	} else {
		f.Sum += x
	}
}
