package sniff

import (
	"math/rand/v2"

	"tidemark/sniff/flow"
	"tidemark/sniff/pair"
	"tidemark/sniff/reqstat"
	"tidemark/sniff/shape"
	"tidemark/wire/mongo"
)

// Sampled keeps statistics of requests that a server tells of itself, in its log or its profiler, where the wire is encrypted. Shapes are made by the
// same rules. It knows only the requests that the server chose to tell, mostly the slow ones. It belongs to one goroutine.
type Sampled struct {
	finder  *shape.Finder
	stats   *reqstat.Table
	message mongo.Message
	command shape.Command
	peers   map[reqstat.Client]*pair.Peer
	told    uint64
	unread  uint64
	evicted uint64
}

// Told is one request as a server tells of it.
type Told struct {
	// At is when it ended, Unix nanoseconds.
	At int64
	// Command is the command as a BSON document, with $db.
	Command []byte
	// Further is set when the request went on with a cursor; Command is then the one that opened it.
	Further bool
	// Application and Client are who asked.
	Application string
	Client      flow.Endpoint
	// LatencyNanos is how long the server worked on it.
	LatencyNanos int64
	// RequestBytes and ReplyBytes are lengths, 0 where they are not told.
	RequestBytes, ReplyBytes int
	// Failed and Code say how it ended; Documents is how many it returned or changed.
	Failed    bool
	Code      int32
	Documents int
}

// maxPeers bounds the clients that are remembered.
const maxPeers = 1000

// NewSampled returns an empty one that keeps at most so many shapes.
func NewSampled(shapes int) *Sampled {
	finder := shape.NewFinder(shapes, rand.Uint64())
	return &Sampled{finder: finder, stats: reqstat.New(finder.Other()), peers: map[reqstat.Client]*pair.Peer{}}
}

// Add counts a request. It keeps nothing of its command but the shape, and reports false when that cannot be read.
func (s *Sampled) Add(t *Told) bool {
	s.message = mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: t.Command}
	c := &s.command
	if !s.finder.Find(&s.message, c) || c.Nameless {
		s.unread++
		return false
	}
	s.told++
	client := reqstat.Client{Application: t.Application, Address: flow.Endpoint{Address: t.Client.Address}}
	peer := s.peers[client]
	if peer == nil {
		if len(s.peers) >= maxPeers {
			clear(s.peers)
		}
		peer = &pair.Peer{Client: t.Client, Application: t.Application}
		s.peers[client] = peer
	}
	// Every request is of one server; which, the items say.
	r := pair.Request{
		At: t.At, Peer: peer, Command: c.Name, Database: c.Database, Collection: c.Collection,
		Statements: c.Statements, Bytes: t.RequestBytes, Monitoring: c.Monitoring, Cluster: c.Cluster, Waits: c.Monitoring || c.Awaits,
	}
	if t.Further {
		r.Command = "getMore"
	}
	s.stats.Request(&r)
	s.stats.Reply(&r, &pair.Reply{LatencyNanos: max(t.LatencyNanos, 0), Bytes: t.ReplyBytes, Failed: t.Failed, Code: t.Code, Documents: t.Documents})
	return true
}

// Unread counts a request that could not be read before it came to Add.
func (s *Sampled) Unread() { s.unread++ }

// makeRoom drops the shapes with the least load when there is little room for new ones.
func (s *Sampled) makeRoom() {
	limit := s.finder.Limit()
	if s.finder.Len() < limit-limit/16 {
		return
	}
	if victims := s.stats.Evict(limit - limit/8); victims != nil {
		s.finder.Forget(victims)
		s.evicted += uint64(len(victims))
	}
}
