package trial

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
)

const (
	// queriesPerRound bounds the queries that a round replays.
	queriesPerRound = 200
	// maxQueryItems bounds the items of one.
	maxQueryItems = 1000
	// knownItems bounds the items that queries are made up for.
	knownItems = 20_000
)

// Query is a query to replay.
type Query struct {
	Items []model.ItemID
	// Range is half-open, Unix nanoseconds.
	Range model.TimeRange
	// Newest, if not zero, asks for the last values of each item only.
	Newest int
}

// queriesOf returns the queries of a round. Each keeps its items and its length, and is moved in time into one of the pairs of the round.
func (r *run) queriesOf(round int) ([]Query, error) {
	asked := r.o.Queries
	if len(asked) == 0 {
		var err error
		if asked, err = r.made(round); err != nil {
			return nil, err
		}
	}
	pairs := r.rounds[round]
	random := newRandom(uint64(round), 0x7121A1)
	n := min(len(asked), queriesPerRound)
	out := make([]Query, n)
	for i := range out {
		q := asked[i*len(asked)/n]
		q.Items = q.Items[:min(len(q.Items), maxQueryItems)]
		q.Range = moved(q.Range, &pairs[i%len(pairs)], random)
		out[i] = q
	}
	return out, nil
}

// moved returns a range of the same length that lies in the times of a pair, or covers them.
func moved(q model.TimeRange, p *dbengine.ClosedPair, random *rand.Rand) model.TimeRange {
	length, span := uint64(q.To)-uint64(q.From), uint64(p.To-p.From)+1 // ranges may reach from the least to the greatest time
	if length >= span {
		return model.TimeRange{From: p.From, To: p.To + 1}
	}
	from := p.From + int64(random.Uint64N(span-length+1))
	return model.TimeRange{From: from, To: from + int64(length)}
}

// made makes up what pages ask: an hour of the items of a graph, a day of one, and the newest values of many.
func (r *run) made(round int) ([]Query, error) {
	pairs := r.rounds[round]
	o := newOverlay(r.o.Dir, r.pins, pairs)
	items, err := pairs[0].Items(o, r.o.Dir, knownItems)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	random := newRandom(uint64(round), 0x3ADE)
	out := make([]Query, queriesPerRound)
	for i := range out {
		count, length, newest := 8, time.Hour, 0
		switch i % 4 {
		case 2:
			count, length = 1, 24*time.Hour
		case 3:
			count, length, newest = 50, 24*time.Hour, 1
		}
		count = min(count, len(items))
		first := random.IntN(len(items) - count + 1)
		out[i] = Query{Items: slices.Clone(items[first : first+count]), Range: model.TimeRange{To: int64(length)}, Newest: newest}
	}
	return out, nil
}

// replay runs queries one after the other and returns how long each took.
func replay(ctx context.Context, db *dbengine.DB, queries []Query) ([]time.Duration, error) {
	took := make([]time.Duration, len(queries))
	for i := range queries {
		q := &queries[i]
		values := 0
		began := time.Now()
		err := db.Read(ctx, storage.Query{Items: q.Items, Range: q.Range, Newest: q.Newest}, func(c *model.Columns) error {
			values += len(c.At)
			return nil
		})
		if err != nil {
			return nil, err
		}
		took[i] = time.Since(began)
	}
	return took, nil
}

// quantile returns a quantile in milliseconds of what is sorted.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Nanoseconds()) / 1e6
}

// latencies replays the queries on an engine that begins with empty caches, and again with full ones.
func (r *run) latencies(ctx context.Context, fsys *overlay, dir string, queries []Query, to *figures) (err error) {
	if err := fsys.forget(); err != nil {
		return err
	}
	db, err := open(ctx, fsys, dir, to.beforeBytes)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	cold, err := replay(ctx, db, queries)
	if err != nil {
		return err
	}
	warm, err := replay(ctx, db, queries)
	if err != nil {
		return err
	}
	slices.Sort(cold)
	slices.Sort(warm)
	to.ColdP50, to.ColdP99 = quantile(cold, 0.5), quantile(cold, 0.99)
	to.P50, to.P99 = quantile(warm, 0.5), quantile(warm, 0.99)
	return nil
}

// open opens the scratch engine with room for pairs of sampleBytes, what they become, and its log.
func open(ctx context.Context, fsys vfs.FS, dir string, sampleBytes int64) (*dbengine.DB, error) {
	return dbengine.Open(ctx, fsys, dir, dbengine.Options{
		DiskSpaceBytes: dbengine.MinDiskSpaceBytes + 4*sampleBytes, PageCacheBytes: cacheBytes, MinuteShare: -1, HourShare: -1, Durability: dbengine.Relaxed,
	})
}

// newRandom returns numbers that are the same in each trial, so that trials of one store can be compared.
func newRandom(a, b uint64) *rand.Rand { return rand.New(rand.NewPCG(a, b)) }
