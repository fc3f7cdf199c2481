// Package pair joins MongoDB requests with their replies and says of each what it was, how long it took and how it ended.
//
// Requests and replies are matched by connection and request id, compared as unsigned 32-bit numbers. What is never answered
// (fire and forget), answered many times (exhaust) or answered late on purpose (hello, tailable cursors) is told apart, because mixing it
// in would make load and latency meaningless.
package pair

import (
	"bytes"

	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// Request is one request as it was met. Its strings and shapes may be kept; Statements is valid during the call.
type Request struct {
	// At is the capture time of its first byte, Unix nanoseconds.
	At int64
	// Peer is who asked whom.
	Peer                          *Peer
	Command, Database, Collection string
	// Statements are the distinct statements and how often each occurs. For a getMore they are those of the command that opened the
	// cursor.
	Statements []shape.Statement
	// Bytes is the request's length on the wire, as the message header says.
	Bytes int
	// Monitoring: hello and heartbeats. Cluster: between members. Waits: it waits for data on purpose and is no load.
	Monitoring, Cluster, Waits bool
	// Unacknowledged: no reply will come.
	Unacknowledged bool
}

// Peer is what all requests of a connection from one application share.
type Peer struct {
	// Server and Client are the ends of the connection.
	Server, Client flow.Endpoint
	// Application is the name from the connection's handshake; empty when it was not seen.
	Application string
	// Value is a place where the sink keeps what belongs to the peer.
	Value any
}

// Reply is how a request ended.
type Reply struct {
	// LatencyNanos is the time from the request's first byte to the reply's first.
	LatencyNanos int64
	Bytes        int
	// Failed is set for every kind of error: ok 0, write errors, write concern errors, $err.
	Failed bool
	// Code is the error's number, 0 when it has none.
	Code int32
	// Documents is the number of documents that the reply says it returns or changed; -1 when it does not say.
	Documents int
	// Further is set for the second and later replies to one request (exhaust); they have no latency.
	Further bool
}

// Sink takes requests and replies. Request is called for every request; Reply follows for those that were answered.
type Sink interface {
	Request(r *Request)
	Reply(r *Request, reply *Reply)
}

// Counters say what could not be joined.
type Counters struct {
	UnmatchedRequests, UnmatchedReplies uint64
	// Malformed counts messages that could not be read, by what was wrong.
	MalformedMessage, MalformedCommand, MalformedReply, MalformedCompression uint64
	// Unreadable counts requests of which too little was captured to tell what they are.
	Unreadable uint64
	// NoRoom counts requests that were forgotten before their reply came because too many waited.
	NoRoom uint64
}

const (
	// maxPending bounds the requests that wait on one connection. Modern drivers have one at a time, old ones send on.
	maxPending = 250
	// maxWaiting bounds those of all connections; the longest waiting make room.
	maxWaiting = 1 << 15
	// maxHeadBytes bounds the copies of commands that are put together from parts.
	maxHeadBytes = 4 << 20
	// maxCursors bounds the cursors that are remembered; cursorNanos is how long one lives without use, as on a server.
	maxCursors  = 1 << 15
	cursorNanos = 600e9
	// inflateBytes is how much of a compressed message is unpacked, inflateMore how much when its command is not within that.
	inflateBytes = 16 << 10
	inflateMore  = 1 << 20
	// maxOpening bounds the replies whose cursor's id is still on its way.
	maxOpening = 4096
)

// Pairer joins requests with replies. It belongs to one goroutine.
type Pairer struct {
	sink     Sink
	finder   *shape.Finder
	inflater *mongo.Inflater
	cursors  map[cursorKey]*cursor
	counters Counters
	// The requests that wait on all connections, and how many.
	oldest, newest *pending
	waiting        int
	heads          int   // bytes of all connections' parts
	opening        int   // connections on which a cursor's id is on its way
	swept          int64 // when cursors were expired

	// What is at hand, kept here because what is handed to an interface would be allocated each time.
	message mongo.Message
	command shape.Command
	answer  Reply
	free    []*pending
}

type cursorKey struct {
	server flow.Endpoint
	id     int64
}

// cursor remembers which command opened a cursor.
type cursor struct {
	statement  shape.Statement
	collection string
	waits      bool
	at         int64
}

// New returns a pairer.
func New(finder *shape.Finder, sink Sink) (*Pairer, error) {
	inflater, err := mongo.NewInflater(inflateBytes)
	if err != nil {
		return nil, err
	}
	return &Pairer{sink: sink, finder: finder, inflater: inflater, cursors: map[cursorKey]*cursor{}}, nil
}

// Counters returns what was counted so far.
func (p *Pairer) Counters() Counters { return p.counters }

// Waiting returns how many requests wait for their reply.
func (p *Pairer) Waiting() int { return p.waiting }

// connection is the state of one flow.
type connection struct {
	internal bool
	// pending is the newest of the requests that wait, count how many do.
	count   uint8
	pending *pending
	// parts is a message whose command is longer than what is looked at, or nil.
	parts *parts
	// opening is the cursor whose id comes behind a long batch, or nil.
	opening *cursor
	// peer is that of the application; first as long as no other takes over.
	peer  *Peer
	first Peer
}

// pending is a request that waits for its reply.
type pending struct {
	id      uint32
	further bool
	blind   bool // nobody knows what it is; its reply is expected all the same
	opens   bool // the reply may open a cursor
	tails   bool // which will wait for data on purpose
	plain   bool // the reply is documents of a collection, whose fields say nothing of it
	streams bool // a reply that leaves the cursor open is followed by the next one
	cursor  int64
	request Request
	// connection is where it waits, before an older request; older and newer are its neighbours on all connections.
	connection   *connection
	before       *pending
	older, newer *pending
}

// Piece implements flow.Handler.
func (p *Pairer) Piece(piece *flow.Piece) int {
	c, _ := piece.Flow.State.(*connection)
	if c == nil {
		c = &connection{first: Peer{Server: piece.Flow.Server, Client: piece.Flow.Client}}
		c.peer = &c.first
		piece.Flow.State = c
	}
	if piece.Direction == flow.ToClient {
		if piece.Offset > 0 {
			p.opened(piece, c)
			return 0
		}
		return p.reply(piece, c)
	}
	if piece.Offset > 0 {
		return p.rest(piece, c)
	}
	return p.request(piece, c)
}

// decode reads a message's start, unpacking it if need be. On an error, what is at hand of it may still be in p.message.
func (p *Pairer) decode(h mongo.Header, data []byte) error {
	body := data[mongo.HeaderBytes:]
	if h.Op != mongo.OpCompressed {
		return mongo.DecodeBody(h, body, &p.message)
	}
	plain, inflated, err := p.inflater.Inflate(h, body)
	if err != nil {
		// A header alone tells which request a reply answers.
		_ = mongo.DecodeBody(plain, nil, &p.message)
		p.message.BodyAt = 0
		return err
	}
	err = mongo.DecodeBody(plain, inflated, &p.message)
	p.message.Compressed = true
	return err
}

// request handles the start of a request and returns where more of it is needed.
func (p *Pairer) request(piece *flow.Piece, c *connection) int {
	if piece.Header.Op == mongo.OpReply || piece.Header.Op == mongo.OpCommandReply {
		p.counters.MalformedCommand++
		return 0
	}
	more := p.look(piece, c)
	p.wipe()
	return more
}

// look reads a request's start.
func (p *Pairer) look(piece *flow.Piece, c *connection) int {
	m := &p.message
	err := p.decode(piece.Header, piece.Data)
	if m.Compressed && (m.Body == nil || bodyCut(m) || namesBehind(m)) {
		p.inflater.Limit = inflateMore
		err = p.decode(piece.Header, piece.Data)
		p.inflater.Limit = inflateBytes
	}
	if m.Op == mongo.OpMsg && !m.Compressed && len(piece.Data) < piece.Header.Length && unfinished(m) {
		if p.begin(piece, c) {
			return c.parts.resume(piece.Header.Length)
		}
	}
	p.decided(piece, c, err, piece.At)
	return 0
}

// unfinished reports whether what attributes the command lies behind what is there.
func unfinished(m *mongo.Message) bool {
	return m.Body == nil && m.BodyAt > 0 || m.Body != nil && (bodyCut(m) || namesBehind(m))
}

// namesBehind reports whether a bulkWrite's namespaces come in a section behind what is there: behind its operations.
func namesBehind(m *mongo.Message) bool {
	const name = "bulkWrite\x00"
	if m.BodyAt == 0 || len(m.Body) < 5+len(name) || string(m.Body[5:5+len(name)]) != name {
		return false
	}
	for i := range m.SequenceCount {
		if string(m.Sequences[i].Identifier) == "nsInfo" {
			return false
		}
	}
	return true
}

// bodyCut reports whether the body at hand is longer than what is there of it.
func bodyCut(m *mongo.Message) bool {
	n, err := bson.Length(m.Body)
	return err == nil && n > len(m.Body)
}

// decided finds out what the message at hand is and reports it; err is how reading it ended.
func (p *Pairer) decided(piece *flow.Piece, c *connection, err error, at int64) {
	if err != nil && p.message.Body == nil {
		p.unreadable(err)
		p.blind(piece, c)
		return
	}
	if !p.finder.Find(&p.message, &p.command) {
		p.counters.MalformedCommand++
		p.blind(piece, c)
		return
	}
	p.report(piece, c, at)
}

func (p *Pairer) unreadable(err error) {
	switch err {
	case mongo.ErrShort:
		p.counters.Unreadable++
	case mongo.ErrMalformed:
		p.counters.MalformedMessage++
	default:
		p.counters.MalformedCompression++
	}
}

// blind remembers a request that could not be read, so that its reply does not count as one without a request.
func (p *Pairer) blind(piece *flow.Piece, c *connection) {
	switch piece.Header.Op {
	case mongo.OpMsg, mongo.OpQuery, mongo.OpCommand, mongo.OpCompressed, mongo.OpGetMore:
	default:
		return
	}
	if piece.Header.Op == mongo.OpMsg && p.message.MoreToCome {
		return
	}
	q := p.take()
	q.id, q.blind = piece.Header.RequestID, true
	p.wait(c, q)
}

// report reports a request and remembers it until its reply comes.
func (p *Pairer) report(piece *flow.Piece, c *connection, at int64) {
	m, cmd := &p.message, &p.command
	if cmd.Nameless {
		p.counters.Unreadable++
		p.blind(piece, c)
		return
	}
	if cmd.Application != "" && cmd.Application != c.peer.Application {
		c.rename(cmd.Application)
	}
	c.internal = c.internal || cmd.Internal
	q := p.take()
	q.id, q.cursor, q.tails, q.opens = piece.Header.RequestID, cmd.CursorID, cmd.Awaits, !cmd.Monitoring && !cmd.Silent
	q.plain = m.Op == mongo.OpGetMore || m.Op == mongo.OpQuery && !bytes.HasSuffix(m.Namespace, []byte(".$cmd"))
	q.streams = q.plain && m.ExhaustAllowed
	q.request = Request{
		At: at, Peer: c.peer, Command: cmd.Name, Database: cmd.Database, Collection: cmd.Collection, Statements: cmd.Statements,
		Bytes: piece.Header.Length, Monitoring: cmd.Monitoring, Cluster: cmd.Cluster || c.internal && !cmd.Monitoring, Waits: cmd.Monitoring,
		Unacknowledged: m.MoreToCome,
	}
	r := &q.request
	p.useCursor(r, cmd)
	p.sink.Request(r)
	if m.MoreToCome || m.Op == mongo.OpKillCursors {
		p.give(q)
		return
	}
	if len(r.Statements) == 1 && r.Statements[0].Count == 1 {
		r.Statements = r.Statements[0].Shape.Single()
	} else {
		r.Statements = append([]shape.Statement(nil), r.Statements...)
	}
	p.wait(c, q)
}

// rename gives a connection's peer its application's name. What waits keeps the peer that it has.
func (c *connection) rename(application string) {
	if c.pending == nil && c.peer == &c.first {
		c.first.Application, c.first.Value = application, nil
		return
	}
	c.peer = &Peer{Server: c.first.Server, Client: c.first.Client, Application: application}
}

// Closed implements flow.Handler.
func (p *Pairer) Closed(f *flow.Flow, _ bool) {
	c, _ := f.State.(*connection)
	if c == nil {
		return
	}
	for c.pending != nil {
		p.forgo(c.pending)
	}
	if c.parts != nil {
		p.counters.Unreadable++
		p.drop(c)
	}
	p.unopen(c)
}

// lookup is bson.Lookup for a document that may be nil.
func lookup(doc []byte, key string, e *bson.Element) bool {
	return doc != nil && bson.Lookup(doc, key, e)
}
