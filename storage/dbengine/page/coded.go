package page

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A coded stream holds the same numbers as a stream of blocks in fewer bits and takes longer to read. It is tabled
// asymmetric numeral coding (Duda, arXiv:1311.2540) of the numbers' magnitudes, with the bits below them as they are:
//
//	table bits │ fine bits │ least token │ length of counts │ counts, an integer column │ bits, lowest first
//	bits: four starting states │ for each number: the bits below its token, then the bits that lead to the next state
//
// A token is the number's length in bits and the fine bits that follow its highest bit. Number i belongs to state i mod 4,
// so that four look-ups are under way at once.
const (
	codedStates = 4
	maxFine     = 3
	// A table is at least this large, so that all tokens find a place, and at most maxTableBits, so that it stays in the first-level cache.
	minTableBits = 8
	maxTableBits = 11
	// maxTokens is one more than the token of the largest number at the finest division.
	maxTokens = 64<<maxFine + 1
	// maxCodedBits is the longest number that can be coded: its low bits and those of the state are read by one load.
	maxCodedBits = 46
	// loadedBits is what one load brings, wherever a byte begins.
	loadedBits = 57
	// minCoded is the least count of numbers for which a table may pay.
	minCoded = 96
)

// tokenOf returns the token of x: x itself while it is short, else its length and the fine bits after the highest one.
func tokenOf(x uint64, fine int) (token, below int) {
	below = bits.Len64(x) - 1 - fine
	if below <= 0 {
		return int(x), 0
	}
	return below<<fine + int(x>>below), below
}

// tokenStart is the smallest number that has the token, and how many bits below it a number has.
func tokenStart(token, fine int) (start uint64, below int) {
	below = token>>fine - 1
	if below <= 0 {
		return uint64(token), 0
	}
	return uint64(token-below<<fine) << below, below
}

// codedPlan is how a coded stream would be written.
type codedPlan struct {
	fine, tableBits int
	least, most     int // tokens
	size            int // about, in bytes
}

// planCoded estimates the best coded stream of v; its size is beyond any other if there is none.
func planCoded(count *[maxTokens]uint32, v []uint64) codedPlan {
	best := codedPlan{size: math.MaxInt}
	if len(v) < minCoded {
		return best
	}
	for fine := 0; fine <= maxFine; fine++ {
		clear(count[:])
		lowBits := 0
		for _, x := range v {
			t, below := tokenOf(x, fine)
			count[t]++
			lowBits += below
		}
		p := codedPlan{fine: fine, least: -1}
		used := 0
		sum := 0.0
		for t, k := range count {
			if k == 0 {
				continue
			}
			if p.least < 0 {
				p.least = t
			}
			p.most = t
			used++
			sum -= float64(k) * math.Log2(float64(k)/float64(len(v)))
		}
		if _, below := tokenStart(p.most, fine); below+fine+1 > maxCodedBits || used < 2 {
			continue
		}
		p.tableBits = min(max(minTableBits, bits.Len(uint(used))+2), maxTableBits)
		if len(v) > 2048 {
			p.tableBits = min(p.tableBits+2, maxTableBits)
		}
		p.size = 10 + (int(sum)+lowBits)/8 + (p.most-p.least+1)*p.tableBits*5/64
		if used <= 1<<p.tableBits/2 && p.size < best.size {
			best = p
		}
	}
	return best
}

// normalise scales counts to sum to size, at least one for each that is not zero.
func normalise(counts []uint64, total, size int) {
	left := size
	largest := 0
	for i, k := range counts {
		if k == 0 {
			continue
		}
		share := max(1, (int(k)*size+total/2)/total)
		counts[i] = uint64(share)
		left -= share
		if counts[i] > counts[largest] {
			largest = i
		}
	}
	// Rounding errors go to the largest shares, which they harm least.
	for left != 0 {
		if left > 0 {
			counts[largest] += uint64(left)
			return
		}
		for i := range counts {
			if counts[i] > counts[largest] {
				largest = i
			}
		}
		give := min(-left, max(1, int(counts[largest])/8))
		counts[largest] -= uint64(give)
		left += give
	}
}

// spread sets the token of every place of a table whose size is a power of two and the sum of counts.
func spread(counts []uint64, places []uint16) {
	size := len(places)
	step := size>>1 + size>>3 + 3 // odd, so every place is met once
	at := 0
	for t, k := range counts {
		for range k {
			places[at&(size-1)] = uint16(t)
			at += step
		}
	}
}

