package server

import (
	"slices"
	"sync"
	"time"

	"tidemark/api/rest"
)

const (
	// hourEvery is how often the numbers of the overview are noted, hourLength for how long they are kept.
	hourEvery  = 30 * time.Second
	hourLength = time.Hour
)

// pastHour is how the numbers of the overview were in the last hour, since the start of the program.
type pastHour struct {
	mu     sync.Mutex
	points []rest.HourPoint
}

// note adds the numbers of a moment and forgets those of more than an hour ago.
func (p *pastHour) note(now time.Time, h rest.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := now.Add(-hourLength).UnixMilli()
	p.points = slices.DeleteFunc(p.points, func(o rest.HourPoint) bool { return o.At < oldest })
	p.points = append(p.points, rest.HourPoint{At: now.UnixMilli(), ValuesPerSecond: h.ValuesPerSecond, UsedBytes: h.StoreUsedBytes, RetentionDays: h.RetentionDays})
}

func (p *pastHour) list() []rest.HourPoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.points)
}

// sampleHour notes the numbers until stop is closed.
func (s *Server) sampleHour(stop <-chan struct{}) {
	t := time.NewTicker(hourEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			s.hour.note(now, s.health())
		}
	}
}
