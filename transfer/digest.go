package transfer

import (
	"encoding/binary"

	"tidemark/model"
	"tidemark/storage"
)

// digest is a count of values and the sum of their checksums, whatever their order.
type digest struct{ values, sum uint64 }

const (
	// The parameters of FNV-1a with 64 bits, http://www.isthe.com/chongo/tech/comp/fnv/.
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash(h uint64, p []byte) uint64 {
	for _, b := range p {
		h = (h ^ uint64(b)) * fnvPrime
	}
	return h
}

func hashNumbers(h uint64, numbers ...uint64) uint64 {
	var p [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(p[:], n)
		h = hash(h, p[:])
	}
	return h
}

func (d *digest) add(id model.ItemID, at int64, t model.ValueType, bits uint64, text []byte) {
	if t.InArena() {
		bits = uint64(len(text))
	}
	d.values++
	d.sum += hash(hashNumbers(fnvOffset, uint64(id), uint64(at), uint64(t), bits), text)
}

func (d *digest) addRow(b *model.Batch, i int) {
	var text []byte
	if b.Types[i].InArena() {
		text = b.Bytes(i)
	}
	d.add(b.Items[i], b.At[i], b.Types[i], b.Bits[i], text)
}

func (d *digest) addColumns(c *model.Columns) error {
	for i, at := range c.At {
		var text []byte
		if c.Type.InArena() {
			text = c.Bytes(i)
		}
		d.add(c.Item, at, c.Type, c.Bits[i], text)
	}
	return nil
}

// trendDigest is the same of hours; a float's sum and increase may differ in their last bits, so they are left out.
type trendDigest struct{ hours, sum uint64 }

func (d *trendDigest) add(c *storage.TrendColumns) {
	for i := range c.Trends {
		t := &c.Trends[i]
		d.hours++
		d.sum += hashNumbers(fnvOffset, uint64(c.Item), uint64(c.Type), uint64(t.At), t.Count, t.Min, t.Max, t.First, t.Last)
	}
}
