package snmp

import (
	"strconv"
	"strings"
)

// The tags of BER that plain requests and answers have (RFC 3416, RFC 2578).
const (
	tagInteger     = 0x02
	tagOctets      = 0x04
	tagNull        = 0x05
	tagOID         = 0x06
	tagSequence    = 0x30
	tagIPAddress   = 0x40
	tagCounter32   = 0x41
	tagGauge32     = 0x42
	tagTimeTicks   = 0x43
	tagCounter64   = 0x46
	tagNoObject    = 0x80
	tagNoInstance  = 0x81
	tagEndOfView   = 0x82
	tagGetRequest  = 0xa0
	tagGetResponse = 0xa2
)

// element takes the first element off b; ok is false when b does not begin with one that is whole.
func element(b []byte) (tag byte, body, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, nil, false
	}
	n, head := int(b[1]), 2
	if n >= 0x80 {
		count := n & 0x7f
		if head += count; count == 0 || count > 3 || len(b) < head {
			return 0, nil, nil, false
		}
		n = 0
		for _, c := range b[2:head] {
			n = n<<8 | int(c)
		}
	}
	if n > len(b)-head {
		return 0, nil, nil, false
	}
	return b[0], b[head : head+n], b[head+n:], true
}

// inside is element for a tag that is expected.
func inside(b []byte, want byte) (body, rest []byte, ok bool) {
	tag, body, rest, ok := element(b)
	return body, rest, ok && tag == want
}

// number reads a signed number of up to 8 bytes.
func number(body []byte) (int64, bool) {
	if len(body) == 0 || len(body) > 8 {
		return 0, false
	}
	v := int64(int8(body[0]))
	for _, c := range body[1:] {
		v = v<<8 | int64(c)
	}
	return v, true
}

// count reads a number without a sign that has at most size bytes, and a zero in front of them.
func count(body []byte, size int) (uint64, bool) {
	if len(body) > size && body[0] == 0 {
		body = body[1:]
	}
	if len(body) == 0 || len(body) > size {
		return 0, false
	}
	v := uint64(0)
	for _, c := range body {
		v = v<<8 | uint64(c)
	}
	return v, true
}

// appendOID appends an OID as an element; false for what is not plainly an OID.
func appendOID(dst []byte, text string) ([]byte, bool) {
	text = strings.Trim(strings.TrimSpace(text), ".")
	if text == "" || len(text) > maxOIDBytes-1 {
		return dst, false
	}
	start := len(dst)
	dst = append(dst, tagOID, 0)
	place, value, digits := 0, uint64(0), 0
	first := uint64(0)
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '.' {
			d := uint64(text[i]) - '0'
			if value = value*10 + d; d > 9 || value > 1<<32-1 {
				return dst[:start], false
			}
			digits++
			continue
		}
		switch {
		case digits == 0:
			return dst[:start], false
		case place == 0:
			if first = value; first > 2 {
				return dst[:start], false
			}
		case place == 1:
			if first < 2 && value > 39 || value > 1<<16 {
				return dst[:start], false
			}
			dst = appendArc(dst, first*40+value)
		default:
			dst = appendArc(dst, value)
		}
		place, value, digits = place+1, 0, 0
	}
	n := len(dst) - start - 2
	if place < 2 || n > 0x7f {
		return dst[:start], false // Longer ones are rare.
	}
	dst[start+1] = byte(n)
	return dst, true
}

func appendArc(dst []byte, v uint64) []byte {
	for shift := 28; shift > 0; shift -= 7 {
		if v>>shift != 0 {
			dst = append(dst, byte(v>>shift)|0x80)
		}
	}
	return append(dst, byte(v&0x7f))
}

// appendDotted appends the text of an OID, with a dot in front; false for a wrong one.
func appendDotted(dst, body []byte) ([]byte, bool) {
	v, within, arcs := uint64(0), false, 0
	for _, c := range body {
		if v > 1<<32-1>>7 && within {
			return dst, false
		}
		v, within = v<<7|uint64(c&0x7f), c&0x80 != 0
		if within {
			continue
		}
		if arcs == 0 {
			first := min(v/40, 2)
			dst = strconv.AppendUint(append(dst, '.'), first, 10)
			v -= first * 40
		}
		dst = strconv.AppendUint(append(dst, '.'), v, 10)
		v = 0
		arcs++
	}
	return dst, arcs > 0 && !within
}

