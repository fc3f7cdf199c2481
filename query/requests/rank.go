package requests

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
	"tidemark/query"
)

// Order says by what rows are sorted, the largest first.
type Order string

// The orders.
const (
	ByLoad      Order = "load"
	ByRequests  Order = "requests"
	ByP50       Order = "p50"
	ByP95       Order = "p95"
	ByP99       Order = "p99"
	ByErrors    Order = "errors"
	ByBytesIn   Order = "in"
	ByBytesOut  Order = "out"
	ByDocuments Order = "docs"
)

// Orders are all of them.
var Orders = []Order{ByLoad, ByRequests, ByP50, ByP95, ByP99, ByErrors, ByBytesIn, ByBytesOut, ByDocuments}

// The limits of one question.
const (
	// MaxRows is how many rows an answer has at most.
	MaxRows = 5_000
	// MaxSlices is how many slices the small load chart of a row has at most.
	MaxSlices = 120
	// MaxRange is the longest range.
	MaxRange = 20 * 366 * 24 * time.Hour
)

// Question says what to rank.
type Question struct {
	// Range is from its begin (not included) to its end (included), Unix nanoseconds.
	Range model.TimeRange
	Group Group
	// Database, Collection and Command, if not nil, are the only ones; they do not fit ByApplication and ByClient.
	Database, Collection, Command *string
	// Text must occur in a row's names, in any case of letters.
	Text  string
	Order Order
	// Limit bounds the rows, 1 to MaxRows.
	Limit int
	// Slices is the length of Row.Loads, 0 to MaxSlices.
	Slices int
}

// Row is one line of a ranking.
type Row struct {
	Names
	Sums
	// Rest says that the row is what is left of the total: clients that found no room of their own.
	Rest bool
	// Loads are the seconds spent in equal slices of the range.
	Loads []float64
}

// Ranking is an answer.
type Ranking struct {
	Range model.TimeRange
	// Watched is for how long of the range there are statistics; rates and loads are per second of it.
	Watched time.Duration
	// Total is all of the instance, whatever the filters.
	Total Sums
	Rows  []Row
	// Found is how many rows there are without the limit.
	Found int
}

func (q *Question) check() error {
	switch {
	case q.Range.From >= q.Range.To || q.Range.To-q.Range.From < 0 || q.Range.To-q.Range.From > int64(MaxRange):
		return &query.LimitError{What: "the range is empty or too long; seconds", Limit: int64(MaxRange / time.Second)}
	case q.Limit < 1 || q.Limit > MaxRows:
		return &query.LimitError{What: fmt.Sprintf("%d rows are asked for, expected at least 1", q.Limit), Limit: MaxRows}
	case q.Slices < 0 || q.Slices > MaxSlices:
		return &query.LimitError{What: fmt.Sprintf("%d slices are asked for", q.Slices), Limit: MaxSlices}
	}
	return nil
}

// Rank says which requests of an instance cost how much.
func (r *Reader) Rank(ctx context.Context, i *Instance, q Question) (*Ranking, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	ctx, end, err := r.querier.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return r.rank(ctx, i, q)
}

func (r *Reader) rank(ctx context.Context, i *Instance, q Question) (*Ranking, error) {
	totals, err := r.totals(ctx, []Instance{*i}, q.Range, 0)
	if err != nil {
		return nil, err
	}
	answer := &Ranking{Range: q.Range, Watched: totals[0].Watched, Total: totals[0].Sums}
	found, err := r.wanted(ctx, i, &q)
	if err != nil {
		return nil, err
	}
	if q.Group == ByShape {
		err = r.rankThings(ctx, answer, found, &q)
	} else {
		err = r.rankGroups(ctx, answer, found, &q)
	}
	return answer, err
}

// Total is what an instance did over a range.
type Total struct {
	Instance *Instance
	Sums
	// Watched is for how long of the range there are statistics.
	Watched time.Duration
	// Loads are the seconds spent in equal slices of the range.
	Loads []float64
}

// Totals sums up instances, each with the given number of slices.
func (r *Reader) Totals(ctx context.Context, instances []Instance, over model.TimeRange, slices int) ([]Total, error) {
	if err := (&Question{Range: over, Limit: 1, Slices: slices}).check(); err != nil {
		return nil, err
	}
	ctx, end, err := r.querier.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return r.totals(ctx, instances, over, slices)
}

func (r *Reader) totals(ctx context.Context, instances []Instance, over model.TimeRange, slices int) ([]Total, error) {
	things := make([]*thing, len(instances))
	for n := range instances {
		things[n] = &thing{items: instances[n].items, loads: make([]float64, slices)}
	}
	if err := r.sum(ctx, things, amounts, over); err != nil {
		return nil, err
	}
	if err := r.latencies(ctx, things, over); err != nil {
		return nil, err
	}
	totals := make([]Total, len(things))
	for n, t := range things {
		watched := min(time.Duration(t.intervals)*instances[n].interval, time.Duration(over.To-over.From))
		totals[n] = Total{Instance: &instances[n], Sums: t.sums, Watched: watched, Loads: t.loads}
	}
	return totals, nil
}

