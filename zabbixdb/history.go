package zabbixdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// ErrReadOnly is for writes to a Zabbix database.
var ErrReadOnly = errors.New("the Zabbix database is only read")

const (
	// columnValues and columnBytes bound what is handed over at once.
	columnValues = 4096
	columnBytes  = 1 << 20
	// firstsAtOnce is how many items are asked for their first value in one statement.
	firstsAtOnce = 200
)

// Item is an item that may have values.
type Item struct {
	Zabbix    int64
	Host, Key string
	Type      model.ValueType
}

// Items hands over the items of hosts, also those that discovery made.
func (s *Source) Items(ctx context.Context, fn func(Item) error) error {
	return s.each(ctx, `SELECT i.itemid, i.key_, i.value_type, h.host FROM items i JOIN hosts h ON h.hostid = i.hostid
		WHERE h.status IN (0,1) AND h.flags IN (0,4) AND i.flags IN (0,4) ORDER BY i.itemid`, func(r row) error {
		t, ok := historyTypes[orZero(r["value_type"])]
		if !ok {
			s.leave("items", 1, "their type of value %s is not known", r["value_type"])
			return nil
		}
		return fn(Item{Zabbix: r.id("itemid"), Host: r["host"], Key: r["key_"], Type: t})
	})
}

var historyTypes = map[string]model.ValueType{"0": model.Float, "1": model.Character, "2": model.LogEntry, "3": model.Uint, "4": model.Text, "5": model.Binary}

// historyTables are the tables of values by type.
var historyTables = map[model.ValueType]string{
	model.Float: "history", model.Uint: "history_uint", model.Character: "history_str", model.Text: "history_text", model.LogEntry: "history_log", model.Binary: "history_bin",
}

// trendTables are those of trends.
var trendTables = map[model.ValueType]string{model.Float: "trends", model.Uint: "trends_uint"}

