package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tidemark/model"
)

// display fills in what decides how an item's values are shown: the name of its value map and the inventory field that they fill.
func (f *itemFields) display(i *model.ItemConfig) error {
	if !strings.Contains(f.extra, `"valuemap"`) && !strings.Contains(f.extra, `"inventory_link"`) {
		return nil
	}
	var extra struct {
		ValueMap struct {
			Name string `json:"name"`
		} `json:"valuemap"`
		Inventory string `json:"inventory_link"`
	}
	if err := json.Unmarshal([]byte(f.extra), &extra); err != nil {
		return fmt.Errorf("column extra: %w", err)
	}
	i.ValueMapName = extra.ValueMap.Name
	if extra.Inventory != "NONE" {
		i.InventoryField = strings.ToLower(extra.Inventory)
	}
	return nil
}

// valueMaps are value maps by name.
type valueMaps map[string]*model.ValueMap

var mappingKinds = map[string]model.MappingKind{
	"": model.MapEqual, "EQUAL": model.MapEqual, "GREATER_OR_EQUAL": model.MapAtLeast, "LESS_OR_EQUAL": model.MapAtMost, "IN_RANGE": model.MapRange,
	"REGEXP": model.MapRegex, "DEFAULT": model.MapDefault,
}

func unpackValueMap(name, text string) (*model.ValueMap, error) {
	var body struct {
		Mappings []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
			Text  string `json:"newvalue"`
		} `json:"mappings"`
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			return nil, fmt.Errorf("value map %s: %w", name, err)
		}
	}
	m := &model.ValueMap{Name: name}
	for _, x := range body.Mappings {
		mapping := model.Mapping{Kind: mappingKinds[x.Type], Value: x.Value, Text: x.Text}
		if mapping.Kind == model.MapRegex {
			mapping.Pattern, _ = regexp.Compile(x.Value) // one that does not compile fits nothing
		}
		m.Mappings = append(m.Mappings, mapping)
	}
	return m, nil
}

// OwnedValueMap is a value map with the host or template that has it: HostID or TemplateID is set.
type OwnedValueMap struct {
	model.ValueMap
	UUID       string
	HostID     model.HostID
	TemplateID model.TemplateID
}

// ValueMaps lists the value maps of all hosts and templates.
func (d *DB) ValueMaps(ctx context.Context) ([]OwnedValueMap, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT coalesce(host_id, 0), coalesce(template_id, 0), uuid, name, mappings FROM value_maps ORDER BY id")
	if err != nil {
		return nil, d.wrap("list value maps", err)
	}
	var list []OwnedValueMap
	err = each(rows, func(r *sql.Rows) error {
		var o OwnedValueMap
		var text string
		if err := r.Scan(&o.HostID, &o.TemplateID, &o.UUID, &o.Name, &text); err != nil {
			return err
		}
		m, err := unpackValueMap(o.Name, text)
		if err == nil {
			o.ValueMap = *m
		}
		list = append(list, o)
		return err
	})
	return list, d.wrap("list value maps", err)
}

// readValueMaps reads the templates' value maps.
func (f *definitions) readValueMaps(ctx context.Context, tx *sql.Tx) error {
	return rowsOf(ctx, tx, func(r *sql.Rows) error {
		var t model.TemplateID
		var name, text string
		if err := r.Scan(&t, &name, &text); err != nil {
			return err
		}
		if f.valueMaps[t] == nil {
			f.valueMaps[t] = valueMaps{}
		}
		var err error
		f.valueMaps[t][name], err = unpackValueMap(name, text)
		return err
	}, "SELECT template_id, name, mappings FROM value_maps WHERE template_id IS NOT NULL")
}

// readValueMaps reads hosts' own value maps.
func (r *hostReader) readValueMaps(ctx context.Context, span idRange) error {
	return rowsOf(ctx, r.tx, func(rows *sql.Rows) error {
		var h model.HostID
		var name, text string
		if err := rows.Scan(&h, &name, &text); err != nil {
			return err
		}
		if r.valueMaps == nil {
			r.valueMaps = make(map[model.HostID]valueMaps)
		}
		if r.valueMaps[h] == nil {
			r.valueMaps[h] = valueMaps{}
		}
		var err error
		r.valueMaps[h][name], err = unpackValueMap(name, text)
		return err
	}, "SELECT host_id, name, mappings FROM value_maps WHERE host_id BETWEEN ? AND ?", span.from, span.to)
}

// unpackInventory reads the inventory of a host, and whether items fill it.
func unpackInventory(text string) (fields model.Labels, automatic bool, err error) {
	if !strings.Contains(text, `"inventory`) {
		return nil, false, nil
	}
	var extra struct {
		Mode   string         `json:"inventory_mode"`
		Fields map[string]any `json:"inventory"`
	}
	if err := json.Unmarshal([]byte(text), &extra); err != nil {
		return nil, false, fmt.Errorf("column extra: %w", err)
	}
	if extra.Mode == "DISABLED" {
		return nil, false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(extra.Fields)) {
		if value, ok := extra.Fields[name].(string); ok && name != "inventory_mode" {
			fields = append(fields, model.Label{Name: name, Value: value})
		}
	}
	inner, _ := extra.Fields["inventory_mode"].(string)
	return fields, extra.Mode == "AUTOMATIC" || inner == "AUTOMATIC", nil
}
