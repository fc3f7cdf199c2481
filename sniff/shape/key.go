package shape

import "bytes"

// objectIDDigits is the length of an ObjectId in hexadecimal, the shortest id that may have letters only.
const objectIDDigits = 24

// maxDigits is how many digits a name may have; with more it holds a number that is data: "phone_15550123456".
const maxDigits = 6

// isData reports whether a part of a field name is a value rather than a name: a number or a date, an ObjectId in hexadecimal, a UUID,
// anything with many digits.
func isData(part []byte) bool {
	switch {
	case len(part) == 0:
		return false
	case allDigits(part) || digits(part) > maxDigits:
		return true
	case len(part) == objectIDDigits:
		return allHex(part)
	case len(part) == 36:
		return isUUID(part)
	case len(part) == 32:
		return allHex(part)
	}
	return false
}

// allDigits reports whether b is a number, or a date or time in numbers.
func allDigits(b []byte) bool {
	if b[0] < '0' || b[0] > '9' {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '-' && c != ':' && c != '_' && c != '/' {
			return false
		}
	}
	return true
}

func digits(b []byte) (n int) {
	for _, c := range b {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func allHex(b []byte) bool {
	for _, c := range b {
		if !isHex(c) {
			return false
		}
	}
	return true
}

func isUUID(b []byte) bool {
	for i, c := range b {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

// maxKeyBytes bounds what is kept of one field name.
const maxKeyBytes = 128

// appendKey appends a field name in its normal form: parts between dots that are data become "*", bytes that do not print become
// "?", long names are cut.
func appendKey(dst, key []byte) []byte {
	if len(key) > maxKeyBytes {
		key = key[:maxKeyBytes]
	}
	for start := 0; start <= len(key); {
		end := start
		for end < len(key) && key[end] != '.' {
			end++
		}
		if start > 0 {
			dst = append(dst, '.')
		}
		part := key[start:end]
		if len(part) > 1 && bytes.IndexByte(part[1:], '@') >= 0 {
			// Nobody knows where the name of a mail host ends.
			return append(dst, '*')
		}
		if isData(part) {
			dst = append(dst, '*')
		} else {
			dst = appendPrintable(dst, part)
		}
		start = end + 1
	}
	return dst
}

// appendPrintable keeps letters and all that is not ASCII control or quoting.
func appendPrintable(dst, b []byte) []byte {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			c = '?'
		}
		dst = append(dst, c)
	}
	return dst
}

// The classes of bytes in field names, for mayBeData.
const (
	classHex   = 1 << iota // at the start of a part: a number or an id
	classDigit             // counts
	classBad               // always: replaced, or the mark of a mail address
)

var keyClasses = func() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		if isHex(b) {
			t[c] |= classHex
		}
		if b >= '0' && b <= '9' {
			t[c] |= classDigit
		}
		if b < 0x20 || b == '@' {
			t[c] |= classBad
		}
	}
	return t
}()

// mayBeData is a quick test that finds every key which appendKey would change: a hexadecimal digit at the start of a part that is
// long enough for an id or begins with a digit, many digits, or a byte that is replaced.
func mayBeData(key []byte) bool {
	start, digits := true, 0
	for _, c := range key {
		class := keyClasses[c]
		if class != 0 {
			if class&classBad != 0 || start && (class&classDigit != 0 || len(key) >= objectIDDigits) {
				return true
			}
			digits += int(class&classDigit) >> 1
		}
		start = c == '.'
	}
	return digits > maxDigits || len(key) > maxKeyBytes
}