// Tables are the names of the tables of values and trends.
func Tables() []string {
	var names []string
	for _, tables := range []map[model.ValueType]string{historyTables, trendTables} {
		for _, name := range tables {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// HistoryItem says which item of Zabbix is which here.
type HistoryItem struct {
	ID     model.ItemID
	Zabbix int64
	Type   model.ValueType
}

// History reads values and trends. It is a storage.Engine that takes nothing. Unlike a Source it holds no transaction, which over hours would
// keep the database from cleaning up: each statement is a read-only transaction of its own.
type History struct {
	source *Source
	items  map[model.ItemID]HistoryItem
	skip   map[string]bool
	// repeated counts rows that came twice: databases that began before Zabbix 6.0 have no primary key on values.
	repeated uint64
}

// OpenHistory connects. skip are names of tables that are passed over.
func OpenHistory(ctx context.Context, dsn string, items []HistoryItem, skip []string) (*History, error) {
	h := &History{source: &Source{left: make(map[leftKey]int)}, items: make(map[model.ItemID]HistoryItem, len(items)), skip: make(map[string]bool)}
	for _, name := range skip {
		if !slices.Contains(Tables(), name) {
			return nil, fmt.Errorf("there is no table %.40q of values; expected one of %s", name, strings.Join(Tables(), ", "))
		}
		h.skip[name] = true
	}
	for _, i := range items {
		h.items[i.ID] = i
	}
	if err := h.source.connect(dsn); err != nil {
		return nil, err
	}
	if err := h.source.answers(ctx, connectTime); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	if err := h.source.db.QueryRowContext(ctx, "SELECT mandatory FROM dbversion").Scan(&h.source.mandatory); err != nil {
		return nil, errors.Join(fmt.Errorf("read the version of the database: %w", err), h.Close())
	}
	return h, nil
}

// Repeated is how many rows came twice.
func (h *History) Repeated() uint64 { return h.repeated }

// Append takes nothing.
func (*History) Append(context.Context, *model.Batch) (model.LSN, error) { return 0, ErrReadOnly }

// Prune drops nothing.
func (*History) Prune(context.Context, int64) (int64, error) { return 0, ErrReadOnly }

// Close ends the connection.
func (h *History) Close() error { return h.source.db.Close() }

// query runs one statement in a read-only transaction; questions stand for arguments.
func (h *History) query(ctx context.Context, query string, fn func(*sql.Rows) error, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, StatementTimeout)
	defer cancel()
	if !h.source.mysql {
		for i := range args {
			query = strings.Replace(query, "?", "$"+strconv.Itoa(i+1), 1)
		}
	}
	tx, err := h.source.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read the Zabbix database: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read the Zabbix database: %w (%.120s)", err, query)
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the Zabbix database: %w (%.120s)", err, query)
	}
	return nil
}

// byTable puts items together whose values are in one table.
func (h *History) byTable(ids []model.ItemID, tables map[model.ValueType]string) map[model.ValueType][]HistoryItem {
	m := make(map[model.ValueType][]HistoryItem)
	for _, id := range ids {
		i, ok := h.items[id]
		if table := tables[i.Type]; ok && table != "" && !h.skip[table] {
			m[i.Type] = append(m[i.Type], i)
		}
	}
	return m
}

// First is the time of the oldest value of items, Unix nanoseconds; zero when there is none.
func (h *History) First(ctx context.Context, ids []model.ItemID) (int64, error) {
	first := int64(0)
	for t, items := range h.byTable(ids, historyTables) {
		if t == model.Binary && h.source.mandatory < 7000000 {
			continue
		}
		for chunk := range slices.Chunk(items, firstsAtOnce) {
			parts := make([]string, len(chunk))
			for i := range chunk {
				parts[i] = fmt.Sprintf("(SELECT clock FROM %s WHERE itemid = %d ORDER BY clock LIMIT 1)", historyTables[t], chunk[i].Zabbix)
			}
			err := h.query(ctx, strings.Join(parts, " UNION ALL "), func(r *sql.Rows) error {
				var clock int64
				err := r.Scan(&clock)
				if at := clock * int64(time.Second); first == 0 || at < first {
					first = at
				}
				return err
			})
			if err != nil {
				return 0, err
			}
		}
	}
	return first, nil
}

// Read streams values. Items come by table and number in Zabbix, not in q's order. Two values of one instant are kept apart as engines do it:
// the second gets the next nanosecond.
func (h *History) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	if q.Newest != 0 {
		return errors.New("the newest values of a Zabbix database cannot be asked for")
	}
	for t, items := range h.byTable(q.Items, historyTables) {
		if t == model.Binary && h.source.mandatory < 7000000 {
			continue
		}
		if err := h.readTable(ctx, t, items, q.Range, fn); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) readTable(ctx context.Context, t model.ValueType, items []HistoryItem, r model.TimeRange, fn func(*model.Columns) error) error {
	ids := make([]int64, len(items))
	byZabbix := make(map[int64]model.ItemID, len(items))
	for i := range items {
		ids[i], byZabbix[items[i].Zabbix] = items[i].Zabbix, items[i].ID
	}
	fields := "value"
	if t == model.LogEntry {
		fields = "value, timestamp, source, severity, logeventid"
		if h.source.mysql {
			fields = strings.Replace(fields, "timestamp", "`timestamp`", 1)
		}
	}
	w := &columnWriter{h: h, columns: model.Columns{Type: t}, fn: fn}
	query := fmt.Sprintf("SELECT itemid, clock, ns, %s FROM %s WHERE itemid IN %s AND clock >= ? AND clock <= ? ORDER BY itemid, clock, ns", fields, historyTables[t], list(ids))
	err := h.query(ctx, query, func(rows *sql.Rows) error {
		v := scanned{valueType: t}
		if err := v.scan(rows); err != nil {
			return err
		}
		at := v.clock*int64(time.Second) + v.ns
		if !r.Contains(at) {
			return nil
		}
		return w.add(byZabbix[v.item], at, &v)
	}, floorSeconds(r.From), floorSeconds(r.To))
	if err != nil {
		return err
	}
	return w.flush()
}

// floorSeconds is a time for a column clock, which is a 32-bit integer.
func floorSeconds(at int64) int64 {
	return min(max(at/int64(time.Second), 0), math.MaxInt32)
}

// scanned is one row of a table of values.
type scanned struct {
	valueType       model.ValueType
	item, clock, ns int64
	bits            uint64
	text            []byte
	raw             sql.RawBytes
}

func (v *scanned) scan(rows *sql.Rows) error {
	switch v.valueType {
	case model.Float:
		var f float64
		err := rows.Scan(&v.item, &v.clock, &v.ns, &f)
		v.bits = math.Float64bits(f)
		return err
	case model.Uint:
		if err := rows.Scan(&v.item, &v.clock, &v.ns, &v.raw); err != nil {
			return err
		}
		var err error
		if v.bits, err = strconv.ParseUint(string(v.raw), 10, 64); err != nil {
			return fmt.Errorf("item %d of Zabbix has the value %.40q, expected 0 to 18446744073709551615", v.item, v.raw)
		}
		return nil
	case model.LogEntry:
		var l model.Log
		var text, source string
		var severity, event int64
		if err := rows.Scan(&v.item, &v.clock, &v.ns, &text, &l.At, &source, &severity, &event); err != nil {
			return err
		}
		l.Text, l.Source, l.Severity, l.EventID = text, source, uint32(severity), uint32(event) //nolint:gosec // columns of 32 bits
		v.text = model.AppendLog(nil, l)
		return nil
	}
	err := rows.Scan(&v.item, &v.clock, &v.ns, &v.raw)
	v.text = v.raw
	return err
}

// columnWriter gathers rows into columns.
type columnWriter struct {
	h       *History
	columns model.Columns
	fn      func(*model.Columns) error
	// original is the time of the last row before it was moved, and last its value.
	original, at int64
	bits         uint64
	text         []byte
	any          bool
}

func (w *columnWriter) add(item model.ItemID, at int64, v *scanned) error {
	c := &w.columns
	if item != c.Item {
		if err := w.flush(); err != nil {
			return err
		}
		c.Item, w.any = item, false
	}
	if w.any && at == w.original && v.bits == w.bits && string(v.text) == string(w.text) {
		w.h.repeated++
		return nil
	}
	w.original = at
	if w.any && at <= w.at {
		at = w.at + 1
	}
	w.at, w.bits, w.text, w.any = at, v.bits, append(w.text[:0], v.text...), true
	bits := v.bits
	if v.valueType.InArena() {
		bits = model.Span(len(c.Arena), len(v.text))
		c.Arena = append(c.Arena, v.text...)
	}
	c.At, c.Bits = append(c.At, at), append(c.Bits, bits)
	if len(c.At) >= columnValues || len(c.Arena) >= columnBytes {
		return w.flush()
	}
	return nil
}

func (w *columnWriter) flush() error {
	c := &w.columns
	if len(c.At) == 0 {
		return nil
	}
	err := w.fn(c)
	c.At, c.Bits, c.Arena = c.At[:0], c.Bits[:0], c.Arena[:0]
	return err
}

// Trends streams hours by table and number in Zabbix. Zabbix keeps an hour's count, least, average and greatest; first and last are set to the
// average, and the increase, which is not known, to zero.
func (h *History) Trends(ctx context.Context, q storage.Query, fn func(*storage.TrendColumns) error) error {
	for t, items := range h.byTable(q.Items, trendTables) {
		ids := make([]int64, len(items))
		byZabbix := make(map[int64]model.ItemID, len(items))
		for i := range items {
			ids[i], byZabbix[items[i].Zabbix] = items[i].Zabbix, items[i].ID
		}
		var c storage.TrendColumns
		give := func() error {
			if len(c.Trends) == 0 {
				return nil
			}
			return fn(&c)
		}
		query := fmt.Sprintf("SELECT itemid, clock, num, value_min, value_avg, value_max FROM %s WHERE itemid IN %s AND clock >= ? AND clock <= ? ORDER BY itemid, clock", trendTables[t], list(ids))
		err := h.query(ctx, query, func(rows *sql.Rows) error {
			id, row, err := scanTrend(rows, t)
			if err != nil || row.Count == 0 || !q.Range.Contains(row.At) {
				return err
			}
			if item := byZabbix[id]; item != c.Item {
				if err := give(); err != nil {
					return err
				}
				c = storage.TrendColumns{Item: item, Type: t}
			}
			c.Trends = append(c.Trends, row)
			return nil
		}, floorSeconds(q.Range.From), floorSeconds(q.Range.To))
		if err == nil {
			err = give()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func scanTrend(rows *sql.Rows, t model.ValueType) (item int64, row model.Trend, err error) {
	var clock, num int64
	if t == model.Float {
		var least, average, greatest float64
		err = rows.Scan(&item, &clock, &num, &least, &average, &greatest)
		row.Min, row.First, row.Max = math.Float64bits(least), math.Float64bits(average), math.Float64bits(greatest)
		row.Sum = average * float64(num)
	} else {
		var texts [3]string
		if err = rows.Scan(&item, &clock, &num, &texts[0], &texts[1], &texts[2]); err != nil {
			return item, row, err
		}
		for i, p := range []*uint64{&row.Min, &row.First, &row.Max} {
			if *p, err = strconv.ParseUint(texts[i], 10, 64); err != nil {
				return item, row, fmt.Errorf("item %d of Zabbix has the trend %.40q, expected 0 to 18446744073709551615", item, texts[i])
			}
		}
		row.SumHigh, row.SumLow = bits.Mul64(row.First, uint64(max(num, 0)))
	}
	row.Last = row.First
	row.At, row.Count = storage.HourOf(clock*int64(time.Second)), uint64(max(num, 0)) //nolint:gosec // not negative
	return item, row, err
}

var _ storage.Engine = (*History)(nil)
