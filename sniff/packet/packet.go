// Package packet decodes captured frames down to TCP: Ethernet with VLAN and QinQ tags, Linux cooked capture (SLL, SLL2), BSD
// loopback, raw IP; IPv4 with options, IPv6 with extension headers; TCP.
//
// It reads only what the sniffer needs, never allocates, and never verifies checksums: with offloading the kernel hands
// packets over before their checksums exist. Sources: IEEE 802.3 and 802.1Q, RFC 791, RFC 8200, RFC 9293, and the link types of
// tcpdump.org/linktypes.html.
package packet

import "encoding/binary"

// LinkType says what a frame begins with. The numbers are those of pcap files.
type LinkType uint32

// The link types that are understood.
const (
	Null     LinkType = 0   // BSD loopback: address family in the byte order of the machine that captured
	Ethernet LinkType = 1   // IEEE 802.3
	RawBSD   LinkType = 12  // raw IP, as some BSDs write it
	Raw      LinkType = 101 // raw IP
	Loop     LinkType = 108 // OpenBSD loopback: address family in network order
	SLL      LinkType = 113 // Linux cooked capture
	RawIPv4  LinkType = 228
	RawIPv6  LinkType = 229
	SLL2     LinkType = 276 // Linux cooked capture, version 2
)

// Known reports whether frames of the link type can be decoded.
func (l LinkType) Known() bool {
	switch l {
	case Null, Ethernet, RawBSD, Raw, Loop, SLL, RawIPv4, RawIPv6, SLL2:
		return true
	}
	return false
}

// Verdict says what Decode found.
type Verdict uint8

// The verdicts. All but TCP leave the Packet's fields undefined.
const (
	TCP       Verdict = iota // a TCP segment
	Other                    // neither IPv4 nor IPv6, or another protocol than TCP
	Fragment                 // an IP fragment; ports and sequence numbers cannot be trusted
	Truncated                // the capture ends within the headers
	Malformed                // a length or version that cannot be
	verdictCount
)

// VerdictCount is the number of verdicts, for tables of counters.
const VerdictCount = int(verdictCount)

// String names the verdict as metrics do.
func (v Verdict) String() string {
	switch v {
	case TCP:
		return "tcp"
	case Other:
		return "other"
	case Fragment:
		return "fragment"
	case Truncated:
		return "truncated"
	}
	return "malformed"
}

// The TCP flags.
const (
	FIN uint8 = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// Address is an IPv6 address, or an IPv4 address mapped into IPv6 (::ffff:a.b.c.d).
type Address [16]byte

// Packet is one decoded TCP segment. Payload aliases the frame.
type Packet struct {
	Source, Destination         Address
	SourcePort, DestinationPort uint16
	Sequence, Acknowledgement   uint32
	Flags                       uint8
	// Outgoing is set when the frame says that this machine sent it (cooked captures only).
	Outgoing bool
	// Payload is what was captured of the segment's payload.
	Payload []byte
	// PayloadBytes is the payload's length on the wire, at least len(Payload).
	PayloadBytes int
}

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86DD
	etherVLAN = 0x8100
	etherQinQ = 0x88A8
	etherOld  = 0x9100

	protocolTCP = 6

	// maxTags and maxExtensions bound the loops over VLAN tags and IPv6 extension headers.
	maxTags       = 4
	maxExtensions = 16
)

// Decode reads frame into p. wireBytes is the frame's length on the wire, at least len(frame); it matters only for segments
// whose IP header gives no length (offloaded sends).
func Decode(link LinkType, frame []byte, wireBytes int, p *Packet) Verdict {
	p.Outgoing = false
	if link == Ethernet && len(frame) >= 14 {
		switch etherType := binary.BigEndian.Uint16(frame[12:14]); etherType {
		case etherIPv4:
			return decodeIPv4(frame[14:], wireBytes-14, p)
		case etherIPv6:
			return decodeIPv6(frame[14:], wireBytes-14, p)
		default:
			return decodeTagged(etherType, frame[14:], wireBytes-14, p)
		}
	}
	return decodeOtherLink(link, frame, wireBytes, p)
}

// decodeTagged follows VLAN tags; rest begins behind the ether type.
func decodeTagged(etherType uint16, rest []byte, wireBytes int, p *Packet) Verdict {
	for range maxTags {
		switch etherType {
		case etherIPv4:
			return decodeIPv4(rest, wireBytes, p)
		case etherIPv6:
			return decodeIPv6(rest, wireBytes, p)
		case etherVLAN, etherQinQ, etherOld:
		default:
			return Other
		}
		if len(rest) < 4 {
			return Truncated
		}
		etherType = binary.BigEndian.Uint16(rest[2:4])
		rest, wireBytes = rest[4:], wireBytes-4
	}
	return Malformed
}

