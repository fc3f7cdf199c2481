package zabbixdb

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// maxProblems bounds the problems of a comparison.
const maxProblems = 50_000

// Problem is one that Zabbix saw. Times are Unix nanoseconds.
type Problem struct {
	Host string `json:"host"`
	// Trigger is the trigger's name as configured, Name the problem's.
	Trigger  string `json:"trigger"`
	Name     string `json:"name"`
	Severity int    `json:"severity"`
	Began    int64  `json:"began"`
	// Ended is zero while it is open.
	Ended int64 `json:"ended,omitempty"`
}

// Problems reads the problems of triggers that began in a range.
func (s *Source) Problems(ctx context.Context, r model.TimeRange) ([]Problem, error) {
	var list []Problem
	query := fmt.Sprintf(`SELECT e.clock, e.ns, e.name, e.severity, t.description, r.clock AS endclock, r.ns AS endns,
		(SELECT h.host FROM hosts h JOIN items i ON i.hostid = h.hostid WHERE i.itemid = (SELECT f.itemid FROM functions f WHERE f.functionid =
		(SELECT min(functionid) FROM functions WHERE triggerid = t.triggerid))) AS host
		FROM events e JOIN triggers t ON t.triggerid = e.objectid LEFT JOIN event_recovery v ON v.eventid = e.eventid LEFT JOIN events r ON r.eventid = v.r_eventid
		WHERE e.source = 0 AND e.object = 0 AND e.value = 1 AND e.clock >= %d AND e.clock < %d ORDER BY e.clock, e.eventid`, floorSeconds(r.From), floorSeconds(r.To))
	return list, s.each(ctx, query, func(row row) error {
		if len(list) >= maxProblems {
			return fmt.Errorf("more than %d problems; ask for a shorter time", maxProblems)
		}
		p := Problem{
			Host: row["host"], Trigger: row["description"], Name: row["name"], Severity: row.num("severity"),
			Began: row.id("clock")*int64(time.Second) + row.id("ns"),
		}
		if row["endclock"] != "" {
			p.Ended = row.id("endclock")*int64(time.Second) + row.id("endns")
		}
		list = append(list, p)
		return nil
	})
}

// WhyQuiet says why Zabbix may have no problem of a trigger; empty when nothing is known.
func (s *Source) WhyQuiet(ctx context.Context, host, trigger string) (string, error) {
	reason := "Zabbix has no trigger of this name on the host: it comes from a template of this server"
	query := `SELECT t.status, t.state, t.error, h.status AS hoststatus, i.status AS itemstatus, i.key_, d.state AS itemstate, d.error AS itemerror, h.maintenance_status
		FROM triggers t JOIN functions f ON f.triggerid = t.triggerid JOIN items i ON i.itemid = f.itemid JOIN hosts h ON h.hostid = i.hostid LEFT JOIN item_rtdata d ON d.itemid = i.itemid
		WHERE h.host = ` + s.quoted(host) + ` AND t.description = ` + s.quoted(trigger) + ` AND h.status IN (0,1) AND t.flags IN (0,4)`
	return reason, s.each(ctx, query, func(r row) error {
		switch {
		case r["hoststatus"] == "1":
			reason = "the host is off in Zabbix"
		case r["status"] == "1":
			reason = "the trigger is off in Zabbix"
		case r["itemstatus"] == "1":
			reason = "the item " + r["key_"] + " is off in Zabbix"
		case r["itemstate"] == "1":
			reason = "the item " + r["key_"] + " is not supported in Zabbix: " + r["itemerror"]
		case r["state"] == "1":
			reason = "Zabbix cannot evaluate the trigger: " + r["error"]
		case strings.HasPrefix(reason, "Zabbix has no trigger"):
			reason = "both have the trigger: the values differ or were evaluated at another moment; compare the item's values around that time"
		}
		return nil
	})
}

// quoted writes a text into a statement.
func (s *Source) quoted(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if s.mysql {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'"
}

// ComparedItem is an item with its hours in Zabbix.
type ComparedItem struct {
	Host  string         `json:"host"`
	Key   string         `json:"key"`
	Type  int            `json:"type"`
	Hours []ComparedHour `json:"hours"`
}

// ComparedHour is an hour of trends. At is Unix seconds.
type ComparedHour struct {
	At    int64   `json:"at"`
	Count uint64  `json:"count"`
	Min   float64 `json:"min"`
	Avg   float64 `json:"avg"`
	Max   float64 `json:"max"`
}

// comparedAtOnce is how many items are compared together.
const comparedAtOnce = 200

// CompareTrends hands over the hours of numeric items that began in a range, some items at a time, and how far it is.
func CompareTrends(ctx context.Context, dsn string, items []Item, r model.TimeRange, fn func(part []ComparedItem, done, total int) error) (err error) {
	var refs []HistoryItem
	for i, item := range items {
		if item.Type.Numeric() {
			refs = append(refs, HistoryItem{ID: model.ItemID(i + 1), Zabbix: item.Zabbix, Type: item.Type})
		}
	}
	h, err := OpenHistory(ctx, dsn, refs, nil)
	if err != nil {
		return err
	}
	defer func() { err = joinClose(err, h) }()
	for from := 0; from < len(refs); from += comparedAtOnce {
		chunk := refs[from:min(from+comparedAtOnce, len(refs))]
		q := storage.Query{Range: r}
		hours := make(map[model.ItemID][]ComparedHour)
		for _, ref := range chunk {
			q.Items = append(q.Items, ref.ID)
		}
		err := h.Trends(ctx, q, func(c *storage.TrendColumns) error {
			for i := range c.Trends {
				hours[c.Item] = append(hours[c.Item], HourOf(&c.Trends[i], c.Type))
			}
			return nil
		})
		if err != nil {
			return err
		}
		part := make([]ComparedItem, len(chunk))
		for i, ref := range chunk {
			item := items[ref.ID-1]
			part[i] = ComparedItem{Host: item.Host, Key: item.Key, Type: int(item.Type), Hours: hours[ref.ID]}
		}
		if err := fn(part, from+len(chunk), len(refs)); err != nil {
			return err
		}
	}
	return nil
}

func joinClose(err error, h *History) error {
	if closed := h.Close(); err == nil {
		return closed
	}
	return err
}

// HourOf is an hour of trends in this form.
func HourOf(t *model.Trend, vt model.ValueType) ComparedHour {
	number := func(bits uint64) float64 {
		if vt == model.Uint {
			return float64(bits)
		}
		return finite(math.Float64frombits(bits))
	}
	return ComparedHour{At: t.At / int64(time.Second), Count: t.Count, Min: number(t.Min), Avg: finite(t.Average(vt)), Max: number(t.Max)}
}

// finite is a number that JSON has a form for.
func finite(f float64) float64 {
	switch {
	case math.IsNaN(f):
		return 0
	case math.IsInf(f, 0):
		return math.Copysign(math.MaxFloat64, f)
	}
	return f
}
