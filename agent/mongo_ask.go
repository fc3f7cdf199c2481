package agent

import (
	"context"
	"math"
	"time"

	"tidemark/agent/key"
	"tidemark/agent/mongodb"
	"tidemark/model"
	"tidemark/sniff"
	"tidemark/wire/zbx"
)

// openMongo makes the monitor of the MongoDB server.
func (a *Agent) openMongo() (err error) {
	m := &a.options.Mongo
	o := mongodb.Options{URI: m.URI, Interval: m.interval(), Logger: a.log}
	if m.Profiler {
		o.Profile = func(v mongodb.Verdict, told *sniff.Told) { a.profiled.count(v, told) }
	}
	a.mongo, err = mongodb.Open(o)
	if err == nil && m.Plans > 0 {
		a.plans.open(a.mongo.Instance())
	}
	if err == nil && m.Profiler {
		a.profiled = a.newSampled("profiler")
	}
	return err
}

// askMongo asks the MongoDB server for its own counters until ctx ends. A round that takes longer than its interval costs the next ones;
// they are counted as missed.
func (a *Agent) askMongo(ctx context.Context) {
	interval := a.options.Mongo.interval()
	known := map[*mongodb.Item]*item{}
	var unseen unseenConnections
	timer := time.NewTimer(0)
	defer timer.Stop()
	moment := nextMoment(time.Now(), interval)
	for {
		timer.Reset(time.Until(moment))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if a.state.get().Tidemark { // Only a Tidemark server takes items that the agent declares.
			at := stamp(time.Now(), moment, interval).UnixNano()
			var rows []row
			put := func(v mongodb.Value) {
				rows = append(rows, row{at: at, item: mongoItem(known, v.Item), value: mongoAnswer(v)})
			}
			a.mongo.Collect(ctx, moment, put)
			unseen.count(a, moment, put)
			if len(rows) > 0 {
				a.buffer.put(rows)
				a.wake()
			}
		}
		if a.profiled != nil {
			a.profiled.take(moment.UnixNano())
		}
		next := nextMoment(time.Now(), interval)
		if missed := next.Sub(moment)/interval - 1; missed > 0 && missed < time.Minute/interval {
			a.stats.missed.Add(uint64(missed))
		}
		moment = next
	}
}

func mongoItem(known map[*mongodb.Item]*item, of *mongodb.Item) *item {
	made := known[of]
	if made == nil {
		made = &item{key: of.Key, declaration: &zbx.Declaration{
			Key: of.Key, Name: of.Name, Units: of.Units, Type: of.Type, Interval: of.Interval, Labels: of.Labels,
		}}
		known[of] = made
	}
	return made
}

func mongoAnswer(v mongodb.Value) key.Value {
	switch v.Item.Type {
	case model.Float:
		return key.Float(math.Float64frombits(v.Bits))
	case model.Text:
		return key.Text(v.Text)
	}
	return key.Uint(v.Bits)
}

// unseenConnections compares what the server says of its connections with what the wire shows. Clients on a unix socket are on no wire.
type unseenConnections struct {
	since time.Time // there were some in every round since
	told  bool
}

// tellUnseenAfter is how long connections must have been unseen before that is told: the sniffer learns of a connection with its next message, and
// forgets it after ten minutes of silence.
const tellUnseenAfter = 15 * time.Minute

func (u *unseenConnections) count(a *Agent, now time.Time, put func(mongodb.Value)) {
	flows, connections := a.mongoFlows.Load(), a.mongo.Connections()
	if flows == notWatched || connections == 0 {
		u.since = time.Time{}
		return
	}
	unseen := uint64(max(int64(connections)-flows, 0))
	a.mongo.Unseen(unseen, put)
	switch {
	case unseen == 0:
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = now
	case !u.told && now.Sub(u.since) >= tellUnseenAfter:
		u.told = true
		a.log.Warn("MongoDB has connections that the watched network does not show: clients on a unix socket, on another device, or silent ones. Their requests are invisible",
			"connections", connections, "seen", flows)
	}
}
