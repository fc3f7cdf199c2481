package dbengine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"tidemark/model"
	"tidemark/storage"
)

// Digest says what values are stored, whatever the codec and in whatever pages they are.
type Digest struct {
	Values uint64
	// High and Low are the sum, modulo 2^128, of a hash of each value.
	High, Low uint64
}

// String is the digest in hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.High, d.Low) }

// digestItems is how many items are read in one go.
const digestItems = 256

// Digest reads all values in a range of time.
func (db *DB) Digest(ctx context.Context, r model.TimeRange) (Digest, error) {
	var d Digest
	add := func(c *model.Columns) error { d.Add(c); return nil }
	largest := db.MaxItemID()
	items := make([]model.ItemID, 0, digestItems)
	for id := model.ItemID(1); id <= largest; id++ {
		if db.mayHave(id) {
			items = append(items, id)
		}
		if len(items) < digestItems && id < largest || len(items) == 0 {
			continue
		}
		if err := db.Read(ctx, storage.Query{Items: items, Range: r}, add); err != nil {
			return d, err
		}
		items = items[:0]
	}
	return d, ctx.Err()
}

// mayHave reports whether values of an item may be stored: it is in memory, or within a closed pair's bounds.
func (db *DB) mayHave(id model.ItemID) bool {
	sh := db.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.find(id) != nil {
		return true
	}
	for k := range sh.indexed {
		if sh.indexed[k].mayHold(id) {
			return true
		}
	}
	return false
}

// Add adds values to a digest; text and logs are those of the columns' arena. Digests of parts can be made one after another in any order.
func (d *Digest) Add(c *model.Columns) {
	b := make([]byte, 0, 64)
	for i, at := range c.At {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(c.Item))
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		b = append(b, byte(c.Type))
		if c.Type.InArena() {
			b = append(b, c.Bytes(i)...)
		} else {
			b = binary.LittleEndian.AppendUint64(b, c.Bits[i])
		}
		low := xxhash.Sum64(b)
		b = append(b, 1)
		var carry uint64
		d.Low, carry = bits.Add64(d.Low, low, 0)
		d.High, _ = bits.Add64(d.High, xxhash.Sum64(b), carry)
		d.Values++
	}
}
