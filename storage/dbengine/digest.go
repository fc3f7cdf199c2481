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
	hasher := valueHasher{sum: &d}
	largest := db.MaxItemID()
	items := make([]model.ItemID, 0, digestItems)
	for id := model.ItemID(1); id <= largest; id++ {
		if db.mayHave(id) {
			items = append(items, id)
		}
		if len(items) < digestItems && id < largest || len(items) == 0 {
			continue
		}
		if err := db.Read(ctx, storage.Query{Items: items, Range: r}, hasher.add); err != nil {
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

// valueHasher adds values to a digest.
type valueHasher struct {
	sum *Digest
	buf []byte
}

func (h *valueHasher) add(c *model.Columns) error {
	for i, at := range c.At {
		h.buf = binary.LittleEndian.AppendUint64(h.buf[:0], uint64(c.Item))
		h.buf = binary.LittleEndian.AppendUint64(h.buf, uint64(at))
		h.buf = append(h.buf, byte(c.Type))
		if c.Type.InArena() {
			h.buf = append(h.buf, c.Bytes(i)...)
		} else {
			h.buf = binary.LittleEndian.AppendUint64(h.buf, c.Bits[i])
		}
		low := xxhash.Sum64(h.buf)
		h.buf = append(h.buf, 1)
		var carry uint64
		h.sum.Low, carry = bits.Add64(h.sum.Low, low, 0)
		h.sum.High, _ = bits.Add64(h.sum.High, xxhash.Sum64(h.buf), carry)
		h.sum.Values++
	}
	return nil
}
