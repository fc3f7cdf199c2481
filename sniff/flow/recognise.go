package flow

import (
	"encoding/binary"
	"hash/maphash"

	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// judgement is what the start of a segment says of a message.
type judgement uint8

const (
	noMessage judgement = iota
	tooShort            // it may be a message; more bytes will tell
	isMessage
)

// judge says whether a message begins at the start of head. Of an unknown flow it finds out what it speaks.
func (t *Table) judge(f *Flow, side int, head []byte) judgement {
	s := &f.streams[side]
	fresh := f.protocol == unknownProtocol && f.Handshake && s.synced // the connection's first bytes
	h, err := mongo.DecodeHeader(head)
	if err != nil && f.protocol == unknownProtocol && isTLS(head, f.tries < tlsTries) {
		t.encrypted(f)
		return noMessage
	}
	if err == mongo.ErrShort && fresh {
		return tooShort
	}
	if err != nil {
		return t.foreign(f)
	}
	if known := fresh && f.oriented && t.serves(f.Server.Port); !known {
		switch {
		case len(head) < probeBytes && h.Length >= probeBytes:
			return tooShort
		case !mongo.Plausible(h, head):
			return t.foreign(f)
		}
	}
	if f.protocol == mongoProtocol {
		return isMessage
	}
	if !f.oriented {
		fromServer, known := senderIsServer(f, side, h, head)
		if !known {
			return noMessage
		}
		f.orient((side == 1) != fromServer)
	}
	f.protocol = mongoProtocol
	t.counters.Flows++
	return isMessage
}

// foreign counts a segment of an unknown flow that begins no message, and gives the flow up after many.
func (t *Table) foreign(f *Flow) judgement {
	if f.protocol != unknownProtocol {
		return noMessage
	}
	if f.tries++; t.detect && f.tries >= maxTries {
		f.protocol = foreignProtocol
	}
	return noMessage
}

// isTLS reports whether a TLS record begins at the start of b, which is no message: of a handshake, or of data where little was seen of
// the connection yet.
func isTLS(b []byte, first bool) bool {
	if len(b) < 5 || b[1] != 3 || b[2] > 4 {
		return len(b) >= 3 && b[0] == tlsHandshake && b[1] == 3 && b[2] <= 4
	}
	return b[0] == tlsHandshake || first && b[0] == tlsData && binary.BigEndian.Uint16(b[3:]) <= maxRecordBytes
}

// The types of TLS records (RFC 8446, 5.1), and how long one may be.
const (
	tlsHandshake   = 22
	tlsData        = 23
	maxRecordBytes = 1<<14 + 256
	// tlsTries is in how many segments a record of data is looked for. A capture may begin within a record; later, bytes of documents
	// would be asked often enough to look like one.
	tlsTries = 16
)

// encrypted notes that a flow speaks TLS; it counts where a MongoDB server is known or likely.
func (t *Table) encrypted(f *Flow) {
	f.protocol = foreignProtocol
	client, server := f.Client.Port, f.Server.Port
	if t.serves(client) || t.serves(server) || t.detect && (usualPort(client) || usualPort(server)) {
		f.protocol = encryptedProtocol
		t.counters.Encrypted++
	}
}

// usualPort reports whether a port is one that people give MongoDB: 27017 to 27020 are the defaults, and further servers on a machine
// mostly have others that begin with 27. Systems do not give these to clients.
func usualPort(p uint16) bool { return p >= 27000 && p <= 27999 }

// senderIsServer tells from a message which end sent it. responseTo says little: old clients set it on requests, and the reply
// to a client's request number 0 has 0.
func senderIsServer(f *Flow, side int, h mongo.Header, payload []byte) (server, known bool) {
	switch h.Op {
	case mongo.OpReply, mongo.OpCommandReply:
		return true, true
	case mongo.OpCompressed:
		if server, known = byPort(f, side); known {
			return server, true
		}
		return h.ResponseTo != 0, true
	case mongo.OpMsg:
	default:
		return false, true
	}
	var m mongo.Message
	_ = mongo.Decode(payload, &m)
	if m.SequenceCount > 0 {
		return false, true
	}
	var e bson.Element
	switch {
	case m.Body == nil:
	case bson.Lookup(m.Body, "$db", &e), bson.Lookup(m.Body, "lsid", &e):
		return false, true
	case bson.Lookup(m.Body, "ok", &e), bson.Lookup(m.Body, "cursor", &e) && isBatch(&e):
		return true, true
	}
	return byPort(f, side)
}

// isBatch tells the cursor of a reply from that of a request, which has a batch size only.
func isBatch(cursor *bson.Element) bool {
	var e bson.Element
	if cursor.Kind != bson.Document {
		return false
	}
	r, err := bson.NewReader(cursor.Value)
	if err != nil {
		return false
	}
	ok, err := r.Next(&e)
	return (ok || err == bson.ErrShort) && string(e.Key) != "batchSize" && len(e.Key) > 0
}

// byPort tells the server by its port, where one end has a usual one and the other has not.
func byPort(f *Flow, side int) (server, known bool) {
	k := f.key()
	a, b := usualPort(k.a.Port), usualPort(k.b.Port)
	return a == (side == 0), a != b
}

// isCopy reports whether the message at the start of payload was just seen on another flow: the same sequence number and bytes
// under other addresses, as NAT and bridges show them.
func (t *Table) isCopy(f *Flow, sequence uint32, payload []byte, at int64) bool {
	if f.checked >= copyChecks {
		return false
	}
	f.checked++
	var head [64]byte
	binary.LittleEndian.PutUint32(head[:], sequence)
	n := copy(head[4:], payload)
	hash := maphash.Bytes(t.seed, head[:4+n])
	slot := &t.recent[hash%recentSize]
	if slot.hash == hash && slot.flow != f.id && at-slot.at < copyWindow && at >= slot.at {
		return true
	}
	*slot = recentHead{hash: hash, at: at, flow: f.id}
	return false
}