// table is the memory for the tables of a coded stream.
type table struct {
	count  [maxTokens]uint32
	places [1 << maxTableBits]uint16
	// next is, for each token, where the next state goes; starts and below are what tokenStart returns.
	next   [maxTokens]int
	starts [maxTokens]uint64
	below  [maxTokens]uint8
	// entries drive the decoder, states the encoder.
	entries [1 << maxTableBits]entry
	states  [1 << maxTableBits]uint16
	chunks  []uint64
	// longest is the most bits that an entry of the decoder takes.
	longest int
}

// entry is what the decoder does in one state: the number is start and as many bits as below says, the next state is base
// and the bits of mask after them; bits is how many that are in all.
type entry struct {
	start       uint64
	base, mask  uint16
	below, bits uint8
}

// coding returns the memory for tables, which most coders never need.
func (c *coder) coding() *table {
	if c.table == nil {
		c.table = new(table)
	}
	return c.table
}

// appendCoded appends the coded stream of v.
func (c *coder) appendCoded(dst []byte, v []uint64, p codedPlan) []byte {
	t := c.coding()
	l := &c.levels[rankCoded]
	l.outer = resize(l.outer, p.most-p.least+1)
	clear(l.outer)
	for _, x := range v {
		token, _ := tokenOf(x, p.fine)
		l.outer[token-p.least]++
	}
	size := 1 << p.tableBits
	normalise(l.outer, len(v), size)
	dst = append(dst, byte(p.tableBits), byte(p.fine))
	dst = binary.AppendUvarint(dst, uint64(p.least))
	dst = binary.AppendUvarint(dst, uint64(len(l.outer)))
	dense := c.dense
	c.dense = false
	dst = c.encodeSized(dst, l.outer, rankCounts)
	c.dense = dense

	// For each token, states holds its places in the table in rising order; next is where they start.
	spread(l.outer, t.places[:size])
	sum := 0
	for i, k := range l.outer {
		t.next[i] = sum
		sum += int(k)
	}
	for place, token := range t.places[:size] {
		t.states[t.next[token]] = uint16(place)
		t.next[token]++
	}
	for i, k := range l.outer {
		t.next[i] -= int(k)
	}
	// The numbers are coded from the last to the first, and read from the first.
	t.chunks = resize(t.chunks, len(v))
	var state [codedStates]int
	for i := len(v) - 1; i >= 0; i-- {
		x := v[i]
		token, below := tokenOf(x, p.fine)
		token -= p.least
		k := int(l.outer[token])
		s := state[i%codedStates] + size
		more := bits.Len(uint(s)) - bits.Len(uint(k))
		if s>>more < k {
			more--
		}
		low := x & (1<<below - 1)
		t.chunks[i] = (low|uint64(s&(1<<more-1))<<below)<<6 | uint64(below+more)
		state[i%codedStates] = int(t.states[t.next[token]+s>>more-k])
	}
	return appendBits(dst, &state, p.tableBits, t.chunks)
}

// appendBits appends the starting states and the chunks, each its bits above its length in 6 bits.
func appendBits(dst []byte, state *[codedStates]int, tableBits int, chunks []uint64) []byte {
	var w bitWriter
	w.dst = dst
	for _, s := range state {
		w.put(uint64(s), tableBits)
	}
	for _, k := range chunks {
		w.put(k>>6, int(k&63))
	}
	for w.used > 0 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc >>= 8
		w.used -= 8
	}
	return w.dst
}

// bitWriter appends bits, lowest first.
type bitWriter struct {
	dst  []byte
	acc  uint64
	used int
}

// put appends count bits of x, at most 57.
func (w *bitWriter) put(x uint64, count int) {
	w.acc |= x << w.used
	if w.used += count; w.used >= 64 {
		w.dst = binary.LittleEndian.AppendUint64(w.dst, w.acc)
		w.used -= 64
		w.acc = x >> (count - w.used)
	}
}

