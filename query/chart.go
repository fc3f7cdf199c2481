package query

import (
	"context"
	"fmt"
	"math"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// Limits of one chart request.
const (
	MaxChartItems  = 200
	MaxChartPoints = 4000
)

const (
	hour   = int64(time.Hour)
	minute = int64(time.Minute)
	// minuteInterval is the longest interval of items for which minutes are read instead of values where both would do.
	minuteInterval = 20 * time.Second
)

// ChartRequest says what to draw.
type ChartRequest struct {
	Items []model.ItemID
	Range model.TimeRange
	// Points is how many points each series should have at most, 1 to MaxChartPoints.
	Points int
}

// Chart is ready for drawing.
type Chart struct {
	Range model.TimeRange
	// StepNanos is the width of one point where values were gathered.
	StepNanos int64
	Series    []ChartSeries
}

// ChartSeries is one item of a chart: columns of equal length.
type ChartSeries struct {
	Entry model.Entry
	// Labels are the item's own.
	Labels model.Labels
	// Rate says that the values are the growth per second of a counter; Units then ends in "/s".
	Rate  bool
	Units string
	// Trends says that hourly trends were read, for all or a part of the range.
	Trends bool
	// Gathered says that each point stands for all values of one step, with Min and Max; otherwise every value is
	// given and Min and Max are nil.
	Gathered bool
	// At is the time of each value, or the start of each step; Unix nanoseconds, rising.
	At []int64
	// Avg is NaN where a gap begins.
	Avg, Min, Max []float64
}

// Chart reads numeric items for drawing: every value while there are at most Points of them, else the average, least
// and largest of each step. Steps of an hour and more, and times that the history does not hold any more, come from
// trends. Counters (label type="counter") are drawn as growth per second, which survives resets.
// Unknown items are left out.
func (q *Querier) Chart(ctx context.Context, r ChartRequest) (*Chart, error) {
	switch {
	case len(r.Items) > MaxChartItems:
		return nil, &LimitError{fmt.Sprintf("the chart asks for %d items", len(r.Items)), MaxChartItems}
	case r.Points < 1 || r.Points > MaxChartPoints:
		return nil, &LimitError{fmt.Sprintf("the chart asks for %d points, expected at least 1", r.Points), MaxChartPoints}
	case r.Range.From >= r.Range.To || r.Range.To-r.Range.From < 0:
		return nil, &LimitError{"the chart's range is empty or has no length that fits 63 bits", 0}
	}
	ctx, end, err := q.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	c := q.newCharter(r)
	switch {
	case c.step >= hour:
		err = c.trendsFirst(ctx)
	case c.step >= minute && q.HasMinutes():
		err = c.minutesFirst(ctx)
	default:
		err = c.historyFirst(ctx, c.numeric())
	}
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	chart := &Chart{Range: r.Range, StepNanos: c.step, Series: make([]ChartSeries, 0, len(c.plots))}
	for _, p := range c.plots {
		chart.Series = append(chart.Series, p.finish())
	}
	return chart, nil
}

// charter reads one chart.
type charter struct {
	querier *Querier
	r       model.TimeRange
	step    int64
	plots   []*plot
	byItem  map[model.ItemID]*plot
}

func (q *Querier) newCharter(r ChartRequest) *charter {
	c := &charter{querier: q, r: r.Range, byItem: make(map[model.ItemID]*plot, len(r.Items))}
	c.step = max((r.Range.To-r.Range.From+int64(r.Points)-1)/int64(r.Points), 1)
	for _, id := range r.Items {
		entry, ok := q.catalog.Item(id)
		if !ok || c.byItem[id] != nil {
			continue
		}
		own := q.catalog.OwnLabels(id)
		p := &plot{
			series: ChartSeries{Entry: entry, Labels: own, Units: entry.Units, Rate: own.Get("type") == "counter" && entry.ValueType.Numeric()},
			r:      r.Range, step: c.step, points: r.Points,
		}
		if p.series.Rate {
			p.series.Units += "/s"
		}
		c.plots = append(c.plots, p)
		c.byItem[id] = p
	}
	return c
}

// numeric returns the items that can be drawn.
func (c *charter) numeric() []model.ItemID {
	var ids []model.ItemID
	for _, p := range c.plots {
		if p.series.Entry.ValueType.Numeric() {
			ids = append(ids, p.series.Entry.ID)
		}
	}
	return ids
}

// historyFirst reads history, then summaries for the time before an item's first value there.
func (c *charter) historyFirst(ctx context.Context, ids []model.ItemID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := c.readHistory(ctx, ids, c.r.From); err != nil {
		return err
	}
	return c.older(ctx, ids, true)
}

// older reads summaries for the time before what is known of an item: minutes, and then hours.
func (c *charter) older(ctx context.Context, ids []model.ItemID, minutes bool) error {
	to := min(c.r.To, c.querier.Now().UnixNano()-hour)
	missing := func(slack int64) []model.ItemID {
		var older []model.ItemID
		for _, id := range ids {
			if first := c.byItem[id].first; first == 0 || first > c.r.From+slack {
				older = append(older, id)
			}
		}
		return older
	}
	if older := missing(5 * minute); minutes && c.querier.HasMinutes() && len(older) > 0 && to-c.r.From >= minute {
		if err := c.readMinutes(ctx, older, to); err != nil {
			return err
		}
	}
	older := missing(hour)
	if len(older) == 0 || to-c.r.From < hour {
		return nil
	}
	return c.readTrends(ctx, older, to)
}

// minutesFirst reads summaries of minutes of items that have many values in each, then history behind the last of them, and hours before the
// first.
func (c *charter) minutesFirst(ctx context.Context) error {
	var ids, slow []model.ItemID
	for _, id := range c.numeric() {
		if interval := c.byItem[id].series.Entry.Interval; interval > 0 && interval <= minuteInterval {
			ids = append(ids, id)
		} else {
			slow = append(slow, id)
		}
	}
	if err := c.historyFirst(ctx, slow); err != nil || len(ids) == 0 {
		return err
	}
	now := c.querier.Now().UnixNano()
	if err := c.readMinutes(ctx, ids, min(c.r.To, now-mod(now, minute))); err != nil {
		return err
	}
	if err := c.historyBehind(ctx, ids); err != nil {
		return err
	}
	return c.older(ctx, ids, false)
}

// readMinutes reads the minutes that start before a time.
func (c *charter) readMinutes(ctx context.Context, ids []model.ItemID, to int64) error {
	from := c.r.From - mod(c.r.From, minute)
	err := c.querier.Minutes(ctx, ids, model.TimeRange{From: from, To: to}, func(columns *storage.TrendColumns) error {
		if p := c.byItem[columns.Item]; p != nil && columns.Type.Numeric() {
			p.takeTrends(columns, minute)
		}
		return nil
	})
	for _, id := range ids { // what comes next begins where the minutes do
		if p := c.byItem[id]; p.minutesFrom != 0 && (p.first == 0 || p.minutesFrom < p.first) {
			p.first = p.minutesFrom
		}
	}
	return err
}

// trendsFirst reads trends, then history behind the last hour that has one.
func (c *charter) trendsFirst(ctx context.Context) error {
	ids := c.numeric()
	// The running hour has a trend too, but only of what came so far.
	now := c.querier.Now().UnixNano()
	if err := c.readTrends(ctx, ids, min(c.r.To, now-mod(now, hour))); err != nil {
		return err
	}
	return c.historyBehind(ctx, ids)
}

// historyBehind reads the history from where an item's summaries end.
func (c *charter) historyBehind(ctx context.Context, ids []model.ItemID) error {
	groups := make(map[int64][]model.ItemID)
	for _, id := range ids {
		from := max(c.r.From, c.byItem[id].trendsEnd)
		groups[from] = append(groups[from], id)
	}
	for from, group := range groups {
		if err := c.readHistory(ctx, group, from); err != nil {
			return err
		}
	}
	return nil
}

// readHistory reads from a time on; counters a little before it, so that their first value has one to compare with.
func (c *charter) readHistory(ctx context.Context, ids []model.ItemID, from int64) error {
	lead := int64(0)
	for _, id := range ids {
		if p := c.byItem[id]; p.series.Rate {
			lead = max(lead, int64(min(2*p.series.Entry.Silence, time.Hour)), int64(time.Minute))
		}
	}
	ids, err := c.foldHistory(ctx, ids, from)
	if err != nil {
		return err
	}
	return c.querier.Read(ctx, ids, model.TimeRange{From: from - lead, To: c.r.To}, 0, func(columns *model.Columns) error {
		if p := c.byItem[columns.Item]; p != nil && columns.Type.Numeric() {
			p.take(columns, from)
		}
		return nil
	})
}

// foldHistory lets the engine sum up the values of the items of which each step must have several, and returns the others, and those that had few.
func (c *charter) foldHistory(ctx context.Context, ids []model.ItemID, from int64) (left []model.ItemID, err error) {
	if from != c.r.From || !c.querier.CanFold() { // its steps begin where the range does
		return ids, nil
	}
	var many []model.ItemID
	for _, id := range ids {
		p := c.byItem[id]
		if interval := p.series.Entry.Interval; interval > 0 && int64(interval) <= c.step/2 && !p.series.Rate {
			many = append(many, id)
		} else {
			left = append(left, id)
		}
	}
	counts := make(map[model.ItemID]uint64, len(many))
	err = c.querier.Fold(ctx, many, c.r, c.step, func(columns *storage.FoldColumns) error {
		p := c.byItem[columns.Item]
		for i := range columns.Folds {
			p.takeFold(&columns.Folds[i], columns.Type)
			counts[columns.Item] += columns.Folds[i].Count
		}
		return nil
	})
	for _, id := range many {
		if p := c.byItem[id]; counts[id] <= uint64(p.points) {
			p.first, p.steps = 0, nil
			left = append(left, id)
		}
	}
	return left, err
}

func (c *charter) readTrends(ctx context.Context, ids []model.ItemID, to int64) error {
	from := c.r.From - mod(c.r.From, hour)
	return c.querier.Trends(ctx, ids, model.TimeRange{From: from, To: to}, func(columns *storage.TrendColumns) error {
		if p := c.byItem[columns.Item]; p != nil && columns.Type.Numeric() {
			p.takeTrends(columns, hour)
		}
		return nil
	})
}

// mod is a % b for positive b, never negative.
func mod(a, b int64) int64 { return ((a % b) + b) % b }

// plot gathers one series. It keeps at most points values; with more it goes over to steps.
type plot struct {
	series ChartSeries
	r      model.TimeRange
	step   int64
	points int

	// first is the time of the first value in the history; zero for none.
	first int64
	// trendsEnd is where the last trend ends, minutesFrom where the first minute starts; zero for none.
	trendsEnd, minutesFrom int64
	// summed means that there were summaries.
	summed bool

	at     []int64
	values []float64
	// weights are the seconds that each rate covers; nil for other items, whose values all weigh the same.
	weights []float64
	steps   []step

	// counter is the last value of a counter.
	counter struct {
		at   int64
		bits uint64
		vt   model.ValueType
		set  bool
	}
}

// step is what is known of the values in one step. weight is their number, or the seconds that a rate covers.
type step struct{ sum, weight, min, max float64 }

// take adds values of the history from a time on.
func (p *plot) take(c *model.Columns, from int64) {
	for i, at := range c.At {
		if p.series.Rate {
			p.takeCounter(c, i, from)
			continue
		}
		if at >= from {
			p.add(at, c.Float(i), 1)
		}
	}
}

// takeFold adds what the values of one step come to.
func (p *plot) takeFold(f *storage.Fold, t model.ValueType) {
	if p.first == 0 {
		p.first = f.FirstAt
	}
	if f.Count == 0 {
		return
	}
	p.gather()
	ends := model.Columns{Type: t, Bits: []uint64{f.Min, f.Max}}
	p.put(f.At, f.Total(t), float64(f.Count), ends.Float(0), ends.Float(1))
}

// takeCounter adds the growth since the value before.
func (p *plot) takeCounter(c *model.Columns, i int, from int64) {
	at, bits := c.At[i], c.Bits[i]
	was := p.counter
	p.counter.at, p.counter.bits, p.counter.vt, p.counter.set = at, bits, c.Type, true
	if !was.set || was.vt != c.Type || at <= was.at || at < from {
		return
	}
	seconds := float64(at-was.at) / 1e9
	if limit := p.gapLimit(); limit > 0 && at-was.at > max(limit, int64(5*time.Minute)) {
		return // nobody knows when it grew
	}
	p.add(at, increase(was.bits, bits, c.Type)/seconds, seconds)
}

// increase is the growth of a counter; a fall is a restart from zero. Integers are subtracted exactly.
func increase(was, now uint64, vt model.ValueType) float64 {
	if vt == model.Uint {
		if now >= was {
			return float64(now - was)
		}
		return float64(now)
	}
	a, b := math.Float64frombits(was), math.Float64frombits(now)
	if b >= a {
		return b - a
	}
	return b
}

func (p *plot) add(at int64, v, weight float64) {
	if p.first == 0 {
		p.first = at
	}
	if math.IsNaN(v) {
		return
	}
	if p.steps == nil && len(p.at) < p.points {
		p.at, p.values = append(p.at, at), append(p.values, v)
		if p.series.Rate {
			p.weights = append(p.weights, weight)
		}
		return
	}
	p.gather()
	p.put(at, v*weight, weight, v, v)
}

// gather goes over from single values to steps.
func (p *plot) gather() {
	if p.steps != nil {
		return
	}
	p.steps = make([]step, p.points)
	for i, at := range p.at {
		weight := 1.0
		if p.weights != nil {
			weight = p.weights[i]
		}
		p.put(at, p.values[i]*weight, weight, p.values[i], p.values[i])
	}
	p.at, p.values, p.weights = nil, nil, nil
}

// put adds to a step what a value or a trend knows.
func (p *plot) put(at int64, sum, weight, low, high float64) {
	i := (at - p.r.From) / p.step
	if at < p.r.From || i >= int64(len(p.steps)) {
		return
	}
	s := &p.steps[i]
	if s.weight == 0 {
		s.min, s.max = low, high
	}
	s.sum, s.weight = s.sum+sum, s.weight+weight
	s.min, s.max = min(s.min, low), max(s.max, high)
}

// takeTrends adds hours, or minutes, that end before the first value of the history.
func (p *plot) takeTrends(c *storage.TrendColumns, span int64) {
	for i := range c.Trends {
		t := &c.Trends[i]
		if t.Count == 0 || p.first != 0 && t.At+span > p.first {
			continue
		}
		p.gather()
		seconds := float64(span) / 1e9
		if interval := p.series.Entry.Interval; interval > 0 && (!p.summed || p.trendsEnd != t.At) {
			// The first one of a counter's life may be a short one.
			seconds = min(seconds, float64(t.Count)*interval.Seconds())
		}
		p.summed, p.trendsEnd = true, max(p.trendsEnd, t.At+span)
		if span == hour {
			p.series.Trends = true
		} else if p.minutesFrom == 0 {
			p.minutesFrom = t.At
		}
		at := t.At
		if p.step < span {
			at += span / 2
		}
		at = max(at, p.r.From)
		if p.series.Rate {
			rate := t.Increase / seconds
			p.put(at, t.Increase, seconds, rate, rate)
			continue
		}
		ends := model.Columns{Type: c.Type, Bits: []uint64{t.Min, t.Max}}
		p.put(at, t.Average(c.Type)*float64(t.Count), float64(t.Count), ends.Float(0), ends.Float(1))
	}
}

// gapLimit is how long a series may be without a value before that is a gap; zero if nobody knows.
func (p *plot) gapLimit() int64 { return 3 * int64(p.series.Entry.Silence) }

// finish gives the series its final form.
func (p *plot) finish() ChartSeries {
	s := p.series
	if p.steps == nil {
		s.At, s.Avg = p.withGaps()
		return s
	}
	s.Gathered = true
	limit := max(p.gapLimit(), 3*p.step/2)
	if s.Trends {
		limit = max(limit, 5*hour/2)
	}
	if p.minutesFrom != 0 {
		limit = max(limit, 5*minute/2)
	}
	last := int64(math.MinInt64)
	for i := range p.steps {
		b := &p.steps[i]
		at := p.r.From + int64(i)*p.step
		if b.weight == 0 {
			continue
		}
		if last != math.MinInt64 && at-last > limit {
			s.append(last+p.step, math.NaN(), math.NaN(), math.NaN())
		}
		s.append(at, b.sum/b.weight, b.min, b.max)
		last = at
	}
	return s
}

func (s *ChartSeries) append(at int64, avg, low, high float64) {
	s.At = append(s.At, at)
	s.Avg, s.Min, s.Max = append(s.Avg, avg), append(s.Min, low), append(s.Max, high)
}

// withGaps returns single values with a NaN where a gap begins. Items without a known interval are judged by the
// average distance of their values.
func (p *plot) withGaps() ([]int64, []float64) {
	limit := p.gapLimit()
	if limit == 0 && len(p.at) > 1 {
		limit = 4 * (p.at[len(p.at)-1] - p.at[0]) / int64(len(p.at)-1)
	}
	at, values := make([]int64, 0, len(p.at)), make([]float64, 0, len(p.at))
	for i, t := range p.at {
		if i > 0 && limit > 0 && t-p.at[i-1] > limit {
			at, values = append(at, p.at[i-1]+limit/3), append(values, math.NaN())
		}
		at, values = append(at, t), append(values, p.values[i])
	}
	return at, values
}
