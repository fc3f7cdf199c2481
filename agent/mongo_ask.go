package agent

import (
	"context"
	"math"
	"time"

	"tidemark/agent/key"
	"tidemark/agent/mongodb"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// askMongo asks the MongoDB server for its own counters until ctx ends. A round that takes longer than its interval costs the next ones;
// they are counted as missed.
func (a *Agent) askMongo(ctx context.Context) {
	interval := a.options.Mongo.interval()
	known := map[*mongodb.Item]*item{}
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
			a.mongo.Collect(ctx, moment, func(v mongodb.Value) {
				rows = append(rows, row{at: at, item: mongoItem(known, v.Item), value: mongoAnswer(v)})
			})
			if len(rows) > 0 {
				a.buffer.put(rows)
				a.wake()
			}
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
