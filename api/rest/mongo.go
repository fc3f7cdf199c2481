package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/api"
	"tidemark/model"
	"tidemark/query/requests"
)

const (
	// defaultRequestRange is the range of requests when no begin is given.
	defaultRequestRange = time.Hour
	// defaultColumns is what a chart of medium width can show.
	defaultColumns = 120
	// maxInstances bounds the instances that are listed.
	maxInstances        = 2_000
	maxFingerprintBytes = 64
)

var (
	paramInstance     = api.Param{Name: "instance", Type: "string", About: "Id of the MongoDB instance: HOST/ADDRESS, as /api/mongo/instances gives it.", Required: true}
	paramGroupBy      = api.Param{Name: "group_by", Type: "string", About: "shape (if not given), collection, command, application or client."}
	paramHourFrom     = api.Param{Name: "from", Type: "integer", About: "Begin of the range, Unix milliseconds; an hour before the end if not given."}
	paramMongoFilters = []api.Param{
		{Name: "db", Type: "string", About: "The only database; with collection it may be empty."},
		{Name: "collection", Type: "string", About: "The only collection; empty for commands that have none."},
		{Name: "command", Type: "string", About: "The only command."},
		paramSearch,
	}
)

// mongoRoutes are those of the MongoDB request monitor.
func (a *API) mongoRoutes() []api.Route {
	view := func(pattern string, fn func(*API, *http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.View, PerHost: true, Handler: a.handle(fn), Doc: &doc}
	}
	limit := api.Param{Name: "limit", Type: "integer", About: "At most so many rows, 1 to 5,000; 100 if not given."}
	rank := slices.Concat([]api.Param{
		paramInstance, paramHourFrom, paramTo, paramGroupBy,
		{Name: "order", Type: "string", About: "load (if not given), requests, p50, p95, p99, errors, in, out or docs; the largest first."},
		{Name: "slices", Type: "integer", About: "Length of each row's load chart, 0 to 120; 30 if not given."},
		limit,
	}, paramMongoFilters)
	compare := slices.Concat([]api.Param{
		paramInstance, paramHourFrom, paramTo,
		{Name: "before_from", Type: "integer", About: "Begin of the range to compare with; a day before the begin if not given."},
		{Name: "before_to", Type: "integer", About: "End of the range to compare with; a day before the end if not given."},
		paramGroupBy, limit,
	}, paramMongoFilters)
	return []api.Route{
		view("/api/mongo/instances", (*API).listMongoInstances, api.Doc{
			Summary: "MongoDB instances that agents watch, with their totals over a range; the most loaded first.", Answer: MongoInstanceList{},
			Params: []api.Param{paramHourFrom, paramTo},
		}),
		view("/api/mongo/requests", (*API).rankRequests, api.Doc{
			Summary: "The requests of an instance over a range, by what they cost.", Answer: MongoRanking{}, Params: rank,
		}),
		view("/api/mongo/requests/{fp}", (*API).profileRequests, api.Doc{
			Summary: "One shape, or all requests of an instance, over time: rate, traffic, errors, latency heat map.", Answer: MongoProfile{},
			Params: []api.Param{
				{Name: "fp", Type: "string", About: "Fingerprint of the shape; all for the whole instance.", Required: true},
				paramInstance, paramHourFrom, paramTo,
				{Name: "points", Type: "integer", About: "Columns, 3 to 500; 120 if not given."},
			},
		}),
		view("/api/mongo/compare", (*API).compareRequests, api.Doc{
			Summary: "Two ranges of an instance compared: what is new, slower, more. What changed the load most comes first.", Answer: MongoComparison{}, Params: compare,
		}),
	}
}

// requestRange reads from and to; from is an hour before to when not given.
func (p *params) requestRange(now int64) model.TimeRange {
	to := p.number("to", floorMillis(now)+1, -maxMillis, maxMillis)
	if p.values.Get("from") == "" {
		p.values.Set("from", strconv.FormatInt(to-defaultRequestRange.Milliseconds(), 10))
	}
	return p.timeRange(now)
}

// instance finds the instance that a request names.
func (a *API) instance(p *params) (*requests.Instance, error) {
	if p.err != nil {
		return nil, p.err
	}
	id := p.text("instance")
	if p.err == nil && id == "" {
		p.fail("instance is missing, expected HOST/ADDRESS as /api/mongo/instances gives it")
	}
	if p.err != nil {
		return nil, p.err
	}
	i, err := a.requests.Instance(id)
	return i, mongoError(err)
}

// mongoError gives an error of what is not kept the form of an answer.
func mongoError(err error) error {
	var unknown *requests.UnknownError
	if errors.As(err, &unknown) {
		return api.NotFound(unknown.Error())
	}
	return err
}

// question reads what rankings and comparisons share.
func (a *API) question(p *params) requests.Question {
	q := requests.Question{
		Range: p.requestRange(a.options.Now().UnixNano()), Group: requests.ByShape, Order: requests.ByLoad,
		Limit: int(p.number("limit", defaultLimit, 1, requests.MaxRows)), Text: p.text("search"),
	}
	oneOf(p, "group_by", requests.Groups, &q.Group)
	for name, to := range map[string]**string{"db": &q.Database, "collection": &q.Collection, "command": &q.Command} {
		if p.values.Has(name) {
			v := p.text(name)
			*to = &v
		}
	}
	return q
}