// appendHead appends tag and length of an element whose body has n bytes.
func appendHead(dst []byte, tag byte, n int) []byte {
	switch {
	case n < 0x80:
		return append(dst, tag, byte(n))
	case n < 1<<8:
		return append(dst, tag, 0x81, byte(n))
	case n < 1<<16:
		return append(dst, tag, 0x82, byte(n>>8), byte(n))
	}
	return append(dst, tag, 0x83, byte(n>>16), byte(n>>8), byte(n))
}

// headBytes is what appendHead appends.
func headBytes(n int) int {
	switch {
	case n < 0x80:
		return 2
	case n < 1<<8:
		return 3
	case n < 1<<16:
		return 4
	}
	return 5
}

// appendGet appends a request of version 1 (0) or 2c (1) for variables, each of which is the sequence of a name and NULL.
func appendGet(dst []byte, version byte, community string, id uint32, variables []byte) []byte {
	const fixed = 6 + 3 + 3 // id, error status, error index
	list := headBytes(len(variables)) + len(variables)
	pdu := fixed + list
	all := 3 + headBytes(len(community)) + len(community) + headBytes(pdu) + pdu
	dst = appendHead(dst, tagSequence, all)
	dst = append(dst, tagInteger, 1, version)
	dst = append(appendHead(dst, tagOctets, len(community)), community...)
	dst = appendHead(dst, tagGetRequest, pdu)
	dst = append(dst, tagInteger, 4, byte(id>>24), byte(id>>16), byte(id>>8), byte(id), tagInteger, 1, 0, tagInteger, 1, 0)
	return append(appendHead(dst, tagSequence, len(variables)), variables...)
}

// answerOf takes an answer of version 1 or 2c apart: its version, id, error status, and variables.
func answerOf(packet []byte) (version, id, status int64, variables []byte, ok bool) {
	if packet, _, ok = inside(packet, tagSequence); !ok {
		return 0, 0, 0, nil, false
	}
	var fields [4]int64
	var pdu []byte
	body, packet, ok := inside(packet, tagInteger)
	if ok {
		fields[0], ok = number(body)
	}
	if ok {
		_, packet, ok = inside(packet, tagOctets)
	}
	if ok {
		pdu, _, ok = inside(packet, tagGetResponse)
	}
	for i := 1; ok && i < len(fields); i++ {
		if body, pdu, ok = inside(pdu, tagInteger); ok {
			fields[i], ok = number(body)
		}
	}
	if ok {
		variables, _, ok = inside(pdu, tagSequence)
	}
	return fields[0], fields[1], fields[2], variables, ok
}

// idOf is the id of an answer.
func idOf(packet []byte) (uint32, bool) {
	version, id, _, _, ok := answerOf(packet)
	return uint32(id), ok && version <= 1 && id > 0 && id < 1<<31
}

// verdict says what became of a variable.
type verdict uint8

const (
	asValue verdict = iota
	noObject
	noInstance
	atEnd
	// unsure leaves it to the library.
	unsure
)

// appendValue appends a value of an item to dst, as plainValue makes it.
func appendValue(dst []byte, tag byte, body []byte) ([]byte, verdict) {
	ok := true
	switch tag {
	case tagOctets:
		if printable(body) {
			return append(dst, trimZeros(body)...), asValue
		}
		return appendHex(dst, body), asValue
	case tagInteger:
		var v int64
		v, ok = number(body)
		dst = strconv.AppendInt(dst, v, 10)
	case tagCounter32, tagGauge32, tagTimeTicks:
		var v uint64
		v, ok = count(body, 4)
		dst = strconv.AppendUint(dst, v, 10)
	case tagCounter64:
		var v uint64
		v, ok = count(body, 8)
		dst = strconv.AppendUint(dst, v, 10)
	case tagOID:
		dst, ok = appendDotted(dst, body)
	case tagIPAddress:
		if ok = len(body) == 4; ok {
			for i, c := range body {
				if i > 0 {
					dst = append(dst, '.')
				}
				dst = strconv.AppendUint(dst, uint64(c), 10)
			}
		}
	case tagNoObject:
		return dst, noObject
	case tagNoInstance:
		return dst, noInstance
	case tagEndOfView:
		return dst, atEnd
	default:
		ok = false
	}
	if !ok {
		return dst, unsure
	}
	return dst, asValue
}