// wanted finds what a question asks for and sums up the time spent.
func (r *Reader) wanted(ctx context.Context, i *Instance, q *Question) ([]*thing, error) {
	var matchers []*labels.Matcher
	for name, value := range map[string]*string{"db": q.Database, "collection": q.Collection, "command": q.Command} {
		if value != nil {
			matchers = append(matchers, equal(name, *value))
		}
	}
	all := r.things(i, q.Group, matchers...)
	things := make([]*thing, 0, len(all))
	text := strings.ToLower(q.Text)
	for n := range all {
		t := &all[n]
		if text != "" && !t.names.fit(text) {
			continue
		}
		if q.Slices > 0 {
			t.loads = make([]float64, q.Slices)
		}
		things = append(things, t)
	}
	if err := r.sum(ctx, things, []measure{timeMeasure}, q.Range); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(things, func(t *thing) bool { return !t.seen }), nil
}

// fit reports whether a text in lower case occurs in a name.
func (n *Names) fit(text string) bool {
	for _, s := range []string{n.Namespace(), n.Command, n.Shape, n.Application, n.Client, n.ID} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}

// rankThings reads of all things only what they are sorted by, and the rest of those that are shown.
func (r *Reader) rankThings(ctx context.Context, answer *Ranking, found []*thing, q *Question) error {
	answer.Found = len(found)
	rest := []measure{requestMeasure, errorMeasure, inMeasure, outMeasure, documentMeasure}
	by := q.Order.measure()
	sketched := by == latencyMeasure
	var err error
	switch {
	case sketched:
		err = r.latencies(ctx, found, q.Range)
	case by != timeMeasure:
		rest = slices.DeleteFunc(rest, func(m measure) bool { return m == by })
		err = r.sum(ctx, found, []measure{by}, q.Range)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *thing) int { return compareRows(q.Order, &a.sums, &b.sums, a.names.ID, b.names.ID) })
	found = found[:min(len(found), q.Limit)]
	if err := r.sum(ctx, found, rest, q.Range); err != nil {
		return err
	}
	if !sketched {
		if err := r.latencies(ctx, found, q.Range); err != nil {
			return err
		}
	}
	answer.Rows = make([]Row, 0, len(found))
	for _, t := range found {
		answer.Rows = append(answer.Rows, Row{Names: t.names, Sums: t.sums, Loads: t.loads})
	}
	return nil
}

// rankGroups reads everything of all things and adds up those that belong together.
func (r *Reader) rankGroups(ctx context.Context, answer *Ranking, found []*thing, q *Question) error {
	if err := r.sum(ctx, found, []measure{requestMeasure, errorMeasure, inMeasure, outMeasure, documentMeasure}, q.Range); err != nil {
		return err
	}
	if err := r.latencies(ctx, found, q.Range); err != nil {
		return err
	}
	at := make(map[Names]int)
	rows := []Row{}
	for _, t := range found {
		names := q.Group.names(&t.names)
		n, known := at[names]
		if !known {
			n = len(rows)
			at[names] = n
			rows = append(rows, Row{Names: names, Loads: make([]float64, q.Slices)})
		}
		rows[n].Add(&t.sums)
		for k, v := range t.loads {
			rows[n].Loads[k] += v
		}
	}
	if q.Group.ofClients() && q.Text == "" {
		if rest := restOf(&answer.Total, rows); rest.Requests > 0 {
			rows = append(rows, Row{Names: Names{ID: OtherID}, Sums: rest, Rest: true})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return compareRows(q.Order, &a.Sums, &b.Sums, a.ID, b.ID) })
	answer.Found = len(rows)
	answer.Rows = rows[:min(len(rows), q.Limit)]
	return nil
}

// names keeps of names what a group is made by.
func (g Group) names(n *Names) Names {
	switch g {
	case ByCollection:
		return Names{ID: n.Namespace(), Database: n.Database, Collection: n.Collection}
	case ByCommand:
		return Names{ID: n.Command, Command: n.Command}
	case ByApplication:
		return Names{ID: n.Application, Application: n.Application}
	case ByClient:
		return Names{ID: n.Client, Client: n.Client}
	}
	return *n
}

// restOf is what rows leave of a total; what they have too much is left out.
func restOf(total *Sums, rows []Row) Sums {
	rest := *total
	rest.Latency = nil
	for i := range rows {
		s := &rows[i].Sums
		for _, m := range amounts {
			if m != timeMeasure {
				a := rest.amount(m)
				*a -= min(*a, *s.amount(m))
			}
		}
		rest.Seconds = max(rest.Seconds-s.Seconds, 0)
	}
	// Documents are not kept by client.
	rest.Documents = 0
	return rest
}

// measure says what an order looks at.
func (o Order) measure() measure {
	switch o {
	case ByRequests:
		return requestMeasure
	case ByErrors:
		return errorMeasure
	case ByBytesIn:
		return inMeasure
	case ByBytesOut:
		return outMeasure
	case ByDocuments:
		return documentMeasure
	case ByP50, ByP95, ByP99:
		return latencyMeasure
	}
	return timeMeasure
}

// quantiles of the orders by latency.
var quantiles = map[Order]float64{ByP50: 0.5, ByP95: 0.95, ByP99: 0.99}

func compareRows(o Order, a, b *Sums, aID, bID string) int {
	c := 0
	switch m := o.measure(); m {
	case timeMeasure:
		c = cmp.Compare(b.Seconds, a.Seconds)
	case latencyMeasure:
		x, _ := a.Quantile(quantiles[o])
		y, _ := b.Quantile(quantiles[o])
		c = cmp.Compare(y, x)
	default:
		c = cmp.Compare(*b.amount(m), *a.amount(m))
	}
	return cmp.Or(c, cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(aID, bID))
}
