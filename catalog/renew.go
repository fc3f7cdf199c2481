package catalog

import (
	"context"
	"fmt"

	"tidemark/model"
)

// Renew gives the declared ones of a host's items new ids, under which they have no history; the old ids are tombstones. Other ids are passed
// over. It returns the items under their new ids.
func (c *Catalog) Renew(ctx context.Context, host model.HostID, ids []model.ItemID) ([]model.Entry, error) {
	var old []model.ItemID
	var decls []Declaration
	name := ""
	for _, id := range ids {
		e, ok := c.Item(id)
		if !ok || e.Kind != model.Declared || e.HostID != host {
			continue
		}
		old, name = append(old, id), e.Host
		decls = append(decls, Declaration{
			Key: e.Key, Metric: e.Metric, Name: e.Name, Units: e.Units, Help: e.Help, ValueType: e.ValueType, Labels: c.OwnLabels(id), Interval: e.Interval,
		})
	}
	if len(old) == 0 {
		return nil, nil
	}
	c.writer.Lock()
	done, err := c.forget(ctx, old)
	c.writer.Unlock()
	if err != nil {
		return nil, fmt.Errorf("renew %d items, %d of them forgotten: %w", len(old), done, err)
	}
	// Their collector may declare them in between, which is the same.
	entries, _, err := c.Declare(ctx, host, name, decls)
	return entries, err
}
