// Package pair joins MongoDB requests with their replies and says of each what it was, how long it took and how it ended.
//
// Requests and replies are matched by connection and request id, compared as unsigned 32-bit numbers. What is never answered
// (fire and forget), answered many times (exhaust) or answered late on purpose (hello, tailable cursors) is told apart, because mixing it
// in would make load and latency meaningless.
package pair

import (
	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// Request is one request as it was met. Its strings and shapes may be kept; Statements is valid during the call.
type Request struct {
	// At is the capture time of its first byte, Unix nanoseconds.
	At int64
	// Server and Client are the ends of its connection.
	Server, Client flow.Endpoint
	// Application is the name from the connection's handshake; empty when it was not seen.
	Application                   string
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
}

const (
	// maxPending bounds the requests that wait on one connection; modern drivers have one at a time.
	maxPending = 64
	// maxCursors bounds the cursors that are remembered; cursorNanos is how long one lives without use, as on a server.
	maxCursors  = 1 << 16
	cursorNanos = 600e9
	// inflateBytes is how much of a compressed message is unpacked.
	inflateBytes = 16 << 10
)

// Pairer joins requests with replies. It belongs to one goroutine.
type Pairer struct {
	sink     Sink
	finder   *shape.Finder
	inflater *mongo.Inflater
	cursors  map[cursorKey]*cursor
	counters Counters

	message mongo.Message
	command shape.Command
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

// connection is the state of one flow.
type connection struct {
	application string
	pending     []pending
	// head is a copy of a message's start whose rest was asked for.
	head   []byte
	headAt int64
	header mongo.Header
}

// pending is a request that waits for its reply.
type pending struct {
	id      uint32
	further bool
	request Request
	opens   bool // the reply may open a cursor
	tails   bool // which will wait for data on purpose
}

// Piece implements flow.Handler.
func (p *Pairer) Piece(piece *flow.Piece) int {
	c, _ := piece.Flow.State.(*connection)
	if c == nil {
		c = &connection{}
		piece.Flow.State = c
	}
	if piece.Direction == flow.ToClient {
		if piece.Offset == 0 {
			p.reply(piece, c)
		}
		return 0
	}
	if piece.Offset > 0 {
		p.rest(piece, c)
		return 0
	}
	return p.request(piece, c)
}

// decode reads a message's start, unpacking it if need be. ok is false when it cannot be read; what is at hand of it may still be
// in p.message.
func (p *Pairer) decode(h mongo.Header, data []byte) error {
	body := data[mongo.HeaderBytes:]
	if h.Op != mongo.OpCompressed {
		return mongo.DecodeBody(h, body, &p.message)
	}
	plain, inflated, err := p.inflater.Inflate(h, body)
	if err != nil {
		p.message.Header = plain
		return err
	}
	err = mongo.DecodeBody(plain, inflated, &p.message)
	p.message.Compressed = true
	return err
}

// request handles the start of a request and returns where more of it is needed.
func (p *Pairer) request(piece *flow.Piece, c *connection) int {
	err := p.decode(piece.Header, piece.Data)
	m := &p.message
	if err != nil && (m.Op != mongo.OpMsg || m.BodyAt == 0) {
		p.unreadable(err)
		return 0
	}
	if m.Op == mongo.OpReply || m.Op == mongo.OpCommandReply {
		p.counters.MalformedCommand++
		return 0
	}
	whole := len(piece.Data) >= piece.Header.Length || m.Compressed
	if m.Body == nil && m.BodyAt > 0 && !whole {
		c.keep(piece)
		return m.BodyAt
	}
	if !p.finder.Find(m, &p.command) {
		p.counters.MalformedCommand++
		return 0
	}
	if p.command.NeedAt > 0 && !whole && m.Body != nil {
		if at := p.bodyOffset(piece.Data) + p.command.NeedAt; at > len(piece.Data) && at < piece.Header.Length {
			c.keep(piece)
			return at
		}
	}
	p.met(piece, c, piece.At)
	return 0
}

// bodyOffset returns where the body document, a part of data, begins in it.
func (p *Pairer) bodyOffset(data []byte) int {
	return cap(data) - cap(p.message.Body)
}

// keep copies a message's start until its rest comes.
func (c *connection) keep(piece *flow.Piece) {
	c.head = append(c.head[:0], piece.Data...)
	c.headAt, c.header = piece.At, piece.Header
}

// rest handles a later part of a request: the fields or the section that were asked for.
func (p *Pairer) rest(piece *flow.Piece, c *connection) {
	err := p.decode(c.header, c.head)
	m := &p.message
	if m.Body == nil {
		if err = mongo.DecodeRest(piece.Offset, piece.Data, m); err != nil {
			p.unreadable(err)
			return
		}
	}
	if !p.finder.Find(m, &p.command) {
		p.counters.MalformedCommand++
		return
	}
	if p.command.NeedAt > 0 {
		p.finder.Complete(m, piece.Data, &p.command)
	}
	p.met(piece, c, c.headAt)
	if cap(c.head) > 4096 {
		c.head = nil
	}
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

// met reports a request and remembers it until its reply comes.
func (p *Pairer) met(piece *flow.Piece, c *connection, at int64) {
	m, cmd := &p.message, &p.command
	if cmd.Application != "" {
		c.application = cmd.Application
	}
	r := Request{
		At: at, Server: piece.Flow.Server, Client: piece.Flow.Client, Application: c.application,
		Command: cmd.Name, Database: cmd.Database, Collection: cmd.Collection, Statements: cmd.Statements,
		Bytes: piece.Header.Length, Monitoring: cmd.Monitoring, Cluster: cmd.Cluster, Waits: cmd.Monitoring,
		Unacknowledged: m.MoreToCome,
	}
	p.useCursor(&r, cmd)
	p.sink.Request(&r)
	if m.MoreToCome {
		return
	}
	if m.Op == mongo.OpKillCursors {
		return
	}
	if len(c.pending) >= maxPending {
		p.counters.UnmatchedRequests++
		copy(c.pending, c.pending[1:])
		c.pending = c.pending[:len(c.pending)-1]
	}
	r.Statements = append([]shape.Statement(nil), r.Statements...)
	c.pending = append(c.pending, pending{id: piece.Header.RequestID, request: r, opens: !cmd.Monitoring && !cmd.Silent, tails: cmd.Awaits})
}

// useCursor gives a getMore the shape of the command that opened its cursor.
func (p *Pairer) useCursor(r *Request, cmd *shape.Command) {
	if cmd.Name != "getMore" {
		return
	}
	if origin := p.cursors[cursorKey{r.Server, cmd.CursorID}]; origin != nil {
		origin.at = r.At
		cmd.Statements = append(cmd.Statements[:0], origin.statement)
		r.Statements, r.Waits = cmd.Statements, origin.waits
		if r.Collection == "" {
			r.Collection = origin.collection
		}
		return
	}
	p.finder.Bare(cmd)
	r.Statements = cmd.Statements
}

// Closed implements flow.Handler.
func (p *Pairer) Closed(f *flow.Flow, _ bool) {
	c, _ := f.State.(*connection)
	if c == nil {
		return
	}
	for i := range c.pending {
		if q := &c.pending[i]; !q.further && !q.request.Monitoring {
			p.counters.UnmatchedRequests++
		}
	}
	c.pending = nil
}

// Expire forgets cursors that were not used for ten minutes.
func (p *Pairer) Expire(now int64) {
	for k, c := range p.cursors {
		if now-c.at > cursorNanos {
			delete(p.cursors, k)
		}
	}
}

// lookup is bson.Lookup for a document that may be nil.
func lookup(doc []byte, key string, e *bson.Element) bool {
	return doc != nil && bson.Lookup(doc, key, e)
}
