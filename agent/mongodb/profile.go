package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff"
)

// profile is what is known of the profilers. A server's profiler is switched on by its administrator, database by database; here it is only read.
type profile struct {
	databases []string // those with the profiler on
	looked    time.Time
	// since is the time of the last entry that was read, by database, in Unix milliseconds.
	since map[string]int64
}

// maxEntries bounds the entries that one round reads of one database.
const maxEntries = 1000

// askProfiler reads the new entries of every profiler that is on.
func (m *Monitor) askProfiler(ctx context.Context, now time.Time, put func(sample)) error {
	p := &m.profile
	if p.since == nil {
		p.since = map[string]int64{}
	}
	if now.Sub(p.looked).Abs() >= slowInterval {
		if err := m.findProfilers(ctx, now); err != nil {
			return err
		}
	}
	put(whole("self", "profilers", "Databases with the profiler on", "", uint64(len(p.databases)), false))
	for _, database := range p.databases {
		answer, err := m.run(ctx, database, bson.D{
			{Key: "find", Value: "system.profile"},
			{Key: "filter", Value: bson.D{{Key: "ts", Value: bson.D{{Key: "$gt", Value: bson.DateTime(p.since[database])}}}, {Key: "appName", Value: bson.D{{Key: "$ne", Value: Application}}}}},
			{Key: "sort", Value: bson.D{{Key: "$natural", Value: 1}}},
			{Key: "limit", Value: maxEntries},
			{Key: "batchSize", Value: maxEntries},
			{Key: "singleBatch", Value: true},
		})
		if err != nil {
			return err
		}
		m.readProfile(answer, database)
	}
	return nil
}

// findProfilers looks which databases have the profiler on. What was written before is not read.
func (m *Monitor) findProfilers(ctx context.Context, now time.Time) error {
	databases, err := m.databases(ctx)
	if err != nil {
		return err
	}
	p := &m.profile
	p.databases = p.databases[:0]
	for _, database := range databases {
		answer, err := m.run(ctx, database, bson.D{{Key: "profile", Value: -1}})
		if err != nil {
			return err
		}
		if level, ok := number(answer, "was"); !ok || level <= 0 {
			delete(p.since, database)
			continue
		}
		p.databases = append(p.databases, database)
		if _, known := p.since[database]; !known {
			p.since[database] = now.UnixMilli()
		}
	}
	p.looked = now
	return nil
}

// readProfile hands on the entries of one answer.
func (m *Monitor) readProfile(answer bson.Raw, database string) {
	var told sniff.Told
	eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
		if at, ok := date(d, "ts"); ok {
			m.profile.since[database] = max(m.profile.since[database], at)
		}
		if v := DecodeProfile(d, &told); v != Other {
			m.options.Profile(v, &told)
		}
		return true
	})
}
