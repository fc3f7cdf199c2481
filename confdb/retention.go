package confdb

import (
	"context"
	"time"
)

// RetentionOverride returns how long values and trends of all items are kept, whatever the items say; zero leaves it to the items.
func (d *DB) RetentionOverride(ctx context.Context) (history, trends time.Duration, err error) {
	const query = `SELECT coalesce((SELECT value FROM meta WHERE name = 'override_history'), 0), coalesce((SELECT value FROM meta WHERE name = 'override_trends'), 0)`
	var h, t int64
	err = d.sql.QueryRowContext(ctx, query).Scan(&h, &t)
	return time.Duration(h) * time.Second, time.Duration(t) * time.Second, d.wrap("read the override of the retention", err)
}

// SetRetentionOverride keeps it, in whole seconds.
func (d *DB) SetRetentionOverride(ctx context.Context, history, trends time.Duration) error {
	return d.change(ctx, "change the override of the retention", func(c *change) error {
		const keep = `INSERT INTO meta (name, value) VALUES ('override_history', ?), ('override_trends', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
		return c.exec(ctx, keep, int64(history/time.Second), int64(trends/time.Second))
	})
}