// readCoded reads len(dst) numbers from the coded stream b and adds base to each. If they are all that there are, the stream must end
// with them.
func (c *coder) readCoded(dst []uint64, b []byte, base uint64, all bool) error {
	b, tableBits, err := c.readTable(b)
	if err != nil {
		return err
	}
	entries := &c.coding().entries
	// Eight bytes are read at a time: near the end from a copy with zeros behind it.
	pad := c.padded[:32]
	clear(pad)
	safe := max(0, len(b)-16) // loads that start before here stay inside b
	copy(pad[:16], b[safe:])
	limit := 8 * len(b)
	if codedStates*tableBits > limit {
		return corrupt("a coded stream of %d bytes", len(b))
	}
	var state [codedStates]uint64
	var pos int
	for j := range state {
		state[j] = loadBits(b, pad, safe, pos) & (1<<tableBits - 1)
		pos += tableBits
	}
	i := 0
	switch longest := c.table.longest; {
	case longest <= loadedBits/codedStates:
		i, pos = readQuads(dst, &state, entries, b, pos, base)
	case longest <= loadedBits/2:
		i, pos = readPairs(dst, &state, entries, b, pos, base)
	default:
		i, pos = readFours(dst, &state, entries, b, pos, base)
	}
	for ; i < len(dst); i++ {
		if pos > limit {
			return corrupt("a coded stream ends at number %d of %d", i, len(dst))
		}
		e := &entries[state[i%codedStates]%(1<<maxTableBits)]
		w := loadBits(b, pad, safe, pos)
		dst[i] = base + e.start + w&(1<<e.below-1)
		state[i%codedStates] = uint64(e.base) + w>>e.below&uint64(e.mask)
		pos += int(e.bits)
	}
	if !all && pos <= limit {
		return nil
	}
	if pos > limit || (pos+7)/8 != len(b) || state != [codedStates]uint64{} {
		return corrupt("a coded stream ends at bit %d of %d", pos, limit)
	}
	return nil
}

// readFours reads numbers four at a time, one of each state, as long as there are surely enough bytes. It returns how
// many it read, and the next bit.
func readFours(dst []uint64, state *[codedStates]uint64, entries *[1 << maxTableBits]entry, b []byte, pos int, base uint64) (int, int) {
	const states = 1 << maxTableBits
	s0, s1, s2, s3 := state[0], state[1], state[2], state[3]
	i := 0
	for ; i+codedStates <= len(dst) && pos>>3+codedStates*8+8 <= len(b); i += codedStates {
		d := (*[codedStates]uint64)(dst[i:])
		e := &entries[s0%states]
		w := binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		pos += int(e.bits)
		d[0] = base + e.start + w&(1<<(e.below&63)-1)
		s0 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)

		e = &entries[s1%states]
		w = binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		pos += int(e.bits)
		d[1] = base + e.start + w&(1<<(e.below&63)-1)
		s1 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)

		e = &entries[s2%states]
		w = binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		pos += int(e.bits)
		d[2] = base + e.start + w&(1<<(e.below&63)-1)
		s2 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)

		e = &entries[s3%states]
		w = binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		pos += int(e.bits)
		d[3] = base + e.start + w&(1<<(e.below&63)-1)
		s3 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
	}
	*state = [codedStates]uint64{s0, s1, s2, s3}
	return i, pos
}

// readQuads is readFours for tables none of whose entries takes more than a quarter of what one load brings.
func readQuads(dst []uint64, state *[codedStates]uint64, entries *[1 << maxTableBits]entry, b []byte, pos int, base uint64) (int, int) {
	const states = 1 << maxTableBits
	s0, s1, s2, s3 := state[0], state[1], state[2], state[3]
	i := 0
	for ; i+codedStates <= len(dst) && pos>>3+8 <= len(b); i += codedStates {
		d := (*[codedStates]uint64)(dst[i:])
		w := binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		e := &entries[s0%states]
		d[0] = base + e.start + w&(1<<(e.below&63)-1)
		s0 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		w >>= e.bits & 63
		used := int(e.bits)

		e = &entries[s1%states]
		d[1] = base + e.start + w&(1<<(e.below&63)-1)
		s1 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		w >>= e.bits & 63
		used += int(e.bits)

		e = &entries[s2%states]
		d[2] = base + e.start + w&(1<<(e.below&63)-1)
		s2 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		w >>= e.bits & 63
		used += int(e.bits)

		e = &entries[s3%states]
		d[3] = base + e.start + w&(1<<(e.below&63)-1)
		s3 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		pos += used + int(e.bits)
	}
	*state = [codedStates]uint64{s0, s1, s2, s3}
	return i, pos
}

