package pair

import (
	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// outcome is what a reply's document says.
type outcome struct {
	reply  Reply
	cursor int64
	// hasCursor is set when the reply speaks of a cursor at all.
	hasCursor bool
}

// reply handles the start of a reply.
func (p *Pairer) reply(piece *flow.Piece, c *connection) {
	q := c.find(piece.Header.ResponseTo)
	if q == nil {
		p.counters.UnmatchedReplies++
		return
	}
	err := p.decode(piece.Header, piece.Data)
	m := &p.message
	further := q.further
	if err == nil && m.MoreToCome && m.Op == mongo.OpMsg {
		// The next reply of the chain answers this one, not the request.
		q.id, q.further = piece.Header.RequestID, true
		p.detach(q)
		p.append(q)
	} else {
		p.unlink(q)
		defer p.give(q)
	}
	if q.blind {
		p.wipe()
		return
	}
	out := outcome{reply: Reply{Documents: -1}}
	switch err {
	case nil:
		p.read(m, &out)
	case mongo.ErrShort:
		// Too little was captured to say how it ended; errors are short and would have been seen.
	default:
		p.counters.MalformedReply++
	}
	p.wipe()
	out.reply.LatencyNanos = max(0, piece.At-q.request.At)
	out.reply.Bytes = piece.Header.Length
	out.reply.Further = further
	p.trackCursor(q, &out, piece.At)
	p.answer = out.reply
	p.sink.Reply(&q.request, &p.answer)
}

// wipe overwrites what was unpacked of the message at hand.
func (p *Pairer) wipe() { p.inflater.Wipe() }

// read reads a reply's document.
func (p *Pairer) read(m *mongo.Message, out *outcome) {
	if m.Op == mongo.OpReply {
		out.reply.Documents = m.ReplyCount
		out.cursor, out.hasCursor = m.CursorID, true
		if m.ReplyFlags&(mongo.ReplyCursorNotFound|mongo.ReplyQueryFailure) != 0 {
			out.reply.Failed = true
		}
		if m.ReplyFlags&mongo.ReplyCursorNotFound != 0 {
			out.reply.Code = codeCursorNotFound
		}
	}
	if m.Op == mongo.OpCommandReply && m.Second != nil {
		var e bson.Element
		if !bson.Lookup(m.Body, "ok", &e) && bson.Lookup(m.Second, "ok", &e) {
			m.Body = m.Second
		}
	}
	if m.Body == nil {
		return
	}
	r, err := bson.NewReader(m.Body)
	if err != nil {
		p.counters.MalformedReply++
		return
	}
	var e bson.Element
	for {
		ok, err := r.Next(&e)
		if !ok && !(err == bson.ErrShort && len(e.Value) > 0) {
			if err == bson.ErrMalformed {
				p.counters.MalformedReply++
			}
			return
		}
		out.field(&e)
		if err != nil {
			return
		}
	}
}

const codeCursorNotFound = 43

// field takes what one field of a reply says.
func (out *outcome) field(e *bson.Element) {
	switch string(e.Key) {
	case "ok":
		out.reply.Failed = out.reply.Failed || !e.Truthy()
	case "code":
		if n, ok := e.Integer(); ok && out.reply.Code == 0 {
			out.reply.Code = int32(n)
		}
	case "$err":
		out.reply.Failed = true
	case "err":
		// getLastError: null is no error.
		out.reply.Failed = out.reply.Failed || e.Kind == bson.String
	case "writeErrors":
		out.failedWrites(e)
	case "writeConcernError":
		out.reply.Failed = true
		var code bson.Element
		if out.reply.Code == 0 && e.Kind == bson.Document && lookup(e.Value, "code", &code) {
			n, _ := code.Integer()
			out.reply.Code = int32(n)
		}
	case "n":
		if n, ok := e.Integer(); ok && e.Kind != bson.Boolean {
			out.reply.Documents = int(n)
		}
	case "cursor":
		out.batch(e)
	}
}

// failedWrites takes the first write error's code.
func (out *outcome) failedWrites(e *bson.Element) {
	if e.Kind != bson.Array {
		return
	}
	r, err := bson.NewReader(e.Value)
	if err != nil {
		return
	}
	var first, code bson.Element
	ok, err := r.Next(&first)
	if !ok && err == nil {
		return
	}
	out.reply.Failed = true
	if first.Kind == bson.Document && lookup(first.Value, "code", &code) {
		n, _ := code.Integer()
		out.reply.Code = int32(n)
	}
}

// batch takes the cursor's id, and counts the documents of a batch that is whole.
func (out *outcome) batch(e *bson.Element) {
	if e.Kind != bson.Document {
		return
	}
	var f bson.Element
	r, err := bson.NewReader(e.Value)
	if err != nil {
		return
	}
	for {
		ok, err := r.Next(&f)
		if !ok || err != nil {
			return
		}
		switch string(f.Key) {
		case "id":
			out.cursor, _ = f.Integer()
			out.hasCursor = true
		case "firstBatch", "nextBatch":
			if n, whole := countElements(&f); whole {
				out.reply.Documents = n
			}
		}
	}
}

func countElements(e *bson.Element) (n int, whole bool) {
	r, err := bson.NewReader(e.Value)
	if err != nil {
		return 0, false
	}
	var c bson.Element
	for {
		ok, err := r.Next(&c)
		if err != nil {
			return n, false
		}
		if !ok {
			return n, true
		}
		n++
	}
}

// trackCursor remembers a cursor that a reply opened, and forgets one that ended. The cursor's id may stand behind a large
// batch that was not looked at; then its getMores count under their own name.
func (p *Pairer) trackCursor(q *pending, out *outcome, at int64) {
	if q.cursor != 0 && (out.reply.Failed || out.hasCursor && out.cursor == 0) {
		delete(p.cursors, cursorKey{q.request.Peer.Server, q.cursor})
	}
	if !q.opens || len(q.request.Statements) == 0 || !out.hasCursor || out.cursor == 0 {
		return
	}
	key := cursorKey{q.request.Peer.Server, out.cursor}
	if known := p.cursors[key]; known != nil {
		known.at = at
		return
	}
	if len(p.cursors) >= maxCursors {
		if at-p.swept > 1e9 {
			p.Expire(at)
		}
		if len(p.cursors) >= maxCursors {
			return
		}
	}
	first := q.request.Statements[0]
	p.cursors[key] = &cursor{
		statement: shape.Statement{Shape: first.Shape, Count: 1}, collection: q.request.Collection,
		waits: q.request.Waits || q.tails, at: at,
	}
}