// oneOf reads a parameter that is one of a few words; it leaves to alone when it is not given.
func oneOf[T ~string](p *params, name string, words []T, to *T) {
	v := p.text(name)
	if v == "" {
		return
	}
	if !slices.Contains(words, T(v)) {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = string(w)
		}
		p.fail("%s is %.40q, expected one of %s", name, v, strings.Join(list, ", "))
		return
	}
	*to = T(v)
}

func (a *API) rankRequests(r *http.Request) (any, error) {
	p := readParams(r)
	q := a.question(p)
	oneOf(p, "order", requests.Orders, &q.Order)
	q.Slices = int(p.number("slices", 30, 0, requests.MaxSlices))
	i, err := a.instance(p)
	if err != nil {
		return nil, err
	}
	ranking, err := a.requests.Rank(r.Context(), i, q)
	if err != nil {
		return nil, err
	}
	answer := MongoRanking{
		Instance: a.formatInstance(i), MongoRange: formatRange(ranking), GroupBy: string(q.Group), Order: string(q.Order), Found: ranking.Found,
		Rows: make([]MongoRow, 0, len(ranking.Rows)),
	}
	for n := range ranking.Rows {
		row := &ranking.Rows[n]
		answer.Rows = append(answer.Rows, MongoRow{
			MongoNames: formatNames(&row.Names, row.Rest), Sums: formatSums(&row.Sums, ranking.Watched), Loads: loadsOf(row.Loads, q.Range),
		})
	}
	return answer, nil
}

func (a *API) compareRequests(r *http.Request) (any, error) {
	p := readParams(r)
	q := a.question(p)
	const day = 24 * 3600 * 1000
	before := model.TimeRange{
		From: p.number("before_from", q.Range.From/1e6-day, -maxMillis, maxMillis) * 1e6,
		To:   p.number("before_to", q.Range.To/1e6-day, -maxMillis, maxMillis) * 1e6,
	}
	if before.From >= before.To {
		p.fail("before_from is not before before_to: %d, %d", before.From/1e6, before.To/1e6)
	}
	i, err := a.instance(p)
	if err != nil {
		return nil, err
	}
	c, err := a.requests.Compare(r.Context(), i, q, before)
	if err != nil {
		return nil, err
	}
	answer := MongoComparison{
		Instance: a.formatInstance(i), GroupBy: string(q.Group), Before: formatRange(&c.Before), After: formatRange(&c.After), Found: c.Found,
		Rows: make([]MongoChange, 0, len(c.Changes)),
	}
	for n := range c.Changes {
		row := &c.Changes[n]
		answer.Rows = append(answer.Rows, MongoChange{
			MongoNames: formatNames(&row.Names, row.Rest), Before: formatSums(&row.Before, c.Before.Watched), After: formatSums(&row.After, c.After.Watched),
			Verdict: string(row.Verdict), LoadChange: row.LoadChange,
		})
	}
	return answer, nil
}

func (a *API) profileRequests(r *http.Request) (any, error) {
	p := readParams(r)
	over := p.requestRange(a.options.Now().UnixNano())
	columns := int(p.number("points", defaultColumns, 3, requests.MaxColumns))
	fingerprint := r.PathValue("fp")
	if len(fingerprint) > maxFingerprintBytes {
		p.fail("the fingerprint has %d bytes, expected at most %d", len(fingerprint), maxFingerprintBytes)
	}
	i, err := a.instance(p)
	if err != nil {
		return nil, err
	}
	profile, err := a.requests.Profile(r.Context(), i, fingerprint, over, columns)
	if err != nil {
		return nil, mongoError(err)
	}
	return a.formatProfile(i, profile), nil
}

func (a *API) listMongoInstances(r *http.Request) (any, error) {
	p := readParams(r)
	over := p.requestRange(a.options.Now().UnixNano())
	if p.err != nil {
		return nil, p.err
	}
	return a.mongoInstances(r.Context(), over)
}

func (a *API) mongoInstances(ctx context.Context, over model.TimeRange) (any, error) {
	instances := a.requests.Instances()
	list := MongoInstanceList{From: floorMillis(over.From), To: floorMillis(over.To), Total: len(instances), Instances: []MongoInstanceTotal{}}
	const slicesOfList = 60
	totals, err := a.requests.Totals(ctx, instances[:min(len(instances), maxInstances)], over, slicesOfList)
	if err != nil {
		return nil, fmt.Errorf("list the MongoDB instances: %w", err)
	}
	slices.SortStableFunc(totals, func(x, y requests.Total) int { return cmp.Compare(y.Seconds, x.Seconds) })
	for n := range totals {
		t := &totals[n]
		list.Instances = append(list.Instances, MongoInstanceTotal{
			MongoInstance: a.formatInstance(t.Instance), WatchedMS: t.Watched.Milliseconds(), Total: formatSums(&t.Sums, t.Watched), Loads: loadsOf(t.Loads, over),
		})
	}
	return list, nil
}
