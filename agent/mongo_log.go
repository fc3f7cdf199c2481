package agent

import (
	"context"
	"net"
	"strconv"
	"time"

	"tidemark/agent/mongodb"
	"tidemark/sniff"
)

// sampledShapes bounds the shapes that are kept of what a server tells.
const sampledShapes = 500

// followEvery is how often the log is looked at.
const followEvery = 500 * time.Millisecond

// sampledRequests turns what the server tells of its requests into rows. It belongs to one goroutine.
type sampledRequests struct {
	watch   mongoWatch
	sampled *sniff.Sampled
}

func (a *Agent) newSampled(source string) *sampledRequests {
	s := &sampledRequests{
		watch:   mongoWatch{agent: a, items: sniff.NewSampledItems(a.options.Mongo.interval(), a.mongoAddress(), source), known: map[*sniff.Item]*item{}},
		sampled: sniff.NewSampled(sampledShapes),
	}
	s.watch.items.Spent = a.plans.spent
	return s
}

// mongoAddress is the server on this machine, as well as it is known.
func (a *Agent) mongoAddress() string {
	if a.mongo != nil {
		return a.mongo.Instance()
	}
	port := defaultMongoPort
	if len(a.options.Mongo.Ports) > 0 {
		port = int(a.options.Mongo.Ports[0])
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// count counts a request by its verdict. Nothing of it is kept but its shape.
func (s *sampledRequests) count(v mongodb.Verdict, told *sniff.Told) {
	switch v {
	case mongodb.Slow:
		s.sampled.Add(told)
	case mongodb.Unread:
		s.sampled.Unread()
	}
	*told = sniff.Told{}
}

// take sends the interval that ended at to.
func (s *sampledRequests) take(to int64) {
	s.watch.send(func(put func(sniff.ItemValue)) { s.watch.items.TakeSampled(s.sampled, to, put) })
}

// followMongo reads the slow requests from the server's log until ctx ends. A log that cannot be read is told when that begins.
func (a *Agent) followMongo(ctx context.Context) {
	interval := a.options.Mongo.interval()
	s := a.newSampled("log")
	var told sniff.Told
	f := &follower{path: a.options.Mongo.Log, limit: mongodb.MaxLineBytes, line: func(line []byte) {
		if line == nil {
			s.sampled.Unread()
			return
		}
		s.count(mongodb.DecodeLine(line, &told), &told)
	}}
	defer f.close()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	moment, failed := nextMoment(time.Now(), interval), false
	for {
		err := f.poll()
		if failed != (err != nil) {
			failed = err != nil
			if failed {
				a.log.Warn("MongoDB's log cannot be read; it is tried again", "error", err)
			} else {
				a.log.Info("MongoDB's log is being followed", "file", f.path)
			}
		}
		if now := time.Now(); !now.Before(moment) {
			s.take(moment.UnixNano())
			moment = nextMoment(now, interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
