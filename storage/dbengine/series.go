package dbengine

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// minTime stands for no time.
const minTime = math.MinInt64

// sample is a value in memory. bits is as in model.Batch, for texts a span of the arena beside it.
type sample struct {
	at   int64
	bits uint64
}

// series is what the engine knows of one item.
type series struct {
	// The fields that every value touches come first, so that they share cache lines.

	id model.ItemID
	// newest is the greatest time stored, minTime if none.
	newest int64
	hot    []sample
	// count and size are the values in chunks, hot and late and what they took as they came.
	count int
	size  int64
	trend *trend
	class uint8
	// valueType is that of chunks, hot and late.
	valueType model.ValueType

	// floor divides values in time: hot holds all that are later, everything else holds only earlier ones or equal.
	floor int64
	// chunks hold the older part of the hot page, encoded: a value takes 16 bytes in hot and one or two there.
	chunks []chunk
	late   []sample
	// arena holds the texts of hot and late.
	arena []byte
	// logFrom is an LSN before the oldest record whose values are only in memory; valid while there are such.
	logFrom model.LSN
	// since is when the oldest of them came, Unix nanoseconds.
	since int64
	// dirty are the detached pages, oldest first.
	dirty []*sealed
	// pages, lates and hours are on disk, in the order in which they were written; pages also rise in time.
	pages, lates, hours []pageRef
	// sealedLSN is used in recovery: values up to there are in pages.
	sealedLSN model.LSN
}

// chunk is an encoded stretch of a hot page of numbers. It never changes.
type chunk struct {
	from, to int64
	// columns are the times, timesBytes of them, and behind them the values.
	columns    []byte
	timesBytes uint32
	count      uint16
	valueType  model.ValueType
}

// compact encodes hot as a chunk. Its room is used again.
func (s *series) compact() {
	n := len(s.hot)
	times, bits := make([]int64, n), make([]uint64, n)
	for i, p := range s.hot {
		times[i], bits[i] = p.at, p.bits
	}
	s.chunks = append(s.chunks, encodeChunk(s.valueType, times, bits))
	s.floor = times[n-1]
	s.hot = s.hot[:0]
}

// encodeChunk encodes numbers.
func encodeChunk(t model.ValueType, times []int64, bits []uint64) chunk {
	var room [4096]byte
	b := page.AppendTimes(room[:0], times)
	k := len(b)
	if t == model.Float {
		b = page.AppendFloats(b, bits)
	} else {
		b = page.AppendUints(b, bits)
	}
	return chunk{
		from: times[0], to: times[len(times)-1], columns: append(make([]byte, 0, len(b)), b...),
		timesBytes: uint32(k), count: uint16(len(times)), valueType: t,
	}
}

// decode reads a chunk into d. Chunks are made and read by the same process, so that an error is a broken invariant.
func (c *chunk) decode(d *decoded) {
	err := d.decode(&extent.Page{
		Type: c.valueType, Count: int(c.count), Times: c.columns[:c.timesBytes:c.timesBytes], Values: c.columns[c.timesBytes:],
	})
	if err != nil {
		panic(fmt.Sprintf("dbengine: a chunk of a hot page cannot be read: %v", err))
	}
}

// sealed is what was detached from a series at one moment.
type sealed struct {
	series    *series
	valueType model.ValueType
	chunks    []chunk
	hot, late []sample
	arena     []byte
	rows      []hourRow
	// hour is the one that was running. Its row counts exactly the values up to lsn: recovery adds those of the log to it, so
	// it must not be made again from values that came later.
	hour    int64
	logFrom model.LSN
	// lsn is how far the log was: the series has no values up to there but these and earlier pages.
	lsn  model.LSN
	size int64
	at   int64
	// clean means that its pages are on disk and known to the series.
	clean bool
}

// pageRef is a page on disk.
type pageRef struct {
	extent    *extentRef
	from, to  int64
	count     uint32
	slot      uint16
	valueType model.ValueType
	kind      uint8
}

// extentRef is an extent on disk, shared by the references to its pages.
type extentRef struct {
	pair     *pair
	offset   int64
	length   uint32
	sequence uint64
}

// empty reports whether nothing is stored of the series.
func (s *series) empty() bool {
	return !s.unsealed() && len(s.dirty) == 0 && len(s.pages) == 0 && len(s.lates) == 0 && len(s.hours) == 0
}

// unsealed reports whether values are in chunks, hot or late.
func (s *series) unsealed() bool { return s.count > 0 }

// search returns where at is or belongs in samples.
func search(v []sample, at int64) int {
	low, high := 0, len(v)
	for low < high {
		if mid := int(uint(low+high) >> 1); v[mid].at < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// find returns the sample at an instant.
func find(v []sample, at int64) (sample, bool) {
	i := search(v, at)
	if i < len(v) && v[i].at == at {
		return v[i], true
	}
	return sample{}, false
}

// between returns the samples in a half-open range.
func between(v []sample, from, to int64) []sample {
	return v[search(v, from):search(v, to)]
}

// value is a value on its way into a series.
type value struct {
	at   int64
	bits uint64
	// text is the payload of types in the arena.
	text      []byte
	valueType model.ValueType
}

// same reports whether a stored sample is the value.
func (v *value) same(t model.ValueType, bits uint64, arena []byte) bool {
	if t != v.valueType {
		return false
	}
	if !t.InArena() {
		return bits == v.bits
	}
	return bytes.Equal(model.SpanBytes(arena, bits), v.text)
}

// keep returns the payload under which the series stores the value, whose text it copies.
func (s *series) keep(v *value) uint64 {
	if !v.valueType.InArena() {
		return v.bits
	}
	offset := len(s.arena)
	s.arena = append(s.arena, v.text...)
	return model.Span(offset, len(v.text))
}

// insert puts a value that is not the newest into its place in hot or late.
func (s *series) insert(v *value) {
	p := sample{at: v.at, bits: s.keep(v)}
	if v.at > s.floor {
		s.hot = slices.Insert(s.hot, search(s.hot, v.at), p)
	} else {
		s.late = slices.Insert(s.late, search(s.late, v.at), p)
	}
	s.newest = max(s.newest, v.at)
	s.add(v)
}

// add counts a value.
func (s *series) add(v *value) {
	s.count++
	s.size += int64(16 + len(v.text))
}

// detach moves what is unsealed into a sealed. lsn is an LSN up to which the log holds no value of the series that is not
// in memory by now; values of later records may be in it too. The room of hot is kept if more values are expected soon.
func (s *series) detach(lsn model.LSN, now int64, keepRoom bool) *sealed {
	d := &sealed{
		series: s, valueType: s.valueType, chunks: s.chunks, hot: s.hot, late: s.late, arena: s.arena,
		logFrom: s.logFrom, lsn: lsn, at: now, size: s.size,
	}
	if s.trend != nil {
		d.rows, d.hour = s.trend.detach()
	}
	s.hot = nil
	if keepRoom {
		s.hot = d.hot[:0]
		d.hot = slices.Clone(d.hot)
	}
	s.chunks, s.late, s.arena = nil, nil, nil
	s.count, s.size = 0, 0
	s.floor = s.newest
	s.dirty = append(s.dirty, d)
	return d
}
