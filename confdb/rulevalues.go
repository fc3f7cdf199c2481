package confdb

import (
	"context"
	"database/sql"

	"tidemark/model"
)

// KeepRuleValues keeps values of discovery rules until Discover or RuleFailed ends them. One that is not newer than the last that was kept or
// ended is left out, and so is one whose rule is gone.
func (d *DB) KeepRuleValues(ctx context.Context, values []model.RuleValue) error {
	return d.change(ctx, "keep values of discovery rules", func(c *change) error {
		for _, v := range values {
			if err := c.exec(ctx, "UPDATE rule_items SET value = ?, value_at = ? WHERE item_id = ? AND value_at < ?", v.Text, v.Order, v.Item, v.Order); err != nil {
				return err
			}
		}
		return nil
	})
}

// KeptRuleValues calls fn for each value that is kept, the oldest first, and returns the order of the newest value that was ever kept or ended.
// fn must not use the database.
func (d *DB) KeptRuleValues(ctx context.Context, fn func(model.RuleValue)) (newest int64, err error) {
	const what = "read kept values of discovery rules"
	if err := d.sql.QueryRowContext(ctx, "SELECT coalesce(max(value_at), 0) FROM rule_items").Scan(&newest); err != nil {
		return 0, d.wrap(what, err)
	}
	rows, err := d.sql.QueryContext(ctx, "SELECT item_id, host_id, value_at, value FROM rule_items WHERE value IS NOT NULL ORDER BY value_at, item_id")
	if err != nil {
		return 0, d.wrap(what, err)
	}
	err = each(rows, func(r *sql.Rows) error {
		var v model.RuleValue
		if err := r.Scan(&v.Item, &v.Host, &v.Order, &v.Text); err != nil {
			return err
		}
		fn(v)
		return nil
	})
	return newest, d.wrap(what, err)
}

// ended sets columns of a rule's item after its value with that order was worked on, and lets go of the value that is kept unless it is newer.
func (c *change) ended(ctx context.Context, item model.ItemID, order int64, set string, args ...any) error {
	args = append(args, order, order, order, item)
	return c.exec(ctx, "UPDATE rule_items SET "+set+`,
		value = CASE WHEN value_at <= ? THEN NULL ELSE value END,
		value_at = CASE WHEN value_at < ? THEN ? ELSE value_at END WHERE item_id = ?`, args...)
}
