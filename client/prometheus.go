package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// The calls below are those of Prometheus' HTTP API that the page makes; its other routes are for Prometheus' own clients.

// QueryResult is the result of a PromQL query in Prometheus' form.
type QueryResult struct {
	// Type is vector, matrix, scalar or string; Result is encoded accordingly.
	Type   string          `json:"resultType"`
	Result json.RawMessage `json:"result"`
}

// MetricMetadata is what is known of a metric.
type MetricMetadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// prometheus asks a route of Prometheus' API and takes the data out of the answer. Warnings say that a result is cut by a limit of the request's own.
func prometheus[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	answer, err := get[struct {
		Data T `json:"data"`
	}](ctx, c, "/api/v1/"+path, query)
	return answer.Data, err
}

// setSeconds puts a time as Prometheus takes it into a query.
func setSeconds(query url.Values, name string, at time.Time) {
	if !at.IsZero() {
		query.Set(name, strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64))
	}
}

// Query evaluates PromQL at a time; zero is now.
func (c *Client) Query(ctx context.Context, expression string, at time.Time) (QueryResult, error) {
	query := url.Values{"query": {expression}}
	setSeconds(query, "time", at)
	return prometheus[QueryResult](ctx, c, "query", query)
}

// QueryRange evaluates PromQL at every step from one time to another, both included; at most 11,000 steps.
func (c *Client) QueryRange(ctx context.Context, expression string, from, to time.Time, step time.Duration) (QueryResult, error) {
	query := url.Values{"query": {expression}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)}}
	setSeconds(query, "start", from)
	setSeconds(query, "end", to)
	return prometheus[QueryResult](ctx, c, "query_range", query)
}

// LabelNames returns the names of labels, of the series that fit one of the selectors if there are any.
func (c *Client) LabelNames(ctx context.Context, selectors ...string) ([]string, error) {
	return prometheus[[]string](ctx, c, "labels", url.Values{"match[]": selectors})
}

// LabelValues returns the values of a label, of the series that fit one of the selectors if there are any.
func (c *Client) LabelValues(ctx context.Context, label string, selectors ...string) ([]string, error) {
	return prometheus[[]string](ctx, c, "label/"+url.PathEscape(label)+"/values", url.Values{"match[]": selectors})
}

// Series returns the labels of the series that fit one of the selectors; at least one must be given.
func (c *Client) Series(ctx context.Context, selectors ...string) ([]map[string]string, error) {
	return prometheus[[]map[string]string](ctx, c, "series", url.Values{"match[]": selectors})
}

// Metadata returns type, help and unit of metric names; metric is the only one, empty for all.
func (c *Client) Metadata(ctx context.Context, metric string) (map[string][]MetricMetadata, error) {
	query := url.Values{}
	setText(query, "metric", metric)
	return prometheus[map[string][]MetricMetadata](ctx, c, "metadata", query)
}
