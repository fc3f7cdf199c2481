package client

import (
	"context"
	"net/url"
	"time"
)

// MongoFilter says which requests of a MongoDB instance are ranked or compared. Zero fields do not filter and leave the choice to the server.
type MongoFilter struct {
	// Instance is HOST/ADDRESS, as MongoInstances gives it; it must be given.
	Instance string
	// From and To bound the range, From included and To not; by default the last hour.
	From, To time.Time
	// GroupBy is shape, collection, command, application or client; empty for shape.
	GroupBy string
	// Database, Collection and Command are the only ones; Search must be in the shape, in any case of letters.
	Database, Collection, Command, Search string
	// Limit is how many rows, 1 to 5,000; 0 is 100.
	Limit int
}

// Query is the filter as the routes of MongoDB's requests take it.
func (f MongoFilter) Query() url.Values {
	query := url.Values{"instance": {f.Instance}}
	setTime(query, "from", f.From)
	setTime(query, "to", f.To)
	setText(query, "group_by", f.GroupBy)
	setText(query, "db", f.Database)
	setText(query, "collection", f.Collection)
	setText(query, "command", f.Command)
	setText(query, "search", f.Search)
	setCount(query, "limit", f.Limit)
	return query
}

// MongoInstances returns the MongoDB instances that agents watch with their totals over a range, the most loaded first; zero times are the last hour.
func (c *Client) MongoInstances(ctx context.Context, from, to time.Time) (MongoInstanceList, error) {
	query := url.Values{}
	setTime(query, "from", from)
	setTime(query, "to", to)
	return get[MongoInstanceList](ctx, c, "/api/mongo/instances", query)
}

// MongoRequests returns the requests of an instance over a range, by what they cost: order is load, requests, p50, p95, p99, errors, in, out or docs, the
// largest first; empty for load.
func (c *Client) MongoRequests(ctx context.Context, f MongoFilter, order string) (MongoRanking, error) {
	query := f.Query()
	setText(query, "order", order)
	return get[MongoRanking](ctx, c, "/api/mongo/requests", query)
}

// MongoRequest returns one shape over the range of the filter: rate, traffic, errors and a heat map of latencies. The fingerprint "all" is the whole
// instance; points are 3 to 500, 0 for 120. Of the filter only the instance and the range count.
func (c *Client) MongoRequest(ctx context.Context, fingerprint string, f MongoFilter, points int) (MongoProfile, error) {
	query := MongoFilter{Instance: f.Instance, From: f.From, To: f.To}.Query()
	setCount(query, "points", points)
	return get[MongoProfile](ctx, c, "/api/mongo/requests/"+url.PathEscape(fingerprint), query)
}

// MongoCompare compares the range of the filter with an earlier one, zero times for the same a day before. What changed the load most comes first.
func (c *Client) MongoCompare(ctx context.Context, f MongoFilter, beforeFrom, beforeTo time.Time) (MongoComparison, error) {
	query := f.Query()
	setTime(query, "before_from", beforeFrom)
	setTime(query, "before_to", beforeTo)
	return get[MongoComparison](ctx, c, "/api/mongo/compare", query)
}
