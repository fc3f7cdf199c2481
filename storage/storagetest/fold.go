package storagetest

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"time"

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

// typedFold is a fold as one row of a list.
type typedFold struct {
	item model.ItemID
	t    model.ValueType
	storage.Fold
}

// CompareFolds compares Fold with the sums of what Read gives.
func CompareFolds(db interface {
	storage.Engine
	storage.Folder
}, q storage.Query, step int64,
) error {
	var want, got []typedFold
	into := func(list *[]typedFold) func(*storage.FoldColumns) error {
		return func(c *storage.FoldColumns) error {
			for _, f := range c.Folds {
				*list = append(*list, typedFold{c.Item, c.Type, f})
			}
			return nil
		}
	}
	if err := Fold(db.Read, q, step, into(&want)); err != nil {
		return err
	}
	if err := db.Fold(context.Background(), q, step, into(&got)); err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("step %v: %d folds, expected %d", time.Duration(step), len(got), len(want))
	}
	for i := range got {
		a, b := got[i], want[i]
		same := math.Abs(a.Sum-b.Sum) <= 1e-9*math.Abs(b.Sum)+1e-12 || math.Float64bits(a.Sum) == math.Float64bits(b.Sum) ||
			math.IsNaN(a.Sum) && math.IsNaN(b.Sum)
		if a.Sum = b.Sum; !same || a != b {
			return fmt.Errorf("step %v, fold %d: %+v, expected %+v", time.Duration(step), i, got[i], b)
		}
	}
	return nil
}
