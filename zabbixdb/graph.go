package zabbixdb

import (
	"context"
	"strconv"
)

// graph is a graph or graph prototype that belongs to hosts or templates themselves.
type graph struct {
	out         object
	owner, rule int64
}

const nativeGraphs = "(SELECT graphid FROM graphs WHERE templateid IS NULL AND flags IN (0,2))"

func (s *Source) graphs(ctx context.Context, byID map[int64]*owner) ([]*graph, error) {
	items, err := s.grouped(ctx, "graphid", `SELECT g.*, i.key_, i.hostid, h.host, d.parent_itemid FROM graphs_items g JOIN items i ON i.itemid = g.itemid
		JOIN hosts h ON h.hostid = i.hostid LEFT JOIN item_discovery d ON d.itemid = i.itemid AND i.flags = 2
		WHERE g.graphid IN `+nativeGraphs+" ORDER BY g.graphid, g.sortorder, g.gitemid")
	if err != nil {
		return nil, err
	}
	axes, err := s.grouped(ctx, "itemid", `SELECT i.itemid, i.key_, h.host FROM items i JOIN hosts h ON h.hostid = i.hostid WHERE i.itemid IN
		(SELECT ymin_itemid FROM graphs) OR i.itemid IN (SELECT ymax_itemid FROM graphs)`)
	if err != nil {
		return nil, err
	}
	var own []*graph
	err = s.each(ctx, "SELECT * FROM graphs WHERE graphid IN "+nativeGraphs+" ORDER BY graphid", func(r row) error {
		g := &graph{out: graphObject(r, axes)}
		var list []object
		for _, i := range items[r.id("graphid")] {
			if g.owner == 0 {
				g.owner = i.id("hostid")
			}
			if rule := i.id("parent_itemid"); rule != 0 {
				g.rule = rule
			}
			list = append(list, graphItem(i))
		}
		g.out.putList("graph_items", list)
		if byID[g.owner] != nil {
			own = append(own, g)
		}
		return nil
	})
	return own, err
}

func graphItem(i row) object {
	o := object{"sortorder": orZero(i["sortorder"]), "color": i["color"], "item": object{"host": i["host"], "key": i["key_"]}}
	o.put("drawtype", enum(drawTypes, i["drawtype"]), "SINGLE_LINE")
	o.put("yaxisside", enum(axisSides, i["yaxisside"]), "LEFT")
	o.put("calc_fnc", enum(calcFunctions, i["calc_fnc"]), "AVG")
	o.put("type", enum(graphItems, i["type"]), "SIMPLE")
	return o
}

func graphObject(r row, axes map[int64][]row) object {
	o := object{"name": r["name"]}
	o.put("uuid", r["uuid"], "")
	o.put("width", r["width"], "900")
	o.put("height", r["height"], "200")
	o.put("yaxismin", decimal(r["yaxismin"]), "0")
	o.put("yaxismax", decimal(r["yaxismax"]), "100")
	o.put("show_work_period", enum(yesNames, r["show_work_period"]), "YES")
	o.put("show_triggers", enum(yesNames, r["show_triggers"]), "YES")
	o.put("show_legend", enum(yesNames, r["show_legend"]), "YES")
	o.put("show_3d", enum(yesNames, r["show_3d"]), "NO")
	o.put("type", enum(graphTypes, r["graphtype"]), "NORMAL")
	o.put("percent_left", decimal(r["percent_left"]), "0")
	o.put("percent_right", decimal(r["percent_right"]), "0")
	o.put("ymin_type_1", enum(axisTypes, r["ymin_type"]), "CALCULATED")
	o.put("ymax_type_1", enum(axisTypes, r["ymax_type"]), "CALCULATED")
	for column, field := range map[string]string{"ymin_itemid": "ymin_item_1", "ymax_itemid": "ymax_item_1"} {
		for _, i := range axes[r.id(column)] {
			o[field] = object{"host": i["host"], "key": i["key_"]}
		}
	}
	o.put("discover", enum(discoverNames, r["discover"]), "DISCOVER")
	return o
}

// decimal writes a number that databases print in different ways.
func decimal(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
