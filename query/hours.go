package query

import (
	"context"

	"tidemark/model"
	"tidemark/storage"
)

// EachTrend calls fn with hourly trends of items in rising time order, for callers that do not know engines. The trends are valid during the
// call. The caller is between Begin and its end.
func (q *Querier) EachTrend(ctx context.Context, items []model.ItemID, r model.TimeRange, fn func(model.ItemID, model.ValueType, []model.Trend) error) error {
	return q.Trends(ctx, items, r, func(c *storage.TrendColumns) error { return fn(c.Item, c.Type, c.Trends) })
}
