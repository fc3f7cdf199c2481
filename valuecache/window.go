package valuecache

import (
	"math"
	"math/bits"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

// smallWindow is up to how many values are simply added up: sliding would cost more.
const smallWindow = 16

// maxWindows bounds the sliding windows of one item; further ones are added up each time. maxSame of them may be the same
// window at different places: triggers that share a window go through the times of a batch one after the other.
const (
	maxWindows = 24
	maxSame    = 4
)

// window is the aggregate of the values with sequence numbers from ≤ n < to. It slides forward at a cost that does not
// depend on its length. Going back it is built anew.
type window struct {
	span     time.Duration
	count    int
	shift    uint64
	want     expr.Aggregate
	from, to int64
	// sum is kept in two floats, so that values that left leave no rounding behind; sumHigh:sumLow for integers.
	sum, rest float64
	// magnitude is the sum of absolute values and peak its greatest value; when the one falls far below the other, two floats
	// are not enough and the sum is built anew.
	magnitude, peak float64
	sumHigh, sumLow uint64
	// irregular counts values that are not finite; with them the sum is not used.
	irregular int
	removed   int
	// best are the values that are, or may become, the least or greatest: a queue in rising sequence whose values get
	// worse to its end; the first firstBest entries are used up.
	best      []int64
	firstBest int
}

func (w *window) sizeBytes() int64 { return int64(160 + 8*cap(w.best)) }

// cutFrom forgets values from a sequence number on.
func (w *window) cutFrom(sequence int64) {
	if sequence < w.to {
		w.reset(w.from)
	}
}

func (w *window) reset(from int64) {
	*w = window{span: w.span, count: w.count, shift: w.shift, want: w.want, from: from, to: from, best: w.best[:0]}
}

// slide makes the window hold exactly [from, to).
func (w *window) slide(s *series, from, to int64) {
	size := w.to - w.from
	if from < w.from || to < w.to || from > w.to || int64(w.removed) > max(1024, 2*size) || w.worn() {
		w.reset(from)
	}
	for ; w.to < to; w.to++ {
		w.enter(s, w.to)
	}
	for ; w.from < from; w.from++ {
		w.leave(s, w.from)
	}
	if w.worn() {
		w.reset(from)
		for ; w.to < to; w.to++ {
			w.enter(s, w.to)
		}
	}
}

// worn reports whether rounding may show in the sum.
func (w *window) worn() bool { return !(w.magnitude >= w.peak*0x1p-40) }

// leaveUntil lets values leave that are about to be forgotten.
func (w *window) leaveUntil(s *series, sequence int64) {
	if w.to <= sequence {
		w.reset(sequence)
		return
	}
	for ; w.from < sequence; w.from++ {
		w.leave(s, w.from)
	}
}

func (s *series) bitsOf(sequence int64) uint64 { return s.bits[s.start+int(sequence-s.gone)] }

func (w *window) enter(s *series, n int64) {
	v := s.bitsOf(n)
	if w.want != expr.WantSum {
		w.push(s, n, v)
		return
	}
	if s.valueType == model.Uint {
		var carry uint64
		w.sumLow, carry = bits.Add64(w.sumLow, v, 0)
		w.sumHigh += carry
		return
	}
	w.addFloat(math.Float64frombits(v), 1)
}

func (w *window) leave(s *series, n int64) {
	if w.want != expr.WantSum {
		if w.firstBest < len(w.best) && w.best[w.firstBest] == n {
			w.firstBest++
		}
		return
	}
	v := s.bitsOf(n)
	if s.valueType == model.Uint {
		var borrow uint64
		w.sumLow, borrow = bits.Sub64(w.sumLow, v, 0)
		w.sumHigh -= borrow
		return
	}
	w.removed++
	w.addFloat(-math.Float64frombits(v), -1)
}

// addFloat adds v and keeps what rounding loses.
func (w *window) addFloat(v float64, direction int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.irregular += direction
		return
	}
	w.magnitude += math.Abs(v) * float64(direction)
	w.peak = max(w.peak, w.magnitude)
	sum := w.sum + v
	b := sum - w.sum
	w.rest += (w.sum - (sum - b)) + (v - b)
	w.sum = sum
}

// push adds a value to the queue and drops those that it makes useless.
func (w *window) push(s *series, n int64, v uint64) {
	for len(w.best) > w.firstBest && !better(s.valueType, w.want, s.bitsOf(w.best[len(w.best)-1]), v) {
		w.best = w.best[:len(w.best)-1]
	}
	if w.firstBest > 64 && w.firstBest > len(w.best)/2 {
		w.best = w.best[:copy(w.best, w.best[w.firstBest:])]
		w.firstBest = 0
	}
	w.best = append(w.best, n)
}

// better reports whether payload a wins over b. A float that is not a number never does.
func better(t model.ValueType, want expr.Aggregate, a, b uint64) bool {
	if t == model.Uint {
		return (a < b) == (want == expr.WantMin) && a != b
	}
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	if y != y {
		return x == x
	}
	if want == expr.WantMin {
		return x < y
	}
	return x > y
}

// result writes the aggregate; it reports false when the plain way must be used.
func (w *window) result(s *series, dst *expr.Summary) bool {
	switch {
	case w.want != expr.WantSum:
		v := asFloat(s.valueType, s.bitsOf(w.best[w.firstBest]))
		dst.Min, dst.Max = v, v
	case s.valueType == model.Uint:
		dst.Sum = float64(w.sumHigh)*(1<<64) + float64(w.sumLow)
	default:
		dst.Sum = w.sum + w.rest
		return w.irregular == 0 && !math.IsNaN(dst.Sum) && !math.IsInf(dst.Sum, 0)
	}
	return true
}

func asFloat(t model.ValueType, v uint64) float64 {
	if t == model.Uint {
		return float64(v)
	}
	return math.Float64frombits(v)
}

// plain aggregates the values with indexes [from, to) one by one.
func (s *series) plain(from, to int, want expr.Aggregate, dst *expr.Summary) {
	values := s.bits[s.start+from : s.start+to]
	if want == expr.WantSum {
		s.plainSum(values, dst)
		return
	}
	best := values[0]
	for _, v := range values[1:] {
		if !better(s.valueType, want, best, v) {
			best = v
		}
	}
	v := asFloat(s.valueType, best)
	dst.Min, dst.Max = v, v
}

func (s *series) plainSum(values []uint64, dst *expr.Summary) {
	if s.valueType == model.Float {
		for _, v := range values {
			dst.Sum += math.Float64frombits(v)
		}
		return
	}
	var high, low, carry uint64
	for _, v := range values {
		low, carry = bits.Add64(low, v, 0)
		high += carry
	}
	dst.Sum = float64(high)*(1<<64) + float64(low)
}

// window returns the sliding window of a range that is to end at a sequence number, if it can be one that need not go back; nil when
// there are too many.
func (s *series) window(r expr.Range, want expr.Aggregate, to int64) *window {
	var nearest, same *window
	count := 0
	for _, w := range s.windows {
		if w.span != r.Span || w.count != r.Count || w.shift != r.Shift || w.want != want {
			continue
		}
		same = w
		count++
		if w.to <= to && (nearest == nil || w.to > nearest.to) {
			nearest = w
		}
	}
	if nearest != nil {
		return nearest
	}
	if count >= maxSame || len(s.windows) >= maxWindows {
		return same
	}
	w := &window{span: r.Span, count: r.Count, shift: r.Shift, want: want}
	s.windows = append(s.windows, w)
	return w
}
