package promql

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/util/annotations"

	"tidemark/model"
	"tidemark/storage"
)

const (
	hourMillis   = int64(time.Hour / time.Millisecond)
	minuteMillis = int64(time.Minute / time.Millisecond)
)

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
	trendCount
	// trendIncrease: a counter made from the hours' increases, so that rate and increase see the resets inside them.
	trendIncrease
)

// formFor chooses by the function around the selector, as far as the answer is right. Functions of the order
// or distribution of values have no answer.
func (l *loader) formFor() trendForm {
	if l.instant() {
		return trendAverage
	}
	if l.counts {
		return trendCount
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

// tier is a kind of summaries: their length, and how a person calls them.
type tier struct {
	millis int64
	name   string
	read   func(context.Context, []model.ItemID, model.TimeRange, func(*storage.TrendColumns) error) error
}

// loadTrends fills what the history does not hold any more, with minutes as far back as those go, and then with hours.
func (l *loader) loadTrends(ctx context.Context) error {
	q := l.selector.queryable.querier
	if q.HasMinutes() {
		if err := l.loadTier(ctx, tier{minuteMillis, "minute", q.Minutes}); err != nil {
			return err
		}
	}
	return l.loadTier(ctx, tier{hourMillis, "hourly", q.Trends})
}

// loadTier fills what is missing from one tier. A series whose first value is more than an hour, or five minutes, after what
// was asked for may have lost its older values to retention; if it has trends for that time they are put before.
func (l *loader) loadTier(ctx context.Context, t tier) error {
	from := l.from(max(MinLookback.Milliseconds(), hourMillis))
	start := from - from%t.millis
	var ids []model.ItemID
	slack := min(5*t.millis, hourMillis)
	for _, s := range l.series {
		if l.firstAt(s) > from+slack {
			ids = append(ids, s.item)
		}
	}
	// The newest hours are always in the history.
	now := l.selector.queryable.querier.Now().UnixMilli()
	end := min(l.hints.End+1, now-hourMillis)
	if len(ids) == 0 || end-start < t.millis {
		return nil
	}
	found := make(map[model.ItemID][]model.Trend)
	types := make(map[model.ItemID]model.ValueType)
	err := t.read(ctx, ids, model.TimeRange{From: nanos(start), To: nanos(end)}, func(c *storage.TrendColumns) error {
		s := l.byItem[c.Item]
		if s == nil {
			return nil
		}
		for i := range c.Trends {
			if at := millis(c.Trends[i].At); at+t.millis <= l.firstAt(s) && at+t.millis-1 <= l.hints.End {
				found[c.Item] = append(found[c.Item], c.Trends[i])
			}
		}
		types[c.Item] = c.Type
		return l.spend(2 * len(c.Trends))
	})
	if err != nil {
		return err
	}
	for id, trends := range found {
		l.putBefore(l.byItem[id], trends, types[id], t)
	}
	return nil
}

// firstAt is the time of the first value in the history; a series without any has it at the end of time.
func (l *loader) firstAt(s *series) int64 {
	if len(s.at) == 0 {
		return l.hints.End + hourMillis
	}
	if s.foldedFrom != nil {
		return *s.foldedFrom
	}
	return s.at[0]
}

// putBefore puts one sample per hour or minute, at its last millisecond, before the values; for a counter also one at its start.
func (l *loader) putBefore(s *series, trends []model.Trend, vt model.ValueType, t tier) {
	form := l.formFor()
	if len(trends) == 0 {
		return
	}
	until := time.UnixMilli(millis(trends[len(trends)-1].At) + t.millis).UTC().Format(time.RFC3339)
	if form == trendNone {
		l.warnings.Add(fmt.Errorf("%w: values before %s are kept as %s trends only, and %s cannot be answered from trends",
			annotations.PromQLWarning, until, t.name, functionName(l.hints.Func)))
		return
	}
	l.warnings.Add(fmt.Errorf("%w: values before %s are %s trends", annotations.PromQLInfo, until, t.name))
	var at []int64
	var values []float64
	if form == trendIncrease {
		at, values = counter(trends, s.values, t.millis)
	} else {
		at, values = make([]int64, 0, len(trends)+len(s.at)), make([]float64, 0, len(trends)+len(s.at))
		for i := range trends {
			at = append(at, millis(trends[i].At)+t.millis-1)
			values = append(values, trendValue(&trends[i], vt, form))
		}
	}
	s.at, s.values = append(at, s.at...), append(values, s.values...)
	// A summary's value is current until the next one's.
	if l.instant() {
		s.lookbackMillis = max(s.lookbackMillis, t.millis)
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
	case trendCount:
		return float64(t.Count)
	case trendLast:
		return number(t.Last)
	}
	return t.Average(vt)
}

// counter turns increases into a counter that ends where the history's counter begins. Each summary gives one sample at its
// start (a millisecond in, because ranges leave out their first instant) and one at its end, so that rate and increase
// see the whole of every one that their range covers.
func counter(trends []model.Trend, history []float64, spanMillis int64) ([]int64, []float64) {
	sum := 0.0
	for i := range trends {
		sum += trends[i].Increase
	}
	total := 0.0
	if len(history) > 0 {
		total = history[0] - sum
	}
	at, values := make([]int64, 0, 2*len(trends)), make([]float64, 0, 2*len(trends))
	for i := range trends {
		start := millis(trends[i].At)
		at, values = append(at, start+1), append(values, total)
		total += trends[i].Increase
		at, values = append(at, start+spanMillis-1), append(values, total)
	}
	return at, values
}
