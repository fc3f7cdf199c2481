package zabbix

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"tidemark/model"
)

// maxRows bounds the values of one call; who wants more asks again from the last clock on.
const maxRows = 1_000_000

// historyRow is one value.
type historyRow struct {
	item  model.ItemID
	at    int64
	value string
	log   model.Log
}

var historyKind = kind[historyRow]{
	name: "value", id: "itemid",
	fields: []field[historyRow]{
		{name: "itemid", number: true, get: func(r *historyRow) string { return formatID(r.item) }},
		{name: "clock", number: true, get: func(r *historyRow) string { return seconds(r.at) }},
		{name: "value", get: func(r *historyRow) string { return r.value }},
		{name: "ns", number: true, get: func(r *historyRow) string { return nanos(r.at) }},
	},
}

// logFields come with values of logs only.
var logFields = []field[historyRow]{
	{name: "timestamp", number: true, get: func(r *historyRow) string { return strconv.FormatInt(r.log.At, 10) }},
	{name: "source", get: func(r *historyRow) string { return r.log.Source }},
	{name: "severity", number: true, get: func(r *historyRow) string { return formatInt(int(r.log.Severity)) }},
	{name: "logeventid", number: true, get: func(r *historyRow) string { return formatInt(int(r.log.EventID)) }},
}

// timeRange reads time_from and time_till, whole seconds with both ends included.
func (c *call) timeRange() model.TimeRange {
	const most = math.MaxInt64/1_000_000_000 - 1
	from, till := c.number("time_from", 0, most), c.number("time_till", most, most)
	return model.TimeRange{From: from * 1e9, To: (till + 1) * 1e9}
}

// historyItems returns the items that were asked for, of one value type, by id.
func (c *call) historyItems(of func(model.ValueType) bool) []model.ItemID {
	items, hosts := c.ids("itemids"), c.ids("hostids")
	var ids []model.ItemID
	c.eachItem(items, c.hosts(), func(h *model.Host) bool { return hosts.has(uint64(h.ID)) }, func(r itemRow) {
		if of(r.ValueType) {
			ids = append(ids, r.ID)
		}
	})
	slices.Sort(ids)
	return ids
}

// errEnough ends a read that has as many values as were asked for.
var errEnough = errors.New("enough")

func getHistory(c *call) ([]byte, error) {
	kindOf := model.ValueType(c.number("history", int64(model.Uint), int64(model.Binary)))
	ids, r := c.historyItems(func(t model.ValueType) bool { return t == kindOf }), c.timeRange()
	c.accept("maxValueSize")
	k := historyKind
	if kindOf == model.LogEntry {
		k.fields = append(slices.Clone(k.fields), logFields...)
	}
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	rows, err := c.readHistory(l, ids, r)
	if err != nil {
		return nil, err
	}
	if len(l.sort) > 0 && l.sort[0].falling {
		slices.Reverse(rows) // of values of one second the newest comes first
	}
	return l.encode(c, &k, l.take(&k, rows))
}

// readHistory reads the values of items. Where the order is that of time and there is a limit, of each item no more is read than can be
// answered.
func (c *call) readHistory(l *lookup[historyRow], ids []model.ItemID, r model.TimeRange) ([]historyRow, error) {
	most, newest := int64(maxRows)+1, 0
	bounded := l.limit > 0 && l.limit <= maxRows && len(l.filter)+len(l.search) == 0 && !l.count && (len(l.sort) == 0 || l.sort[0].by.name == "clock")
	if bounded && len(l.sort) > 0 && l.sort[0].falling {
		newest = int(l.limit)
	}
	ctx, end, err := c.options.Querier.Begin(c.ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var rows []historyRow
	room := int64(c.room)
	for _, id := range ids {
		begin := len(rows)
		err := c.options.Querier.Read(ctx, []model.ItemID{id}, r, newest, func(v *model.Columns) error {
			for i := range v.At {
				if bounded && newest == 0 && int64(len(rows)-begin) >= l.limit {
					return errEnough
				}
				rows = append(rows, formatRow(v, i))
				room -= int64(len(rows[len(rows)-1].value))
			}
			if int64(len(rows)) >= most || room < 0 {
				return tooManyRows()
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
	}
	return rows, nil
}

func tooManyRows() error {
	return applicationError("The call finds more than " + strconv.Itoa(maxRows) + " values, or texts larger than an answer may be; ask for less with itemids, time_from, time_till and limit.")
}

func formatRow(v *model.Columns, i int) historyRow {
	row := historyRow{item: v.Item, at: v.At[i]}
	var text []byte
	if v.Type.InArena() {
		text = v.Bytes(i)
	}
	if v.Type == model.LogEntry {
		if l, err := model.DecodeLog(text); err == nil {
			row.log, row.value = l, l.Text
			row.log.Text = ""
		}
		return row
	}
	row.value = formatValue(v.Type, v.Bits[i], text)
	return row
}

// trendRow is one hour of an item.
type trendRow struct {
	item model.ItemID
	vt   model.ValueType
	model.Trend
}

var trendKind = kind[trendRow]{
	name: "trend", id: "itemid",
	fields: []field[trendRow]{
		{name: "itemid", number: true, get: func(r *trendRow) string { return formatID(r.item) }},
		{name: "clock", number: true, get: func(r *trendRow) string { return seconds(r.At) }},
		{name: "num", number: true, get: func(r *trendRow) string { return strconv.FormatUint(r.Count, 10) }},
		{name: "value_min", get: func(r *trendRow) string { return formatValue(r.vt, r.Min, nil) }},
		{name: "value_avg", get: func(r *trendRow) string {
			average := r.Average(r.vt)
			if r.vt == model.Uint {
				return strconv.FormatFloat(math.Floor(average), 'f', 0, 64)
			}
			return strconv.FormatFloat(average, 'g', -1, 64)
		}},
		{name: "value_max", get: func(r *trendRow) string { return formatValue(r.vt, r.Max, nil) }},
	},
}

func getTrends(c *call) ([]byte, error) {
	ids, r := c.historyItems(model.ValueType.Numeric), c.timeRange()
	c.accept("trend")
	k := trendKind
	l, err := readLookup(c, &k)
	if err != nil {
		return nil, err
	}
	ctx, end, err := c.options.Querier.Begin(c.ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var rows []trendRow
	err = c.options.Querier.EachTrend(ctx, ids, r, func(item model.ItemID, vt model.ValueType, trends []model.Trend) error {
		for _, one := range trends {
			rows = append(rows, trendRow{item, vt, one})
		}
		if len(rows) > maxRows {
			return tooManyRows()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.encode(c, &k, l.take(&k, rows))
}
