package dbengine

import (
	"bytes"
	"math"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
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
	// page holds numbers in order of time.
	page hotPage
	// valueType is that of page, texts and late.
	valueType model.ValueType
	class     uint8
	// known means that newest, floor and sealedLSN take the closed pairs into account.
	known bool
	// folded counts the values of page that are in the trend.
	folded uint32
	trend  *trend
	// floor divides values in time: page and texts hold only later ones, and what is detached or on disk none of them.
	floor int64
	// others are the values that page cannot hold, nil while there are none.
	others *others
	// logFrom is an LSN before the oldest record whose values are only in memory; valid while there are such.
	logFrom model.LSN
	// since is when the oldest of them came, Unix nanoseconds; without any, when the last ones were detached.
	since int64
	// dirty is the oldest of the detached pages.
	dirty *sealed
	// disk are the pages in pairs that have no index yet, nil if there are none.
	disk *refs
	// sealedLSN is used in recovery: values up to there are in pages.
	sealedLSN model.LSN
}

// others are values that are no numbers in order of time. Most series have none.
type others struct {
	// texts are the values of a series of texts, in order of time.
	texts []sample
	// late are values that came when the series had later ones, in order of time.
	late []sample
	// arena holds the texts of both.
	arena []byte
}

// rest returns the values that are not in page.
func (s *series) rest() others {
	if s.others == nil {
		return others{}
	}
	return *s.others
}

// count is the number of values that are not detached.
func (s *series) count() int {
	n := int(s.page.count)
	if o := s.others; o != nil {
		n += len(o.texts) + len(o.late)
	}
	return n
}

// size is what they took as they came, in bytes.
func (s *series) size() int64 { return int64(16*s.count() + len(s.rest().arena)) }

// sealed is what was detached from a series at one moment.
type sealed struct {
	series    *series
	valueType model.ValueType
	// next is what was detached from the series after it, nil if that is not or is on disk.
	next *sealed
	// numbers or texts are the values in order of time.
	numbers numbers
	others
	rows []hourRow
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

// refs are the pages of a series in the order in which they were written.
type refs struct{ pages, lates, hours []pageRef }

// pageRef is a page on disk: its pair, where the extent is and how long, and its slot there.
type pageRef struct {
	pair     *pair
	from, to int64
	// at is the offset of the extent in units of datafile.Align.
	at, length, sequence uint32
	count                uint32
	slot                 uint16
	valueType            model.ValueType
	kind                 uint8
}

// offset returns where the extent starts in the datafile.
func (r *pageRef) offset() int64 { return int64(r.at) * datafile.Align }

// unsealed reports whether there are values that are not detached.
func (s *series) unsealed() bool { return s.count() > 0 }

// silent reports whether a series probably stopped: it is silent for an age, and for three times as long as from one of its values to the next. One of
// which there is a single value may come once an hour.
func (s *series) silent(now, age int64) bool {
	if age <= 0 || s.newest > now-age || s.since > now-age {
		return false
	}
	n, oldest := 0, s.newest
	if at := s.page.freeze().times; len(at) > 0 {
		n, oldest = len(at), min(oldest, at[0])
	}
	if at := s.rest().texts; len(at) > 0 {
		n, oldest = n+len(at), min(oldest, at[0].at)
	}
	if n < 2 {
		return s.since < now-3*int64(time.Hour)
	}
	return now-s.newest > (s.newest-oldest)/int64(n-1)*3
}

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

// chain puts what was detached behind what is dirty.
func (s *series) chain(d *sealed) {
	end := &s.dirty
	for *end != nil {
		end = &(*end).next
	}
	*end = d
}

// unchain takes what is on disk now out of what is dirty; the shard is locked, as it is for who follows the chain.
func (s *series) unchain(d *sealed) {
	for at := &s.dirty; *at != nil; at = &(*at).next {
		if *at == d {
			*at, d.next = d.next, nil
			return
		}
	}
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

// equal reports whether two values are the same but for their time.
func (v *value) equal(o *value) bool {
	switch {
	case v.valueType != o.valueType:
		return false
	case v.valueType.InArena():
		return bytes.Equal(v.text, o.text)
	}
	return v.bits == o.bits
}

// storedValue is a sample of a page, with its text.
func storedValue(t model.ValueType, p sample, arena []byte) value {
	v := value{at: p.at, bits: p.bits, valueType: t}
	if t.InArena() {
		v.text = model.SpanBytes(arena, p.bits)
	}
	return v
}

// keep returns the payload under which the series stores the value, whose text it copies; others is there.
func (s *series) keep(v *value) uint64 {
	if !v.valueType.InArena() {
		return v.bits
	}
	offset := len(s.others.arena)
	s.others.arena = append(s.others.arena, v.text...)
	return model.Span(offset, len(v.text))
}

// insert puts a value that is not the newest into its place in late.
func (s *series) insert(v *value) {
	s.makeOthers()
	bits := s.keep(v)
	o := s.others
	o.late = slices.Insert(o.late, search(o.late, v.at), sample{at: v.at, bits: bits})
}

// pushText adds a value of texts that is the newest.
func (s *series) pushText(v *value) {
	s.makeOthers()
	bits := s.keep(v)
	s.others.texts = append(s.others.texts, sample{at: v.at, bits: bits})
}

func (s *series) makeOthers() {
	if s.others == nil {
		s.others = &others{}
	}
}

// detach moves what is unsealed into a sealed. lsn is an LSN up to which the log holds no value of the series that is not
// in memory by now; values of later records may be in it too. The values must be folded into the trend.
func (s *series) detach(lsn model.LSN, now int64) *sealed {
	d := &sealed{
		series: s, valueType: s.valueType, numbers: s.page.freeze(), others: s.rest(),
		logFrom: s.logFrom, lsn: lsn, at: now, size: s.size(),
	}
	if s.trend != nil {
		d.rows, d.hour = s.trend.detach()
	}
	s.page, s.folded = hotPage{}, 0
	s.others = nil
	s.floor, s.since = s.newest, now
	s.chain(d)
	return d
}
