// Package flow follows TCP connections that carry MongoDB messages, without putting streams together.
//
// Messages are followed by their length and the sequence numbers: what is not needed is skipped by counting, so that a body of
// 16 MB costs no memory. Only the start of a message is handed on, at most Options.HeadBytes of it, and copied only when it is
// spread over segments. After a gap the place is found again where a segment begins with a plausible message; bytes of documents
// never pass for a header. docs/design/0018-mongodb-traffic.md has the reasons.
package flow

import (
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Address packet.Address
	Port    uint16
}

// Direction says which way a message goes.
type Direction uint8

// The directions.
const (
	ToServer Direction = 0
	ToClient Direction = 1
)

// Piece is the start of a message, or a later part of one that the handler asked for.
type Piece struct {
	Flow      *Flow
	Direction Direction
	// At is the capture time of the segment with the message's first byte, Unix nanoseconds.
	At int64
	// Header is the message's header.
	Header mongo.Header
	// Offset is where Data begins in the message: 0 for its start, with the header.
	Offset int
	// Data is what is at hand; it is valid during the call. It is empty when a later part was asked for and did not come.
	Data []byte
}

// Handler takes what the table finds. Its methods are called one at a time.
type Handler interface {
	// Piece handles a piece of a message. It returns the offset in the message from which it wants more, behind the end
	// of Data, or 0 for no more.
	Piece(p *Piece) (more int)
	// Closed says that a flow ended, was forgotten, or lost its place; what is still pending on it will not be answered here.
	// lost is false when both ends closed it.
	Closed(f *Flow, lost bool)
}

// Options of a Table.
type Options struct {
	// Ports are the servers' ports. Without any, MongoDB is found by content on every port.
	Ports []uint16
	// HeadBytes is how much of a message is looked at; 0 means 16 KiB.
	HeadBytes int
	// MaxFlows bounds the table; 0 means 65,536. The longest idle flow makes room.
	MaxFlows int
	// MaxBufferBytes bounds the copies of messages that are spread over segments; 0 means 8 MiB.
	MaxBufferBytes int
	// IdleNanos is after how long a silent flow is forgotten; 0 means 10 minutes. A table that is more than a quarter full waits a
	// tenth of that, one that is more than half full a sixtieth: where many connections come, the ends of some are not captured.
	IdleNanos int64
}

// Counters say what the table met. Duplicates are no loss.
type Counters struct {
	Segments   uint64 // TCP segments with payload
	Duplicates uint64 // segments that were seen before: retransmitted, captured twice, or a NATed copy
	Gaps       uint64 // places where bytes are missing
	Reordered  uint64 // segments that came late and were put in place
	Messages   uint64
	Flows      uint64 // MongoDB flows
	Encrypted  uint64 // flows that speak TLS on a server's port
	Evicted    uint64 // flows forgotten to make room
	Idle       uint64 // flows forgotten because they were silent
	Hastened   uint64 // of these, those that a table with more room would have kept
	NoBuffer   uint64 // messages given up because MaxBufferBytes was reached
	BadHeader  uint64 // no message where one had to begin
	Unsynced   uint64 // segments passed over while looking for a message
}

type protocol uint8

const (
	unknownProtocol protocol = iota
	mongoProtocol
	encryptedProtocol
	foreignProtocol
	copyProtocol // a NATed copy of another flow
)

// Flow is one TCP connection. Tens of thousands are kept, so that it is small; what only some of them need is in held.
type Flow struct {
	// Client and Server are the ends once known.
	Client, Server Endpoint
	// Handshake is set when the connection's beginning was captured.
	Handshake bool

	oriented bool
	flipped  bool // Client is the second end of the key
	protocol protocol
	checked  uint8  // messages compared with other flows
	closing  uint8  // FINs seen, one bit a direction
	tries    uint16 // segments looked at while the protocol is unknown
	slot     int32  // index in Table.flows
	hash     uint32 // of the key
	// State belongs to the handler.
	State any

	id      uint64
	lastAt  int64
	next    *Flow // in the same place of the index
	streams [2]stream
}

type flowKey struct{ a, b Endpoint }

// key returns the ends in the order in which the index knows them.
func (f *Flow) key() flowKey {
	if f.flipped {
		return flowKey{f.Server, f.Client}
	}
	return flowKey{f.Client, f.Server}
}

// is reports whether a key is the flow's.
func (f *Flow) is(key *flowKey) bool {
	if f.flipped {
		return f.Server == key.a && f.Client == key.b
	}
	return f.Client == key.a && f.Server == key.b
}

// before orders endpoints, so that both directions of an unknown flow have one key.
func (e Endpoint) before(o Endpoint) bool {
	if e.Port != o.Port {
		return e.Port > o.Port
	}
	for i := range e.Address {
		if e.Address[i] != o.Address[i] {
			return e.Address[i] < o.Address[i]
		}
	}
	return false
}

// orient fixes which end is the client.
func (f *Flow) orient(clientIsB bool) {
	k := f.key()
	f.oriented, f.flipped = true, clientIsB
	f.Client, f.Server = k.a, k.b
	if clientIsB {
		f.Client, f.Server = k.b, k.a
	}
}
