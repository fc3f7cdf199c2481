package pair

import (
	"tidemark/sniff/flow"
	"tidemark/wire/bson"
	"tidemark/wire/mongo"
)

// outcome is what a reply's document says.
type outcome struct {
	reply  Reply
	cursor int64
	// hasCursor is set when the reply speaks of a cursor at all.
	hasCursor bool
	// document is the reply's field "cursor".
	document []byte
	// behind is set when the cursor's id comes behind a batch that is cut off: how many bytes of the batch are missing.
	behind int
}

// reply handles the start of a reply and returns where more of it is needed.
func (p *Pairer) reply(piece *flow.Piece, c *connection) int {
	q := c.find(piece.Header.ResponseTo)
	if q == nil {
		p.counters.UnmatchedReplies++
		return 0
	}
	err := p.decode(piece.Header, piece.Data)
	m := &p.message
	further := q.further
	if err == nil && (m.Op == mongo.OpMsg && m.MoreToCome || m.Op == mongo.OpReply && q.streams && m.CursorID != 0) {
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
		return 0
	}
	out := outcome{reply: Reply{Documents: -1}}
	switch err {
	case nil:
		p.read(m, q.plain, &out)
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
	if out.behind == 0 || out.hasCursor || m.Compressed || !q.opensNew() {
		return 0
	}
	return p.open(piece, c, q, out.behind)
}

// wipe overwrites what was unpacked of the message at hand.
func (p *Pairer) wipe() { p.inflater.Wipe() }

// read reads a reply's document. Of plain documents of a collection, only the error that a server puts in their place says something.
func (p *Pairer) read(m *mongo.Message, plain bool, out *outcome) {
	if m.Op == mongo.OpReply {
		out.reply.Documents = m.ReplyCount
		if plain {
			out.cursor, out.hasCursor = m.CursorID, true
		}
		if m.ReplyFlags&(mongo.ReplyCursorNotFound|mongo.ReplyQueryFailure) != 0 {
			out.reply.Failed = true
		}
		if m.ReplyFlags&mongo.ReplyCursorNotFound != 0 {
			out.reply.Code = codeCursorNotFound
		}
		if plain && m.ReplyFlags&mongo.ReplyQueryFailure == 0 {
			out.plainError(m)
			return
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

// plainError looks for an error where a document of a collection may stand: servers before 2.6 set no flag. No stored field begins with "$".
func (out *outcome) plainError(m *mongo.Message) {
	const name = "$err\x00"
	if len(m.Body) > 5+len(name) && string(m.Body[5:5+len(name)]) == name {
		out.reply.Failed = true
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
	case "nErrors":
		if n, ok := e.Integer(); ok && n > 0 {
			out.failedOperations()
		}
	}
}

// failedOperations takes the first error's code of a bulkWrite, whose cursor holds the outcomes of its operations.
func (out *outcome) failedOperations() {
	out.reply.Failed = true
	var e, code bson.Element
	if !lookup(out.document, "firstBatch", &e) {
		return
	}
	r, err := bson.NewReader(e.Value)
	for err == nil && out.reply.Code == 0 {
		var more bool
		if more, err = r.Next(&e); !more {
			return
		}
		if e.Kind == bson.Document && lookup(e.Value, "code", &code) {
			n, _ := code.Integer()
			out.reply.Code = int32(n)
		}
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
	out.document = e.Value
	r, err := bson.NewReader(e.Value)
	if err != nil {
		return
	}
	for {
		ok, err := r.Next(&f)
		if err == bson.ErrShort && f.Kind == bson.Array && string(f.Key) == "firstBatch" && len(f.Value) > 0 {
			if n, err := bson.Length(f.Value); err == nil {
				out.behind = n - len(f.Value)
			}
		}
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