// readPairs is readFours for tables none of whose entries takes more than half of what one load brings.
func readPairs(dst []uint64, state *[codedStates]uint64, entries *[1 << maxTableBits]entry, b []byte, pos int, base uint64) (int, int) {
	const states = 1 << maxTableBits
	s0, s1, s2, s3 := state[0], state[1], state[2], state[3]
	i := 0
	for ; i+codedStates <= len(dst) && pos>>3+2*8 <= len(b); i += codedStates {
		d := (*[codedStates]uint64)(dst[i:])
		w := binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		e := &entries[s0%states]
		d[0] = base + e.start + w&(1<<(e.below&63)-1)
		s0 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		w >>= e.bits & 63
		pos += int(e.bits)

		e = &entries[s1%states]
		d[1] = base + e.start + w&(1<<(e.below&63)-1)
		s1 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		pos += int(e.bits)

		e = &entries[s2%states]
		w = binary.LittleEndian.Uint64(b[pos>>3:]) >> (pos & 7)
		d[2] = base + e.start + w&(1<<(e.below&63)-1)
		s2 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		w >>= e.bits & 63
		pos += int(e.bits)

		e = &entries[s3%states]
		d[3] = base + e.start + w&(1<<(e.below&63)-1)
		s3 = uint64(e.base) + w>>(e.below&63)&uint64(e.mask)
		pos += int(e.bits)
	}
	*state = [codedStates]uint64{s0, s1, s2, s3}
	return i, pos
}

// loadBits returns at least 57 bits from bit pos on. pad holds the bytes from safe on and zeros after them.
func loadBits(b, pad []byte, safe, pos int) uint64 {
	at := pos >> 3
	if at < safe {
		return binary.LittleEndian.Uint64(b[at:]) >> (pos & 7)
	}
	return binary.LittleEndian.Uint64(pad[at-safe:]) >> (pos & 7)
}

// readTable reads the head of a coded stream and fills the decoder's entries; it returns what follows.
func (c *coder) readTable(b []byte) (rest []byte, tableBits int, err error) {
	if len(b) < 2 || b[0] < minTableBits || b[0] > maxTableBits || b[1] > maxFine {
		return nil, 0, corrupt("the head of a coded stream")
	}
	tableBits, fine := int(b[0]), int(b[1])
	f := fields{rest: b[2:]}
	least, tokens := f.unsigned(), f.unsigned()
	if f.bad || tokens == 0 || least >= maxTokens || tokens > maxTokens-least {
		return nil, 0, corrupt("tokens %d and %d more in a coded stream", least, tokens)
	}
	if _, below := tokenStart(int(least+tokens-1), fine); below+fine+1 > maxCodedBits {
		return nil, 0, corrupt("coded numbers of %d bits, expected at most %d", below+fine+1, maxCodedBits)
	}
	inner, rest, err := cut(f.rest)
	if err != nil {
		return nil, 0, err
	}
	l := &c.levels[rankCoded]
	l.outer = resize(l.outer, int(tokens))
	if err := c.decode(l.outer, inner, rankCounts); err != nil {
		return nil, 0, err
	}
	size := uint64(1) << tableBits
	sum := uint64(0)
	for _, k := range l.outer {
		if k > size || sum+k > size {
			return nil, 0, corrupt("the counts of a coded stream are more than %d", size)
		}
		sum += k
	}
	if sum != size {
		return nil, 0, corrupt("the counts of a coded stream sum to %d, expected %d", sum, size)
	}
	t := c.coding()
	spread(l.outer, t.places[:size])
	for i, k := range l.outer {
		start, below := tokenStart(int(least)+i, fine)
		t.next[i], t.starts[i], t.below[i] = int(k), start, uint8(below)
	}
	t.longest = 0
	for place, token := range t.places[:size] {
		x := t.next[token]
		t.next[token] = x + 1
		more := tableBits + 1 - bits.Len(uint(x))
		below := t.below[token]
		t.longest = max(t.longest, int(below)+more)
		t.entries[place] = entry{
			start: t.starts[token], base: uint16(x<<more - int(size)), mask: 1<<more - 1, below: below, bits: below + uint8(more),
		}
	}
	return rest, tableBits, nil
}
