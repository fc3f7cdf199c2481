package valuecache

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"tidemark/model"
)

// nothing as coveredFrom means that no stored value is known.
const nothing = math.MaxInt64

// minBack is kept before the widest span, so that items whose clocks differ a little cause no reads.
const minBack = 10 * time.Second

// ask is one way in which an item is asked for, and by how many.
type ask struct {
	span  time.Duration
	count int32
	users int32
}

// series are the values of one item: columns in rising time order from index start on.
type series struct {
	mu        sync.Mutex
	item      model.ItemID
	valueType model.ValueType
	asks      []ask
	// span and count are the widest asks; back is how long before the newest value evaluations were seen.
	span, back time.Duration
	count      int

	start int
	at    []int64
	bits  []uint64
	// arena holds payloads; deadBytes of it belong to values that are gone.
	arena     []byte
	deadBytes int
	// late are values that came out of order and are not merged yet.
	late []lateValue
	// coveredFrom is from when on every stored value is here; earliest: there is nothing before.
	coveredFrom int64
	// gone counts the values removed at the front: gone+index is a value's sequence number, which windows use.
	gone    int64
	windows []*window

	epoch, usedEpoch uint32
	place            int
	accounted        int64
	retryAt          int64
	retryErr         error
}

type lateValue struct {
	at   int64
	bits uint64
}

func (s *series) length() int { return len(s.at) - s.start }

// sizeBytes is what the series takes, its own fields with the map's entry counted flat.
func (s *series) sizeBytes() int64 {
	size := int64(400 + 8*cap(s.at) + 8*cap(s.bits) + cap(s.arena) + 16*cap(s.late) + 16*cap(s.asks))
	for _, w := range s.windows {
		size += w.sizeBytes()
	}
	return size
}

// ask counts users of a span and count and finds the widest again.
func (s *series) ask(span time.Duration, count, users int) {
	i := slices.IndexFunc(s.asks, func(a ask) bool { return a.span == span && int(a.count) == count })
	if i < 0 {
		s.asks = append(s.asks, ask{span: span, count: int32(count)})
		i = len(s.asks) - 1
	}
	if s.asks[i].users += int32(users); s.asks[i].users <= 0 {
		s.asks = slices.Delete(s.asks, i, i+1)
	}
	s.span, s.count = 0, 1
	for _, a := range s.asks {
		s.span = max(s.span, a.span)
		s.count = max(s.count, int(a.count))
	}
	s.windows = slices.DeleteFunc(s.windows, func(w *window) bool { return w.span > s.span || w.count > s.count })
}

// clear forgets all values.
func (s *series) clear() {
	s.gone += int64(s.length())
	s.start, s.at, s.bits, s.arena, s.deadBytes = 0, nil, nil, nil, 0
	s.late, s.windows = nil, nil
	s.coveredFrom = nothing
}

// trim removes what no ask needs any more, seen from the newest value.
func (s *series) trim() {
	s.merge()
	n := s.length()
	if n <= s.count {
		return
	}
	spare := n - s.count
	if s.span > 0 || s.back > 0 {
		from := s.at[len(s.at)-1] - int64(s.span+max(s.back, minBack))
		if s.at[s.start] >= from {
			return
		}
		// Count values before the span too: a shifted #N begins there.
		spare = min(spare, s.lower(from)-s.count)
	}
	if spare > 0 {
		s.drop(spare)
	}
}

// drop removes the first n values.
func (s *series) drop(n int) {
	for _, w := range s.windows {
		w.leaveUntil(s, s.gone+int64(n))
	}
	if s.valueType.InArena() {
		for i := s.start; i < s.start+n; i++ {
			s.deadBytes += int(uint32(s.bits[i]))
		}
	}
	s.coveredFrom = s.at[s.start+n-1] + 1
	s.start += n
	s.gone += int64(n)
	// Move the rest down when most of the columns is dead, and give room back when it was a burst.
	if s.start > len(s.at)/2 {
		if cap(s.at) > 64 && s.length() < cap(s.at)/8 {
			s.at = append(make([]int64, 0, 2*s.length()), s.at[s.start:]...)
			s.bits = append(make([]uint64, 0, 2*len(s.at)), s.bits[s.start:]...)
		} else {
			s.at = s.at[:copy(s.at, s.at[s.start:])]
			s.bits = s.bits[:copy(s.bits, s.bits[s.start:])]
		}
		s.start = 0
	}
	if s.deadBytes > len(s.arena)/2 && s.deadBytes > 256 {
		s.packArena()
	}
}

