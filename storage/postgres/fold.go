package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/model"
	"tidemark/storage"
)

// denseNanos is the distance below which values are dense.
const denseNanos = 1_000_000

// Fold lets the database sum up values, and sums up here what it does not have yet or cannot. See storage.Folder.
//
// Reading and summing up here takes half of the processor time, so the database does it only where it is on another machine: there a row a step travels in place of
// every value.
//
// Values that wait are the newest ones as a rule, so the database sums up the steps before the first of them, and those behind are read and merged.
func (db *DB) Fold(ctx context.Context, q storage.Query, step int64, fn func(*storage.FoldColumns) error) error {
	if step <= 0 {
		return fmt.Errorf("fold: a step of %d ns, expected at least 1", step)
	}
	if db.closed.Load() {
		return storage.ErrClosed
	}
	grid, ok := newGrid(q.Range.From, step)
	for ids := range slices.Chunk(q.Items, pipelined) {
		asked := make([]folding, len(ids))
		for i, id := range ids {
			asked[i] = db.foldingOf(id, q.Range, grid)
			if !ok {
				asked[i].table, asked[i].rest = nil, q.Range
			}
		}
		if err := db.foldStored(ctx, asked, grid); err != nil {
			return err
		}
		for i := range asked {
			if err := db.foldRest(ctx, &asked[i], q, step); err != nil {
				return err
			}
			for _, c := range asked[i].out {
				if err := fn(&c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// grid says in which step a time is: that of number (time+offset)/step, whose begin is its number times step, minus offset.
type grid struct{ step, offset int64 }

// newGrid begins steps at a time; false when their numbers do not fit 64 bits.
func newGrid(from, step int64) (grid, bool) {
	const latest = (math.MaxInt32 + 1) * int64(time.Second) // of what tables hold
	if from >= 0 {
		return grid{step, -from}, true
	}
	offset := int64(-uint64(from) % uint64(step)) //nolint:gosec // below step
	return grid{step, offset}, offset <= math.MaxInt64-latest
}

// start is the begin of the step that a time is in, which is not before the range.
func (g grid) start(at int64) int64 { return at - (at+g.offset)%g.step }

// folding is one item of a Fold.
type folding struct {
	item model.ItemID
	// table has the item's numbers in the range stored; nil when the database is not to sum them up.
	table        *tableKey
	stored, rest model.TimeRange
	out          []storage.FoldColumns
}

// foldingOf says which part of the range the database sums up.
func (db *DB) foldingOf(id model.ItemID, r model.TimeRange, g grid) folding {
	f := folding{item: id, rest: r}
	if !db.remote {
		return f
	}
	waiting := db.pendingOf(id, r, numbersOnly)
	if len(waiting.tables) != 1 { // none, or of several types or classes, whose values lie between each other
		return f
	}
	end := r.To
	if list := waiting.waiting.list; len(list) > 0 {
		end = max(g.start(list[0].at), r.From)
	}
	if end > r.From {
		f.table = &waiting.tables[0]
		f.stored, f.rest = model.TimeRange{From: r.From, To: end}, model.TimeRange{From: end, To: r.To}
	}
	return f
}

// foldSQL sums up one item's values between two instants, as selectSQL reads them, by steps of $6 with the offset $7. The window has the order of the key, so
// rows come as the index has them, and arrays are in the order of time.
func (k tableKey) foldSQL(source string) string {
	sum := "sum(v)"
	if k.valueType == model.Uint {
		sum = "sum(v)::text"
	}
	return fmt.Sprintf(`SELECT cell, first_at, last_at, rows, numbers, low, high, list[1], list[numbers], total, dense FROM (
		SELECT cell, min(t) AS first_at, max(t) AS last_at, count(*) AS rows, count(v) AS numbers, min(v) AS low, max(v) AS high, array_agg(v) FILTER (WHERE v IS NOT NULL) AS list,
			%s AS total, coalesce(bool_or(t - before < %d AND (before + $7) / $6 = cell), false) AS dense
		FROM (SELECT (t + $7) / $6 AS cell, t, v, lag(t) OVER (ORDER BY clock, ns) AS before
			FROM (SELECT clock, ns, clock::bigint * 1000000000 + ns AS t, nullif(value, 'NaN') AS v FROM %s AS t WHERE itemid = $1 AND clock BETWEEN $2 AND $4
				AND (clock > $2 OR ns >= $3) AND (clock < $4 OR ns <= $5)) AS x) AS y
		GROUP BY cell) AS z ORDER BY cell`, sum, denseNanos, source)
}

// foldStored lets the database sum up what it shall, in one round trip. Sums that it cannot represent are left to foldRest.
func (db *DB) foldStored(ctx context.Context, asked []folding, g grid) error {
	if !slices.ContainsFunc(asked, func(f folding) bool { return f.table != nil }) {
		return nil
	}
	err := db.steady(ctx, func(c *pgconn.PgConn, known int64) error {
		var batch pgconn.Batch
		addShape(&batch)
		for i := range asked {
			if f := &asked[i]; f.table != nil {
				f.out = nil
				f.addSelect(&batch, db.sourceOf(*f.table), g)
			}
		}
		results := c.ExecBatch(ctx, &batch)
		if err := checkShape(results, known); err != nil {
			return err
		}
		for i := range asked {
			if asked[i].table == nil {
				continue
			}
			if !results.NextResult() {
				return results.Close()
			}
			if err := asked[i].collect(results.ResultReader(), g); err != nil {
				return err
			}
		}
		return results.Close()
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "22003" { // the sum of floats is beyond what they hold
		for i := range asked {
			if f := &asked[i]; f.table != nil {
				f.out, f.rest.From = nil, f.stored.From
			}
		}
		return nil
	}
	return err
}

func (f *folding) addSelect(batch *pgconn.Batch, source string, g grid) {
	from, to := clampRange(f.stored)
	fromClock, fromNS := split(from)
	toClock, toNS := split(to)
	batch.ExecParams(f.table.foldSQL(source),
		[][]byte{int8Param(int64(f.item)), int4Param(fromClock), int4Param(fromNS), int4Param(toClock), int4Param(toNS), int8Param(g.step), int8Param(g.offset)},
		[]uint32{oidInt8, oidInt4, oidInt4, oidInt4, oidInt4, oidInt8, oidInt8}, []int16{1, 1, 1, 1, 1, 1, 1}, []int16{1})
}

// collect reads the folds of one item.
func (f *folding) collect(rows *pgconn.ResultReader, g grid) error {
	c := storage.FoldColumns{Item: f.item, Type: f.table.valueType}
	for rows.NextRow() {
		fold, err := decodeFold(rows.Values(), c.Type, g)
		if err != nil {
			return err
		}
		c.Folds = append(c.Folds, fold)
	}
	if len(c.Folds) > 0 {
		f.out = append(f.out, c)
	}
	_, err := rows.Close()
	return err
}

func decodeFold(cells [][]byte, t model.ValueType, g grid) (storage.Fold, error) {
	var f storage.Fold
	var numbers [5]int64 // cell, times and counts
	for i := range numbers {
		var err error
		if numbers[i], err = decodeInt8(cells[i]); err != nil {
			return f, err
		}
	}
	f.At, f.FirstAt, f.LastAt = numbers[0]*g.step-g.offset, numbers[1], numbers[2]
	f.Count, f.NaNs = uint64(numbers[4]), uint64(numbers[3]-numbers[4])
	f.Dense = len(cells[10]) == 1 && cells[10][0] == 1
	if f.Count == 0 {
		return f, nil
	}
	for i, into := range []*uint64{&f.Min, &f.Max, &f.First, &f.Last} {
		var err error
		if t == model.Uint {
			*into, err = decodeNumeric(cells[5+i])
		} else {
			var v int64
			v, err = decodeInt8(cells[5+i])
			*into = uint64(v)
		}
		if err != nil {
			return f, err
		}
	}
	if t == model.Float {
		v, err := decodeInt8(cells[9])
		f.Sum = math.Float64frombits(uint64(v))
		return f, err
	}
	sum, ok := new(big.Int).SetString(string(cells[9]), 10)
	if !ok || sum.Sign() < 0 || sum.BitLen() > 128 {
		return f, fmt.Errorf("a sum %q, expected an integer below 2^128", cells[9])
	}
	f.SumLow = new(big.Int).And(sum, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	f.SumHigh = new(big.Int).Rsh(sum, 64).Uint64()
	return f, nil
}

// foldRest reads and sums up what the database did not.
func (db *DB) foldRest(ctx context.Context, f *folding, q storage.Query, step int64) error {
	if f.rest.From >= f.rest.To {
		return nil
	}
	rest := storage.Query{Items: []model.ItemID{f.item}, Range: f.rest, MaxBytes: q.MaxBytes}
	return db.read(ctx, rest, numbersOnly, func(_ model.ItemID, v *values) error {
		var c *storage.FoldColumns
		for _, one := range v.list {
			if c == nil || c.Type != one.valueType {
				f.out = append(f.out, storage.FoldColumns{Item: f.item, Type: one.valueType})
				c = &f.out[len(f.out)-1]
			}
			start := one.at - int64(uint64(one.at-q.Range.From)%uint64(step)) //nolint:gosec // below step
			if n := len(c.Folds); n == 0 || c.Folds[n-1].At != start {
				c.Folds = append(c.Folds, storage.Fold{At: start, FirstAt: one.at})
			}
			addToFold(&c.Folds[len(c.Folds)-1], &one)
		}
		return nil
	})
}

// addToFold adds a value that is later than those before.
func addToFold(f *storage.Fold, v *value) {
	f.Dense = f.Dense || f.Count+f.NaNs > 0 && v.at-f.LastAt < denseNanos
	f.LastAt = v.at
	if v.valueType == model.Uint {
		if f.Count++; f.Count == 1 {
			f.Min, f.Max, f.First = v.bits, v.bits, v.bits
		}
		f.Min, f.Max, f.Last = min(f.Min, v.bits), max(f.Max, v.bits), v.bits
		var carry uint64
		f.SumLow, carry = bits.Add64(f.SumLow, v.bits, 0)
		f.SumHigh += carry
		return
	}
	x := math.Float64frombits(v.bits)
	if math.IsNaN(x) {
		f.NaNs++
		return
	}
	if f.Count++; f.Count == 1 {
		f.Min, f.Max, f.First = v.bits, v.bits, v.bits
	}
	if x < math.Float64frombits(f.Min) {
		f.Min = v.bits
	}
	if x > math.Float64frombits(f.Max) {
		f.Max = v.bits
	}
	f.Last = v.bits
	f.Sum += x
}

var _ storage.Folder = (*DB)(nil)
