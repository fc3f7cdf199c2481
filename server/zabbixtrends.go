package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// trendsAtOnce is how many items have their trends copied together: a year of hours of each is about 30 MB.
const trendsAtOnce = 32

// lateHours is how many hours before the end of the last pass are looked at again.
const lateHours = 3

// trendTaker is an engine that takes hours without values.
type trendTaker interface {
	ImportTrends(ctx context.Context, columns []storage.TrendColumns) error
}

// trends copies the hours of a group that have no values here, and compares them. PostgreSQL gets those that its values make as well, because
// it has hours only as long as their values or their own row.
func (i *historyImport) trends(ctx context.Context, g *historyGroup, cuts map[model.ItemID]int64) error {
	end := storage.HourOf(g.To)
	// Zabbix writes an hour some time after its end.
	from := max(g.TrendsTo-lateHours*storage.Hour, 0)
	if !i.o.Since.IsZero() {
		from = max(from, storage.HourOf(i.o.Since.UnixNano()))
	}
	if g.TrendsTo >= end {
		return nil
	}
	r, began, done := model.TimeRange{From: from, To: end}, time.Now(), 0
	for chunk := range slices.Chunk(g.Items, trendsAtOnce) {
		n, err := i.trendsOf(ctx, chunk, r, cuts)
		if err != nil {
			return err
		}
		g.Hours += n
		done += len(chunk)
		if err := i.save(); err != nil {
			return err
		}
		share := float64(done) / float64(len(g.Items))
		i.say(HistoryProgress{
			Phase: "trends", Share: share, Left: time.Duration(float64(time.Since(began)) * (1 - share) / share), Values: g.State.Values, Hours: g.Hours,
			Through: time.Unix(0, end),
		})
	}
	g.TrendsTo = end
	return nil
}

// trendsOf copies those of some items and returns how many hours came new.
func (i *historyImport) trendsOf(ctx context.Context, items []model.ItemID, r model.TimeRange, cuts map[model.ItemID]int64) (uint64, error) {
	q := storage.Query{Items: items, Range: r}
	here, err := i.hoursHere(ctx, q)
	if err != nil {
		return 0, err
	}
	keeper, keeps := i.side.engine.(storage.Trendkeeper)
	var put []storage.TrendColumns
	want := make(map[model.ItemID][]model.Trend)
	err = i.source.Trends(ctx, q, func(c *storage.TrendColumns) error {
		fresh := storage.TrendColumns{Item: c.Item, Type: c.Type}
		for _, t := range c.Trends {
			if cut, ok := cuts[c.Item]; ok && t.At >= storage.HourOf(cut) {
				continue
			}
			own, found := here[c.Item][t.At]
			switch {
			case !found:
				fresh.Trends = append(fresh.Trends, t)
				want[c.Item] = append(want[c.Item], t)
			case keeps:
				fresh.Trends = append(fresh.Trends, own)
			}
		}
		if len(fresh.Trends) > 0 {
			put = append(put, fresh)
		}
		return nil
	})
	if err != nil || len(put) == 0 {
		return 0, err
	}
	switch taker, takes := i.side.engine.(trendTaker); {
	case keeps:
		err = keeper.AppendTrends(ctx, put)
	case takes:
		err = taker.ImportTrends(ctx, put)
	}
	if err != nil {
		return 0, err
	}
	return i.compareHours(ctx, q, want)
}

// hoursHere are the hours that the store has, by item and time.
func (i *historyImport) hoursHere(ctx context.Context, q storage.Query) (map[model.ItemID]map[int64]model.Trend, error) {
	here := make(map[model.ItemID]map[int64]model.Trend)
	err := i.side.engine.Trends(ctx, q, func(c *storage.TrendColumns) error {
		m := here[c.Item]
		if m == nil {
			m = make(map[int64]model.Trend, len(c.Trends))
			here[c.Item] = m
		}
		for _, t := range c.Trends {
			m[t.At] = t
		}
		return nil
	})
	return here, err
}

// compareHours reads again what was put.
func (i *historyImport) compareHours(ctx context.Context, q storage.Query, want map[model.ItemID][]model.Trend) (n uint64, err error) {
	here, err := i.hoursHere(ctx, q)
	if err != nil {
		return 0, err
	}
	for id, list := range want {
		for _, t := range list {
			if got := here[id][t.At]; got.Count != t.Count || got.Min != t.Min || got.Max != t.Max || got.First != t.First {
				return n, fmt.Errorf("item %d: the hour %s is %+v, expected %+v", id, time.Unix(0, t.At).UTC().Format(time.RFC3339), got, t)
			}
			n++
		}
	}
	return n, nil
}