// decodeOtherLink handles every link type but plain Ethernet.
func decodeOtherLink(link LinkType, frame []byte, wireBytes int, p *Packet) Verdict {
	header := 0
	var etherType uint16
	switch link {
	case Null, Loop:
		header = 4
	case SLL:
		header = 16
		if len(frame) >= header {
			p.Outgoing = binary.BigEndian.Uint16(frame) == packetOutgoing
			etherType = binary.BigEndian.Uint16(frame[14:])
		}
	case SLL2:
		header = 20
		if len(frame) >= header {
			p.Outgoing = frame[10] == packetOutgoing
			etherType = binary.BigEndian.Uint16(frame)
		}
	case Raw, RawBSD, RawIPv4, RawIPv6:
	case Ethernet:
		return Truncated
	default:
		return Other
	}
	if len(frame) < header {
		return Truncated
	}
	rest, wireBytes := frame[header:], wireBytes-header
	if etherType != 0 {
		return decodeTagged(etherType, rest, wireBytes, p)
	}
	// The address family of loopback frames differs between systems; the version in the IP header does not.
	if len(rest) == 0 {
		return Truncated
	}
	switch rest[0] >> 4 {
	case 4:
		return decodeIPv4(rest, wireBytes, p)
	case 6:
		return decodeIPv6(rest, wireBytes, p)
	}
	return Other
}

// packetOutgoing is Linux' PACKET_OUTGOING in cooked captures.
const packetOutgoing = 4

func decodeIPv4(b []byte, wireBytes int, p *Packet) Verdict {
	if len(b) < 20 {
		return Truncated
	}
	b0 := b[0]
	header := int(b0&0x0f) * 4
	if b0>>4 != 4 || header < 20 {
		return Malformed
	}
	if b[9] != protocolTCP {
		return Other
	}
	if binary.BigEndian.Uint16(b[6:8])&0x3fff != 0 {
		return Fragment
	}
	total := int(binary.BigEndian.Uint16(b[2:4]))
	if total == 0 {
		total = wireBytes
	}
	if total < header {
		return Malformed
	}
	if len(b) < header {
		return Truncated
	}
	// The mapped form ::ffff:a.b.c.d, written as two words each: a copy of a prepared prefix costs more.
	binary.NativeEndian.PutUint64(p.Source[0:8], 0)
	binary.BigEndian.PutUint64(p.Source[8:16], 0x0000ffff00000000|uint64(binary.BigEndian.Uint32(b[12:16])))
	binary.NativeEndian.PutUint64(p.Destination[0:8], 0)
	binary.BigEndian.PutUint64(p.Destination[8:16], 0x0000ffff00000000|uint64(binary.BigEndian.Uint32(b[16:20])))
	return decodeTCP(b[header:], total-header, p)
}

// The IPv6 extension headers that may stand before TCP.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extAuth        = 51
	extDestination = 60
	extMobility    = 135
)

func decodeIPv6(b []byte, wireBytes int, p *Packet) Verdict {
	if len(b) < 40 {
		return Truncated
	}
	if b[0]>>4 != 6 {
		return Malformed
	}
	total := int(binary.BigEndian.Uint16(b[4:6]))
	if total == 0 {
		total = wireBytes - 40
	}
	next := b[6]
	copy(p.Source[:], b[8:24])
	copy(p.Destination[:], b[24:40])
	rest := b[40:]
	for range maxExtensions {
		if next == protocolTCP {
			return decodeTCP(rest, total, p)
		}
		size, verdict := extensionBytes(next, rest)
		if verdict != TCP {
			return verdict
		}
		if size > total {
			return Malformed
		}
		if size > len(rest) {
			return Truncated
		}
		next = rest[0]
		rest, total = rest[size:], total-size
	}
	return Malformed
}

// extensionBytes returns the length of the extension header of type next at the start of rest.
func extensionBytes(next byte, rest []byte) (int, Verdict) {
	switch next {
	case extFragment:
		if len(rest) < 8 {
			return 0, Truncated
		}
		if binary.BigEndian.Uint16(rest[2:4])&0xfff9 != 0 {
			return 0, Fragment
		}
		return 8, TCP
	case extHopByHop, extRouting, extDestination, extMobility, extAuth:
		if len(rest) < 2 {
			return 0, Truncated
		}
		if next == extAuth {
			return (int(rest[1]) + 2) * 4, TCP
		}
		return (int(rest[1]) + 1) * 8, TCP
	}
	return 0, Other
}

func decodeTCP(b []byte, total int, p *Packet) Verdict {
	if len(b) < 20 {
		return Truncated
	}
	header := int(b[12]>>4) * 4
	if header < 20 || header > total {
		return Malformed
	}
	if len(b) < header {
		return Truncated
	}
	p.SourcePort = binary.BigEndian.Uint16(b[0:2])
	p.DestinationPort = binary.BigEndian.Uint16(b[2:4])
	p.Sequence = binary.BigEndian.Uint32(b[4:8])
	p.Acknowledgement = binary.BigEndian.Uint32(b[8:12])
	p.Flags = b[13]
	p.PayloadBytes = total - header
	payload := b[header:]
	if len(payload) > p.PayloadBytes {
		payload = payload[:p.PayloadBytes]
	}
	p.Payload = payload
	return TCP
}
