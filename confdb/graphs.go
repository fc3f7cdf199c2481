package confdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"tidemark/model"
)

// graphBody is what is drawn of a graph's export; the rest is kept and not looked at.
type graphBody struct {
	Type  string `json:"type"`
	Items []struct {
		Item struct {
			Key string `json:"key"`
		} `json:"item"`
	} `json:"graph_items"`
	Discover string `json:"discover"`
}

// maxGraphs bounds the graphs of one host.
const maxGraphs = 1_000

// Graphs returns the graphs of a host and of all its templates, by name. Keys of prototypes hold discovery macros.
func (d *DB) Graphs(ctx context.Context, host model.HostID) ([]model.Graph, error) {
	rows, err := d.sql.QueryContext(ctx, `WITH RECURSIVE tree(id) AS (
			SELECT template_id FROM host_templates WHERE host_id = ? UNION SELECT l.parent_id FROM template_links l JOIN tree ON tree.id = l.template_id)
		SELECT 0, name, body FROM graphs WHERE host_id = ? OR template_id IN (SELECT id FROM tree)
		UNION ALL SELECT 1, p.name, p.body FROM rule_prototypes p JOIN discovery_rules r ON r.id = p.rule_id
			WHERE p.kind = 2 AND (r.host_id = ? OR r.template_id IN (SELECT id FROM tree))
		ORDER BY 2, 1 LIMIT ?`, host, host, host, maxGraphs)
	if err != nil {
		return nil, d.wrap("read graphs", err)
	}
	var list []model.Graph
	err = each(rows, func(r *sql.Rows) error {
		var g model.Graph
		var text string
		if err := r.Scan(&g.Prototype, &g.Name, &text); err != nil {
			return err
		}
		if text == "" {
			return nil
		}
		var b graphBody
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return fmt.Errorf("graph %s: %w", g.Name, err)
		}
		if b.Discover == "NO_DISCOVER" {
			return nil
		}
		b.fill(&g)
		list = append(list, g)
		return nil
	})
	return list, d.wrap("read graphs", err)
}

func (b *graphBody) fill(g *model.Graph) {
	g.Stack = b.Type == "STACKED" || b.Type == "PIE" || b.Type == "EXPLODED"
	for _, i := range b.Items {
		g.Keys = append(g.Keys, i.Item.Key)
	}
}
