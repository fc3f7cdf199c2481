package pair

import (
	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/bson"
)

// useCursor gives a getMore the shape of the command that opened its cursor.
func (p *Pairer) useCursor(r *Request, cmd *shape.Command) {
	if cmd.Name != "getMore" {
		return
	}
	if origin := p.cursors[cursorKey{r.Peer.Server, cmd.CursorID}]; origin != nil {
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

// trackCursor remembers a cursor that a reply opened, and forgets one that ended.
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
	if p.roomForCursor(at) {
		p.cursors[key] = q.newCursor(at)
	}
}

// roomForCursor reports whether one more cursor may be remembered.
func (p *Pairer) roomForCursor(at int64) bool {
	if len(p.cursors) >= maxCursors && at-p.swept > 1e9 {
		p.Expire(at)
	}
	return len(p.cursors) < maxCursors
}

// newCursor is the cursor that a request opens.
func (q *pending) newCursor(at int64) *cursor {
	return &cursor{
		statement: shape.Statement{Shape: q.request.Statements[0].Shape, Count: 1}, collection: q.request.Collection,
		waits: q.request.Waits || q.tails, at: at,
	}
}

// opensNew reports whether the request's reply may open a cursor that is not known.
func (q *pending) opensNew() bool { return q.opens && q.cursor == 0 && len(q.request.Statements) > 0 }

// open asks for what follows a batch that is behind bytes longer than what is there of the reply: servers write a cursor's id behind
// its first batch, and a batch may have 16 MB.
func (p *Pairer) open(piece *flow.Piece, c *connection, q *pending, behind int) int {
	p.unopen(c)
	if p.opening >= maxOpening {
		return 0
	}
	c.opening = q.newCursor(piece.At)
	p.opening++
	return len(piece.Data) + behind
}

// unopen forgets the cursor that is being opened.
func (p *Pairer) unopen(c *connection) {
	if c.opening != nil {
		c.opening = nil
		p.opening--
	}
}

// opened takes the id of a cursor from what follows its first batch; without data it did not come.
func (p *Pairer) opened(piece *flow.Piece, c *connection) {
	cur := c.opening
	if cur == nil {
		return
	}
	p.unopen(c)
	r := bson.Rest(piece.Data)
	var e bson.Element
	for {
		ok, err := r.Next(&e)
		if !ok || err != nil {
			return
		}
		if string(e.Key) == "id" {
			break
		}
	}
	id, _ := e.Integer()
	if key := (cursorKey{c.first.Server, id}); id != 0 && p.cursors[key] == nil && p.roomForCursor(cur.at) {
		p.cursors[key] = cur
	}
}

// Expire forgets cursors that were not used for ten minutes.
func (p *Pairer) Expire(now int64) {
	p.swept = now
	for k, c := range p.cursors {
		if now-c.at > cursorNanos {
			delete(p.cursors, k)
		}
	}
}