// packArena copies the payloads that live into a new arena.
func (s *series) packArena() {
	live := make([]byte, 0, len(s.arena)-s.deadBytes)
	for i := s.start; i < len(s.bits); i++ {
		offset := len(live)
		payload := model.SpanBytes(s.arena, s.bits[i])
		live = append(live, payload...)
		s.bits[i] = model.Span(offset, len(payload))
	}
	s.arena, s.deadBytes = live, 0
}

// add takes a new stored value; isLate says that the engine has newer ones.
func (s *series) add(at int64, bits uint64, payload []byte, isLate bool) {
	if s.coveredFrom == nothing {
		if isLate {
			return
		}
		s.coveredFrom = at
	}
	if at < s.coveredFrom {
		return
	}
	n := len(s.at)
	if n > s.start && at <= s.at[n-1] {
		if at != s.at[n-1] {
			s.late = append(s.late, lateValue{at, s.store(bits, payload)})
		}
		return
	}
	if s.length() >= MaxValues {
		s.drop(s.length() / 8)
	}
	s.at = append(s.at, at)
	s.bits = append(s.bits, s.store(bits, payload))
}

// store copies a payload into the arena and returns the bits that name it.
func (s *series) store(bits uint64, payload []byte) uint64 {
	if payload == nil && !s.valueType.InArena() {
		return bits
	}
	offset := len(s.arena)
	s.arena = append(s.arena, payload...)
	return model.Span(offset, len(payload))
}

// merge puts late values into their places, in one pass for all that came with a batch.
func (s *series) merge() {
	if len(s.late) == 0 {
		return
	}
	slices.SortStableFunc(s.late, func(a, b lateValue) int { return cmp.Compare(a.at, b.at) })
	i := s.start + s.lower(s.late[0].at)
	tailAt := append([]int64(nil), s.at[i:]...)
	tailBits := append([]uint64(nil), s.bits[i:]...)
	s.at, s.bits = s.at[:i], s.bits[:i]
	for j, k := 0, 0; j < len(tailAt) || k < len(s.late); {
		if k == len(s.late) || j < len(tailAt) && tailAt[j] <= s.late[k].at {
			s.at, s.bits = append(s.at, tailAt[j]), append(s.bits, tailBits[j])
			j++
			continue
		}
		if n := len(s.at); n > s.start && s.at[n-1] == s.late[k].at {
			s.deadBytes += s.payloadBytes(s.late[k].bits) // known already
		} else {
			s.at, s.bits = append(s.at, s.late[k].at), append(s.bits, s.late[k].bits)
		}
		k++
	}
	s.late = s.late[:0]
	if cap(s.late) > 1024 {
		s.late = nil
	}
	// Values behind the first late one have new sequence numbers.
	for _, w := range s.windows {
		w.cutFrom(s.gone + int64(i-s.start))
	}
}

func (s *series) payloadBytes(bits uint64) int {
	if s.valueType.InArena() {
		return int(uint32(bits))
	}
	return 0
}

// prepend puts older values in front, which raises no sequence number of those that are here.
func (s *series) prepend(c *model.Columns) {
	s.merge()
	n := len(c.At)
	if n == 0 {
		return
	}
	at := make([]int64, 0, n+s.length()+8)
	bits := make([]uint64, 0, n+s.length()+8)
	at = append(append(at, c.At...), s.at[s.start:]...)
	if s.valueType.InArena() {
		for i := range c.Bits {
			bits = append(bits, s.store(0, c.Bytes(i)))
		}
	} else {
		bits = append(bits, c.Bits...)
	}
	bits = append(bits, s.bits[s.start:]...)
	s.at, s.bits, s.start = at, bits, 0
	s.gone -= int64(n)
}

// lower returns the index, from start, of the first value at or after at.
func (s *series) lower(at int64) int {
	i, _ := slices.BinarySearch(s.at[s.start:], at)
	return i
}

// upper returns the index, from start, behind the last value at or before at; mostly that is the newest.
func (s *series) upper(at int64) int {
	n := len(s.at)
	if n == s.start || s.at[n-1] <= at {
		return n - s.start
	}
	return s.lower(at + 1)
}
