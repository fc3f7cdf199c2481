package shape

// isData reports whether a part of a field name is a value rather than a name: a number, an ObjectId in hexadecimal, a UUID.
func isData(part []byte) bool {
	switch {
	case len(part) == 0:
		return false
	case allDigits(part):
		return true
	case len(part) == 24:
		return allHex(part)
	case len(part) == 36:
		return isUUID(part)
	case len(part) == 32:
		return allHex(part)
	}
	return false
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
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
		if part := key[start:end]; isData(part) {
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

// mayBeData is a quick test that finds every key which appendKey would change: a digit at the start of a part, a length that an id
// has, or a byte that is replaced.
func mayBeData(key []byte) bool {
	start := true
	for _, c := range key {
		if start && isHex(c) || c < 0x20 {
			return true
		}
		start = c == '.'
	}
	return len(key) > maxKeyBytes
}
