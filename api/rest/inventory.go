package rest

import (
	"context"

	"tidemark/model"
)

// mapReading gives a value the text of its item's value map.
func mapReading(r *Reading, item *model.Item) {
	if r == nil || item == nil || item.ValueMap == nil {
		return
	}
	if text, ok := item.ValueMap.Map(r.Value.V, item.ValueType.Numeric()); ok {
		r.Value.Mapped = text
	}
}

// inventory is what is known of a host: fields filled in by hand, and those that its items fill, where their newest values go before.
func (a *API) inventory(ctx context.Context, h *model.Host) (map[string]string, error) {
	out := make(map[string]string)
	for _, f := range h.Inventory {
		out[f.Name] = f.Value
	}
	if !h.AutomaticInventory {
		return out, nil
	}
	configuration := a.options.Configuration()
	var ids []model.ItemID
	var linked []*model.Item
	for _, id := range a.options.Catalog.HostItems(h.ID) {
		if item, ok := configuration.Item(id); ok && item.InventoryField != "" {
			ids, linked = append(ids, id), append(linked, item)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	values, err := a.options.Latest.Get(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, item := range linked {
		if r := formatReading(values[i].Last); r != nil {
			mapReading(r, item)
			out[item.InventoryField] = r.Value.V
			if r.Value.Mapped != "" {
				out[item.InventoryField] = r.Value.Mapped
			}
		}
	}
	return out, nil
}
