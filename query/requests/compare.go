package requests

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tidemark/model"
)

// Verdict says how a row changed from one range to another.
type Verdict string

// The verdicts, the gravest first.
const (
	// Appeared had no request before.
	Appeared Verdict = "new"
	// Slower has a median or a p95 (where there are no latencies: a mean time) at least 1.3 times as high.
	Slower Verdict = "slower"
	// More has the latencies it had, and at least twice as many requests a second.
	More Verdict = "more"
	// Same is everything between.
	Same   Verdict = "same"
	Less   Verdict = "less"
	Faster Verdict = "faster"
	// Gone has no request any more.
	Gone Verdict = "gone"
)

const (
	slowerBy = 1.3
	moreBy   = 2
	// fewRequests are too few to say that latencies changed.
	fewRequests = 20
)

// Change is one line of a comparison.
type Change struct {
	Names
	Rest          bool
	Before, After Sums
	Verdict       Verdict
	// LoadChange is the load after less the load before, in seconds spent per second watched.
	LoadChange float64
}

// Comparison is what changed from one range to another.
type Comparison struct {
	Before, After Ranking
	// Changes are sorted by how much their load changed; Found is how many there are without the limit. The rankings have no rows.
	Changes []Change
	Found   int
}

// Compare compares the range of a question with one before it.
func (r *Reader) Compare(ctx context.Context, i *Instance, q Question, before model.TimeRange) (*Comparison, error) {
	limit := q.Limit
	earlier := q
	earlier.Range = before
	for _, one := range []*Question{&q, &earlier} {
		if err := one.check(); err != nil {
			return nil, err
		}
		one.Limit, one.Slices, one.Order = math.MaxInt, 0, ByLoad
	}
	ctx, end, err := r.querier.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	after, err := r.rank(ctx, i, q)
	if err != nil {
		return nil, err
	}
	first, err := r.rank(ctx, i, earlier)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Changes: changes(first, after)}
	c.Found = len(c.Changes)
	c.Changes = c.Changes[:min(c.Found, limit)]
	first.Rows, after.Rows = nil, nil
	c.Before, c.After = *first, *after
	return c, nil
}

// changes lays the rows of two rankings side by side.
func changes(before, after *Ranking) []Change {
	list := make([]Change, 0, len(after.Rows))
	type key struct {
		id   string
		rest bool
	}
	at := make(map[key]int, len(after.Rows))
	for i := range after.Rows {
		row := &after.Rows[i]
		at[key{row.ID, row.Rest}] = len(list)
		list = append(list, Change{Names: row.Names, Rest: row.Rest, After: row.Sums})
	}
	for i := range before.Rows {
		row := &before.Rows[i]
		n, known := at[key{row.ID, row.Rest}]
		if !known {
			n = len(list)
			list = append(list, Change{Names: row.Names, Rest: row.Rest})
		}
		list[n].Before = row.Sums
	}
	for i := range list {
		list[i].judge(before.Watched.Seconds(), after.Watched.Seconds())
	}
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.LoadChange), math.Abs(a.LoadChange)), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// judge fills in verdict and change of load; the lengths are in seconds.
func (c *Change) judge(before, after float64) {
	c.LoadChange = per(c.After.Seconds, after) - per(c.Before.Seconds, before)
	rateBefore, rateAfter := per(float64(c.Before.Requests), before), per(float64(c.After.Requests), after)
	slower := c.slowness()
	switch {
	case c.Before.Requests == 0:
		c.Verdict = Appeared
	case c.After.Requests == 0:
		c.Verdict = Gone
	case slower >= slowerBy:
		c.Verdict = Slower
	case slower > 0 && slower <= 1/slowerBy:
		c.Verdict = Faster
	case rateAfter >= moreBy*rateBefore:
		c.Verdict = More
	case rateAfter <= rateBefore/moreBy:
		c.Verdict = Less
	default:
		c.Verdict = Same
	}
}

func per(amount, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return amount / seconds
}

// slowness is how many times slower it became, by the median or the p95, whichever changed more; zero when there are too few requests.
func (c *Change) slowness() float64 {
	if c.Before.Requests < fewRequests || c.After.Requests < fewRequests {
		return 0
	}
	if c.Before.Latency == nil || c.After.Latency == nil {
		return per(c.After.Seconds/float64(c.After.Requests), c.Before.Seconds/float64(c.Before.Requests))
	}
	most := 0.0
	for _, q := range []float64{0.5, 0.95} {
		x, _ := c.Before.Quantile(q)
		y, _ := c.After.Quantile(q)
		ratio := per(y, x)
		if ratio > 0 && (most == 0 || math.Abs(math.Log(ratio)) > math.Abs(math.Log(most))) {
			most = ratio
		}
	}
	return most
}
