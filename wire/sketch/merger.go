package sketch

import (
	"encoding/binary"
	"math"
)

// Merger adds encoded sketches to sketches without decoding them into one first, which is many times faster where they hold few
// different latencies. It belongs to one goroutine; the zero value is ready.
type Merger struct {
	at     []uint16
	counts []uint32
}

// Merge adds what the encoded sketch b counted to s. When b is malformed s stays as it was.
func (m *Merger) Merge(s *Sketch, b []byte) error {
	if len(b) == 0 || b[0] != version {
		return ErrMalformed
	}
	b = b[1:]
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return ErrMalformed
		}
		head[i], b = v, b[n:]
	}
	least, greatest := head[0], head[0]+head[1]
	if greatest < least || head[3] > Buckets {
		return ErrMalformed
	}
	count, ok := m.read(b, int(head[3]))
	if !ok {
		return ErrMalformed
	}
	if count == 0 {
		return nil
	}
	if s.Count == 0 || least < s.Min {
		s.Min = least
	}
	s.Max = max(s.Max, greatest)
	s.Count += count
	if s.Sum += head[2]; s.Sum < head[2] {
		s.Sum = math.MaxUint64
	}
	for i, at := range m.at {
		s.add(int(at), m.counts[i])
	}
	return nil
}

// read takes filled buckets from b, which must end behind them, and returns the sum of their counts.
func (m *Merger) read(b []byte, filled int) (count uint64, ok bool) {
	m.at, m.counts = m.at[:0], m.counts[:0]
	at := uint64(0)
	for i := range filled {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		c, k := binary.Uvarint(b[n:])
		if k <= 0 || c == 0 || c > math.MaxUint32 || step >= Buckets || at+step >= Buckets || step == 0 && i > 0 {
			return 0, false
		}
		at += step
		m.at, m.counts = append(m.at, uint16(at)), append(m.counts, uint32(c))
		count += c
		b = b[n+k:]
	}
	return count, len(b) == 0
}
