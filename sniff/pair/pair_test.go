package pair

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff/flow"
	"tidemark/sniff/shape"
	"tidemark/wire/mongo"
)

// recorder is a sink that notes what it gets.
type recorder struct {
	requests []Request
	replies  []Reply
	of       []string // the command that each reply answers
}

func (r *recorder) Request(q *Request) {
	c := *q
	c.Statements = slices.Clone(q.Statements)
	r.requests = append(r.requests, c)
}

func (r *recorder) Reply(q *Request, p *Reply) {
	r.of, r.replies = append(r.of, q.Command), append(r.replies, *p)
}

type stage struct {
	t    *testing.T
	p    *Pairer
	r    *recorder
	flow *flow.Flow
	at   int64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, r: &recorder{}, flow: &flow.Flow{}}
	p, err := New(shape.NewFinder(0, 1), s.r)
	if err != nil {
		t.Fatal(err)
	}
	s.p = p
	return s
}

// say hands on an OP_MSG a millisecond after the one before.
func (s *stage) say(d flow.Direction, id, to, flags uint32, doc bson.D) {
	s.t.Helper()
	body, err := bson.Marshal(doc)
	if err != nil {
		s.t.Fatal(err)
	}
	b := make([]byte, 21, 21+len(body))
	b[16], b[18] = byte(flags), byte(flags>>16)
	b = append(b, body...)
	s.at += 1e6
	s.p.Piece(&flow.Piece{Flow: s.flow, Direction: d, At: s.at, Data: b, Header: mongo.Header{Length: len(b), RequestID: id, ResponseTo: to, Op: mongo.OpMsg}})
}

func (s *stage) ask(id uint32, doc bson.D) {
	s.t.Helper()
	s.say(flow.ToServer, id, 0, 0, append(doc, bson.E{Key: "$db", Value: "shop"}))
}

var done = bson.D{{Key: "ok", Value: 1}}

func TestPairer_outOfOrder(t *testing.T) {
	s := newStage(t)
	s.ask(1, bson.D{{Key: "find", Value: "a"}})
	s.ask(2, bson.D{{Key: "count", Value: "b"}})
	s.say(flow.ToClient, 9, 2, 0, done)
	s.say(flow.ToClient, 9, 1, 0, done)
	s.say(flow.ToClient, 9, 7, 0, done)
	if len(s.r.of) != 2 || s.r.of[0] != "count" || s.r.of[1] != "find" || s.r.replies[1].LatencyNanos != 3e6 {
		t.Errorf("replies to %v: %+v", s.r.of, s.r.replies)
	}
	if c := s.p.Counters(); c.UnmatchedReplies != 1 {
		t.Errorf("counters %+v", c)
	}
}

// Replies of a chain answer one another; only the first has a latency.
func TestPairer_exhaust(t *testing.T) {
	s := newStage(t)
	s.say(flow.ToServer, 1, 0, 1<<16, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
	for i := range uint32(5) {
		s.say(flow.ToClient, 11+i, max(1, (10+i)*min(i, 1)), 2, done)
	}
	if len(s.r.replies) != 5 || s.r.replies[0].Further || !s.r.replies[1].Further || s.p.waiting != 1 {
		t.Errorf("replies %+v, %d wait", s.r.replies, s.p.waiting)
	}
	s.p.Closed(s.flow, true)
	if c := s.p.Counters(); c.UnmatchedRequests != 0 || s.p.waiting != 0 {
		t.Errorf("counters %+v, %d wait", c, s.p.waiting)
	}
}

func TestPairer_cursors(t *testing.T) {
	s := newStage(t)
	cursor := func(id int64) bson.D {
		return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "nextBatch", Value: bson.A{bson.D{}, bson.D{}}}}}, {Key: "ok", Value: 1}}
	}
	getMore := bson.D{{Key: "getMore", Value: int64(77)}, {Key: "collection", Value: "a"}}
	s.ask(1, bson.D{{Key: "find", Value: "a"}, {Key: "filter", Value: bson.D{{Key: "x", Value: 1}}}})
	s.say(flow.ToClient, 9, 1, 0, cursor(77))
	s.ask(2, getMore)
	s.say(flow.ToClient, 9, 2, 0, cursor(0))
	s.ask(3, getMore)
	s.say(flow.ToClient, 9, 3, 0, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 43}})
	if got := s.r.requests[1].Statements[0].Shape.Text; got != "find {x: ?}" {
		t.Errorf("getMore has the shape %s", got)
	}
	if got := s.r.requests[2].Statements[0].Shape.Text; got != "getMore" {
		t.Errorf("getMore of a closed cursor has the shape %s", got)
	}
	if s.r.replies[1].Documents != 2 || !s.r.replies[2].Failed || s.r.replies[2].Code != 43 || len(s.p.cursors) != 0 {
		t.Errorf("replies %+v, cursors %v", s.r.replies, s.p.cursors)
	}
}

// A cursor that waits for data on purpose is no load.
func TestPairer_tailable(t *testing.T) {
	s := newStage(t)
	s.ask(1, bson.D{{Key: "aggregate", Value: "a"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}})
	s.say(flow.ToClient, 9, 1, 0, bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(5)}}}, {Key: "ok", Value: 1}})
	s.ask(2, bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "a"}})
	if s.r.requests[0].Waits || !s.r.requests[1].Waits {
		t.Errorf("waits: %v %v", s.r.requests[0].Waits, s.r.requests[1].Waits)
	}
}

// What members of a cluster and routers send is told apart, by the handshake and by the fields of each command.
func TestPairer_cluster(t *testing.T) {
	s := newStage(t)
	s.ask(1, bson.D{{Key: "find", Value: "a"}, {Key: "shardVersion", Value: bson.D{}}})
	s.ask(2, bson.D{{Key: "find", Value: "a"}})
	s.ask(3, bson.D{{Key: "hello", Value: 1}, {Key: "internalClient", Value: bson.D{{Key: "minWireVersion", Value: 0}}}})
	s.ask(4, bson.D{{Key: "find", Value: "a"}})
	for i, want := range []bool{true, false, false, true} {
		if s.r.requests[i].Cluster != want {
			t.Errorf("request %d: cluster %v", i+1, !want)
		}
	}
}

// Requests that are never answered do not pile up.
func TestPairer_bounded(t *testing.T) {
	s := newStage(t)
	for i := range uint32(10_000) {
		s.ask(i, bson.D{{Key: "find", Value: "a"}})
	}
	if c := s.p.Counters(); s.p.waiting != maxPending || c.UnmatchedRequests != 10_000-maxPending {
		t.Errorf("%d wait, %d unmatched", s.p.waiting, c.UnmatchedRequests)
	}
	for i := range maxWaiting/maxPending + 50 {
		s.flow = &flow.Flow{}
		for j := range uint32(maxPending) {
			s.ask(uint32(i)<<8|j, bson.D{{Key: "find", Value: "a"}})
		}
	}
	if s.p.waiting > maxWaiting || s.p.counters.NoRoom == 0 {
		t.Errorf("%d wait, %d found no room", s.p.waiting, s.p.counters.NoRoom)
	}
}
