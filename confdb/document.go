package confdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"tidemark/model"
)

// Document is one host or template as an export has it.
type Document struct {
	// JSON and YAML are the same export.
	JSON, YAML []byte
}

// HostDocument returns a host, TemplateDocument a template, by technical name; ErrNotFound says that there is none.
func (d *DB) HostDocument(ctx context.Context, name string) (Document, error) {
	return d.document(ctx, ExportOptions{Version: documentVersion, Hosts: []string{name}})
}

// TemplateDocument is HostDocument for a template.
func (d *DB) TemplateDocument(ctx context.Context, name string) (Document, error) {
	return d.document(ctx, ExportOptions{Version: documentVersion, Templates: []string{name}})
}

// documentVersion is the form of documents.
const documentVersion = "7.0"

func (d *DB) document(ctx context.Context, o ExportOptions) (Document, error) {
	tree, err := d.exportTree(ctx, o)
	if err != nil {
		return Document{}, err
	}
	var b bytes.Buffer
	emitJSON(&b, tree)
	return Document{JSON: b.Bytes(), YAML: emitYAML(tree)}, nil
}

// emitJSON writes a tree with its keys in their order.
func emitJSON(b *bytes.Buffer, n *node) {
	switch n.kind {
	case objectNode:
		b.WriteByte('{')
		for i, key := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			emitJSONText(b, key)
			b.WriteByte(':')
			emitJSON(b, n.kids[i])
		}
		b.WriteByte('}')
	case listNode:
		b.WriteByte('[')
		for i, kid := range n.kids {
			if i > 0 {
				b.WriteByte(',')
			}
			emitJSON(b, kid)
		}
		b.WriteByte(']')
	case scalarNode:
		emitJSONText(b, n.text)
	default:
		b.WriteString("null")
	}
}

func emitJSONText(b *bytes.Buffer, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("confdb: a text cannot be encoded: " + err.Error())
	}
	b.Write(quoted)
}

// DeleteTemplate removes templates, with all that hosts inherit from them: all of them or, with an error, none. ErrNotFound says that there is none
// of a name.
func (d *DB) DeleteTemplate(ctx context.Context, names ...string) error {
	return d.change(ctx, "delete templates", func(c *change) error {
		for _, name := range names {
			if err := c.deleteTemplate(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *change) deleteTemplate(ctx context.Context, name string) error {
	id, err := c.id(ctx, "SELECT id FROM templates WHERE template = ?", name)
	if err != nil {
		return err
	}
	if id == 0 {
		return fmt.Errorf("template %s: %w", name, ErrNotFound)
	}
	hosts, err := c.hostsOf(ctx, map[model.TemplateID]bool{model.TemplateID(id): true})
	if err != nil {
		return err
	}
	c.templates = true
	for _, h := range hosts {
		c.touch(h)
	}
	if err := c.exec(ctx, "DELETE FROM templates WHERE id = ?", id); err != nil {
		return err
	}
	return c.inherit(ctx, hosts)
}

// Purge gives items of a host new ids, so that their history belongs to nobody any more: it cannot be read from then on, and its bytes are freed
// like those of deleted items. Keys that the host does not have are passed over. It returns the keys whose items have new ids.
func (d *DB) Purge(ctx context.Context, host model.HostID, ids []model.ItemID) (purged map[model.ItemID]model.ItemID, err error) {
	purged = make(map[model.ItemID]model.ItemID)
	err = d.change(ctx, "purge history of host "+strconv.FormatUint(uint64(host), 10), func(c *change) error {
		for _, table := range []string{"items", "discovered_items"} {
			have := make(map[model.ItemID]bool)
			err := c.query(ctx, func(r *sql.Rows) error {
				var id model.ItemID
				err := r.Scan(&id)
				have[id] = true
				return err
			}, "SELECT item_id FROM "+table+" WHERE host_id = ? AND item_id IS NOT NULL", host)
			if err != nil {
				return err
			}
			for _, id := range slices.Sorted(maps.Keys(have)) {
				if !slices.Contains(ids, id) {
					continue
				}
				next, err := c.nextItemID()
				if err != nil {
					return err
				}
				if err := c.exec(ctx, "UPDATE "+table+" SET item_id = ? WHERE item_id = ?", int64(next), int64(id)); err != nil {
					return err
				}
				purged[id] = next
			}
		}
		if len(purged) > 0 {
			c.touch(host)
		}
		return nil
	})
	return purged, err
}
