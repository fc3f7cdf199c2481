package requests

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/query"
	"tidemark/storage"
	"tidemark/wire/sketch"
)

// record is what was stored of one thing in one interval.
type record struct {
	names Names
	at    int64
	sums  *Sums
}

// history is a store with what is in it, told twice: in the store and as a list.
type history struct {
	store           *testStore
	shapes, clients []record
	total           []record
	begin, end      time.Time
}

var testShapes = []Names{
	{ID: "aa01", Database: "shop", Collection: "orders", Command: "find"},
	{ID: "aa02", Database: "shop", Collection: "orders", Command: "update"},
	{ID: "aa03", Database: "shop", Collection: "users", Command: "find"},
	{ID: "aa04", Database: "shop", Collection: "", Command: "ping"},
	{ID: "other", Database: "shop", Collection: "x", Command: "other"},
}

// newHistory stores some hours of random statistics with a gap of 40 minutes in them.
func newHistory(t *testing.T, length time.Duration) *history {
	t.Helper()
	return newHistoryIn(t, nil, length)
}

// testEnd is when histories end.
var testEnd = time.Date(2026, 11, 30, 14, 20, 0, 0, time.UTC)

// newHistoryIn is newHistory in an engine; nil for one in memory.
func newHistoryIn(t *testing.T, engine storage.Engine, length time.Duration) *history {
	t.Helper()
	end := testEnd
	h := &history{store: newTestStore(t, engine, end), begin: end.Add(-length), end: end}
	instance := h.store.declareInstance()
	var shapes, clients [][]model.ItemID
	for i := range testShapes {
		shapes = append(shapes, h.store.declareShape(testShapes[i].ID, testShapes[i].Collection, testShapes[i].Command))
	}
	names := []Names{{ID: "api", Application: "api", Client: "10.0.0.1"}, {ID: "api", Application: "api", Client: "10.0.0.2"}, {ID: "job", Application: "job", Client: "10.0.0.1"}}
	for _, n := range names {
		clients = append(clients, h.store.declareClient(n.Application, n.Client))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for at := h.begin.Add(testInterval); !at.After(end); at = at.Add(testInterval) {
		if since := at.Sub(h.begin); since > 2*time.Hour && since < 2*time.Hour+40*time.Minute {
			continue
		}
		total := &Sums{Latency: new(sketch.Sketch)}
		for i, ids := range shapes {
			if random.IntN(3) == 0 {
				continue
			}
			s := randomSums(random, 1+random.IntN(5), float64(i+1)*2e6)
			total.Add(s)
			h.store.put(ids, at.UnixNano(), s)
			h.shapes = append(h.shapes, record{testShapes[i], at.UnixNano(), s})
		}
		for i, ids := range clients {
			s := &Sums{Requests: total.Requests / 5, Errors: total.Errors / 5, Seconds: total.Seconds / 5, BytesIn: total.BytesIn / 5, BytesOut: total.BytesOut / 5}
			h.store.put(ids, at.UnixNano(), s)
			h.clients = append(h.clients, record{names[i], at.UnixNano(), s})
		}
		h.store.put(instance, at.UnixNano(), total)
		h.total = append(h.total, record{Names{}, at.UnixNano(), total})
	}
	h.store.flush()
	return h
}

// sumOf adds up records by the simple rule: an interval counts for the range in which it ends.
func sumOf(records []record, r model.TimeRange, name func(*Names) string) map[string]*Sums {
	sums := map[string]*Sums{}
	for i := range records {
		if c := &records[i]; c.at > r.From && c.at <= r.To {
			if sums[name(&c.names)] == nil {
				sums[name(&c.names)] = &Sums{}
			}
			sums[name(&c.names)].Add(c.sums)
		}
	}
	return sums
}

// differ says how sums differ; seconds may differ by rounding.
func differ(got, want *Sums) string {
	for _, m := range amounts {
		if m != timeMeasure && *got.amount(m) != *want.amount(m) {
			return fmt.Sprintf("%s are %d, want %d", measureNames[m], *got.amount(m), *want.amount(m))
		}
	}
	if math.Abs(got.Seconds-want.Seconds) > 1e-9*want.Seconds {
		return fmt.Sprintf("%v s, want %v", got.Seconds, want.Seconds)
	}
	if (got.Latency == nil) != (want.Latency == nil) || got.Latency != nil && !got.Latency.Equal(want.Latency) {
		return "the latencies differ"
	}
	return ""
}

func (h *history) instance(t *testing.T) *Instance {
	t.Helper()
	i, err := h.store.reader().Instance("db 1/" + testAddress)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestRank_anyRangeAndGroup(t *testing.T) {
	h := newHistory(t, 12*time.Hour)
	reader, instance := h.store.reader(), h.instance(t)
	random := rand.New(rand.NewPCG(5, 6))
	names := map[Group]func(*Names) string{
		ByShape:       func(n *Names) string { return n.ID },
		ByCollection:  (*Names).Namespace,
		ByCommand:     func(n *Names) string { return n.Command },
		ByApplication: func(n *Names) string { return n.Application },
		ByClient:      func(n *Names) string { return n.Client },
	}
	ranges := []time.Duration{20 * time.Second, 5 * time.Minute, 90 * time.Minute, 7 * time.Hour, 9 * time.Hour, 40 * time.Hour}
	for n, group := range slices.Concat(Groups, Groups, Groups, Groups, Groups, Groups) {
		length := ranges[n/len(Groups)]
		from := h.end.Add(-length - time.Duration(random.Int64N(int64(3*time.Hour)))).UnixNano()
		r := model.TimeRange{From: from, To: from + int64(length)}
		got, err := reader.Rank(t.Context(), instance, Question{Range: r, Group: group, Order: Orders[n%len(Orders)], Limit: MaxRows, Slices: 30})
		if err != nil {
			t.Fatal(err)
		}
		records := h.shapes
		if group.ofClients() {
			records = h.clients
		}
		want := sumOf(records, r, names[group])
		whole := sumOf(h.total, r, func(*Names) string { return "" })[""]
		if whole == nil {
			whole = &Sums{}
		}
		if d := differ(&got.Total, whole); d != "" {
			t.Errorf("%s over %s: of the total, %s", group, length, d)
		}
		left, rest := whole.Requests, uint64(0)
		for i := range got.Rows {
			row := &got.Rows[i]
			if row.Rest {
				rest = row.Requests
				continue
			}
			if want[row.ID] == nil {
				t.Fatalf("%s over %s: a row %q that nobody wanted", group, length, row.ID)
			}
			if d := differ(&row.Sums, want[row.ID]); d != "" {
				t.Errorf("%s over %s, %s: %s", group, length, row.ID, d)
			}
			left -= row.Requests
			delete(want, row.ID)
			sum := 0.0
			for _, v := range row.Loads {
				sum += v
			}
			if math.Abs(sum-row.Seconds) > 1e-9*row.Seconds {
				t.Errorf("%s over %s, %s: the slices hold %v s of %v", group, length, row.ID, sum, row.Seconds)
			}
			if i > 0 && !got.Rows[i-1].Rest && compareRows(Orders[n%len(Orders)], &got.Rows[i-1].Sums, &row.Sums, got.Rows[i-1].ID, row.ID) > 0 {
				t.Errorf("%s over %s: row %d is in the wrong place", group, length, i)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s over %s: %d rows are missing", group, length, len(want))
		}
		if left != rest {
			t.Errorf("%s over %s: a rest of %d requests, want %d", group, length, rest, left)
		}
		if watched := int64(len(h.within(r))) * int64(testInterval); int64(got.Watched) != min(watched, r.To-r.From) {
			t.Errorf("%s over %s: watched %s, want %s", group, length, got.Watched, time.Duration(watched))
		}
	}
}

func (h *history) within(r model.TimeRange) []record {
	return slices.DeleteFunc(slices.Clone(h.total), func(c record) bool { return c.at <= r.From || c.at > r.To })
}

func TestRank_filtersAndLimit(t *testing.T) {
	h := newHistory(t, time.Hour)
	reader, instance := h.store.reader(), h.instance(t)
	all := model.TimeRange{From: h.begin.UnixNano(), To: h.end.UnixNano()}
	text := func(s string) *string { return &s }
	f := func(q Question, want ...string) {
		t.Helper()
		q.Range, q.Order = all, ByP99
		if q.Limit == 0 {
			q.Limit = 10
		}
		if q.Group == "" {
			q.Group = ByShape
		}
		got, err := reader.Rank(t.Context(), instance, q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range got.Rows {
			ids = append(ids, got.Rows[i].ID)
		}
		if fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%+v: rows %q, want %q", q, ids, want)
		}
		if q.Limit == 2 && got.Found != 5 {
			t.Errorf("found %d", got.Found)
		}
	}
	f(Question{}, "other", "aa04", "aa03", "aa02", "aa01")
	f(Question{Limit: 2}, "other", "aa04")
	f(Question{Command: text("find")}, "aa03", "aa01")
	f(Question{Database: text("shop"), Collection: text("orders")}, "aa02", "aa01")
	f(Question{Collection: text("")}, "aa04")
	f(Question{Text: "SHOP.Orders"}, "aa02", "aa01")
	f(Question{Text: "{aaa0"}, "aa04", "aa03", "aa02", "aa01")
	f(Question{Text: "nothing"})
	f(Question{Group: ByCollection, Command: text("find")}, "shop.users", "shop.orders")
	var limit *query.LimitError
	for _, q := range []Question{
		{Range: all, Limit: 0},
		{Range: all, Limit: MaxRows + 1},
		{Range: all, Limit: 1, Slices: MaxSlices + 1},
		{Range: model.TimeRange{From: 5, To: 5}, Limit: 1},
		{Range: model.TimeRange{From: math.MinInt64, To: math.MaxInt64}, Limit: 1},
	} {
		if _, err := reader.Rank(t.Context(), instance, q); !errors.As(err, &limit) {
			t.Errorf("%+v: %v, want a limit", q, err)
		}
	}
}

func TestProfile(t *testing.T) {
	h := newHistory(t, 12*time.Hour)
	reader, instance := h.store.reader(), h.instance(t)
	for _, length := range []time.Duration{50 * time.Second, 17 * time.Minute, 5 * time.Hour, 11 * time.Hour, 500 * time.Hour} {
		for _, id := range []string{WholeID, "aa02"} {
			r := model.TimeRange{From: h.end.Add(-length).UnixNano() - 777, To: h.end.UnixNano() - 777}
			p, err := reader.Profile(t.Context(), instance, id, r, 60)
			if err != nil {
				t.Fatal(err)
			}
			records := h.shapes
			if id == WholeID {
				records = h.total
			}
			want := sumOf(records, r, func(n *Names) string {
				if id == WholeID {
					return id
				}
				return n.ID
			})[id]
			if d := differ(&p.Sums, want); d != "" {
				t.Errorf("%s over %s: %s", id, length, d)
			}
			if len(p.Columns) > 60 || len(p.Columns) < 5 || p.Start > r.From || p.Start+int64(len(p.Columns))*int64(p.Step) < r.To {
				t.Errorf("%s over %s: %d columns of %s", id, length, len(p.Columns), p.Step)
			}
			var columns Sums
			var watched time.Duration
			for i := range p.Columns {
				columns.Add(&p.Columns[i].Sums)
				watched += p.Columns[i].Watched
				if p.Columns[i].Watched == 0 && p.Columns[i].Requests > 0 {
					t.Errorf("%s over %s: requests in column %d, which nobody watched", id, length, i)
				}
			}
			columns.Latency = p.Latency
			if d := differ(&columns, want); d != "" {
				t.Errorf("%s over %s: in columns, %s", id, length, d)
			}
			if intervals := time.Duration(len(h.within(r))) * testInterval; watched != intervals {
				t.Errorf("%s over %s: watched %s, want %s", id, length, watched, intervals)
			}
			checkHeat(t, p)
		}
	}
	var unknown *UnknownError
	if _, err := reader.Profile(t.Context(), instance, "bb", model.TimeRange{From: 1, To: 2}, 60); !errors.As(err, &unknown) {
		t.Errorf("%v, want that there is no such shape", err)
	}
	var limit *query.LimitError
	if _, err := reader.Profile(t.Context(), instance, WholeID, model.TimeRange{From: 1, To: 2}, MaxColumns+1); !errors.As(err, &limit) {
		t.Errorf("%v, want a limit", err)
	}
}

// checkHeat holds the heat map against the columns and the distribution of the whole.
func checkHeat(t *testing.T, p *Profile) {
	t.Helper()
	cells := uint64(0)
	for _, c := range p.Heat.Cells {
		cells += c.Count
		if c.Column < 0 || c.Column >= len(p.Columns) || c.Row < 0 || c.Row >= len(p.Heat.Bounds)-1 || p.Columns[c.Column].Quantiles[3] == 0 {
			t.Fatalf("cell %+v is outside %d columns and %d bounds", c, len(p.Columns), len(p.Heat.Bounds))
		}
	}
	if cells != p.Latency.Count || !slices.IsSorted(p.Heat.Bounds) {
		t.Errorf("%d requests in cells, want %d", cells, p.Latency.Count)
	}
	low, high := float64(p.Latency.Min)/1e9, float64(p.Latency.Max)/1e9
	// The first bucket of a sketch also holds what is below it.
	if first := max(p.Heat.Bounds[0], 1.1e-6); low*1.5 < first && first > 1.1e-6 || high > p.Heat.Bounds[len(p.Heat.Bounds)-1]*1.02 {
		t.Errorf("rows from %v to %v for latencies from %v to %v", p.Heat.Bounds[0], p.Heat.Bounds[len(p.Heat.Bounds)-1], low, high)
	}
}

func TestCompare(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := newTestStore(t, nil, now)
	instance := s.declareInstance()
	plan := map[string]struct {
		before, after           int
		beforeNanos, afterNanos float64
		want                    Verdict
	}{
		"01": {5, 5, 1e6, 5e6, Slower}, "02": {5, 5, 5e6, 1e6, Faster}, "03": {0, 5, 0, 1e6, Appeared}, "04": {5, 0, 1e6, 0, Gone},
		"05": {2, 9, 1e6, 1e6, More}, "06": {9, 2, 1e6, 1e6, Less}, "07": {5, 5, 1e6, 1.1e6, Same},
	}
	shapes := map[string][]model.ItemID{}
	for id := range plan {
		shapes[id] = s.declareShape(id, "c", "find")
	}
	fixed := func(n int, nanos float64) *Sums {
		sums := &Sums{Requests: uint64(n), Seconds: float64(n) * nanos / 1e9, Latency: new(sketch.Sketch)}
		for range n {
			sums.Latency.Add(int64(nanos))
		}
		return sums
	}
	for n := range 60 {
		at := now.Add(-time.Duration(n) * testInterval).UnixNano()
		total := &Sums{}
		for id, p := range plan {
			count, nanos := p.after, p.afterNanos
			if n >= 30 {
				count, nanos = p.before, p.beforeNanos
			}
			if count > 0 {
				s.put(shapes[id], at, fixed(count, nanos))
				total.Add(fixed(count, nanos))
			}
		}
		s.put(instance, at, total)
	}
	s.flush()
	reader := s.reader()
	i, err := reader.Instance("db 1/" + testAddress)
	if err != nil {
		t.Fatal(err)
	}
	middle := now.Add(-5 * time.Minute).UnixNano()
	c, err := reader.Compare(t.Context(), i, Question{Range: model.TimeRange{From: middle, To: now.UnixNano()}, Group: ByShape, Limit: 100},
		model.TimeRange{From: now.Add(-10 * time.Minute).UnixNano(), To: middle})
	if err != nil {
		t.Fatal(err)
	}
	if c.Found != len(plan) || c.Before.Watched != 5*time.Minute || c.After.Watched != 5*time.Minute {
		t.Errorf("found %d, watched %s and %s", c.Found, c.Before.Watched, c.After.Watched)
	}
	for n, change := range c.Changes {
		p := plan[change.ID]
		load := (float64(p.after)*p.afterNanos - float64(p.before)*p.beforeNanos) / 1e10
		if change.Verdict != p.want || math.Abs(change.LoadChange-load) > 1e-12 {
			t.Errorf("%s is %s with %v, want %s with %v", change.ID, change.Verdict, change.LoadChange, p.want, load)
		}
		if n > 0 && math.Abs(change.LoadChange) > math.Abs(c.Changes[n-1].LoadChange) {
			t.Errorf("row %d is in the wrong place", n)
		}
	}
}

func TestInstances(t *testing.T) {
	h := newHistory(t, 20*time.Minute)
	found := h.store.reader().Instances()
	if len(found) != 1 || found[0].ID() != "db 1/"+testAddress || found[0].HostID != 1 || found[0].interval != testInterval {
		t.Fatalf("got %+v", found)
	}
	for m, id := range found[0].items {
		if e, ok := h.store.catalog.Item(id); !ok || e.Key != `mongo.instance["`+testAddress+`",`+measureNames[m]+"]" {
			t.Errorf("the item of %s is %q", measureNames[m], e.Key)
		}
	}
	var unknown *UnknownError
	for _, id := range []string{"", "/", "db 1", "db 1/10.0.0.1:27017", "other/" + testAddress} {
		if _, err := h.store.reader().Instance(id); !errors.As(err, &unknown) {
			t.Errorf("%q: %v, want that there is no such instance", id, err)
		}
	}
}

// TestSpanOf holds the parts of a range against it: every moment once, trends for whole hours that are over.
func TestSpanOf(t *testing.T) {
	now := time.Date(2026, 11, 30, 14, 20, 0, 0, time.UTC).UnixNano()
	random := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		from := now - random.Int64N(int64(60*time.Hour))
		r := model.TimeRange{From: from, To: from + 1 + random.Int64N(int64(60*time.Hour))}
		s := spanOf(r, now)
		parts := s.values
		if s.hours.From != s.hours.To {
			parts = append(parts, s.hours)
			if s.hours.From%hour != 0 || s.hours.To%hour != 0 || s.hours.To > now-hour || r.To-r.From < int64(trendsFrom) {
				t.Fatalf("%v at %d: hours %v", r, now, s.hours)
			}
		}
		slices.SortFunc(parts, func(a, b model.TimeRange) int { return int(min(max(a.From-b.From, -1), 1)) })
		at := r.From + 1
		for _, p := range parts {
			if p.From != at || p.To <= p.From {
				t.Fatalf("%v: parts %v", r, parts)
			}
			at = p.To
		}
		if at != r.To+1 {
			t.Fatalf("%v: parts %v end too early", r, parts)
		}
	}
}
