package zbx

import "math"

// maxPlainDigits is how many digits a number may have that is read without a check for overflow.
const maxPlainDigits = 18

// plain decodes the row at the scanner if it is written as agents and senders write nearly all of theirs: no white space, only the
// members below, text without escapes, and numbers in their range. It reports false for any other row, valid or not, and then leaves
// the scanner where it was; [Row.decode] gives the same result for every row that plain takes, and is slower.
func (row *Row) plain(s *scanner) bool {
	b, p := s.b, s.p
	if p >= len(b) || b[p] != '{' {
		return false
	}
	for {
		end := row.plainMember(b, p+1)
		if end < 0 || end >= len(b) {
			return false
		}
		switch p = end; b[p] {
		case ',':
		case '}':
			s.p = p + 1
			return true
		default:
			return false
		}
	}
}

// plainMember decodes the member at b[p] and returns where it ends; −1: it is not plain.
func (row *Row) plainMember(b []byte, p int) int {
	rest := b[min(p, len(b)):]
	if len(rest) < 10 {
		return -1
	}
	switch {
	case string(rest[:5]) == `"id":`:
		return plainUint(&row.ID, b, p+5)
	case string(rest[:9]) == `"itemid":`:
		row.Has |= HasItemID
		return plainUint(&row.ItemID, b, p+9)
	case string(rest[:9]) == `"value":"`:
		row.Has |= HasValue
		return plainText(&row.Value, b, p+9)
	case string(rest[:8]) == `"clock":`:
		row.Has |= HasClock
		return plainUint32(&row.Clock, b, p+8, math.MaxInt32)
	case string(rest[:5]) == `"ns":`:
		row.Has |= HasNS
		return plainUint32(&row.NS, b, p+5, maxNanos-1)
	case string(rest[:8]) == `"host":"`:
		row.Has |= HasHost
		return plainName(&row.Host, b, p+8)
	case string(rest[:7]) == `"key":"`:
		row.Has |= HasKey
		return plainName(&row.Key, b, p+7)
	}
	return -1
}

// plainUint reads digits at b[p].
func plainUint(dst *uint64, b []byte, p int) int {
	var n uint64
	i := p
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + uint64(d)
	}
	if i == p || i-p > maxPlainDigits {
		return -1
	}
	*dst = n
	return i
}

func plainUint32(dst *uint32, b []byte, p int, limit uint64) int {
	var n uint64
	end := plainUint(&n, b, p)
	if n > limit {
		return -1
	}
	*dst = uint32(n)
	return end
}

// plainText reads a text whose first byte is b[p].
func plainText(dst *[]byte, b []byte, p int) int {
	for i := p; i < len(b); i++ {
		switch b[i] {
		case '"':
			*dst = b[p:i:i]
			return i + 1
		case '\\':
			return -1
		}
	}
	return -1
}

func plainName(dst *[]byte, b []byte, p int) int {
	end := plainText(dst, b, p)
	if end-p > MaxNameBytes {
		return -1
	}
	return end
}

// skipRows steps over the array at the scanner as skip does, faster where its rows are plain. depth is how many brackets are open
// around it.
func (s *scanner) skipRows(depth int) error {
	if depth+1 >= MaxDepth {
		return s.skip(depth)
	}
	var row Row
	for first := true; ; {
		more, err := s.next(&first, ']')
		if err != nil || !more {
			return err
		}
		if row.plain(s) {
			continue
		}
		if err := s.skip(depth + 1); err != nil {
			return err
		}
	}
}
