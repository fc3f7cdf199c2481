package sniff

import (
	"context"
	"errors"
	"io"
	"time"

	"tidemark/sniff/capture"
)

// RunOptions say how Run keeps time.
type RunOptions struct {
	// Interval is how often Tick is called; 0 means once a second. Intervals end at whole multiples of it.
	Interval time.Duration
	// Tick is called on Run's goroutine at the end of each interval, with its bounds in Unix nanoseconds. It is the place to drain the
	// statistics.
	Tick func(from, to int64)
	// Now is the clock that goes on while no frame comes; nil means the machine's. A replayed file has its own.
	Now func() int64
}

// Run handles the frames of a source until the context ends or the source does; then the last, shorter interval is closed too. The end of
// the source and of the context are no errors.
func (s *Sniffer) Run(ctx context.Context, source capture.Source, o RunOptions) error {
	interval := int64(o.Interval)
	if interval <= 0 {
		interval = int64(time.Second)
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	var f capture.Frame
	var from, to, last int64
	finish := func() {
		if from != 0 {
			s.tick(source, o.Tick, from, max(last, from+1))
		}
	}
	for {
		err := source.Next(&f)
		now := f.At
		switch {
		case errors.Is(err, capture.ErrTimeout):
			now = o.Now()
		case errors.Is(err, io.EOF):
			finish()
			return nil
		case err != nil:
			finish()
			return err
		}
		if from == 0 {
			from, to = now, now-now%interval+interval
		}
		for now >= to {
			s.tick(source, o.Tick, from, to)
			if ctx.Err() != nil {
				return nil
			}
			// A pause in a file is one step, not thousands of empty intervals.
			from = max(to, now-now%interval)
			to = from + interval
		}
		last = now
		if err != nil {
			if ctx.Err() != nil {
				finish()
				return nil
			}
			continue
		}
		s.Frame(&f)
	}
}

// tick ends an interval.
func (s *Sniffer) tick(source capture.Source, fn func(from, to int64), from, to int64) {
	if stats, err := source.Stats(); err == nil {
		s.source = stats
	}
	s.Expire(to)
	if fn != nil {
		fn(from, to)
	}
	s.makeRoom()
}

// makeRoom drops the shapes with the least load when there is little room for new ones. It is called after the statistics were drained.
func (s *Sniffer) makeRoom() {
	limit := s.finder.Limit()
	if s.finder.Len() < limit-limit/16 {
		return
	}
	if victims := s.stats.Evict(limit - limit/8); victims != nil {
		s.finder.Forget(victims)
		s.evicted += uint64(len(victims))
	}
}
