package mongo

import "encoding/binary"

// snappy unpacks the start of a Snappy block into out, which is not longer than the block's content should be. The format is that of
// format_description.txt in google/snappy: a length as uvarint, then literals and copies. Libraries unpack whole blocks only; here a
// block may be cut, and often only its start is of interest.
func snappy(packed, out []byte, whole bool) ([]byte, error) {
	_, n := binary.Uvarint(packed)
	if n == 0 {
		return nil, snappyEnd(nil, whole)
	}
	if n < 0 || n > 5 {
		return nil, ErrMalformed
	}
	packed = packed[n:]
	at := 0
	for at < len(out) && len(packed) > 0 {
		length, offset, used := snappyTag(packed)
		if used == 0 {
			break
		}
		packed = packed[used:]
		if offset == 0 {
			n := copy(out[at:], packed[:min(length, len(packed))])
			at += n
			packed = packed[min(length, len(packed)):]
			continue
		}
		if offset > at {
			return nil, ErrMalformed
		}
		// Byte by byte: source and target may overlap, which repeats a pattern.
		for range min(length, len(out)-at) {
			out[at] = out[at-offset]
			at++
		}
	}
	if at < len(out) {
		return out[:at], snappyEnd(out[:at], whole)
	}
	return out, nil
}

// snappyEnd is the error for a block that ends too early.
func snappyEnd(got []byte, whole bool) error {
	switch {
	case whole:
		return ErrMalformed
	case len(got) == 0:
		return ErrShort
	}
	return nil
}

// snappyTag reads one tag: a literal (offset 0) or a copy. used is 0 when the tag is cut off; an offset below 0 cannot be.
func snappyTag(b []byte) (length, offset, used int) {
	tag := int(b[0])
	switch tag & 3 {
	case 0:
		length, used = tag>>2+1, 1
		if extra := length - 60; extra > 0 {
			if len(b) < 1+extra {
				return 0, 0, 0
			}
			length = 0
			for i := extra; i > 0; i-- {
				length = length<<8 | int(b[i])
			}
			length++
			used += extra
		}
		return length, 0, used
	case 1:
		if len(b) < 2 {
			return 0, 0, 0
		}
		length, offset, used = tag>>2&7+4, tag>>5<<8|int(b[1]), 2
	case 2:
		if len(b) < 3 {
			return 0, 0, 0
		}
		length, offset, used = tag>>2+1, int(binary.LittleEndian.Uint16(b[1:])), 3
	case 3:
		if len(b) < 5 {
			return 0, 0, 0
		}
		length, offset, used = tag>>2+1, int(binary.LittleEndian.Uint32(b[1:])), 5
	}
	if offset == 0 {
		// A copy from where nothing is: beyond every output, so that the caller refuses it.
		offset = 1 << 40
	}
	return length, offset, used
}
