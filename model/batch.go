package model

import (
	"math"
	"slices"
	"sync"
)

// MaxArenaBytes bounds the arena of one batch, so that offsets and lengths fit 32 bits.
const MaxArenaBytes = 1 << 30

// Mark is a small fact that becomes durable together with the values of its batch and survives a restart: the last
// id that a sender's session delivered, or how far an agent has read a log file. An engine keeps the newest value per key.
type Mark struct {
	// Key names the fact, at most 255 bytes: "session/HOSTID/TOKEN", "log/ITEMID".
	Key string
	// Value is opaque to the engine, at most 255 bytes.
	Value string
	// At is when the mark was made, Unix nanoseconds; engines over their limit forget the oldest.
	At int64
}

// Batch is the one type that travels from a collector to the engine: columns of equal length, one row per value.
//
// A batch has one owner at a time. Put hands it to the next stage; whoever owned it before must not touch it again. The
// engine copies what it keeps, so the syncer may read the batch after Append and then Free it.
type Batch struct {
	Items []ItemID
	// At is the time of each value, Unix nanoseconds. An engine may move it (flag Moved).
	At    []int64
	Types []ValueType
	// Bits is the payload: math.Float64bits, the integer, or offset<<32|length in Arena.
	Bits  []uint64
	Flags []Flag
	Arena []byte
	// Marks become durable with the batch.
	Marks []Mark
	// Done are finished once each when all values of the batch are durable, or cannot become so.
	Done []*Completion
	// ArrivedAt is when the batch was received, Unix nanoseconds.
	ArrivedAt int64
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// NewBatch returns an empty batch whose columns may have room from an earlier use.
func NewBatch() *Batch { return batches.Get().(*Batch) }

// Free gives the batch back for reuse. The caller must be its owner and must have finished or handed over its
// completions.
func (b *Batch) Free() {
	if cap(b.Arena) > 4<<20 || cap(b.Items) > 1<<17 {
		return
	}
	b.Reset()
	batches.Put(b)
}

// Reset empties the batch and keeps the room of its columns.
func (b *Batch) Reset() {
	b.Truncate(0)
	b.Arena = b.Arena[:0]
	clear(b.Marks)
	b.Marks = b.Marks[:0]
	clear(b.Done)
	b.Done = b.Done[:0]
	b.ArrivedAt = 0
}

// Truncate keeps the first n values. The arena is left as it is.
func (b *Batch) Truncate(n int) {
	b.Items, b.At, b.Types = b.Items[:n], b.At[:n], b.Types[:n]
	b.Bits, b.Flags = b.Bits[:n], b.Flags[:n]
}

// Len returns the number of values.
func (b *Batch) Len() int { return len(b.Items) }

// SizeBytes returns the memory that the values take, for limits.
func (b *Batch) SizeBytes() int { return len(b.Items)*(8+8+1+8+1) + len(b.Arena) }

// Append adds a value whose payload needs no arena.
func (b *Batch) Append(item ItemID, at int64, t ValueType, bits uint64) {
	b.Items = append(b.Items, item)
	b.At = append(b.At, at)
	b.Types = append(b.Types, t)
	b.Bits = append(b.Bits, bits)
	b.Flags = append(b.Flags, 0)
}

// AppendFloat adds a float.
func (b *Batch) AppendFloat(item ItemID, at int64, v float64) {
	b.Append(item, at, Float, math.Float64bits(v))
}

// AppendUint adds an unsigned integer.
func (b *Batch) AppendUint(item ItemID, at int64, v uint64) { b.Append(item, at, Uint, v) }

// AppendBytes adds a value whose payload is a copy of p in the arena.
func (b *Batch) AppendBytes(item ItemID, at int64, t ValueType, p []byte) {
	b.Append(item, at, t, b.Store(p))
}

// AppendString is AppendBytes for a string.
func (b *Batch) AppendString(item ItemID, at int64, t ValueType, s string) {
	offset := len(b.Arena)
	b.Arena = append(b.Arena, s...)
	b.Append(item, at, t, Span(offset, len(s)))
}

// AppendLog adds a log value.
func (b *Batch) AppendLog(item ItemID, at int64, l Log) {
	offset := len(b.Arena)
	b.Arena = AppendLog(b.Arena, l)
	b.Append(item, at, LogEntry, Span(offset, len(b.Arena)-offset))
}

// Store copies p into the arena and returns the payload that names it.
func (b *Batch) Store(p []byte) uint64 {
	offset := len(b.Arena)
	b.Arena = append(b.Arena, p...)
	return Span(offset, len(p))
}

// Span packs an offset and a length in an arena into a payload.
func Span(offset, length int) uint64 { return uint64(offset)<<32 | uint64(uint32(length)) }

// SpanBytes returns the bytes of arena that bits names. The result must not be kept or appended to.
func SpanBytes(arena []byte, bits uint64) []byte {
	offset, length := bits>>32, bits&math.MaxUint32
	return arena[offset : offset+length : offset+length]
}

// Bytes returns the arena payload of value i. It is valid as long as the batch is not reset.
func (b *Batch) Bytes(i int) []byte { return SpanBytes(b.Arena, b.Bits[i]) }

// Float returns value i as a float: exactly for Float, rounded for Uint.
func (b *Batch) Float(i int) float64 {
	if b.Types[i] == Uint {
		return float64(b.Bits[i])
	}
	return math.Float64frombits(b.Bits[i])
}

// CopyRow moves row from to row to, to ≤ from; used to drop rows in place.
func (b *Batch) CopyRow(to, from int) {
	b.Items[to], b.At[to], b.Types[to] = b.Items[from], b.At[from], b.Types[from]
	b.Bits[to], b.Flags[to] = b.Bits[from], b.Flags[from]
}

// Grow makes room for more values and more bytes in the arena, so that adding several batches copies what is there at most once.
func (b *Batch) Grow(values, arenaBytes int) {
	b.Items, b.At, b.Types = slices.Grow(b.Items, values), slices.Grow(b.At, values), slices.Grow(b.Types, values)
	b.Bits, b.Flags = slices.Grow(b.Bits, values), slices.Grow(b.Flags, values)
	b.Arena = slices.Grow(b.Arena, arenaBytes)
}

// Add appends all of o's values, marks and completions to b; o keeps its columns but no longer its completions.
func (b *Batch) Add(o *Batch) {
	base := uint64(len(b.Arena)) << 32
	first := len(b.Bits)
	b.Items = append(b.Items, o.Items...)
	b.At = append(b.At, o.At...)
	b.Types = append(b.Types, o.Types...)
	b.Bits = append(b.Bits, o.Bits...)
	b.Flags = append(b.Flags, o.Flags...)
	if len(o.Arena) > 0 {
		b.Arena = append(b.Arena, o.Arena...)
		for i := first; i < len(b.Bits); i++ {
			if b.Types[i].InArena() {
				b.Bits[i] += base
			}
		}
	}
	b.Marks = append(b.Marks, o.Marks...)
	b.Done = append(b.Done, o.Done...)
	clear(o.Done)
	o.Done = o.Done[:0]
	if b.ArrivedAt == 0 || o.ArrivedAt < b.ArrivedAt {
		b.ArrivedAt = o.ArrivedAt
	}
}

// Finish finishes every completion of the batch with err and forgets them.
func (b *Batch) Finish(err error) {
	for _, c := range b.Done {
		c.Finish(err)
	}
	clear(b.Done)
	b.Done = b.Done[:0]
}

// Columns are values of one item in rising time order, as engines hand them to readers. They belong to the engine and
// are valid only during the call that delivers them.
type Columns struct {
	Item  ItemID
	Type  ValueType
	At    []int64
	Bits  []uint64
	Arena []byte
}

// Bytes returns the arena payload of value i, valid as long as c is.
func (c *Columns) Bytes(i int) []byte { return SpanBytes(c.Arena, c.Bits[i]) }

// Float returns value i as a float: exactly for Float, rounded for Uint.
func (c *Columns) Float(i int) float64 {
	if c.Type == Uint {
		return float64(c.Bits[i])
	}
	return math.Float64frombits(c.Bits[i])
}
