package promql

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/util/annotations"

	"tidemark/model"
	"tidemark/storage"
)

const hourMillis = int64(time.Hour / time.Millisecond)

// trendForm says how an hour is told to a PromQL function, one sample per hour.
type trendForm int

const (
	// trendNone: the function cannot be answered from trends.
	trendNone trendForm = iota
	trendAverage
	trendMin
	trendMax
	trendSum
	trendLast
	// trendIncrease: a counter made from the hours' increases, so that rate and increase see the resets inside them.
	trendIncrease
)

// formFor chooses by the function around the selector, as far as the answer is right. Functions of the number, order
// or distribution of values have no answer.
func (l *loader) formFor() trendForm {
	if l.instant() {
		return trendAverage
	}
	switch l.hints.Func {
	case "rate", "increase":
		return trendIncrease
	case "avg_over_time":
		return trendAverage
	case "min_over_time":
		return trendMin
	case "max_over_time":
		return trendMax
	case "sum_over_time":
		return trendSum
	case "last_over_time", "present_over_time", "absent_over_time":
		return trendLast
	}
	return trendNone
}

// loadTrends fills what the history does not hold any more. A series whose first value is more than an hour after what
// was asked for may have lost its older values to retention; if it has trends for that time they are put before.
func (l *loader) loadTrends(ctx context.Context) error {
	from := l.from(max(MinLookback.Milliseconds(), hourMillis))
	start := from - from%hourMillis
	var ids []model.ItemID
	for _, s := range l.series {
		if len(s.at) == 0 || s.at[0] > from+hourMillis {
			ids = append(ids, s.item)
		}
	}
	// The newest hours are always in the history.
	now := l.selector.queryable.querier.Now().UnixMilli()
	end := min(l.hints.End+1, now-hourMillis)
	if len(ids) == 0 || end-start < hourMillis {
		return nil
	}
	form := l.formFor()
	found := make(map[model.ItemID][]model.Trend)
	types := make(map[model.ItemID]model.ValueType)
	err := l.selector.queryable.querier.Trends(ctx, ids, model.TimeRange{From: nanos(start), To: nanos(end)}, func(c *storage.TrendColumns) error {
		s := l.byItem[c.Item]
		if s == nil {
			return nil
		}
		for i := range c.Trends {
			if t := millis(c.Trends[i].At); t+hourMillis <= l.firstAt(s) && t+hourMillis-1 <= l.hints.End {
				found[c.Item] = append(found[c.Item], c.Trends[i])
			}
		}
		types[c.Item] = c.Type
		return l.spend(len(c.Trends))
	})
	if err != nil {
		return err
	}
	for id, trends := range found {
		l.putBefore(l.byItem[id], trends, types[id], form)
	}
	return nil
}

// firstAt is the time of the first value in the history; a series without any has it at the end of time.
func (l *loader) firstAt(s *series) int64 {
	if len(s.at) == 0 {
		return l.hints.End + hourMillis
	}
	return s.at[0]
}

// putBefore puts one sample per hour, at the hour's last millisecond, before the values.
func (l *loader) putBefore(s *series, trends []model.Trend, vt model.ValueType, form trendForm) {
	if len(trends) == 0 {
		return
	}
	until := time.UnixMilli(millis(trends[len(trends)-1].At) + hourMillis).UTC().Format(time.RFC3339)
	if form == trendNone {
		l.warnings.Add(fmt.Errorf("%w: values before %s are kept as hourly trends only, and %s cannot be answered from trends",
			annotations.PromQLWarning, until, functionName(l.hints.Func)))
		return
	}
	l.warnings.Add(fmt.Errorf("%w: values before %s are hourly trends", annotations.PromQLInfo, until))
	at, values := make([]int64, 0, len(trends)+len(s.at)), make([]float64, 0, len(trends)+len(s.at))
	for i := range trends {
		at = append(at, millis(trends[i].At)+hourMillis-1)
		values = append(values, trendValue(&trends[i], vt, form))
	}
	if form == trendIncrease {
		accumulate(values, s.values)
	}
	s.at, s.values = append(at, s.at...), append(values, s.values...)
	// An hour's value is current until the next hour's.
	if l.instant() {
		s.lookbackMillis = max(s.lookbackMillis, hourMillis)
	}
}

func functionName(name string) string {
	if name == "" {
		return "this range"
	}
	return name + "()"
}

func trendValue(t *model.Trend, vt model.ValueType, form trendForm) float64 {
	number := func(bits uint64) float64 {
		c := model.Columns{Type: vt, Bits: []uint64{bits}}
		return c.Float(0)
	}
	switch form {
	case trendMin:
		return number(t.Min)
	case trendMax:
		return number(t.Max)
	case trendSum:
		return t.Average(vt) * float64(t.Count)
	case trendLast:
		return number(t.Last)
	case trendIncrease:
		return t.Increase
	}
	return t.Average(vt)
}

// accumulate turns increases into a counter that ends where the history's counter begins.
func accumulate(increases, history []float64) {
	total := 0.0
	for i, v := range increases {
		total += v
		increases[i] = total
	}
	shift := 0.0
	if len(history) > 0 {
		shift = history[0] - total
	}
	for i := range increases {
		increases[i] += shift
	}
}
