// Package sniff watches MongoDB traffic and says which requests cost what.
//
// The way of a frame: capture.Source gives it, packet decodes it to TCP, flow follows the connection, pair joins request and reply, shape
// takes the literal values out, reqstat counts. Nothing is written and no connection is opened; literal values never leave package shape.
package sniff

import (
	"errors"
	"io"
	"math/rand/v2"

	"tidemark/sniff/capture"
	"tidemark/sniff/flow"
	"tidemark/sniff/packet"
	"tidemark/sniff/pair"
	"tidemark/sniff/reqstat"
	"tidemark/sniff/shape"
)

// Options of a Sniffer.
type Options struct {
	// Ports are the servers' ports; none finds MongoDB by content.
	Ports []uint16
	// Shapes is the limit of live shapes; 0 means shape.DefaultShapes.
	Shapes int
	// Flow bounds the connections that are followed; its Ports are those above.
	Flow flow.Options
}

// Counters are all that the parts counted.
type Counters struct {
	// Frames by what the decoder made of them.
	Frames   uint64
	Verdicts [packet.VerdictCount]uint64
	Flow     flow.Counters
	Pair     pair.Counters
	// Source is what the capture lost, as of the last interval.
	Source capture.Stats
	// Shapes is how many shapes live, ShapeOverflow how many statements went under "other", ShapesEvicted how many made room.
	Shapes        int
	ShapeOverflow uint64
	ShapesEvicted uint64
	// Flows and BufferBytes are what the flow table holds now, Waiting the requests that wait for their reply.
	Flows, BufferBytes, Waiting int
}

// Sniffer turns frames into request statistics. It belongs to one goroutine.
type Sniffer struct {
	frames   uint64
	verdicts [packet.VerdictCount]uint64
	packet   packet.Packet
	flows    *flow.Table
	pairer   *pair.Pairer
	finder   *shape.Finder
	stats    *reqstat.Table
	expired  int64
	source   capture.Stats
	evicted  uint64
}

// New returns a sniffer that has seen nothing yet.
func New(o Options) (*Sniffer, error) {
	finder := shape.NewFinder(o.Shapes, rand.Uint64())
	s := &Sniffer{finder: finder, stats: reqstat.New(finder.Other())}
	pairer, err := pair.New(s.finder, s.stats)
	if err != nil {
		return nil, err
	}
	s.pairer = pairer
	o.Flow.Ports = o.Ports
	s.flows = flow.New(o.Flow, pairer)
	return s, nil
}

// Frame handles one frame. The sniffer keeps no part of it.
func (s *Sniffer) Frame(f *capture.Frame) {
	s.frames++
	v := packet.Decode(f.Link, f.Data, f.WireBytes, &s.packet)
	s.verdicts[v]++
	if v == packet.TCP {
		s.flows.Segment(&s.packet, f.At)
	}
}

// Expire forgets idle connections and cursors; call it about once a second of capture time.
func (s *Sniffer) Expire(now int64) {
	s.flows.Expire(now)
	if now-s.expired > 60e9 {
		s.expired = now
		s.pairer.Expire(now)
	}
}

// Statistics returns the table that is being filled.
func (s *Sniffer) Statistics() *reqstat.Table { return s.stats }

// Counters returns what was counted so far.
func (s *Sniffer) Counters() Counters {
	flows, buffered := s.flows.Len()
	return Counters{
		Frames: s.frames, Verdicts: s.verdicts, Flow: s.flows.Counters(), Pair: s.pairer.Counters(),
		Source: s.source, ShapesEvicted: s.evicted, Shapes: s.finder.Len(), ShapeOverflow: s.finder.Overflow, Flows: flows, BufferBytes: buffered, Waiting: s.pairer.Waiting(),
	}
}

// ReadAll handles every frame of a file and ends what is still open. After an error, what came before it is counted.
func (s *Sniffer) ReadAll(source capture.Source) error {
	defer s.flows.Close()
	var f capture.Frame
	var swept int64
	for {
		err := source.Next(&f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.Frame(&f)
		if f.At-swept > 1e9 {
			swept = f.At
			s.Expire(f.At)
		}
	}
}
