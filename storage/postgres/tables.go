package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/model"
)

// valueTypes is how many value types are stored; their numbers are 0 to valueTypes-1.
const valueTypes = int(model.Binary) + 1

// tableKey names a table of values: one value type of one retention class.
type tableKey struct {
	valueType model.ValueType
	class     uint8
	// trends says that it is a table of hourly summaries; the value type is Float or Uint then.
	trends bool
}

func (k tableKey) String() string { return fmt.Sprintf("%s_c%d", k.view(), k.class) }

// view is Zabbix's name of the table.
func (k tableKey) view() string {
	switch {
	case k.trends && k.valueType == model.Uint:
		return "trends_uint"
	case k.trends:
		return "trends"
	}
	return k.shape().view
}

// public are the columns of the view, in Zabbix's order.
func (k tableKey) public() string {
	if k.trends {
		return "itemid, clock, num, value_min, value_avg, value_max"
	}
	return k.shape().public
}

// ddl is the inside of CREATE TABLE.
func (k tableKey) ddl() string {
	if !k.trends {
		return "itemid bigint NOT NULL, clock integer NOT NULL, ns integer NOT NULL, " + k.shape().columns + ", PRIMARY KEY (itemid, clock, ns)"
	}
	value, sum := "double precision", "double precision"
	if k.valueType == model.Uint {
		value, sum = "numeric(20)", "numeric(39)"
	}
	columns := "itemid bigint NOT NULL, clock integer NOT NULL, num bigint NOT NULL, "
	for _, name := range []string{"value_min", "value_avg", "value_max", "value_first", "value_last"} {
		columns += name + " " + value + " NOT NULL, "
	}
	return columns + "value_sum " + sum + " NOT NULL, increase double precision NOT NULL, PRIMARY KEY (itemid, clock)"
}

// allViews are one key for each of Zabbix's names.
func allViews() []tableKey {
	keys := []tableKey{{valueType: model.Float, trends: true}, {valueType: model.Uint, trends: true}}
	for t := range valueTypes {
		keys = append(keys, tableKey{valueType: model.ValueType(t)})
	}
	return keys
}

// qualified puts the alias h before each of a list of columns.
func qualified(names string) string { return "h." + strings.ReplaceAll(names, ", ", ", h.") }

// shape is what the tables of one value type have in common.
type shape struct {
	// view is Zabbix's name.
	view string
	// columns are what follows itemid, clock, ns; public those that Zabbix has too, in its order.
	columns, public string
	names           string
	// arrays are the parameters of an insert behind items, clocks and nanoseconds, casts what they are unnested as.
	arrays []uint32
	casts  string
}

func (k tableKey) shape() *shape { return &shapes[k.valueType] }

// Texts that PostgreSQL cannot hold (a zero byte, bytes that are not UTF-8) and log entries whose numbers do not fit are stored twice: readable
// in Zabbix's columns, and exact in raw.
var shapes = [valueTypes]shape{
	model.Float: {
		view: "history", columns: "value double precision NOT NULL", public: "itemid, clock, value, ns", names: "value",
		arrays: []uint32{oidFloat8Array}, casts: "float8[]",
	},
	model.Character: {
		view: "history_str", columns: "value text NOT NULL, raw bytea", public: "itemid, clock, value, ns", names: "value, raw",
		arrays: []uint32{oidTextArray, oidByteaArray}, casts: "text[] bytea[]",
	},
	model.LogEntry: {
		view:    "history_log",
		columns: "timestamp integer NOT NULL, source text NOT NULL, severity integer NOT NULL, value text NOT NULL, logeventid integer NOT NULL, raw bytea",
		public:  "itemid, clock, timestamp, source, severity, value, logeventid, ns", names: "timestamp, source, severity, value, logeventid, raw",
		arrays: []uint32{oidInt4Array, oidTextArray, oidInt4Array, oidTextArray, oidInt4Array, oidByteaArray},
		casts:  "integer[] text[] integer[] text[] integer[] bytea[]",
	},
	model.Uint: {
		view: "history_uint", columns: "value numeric(20) NOT NULL", public: "itemid, clock, value, ns", names: "value",
		arrays: []uint32{oidNumericArray}, casts: "numeric[]",
	},
	model.Text: {
		view: "history_text", columns: "value text NOT NULL, raw bytea", public: "itemid, clock, value, ns", names: "value, raw",
		arrays: []uint32{oidTextArray, oidByteaArray}, casts: "text[] bytea[]",
	},
	model.Binary: {
		view: "history_bin", columns: "value bytea NOT NULL", public: "itemid, clock, value, ns", names: "value",
		arrays: []uint32{oidByteaArray}, casts: "bytea[]",
	},
}

// insertSQL is the statement that stores rows given as arrays: items, clocks, nanoseconds and the shape's.
func (k tableKey) insertSQL() string {
	casts := make([]string, 0, 9)
	for i, cast := range append([]string{"bigint[]", "integer[]", "integer[]"}, strings.Fields(k.shape().casts)...) {
		casts = append(casts, fmt.Sprintf("$%d::%s", i+1, cast))
	}
	return fmt.Sprintf("INSERT INTO %s (itemid, clock, ns, %s) SELECT * FROM unnest(%s) ON CONFLICT DO NOTHING",
		k, k.shape().names, strings.Join(casts, ", "))
}

// arraysOf encodes rows as the parameters of insertSQL.
func (k tableKey) arraysOf(rows []row) []*array {
	arrays := []*array{newArray(oidInt8Array), newArray(oidInt4Array), newArray(oidInt4Array)}
	for _, oid := range k.shape().arrays {
		arrays = append(arrays, newArray(oid))
	}
	for i := range rows {
		k.addRow(arrays, &rows[i])
	}
	return arrays
}

// addRow adds a row to its columns, from left to right.
func (k tableKey) addRow(columns []*array, r *row) {
	values := columns[3:]
	columns[0].int8(int64(r.item))
	clock, ns := split(r.at)
	columns[1].int4(clock)
	columns[2].int4(ns)
	b := r.p.Batch
	switch k.valueType {
	case model.Float:
		values[0].float8(b.Bits[r.row])
	case model.Uint:
		values[0].numeric(b.Bits[r.row])
	case model.Binary:
		values[0].data(b.Bytes(r.row))
	case model.LogEntry:
		addLog(values, b.Bytes(r.row))
	default:
		addText(values[0], values[1], b.Bytes(r.row))
	}
}

// copySQL is the statement that takes what copyData makes.
func (k tableKey) copySQL() string {
	return fmt.Sprintf("COPY %s (itemid, clock, ns, %s) FROM STDIN (FORMAT binary)", k, k.shape().names)
}

// copyData encodes rows in the binary form of COPY: a signature, two empty int32, for each row an int16 with the count of its columns, and the
// columns in the form that elements of arrays have; -1 at the end. See "File Formats" under COPY in PostgreSQL's manual.
func (k tableKey) copyData(rows []row) []byte {
	const around, perRow = 32, 16 // what rowSize leaves out: begin and end, and for each row its columns' count and lengths
	size := around
	for i := range rows {
		size += rowSize(&rows[i]) + perRow
	}
	all := &array{bytes: append(make([]byte, 0, size), "PGCOPY\n\xff\r\n\x00"+"\x00\x00\x00\x00\x00\x00\x00\x00"...)}
	columns := make([]*array, 3+len(k.shape().arrays))
	for i := range columns {
		columns[i] = all
	}
	for i := range rows {
		all.bytes = binary.BigEndian.AppendUint16(all.bytes, uint16(len(columns)))
		k.addRow(columns, &rows[i])
	}
	return binary.BigEndian.AppendUint16(all.bytes, math.MaxUint16)
}

// split gives the clock and ns of a time. The caller knows that it is one that a table can hold.
func split(at int64) (clock, ns int32) {
	return int32(at / int64(time.Second)), int32(at % int64(time.Second))
}

func join(clock, ns int32) int64 { return int64(clock)*int64(time.Second) + int64(ns) }

// storable reports whether a table can hold the time: clock is an integer of 32 bits.
func storable(at int64) bool {
	return at >= 0 && at < int64(math.MaxInt32)*int64(time.Second)
}

// readable reports whether PostgreSQL takes the bytes as text.
func readable(p []byte) bool { return utf8.Valid(p) && bytes.IndexByte(p, 0) < 0 }

// readably makes bytes into text that PostgreSQL takes.
func readably(p []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(p), "\uFFFD"), "\x00", "\uFFFD")
}

func addText(value, raw *array, p []byte) {
	if readable(p) {
		value.data(p)
		raw.null()
		return
	}
	value.text(readably(p))
	raw.data(p)
}

func addLog(values []*array, p []byte) {
	l, err := model.DecodeLog(p)
	if err != nil {
		l = model.Log{Text: string(p)}
	}
	fits := err == nil && l.At >= math.MinInt32 && l.At <= math.MaxInt32 && l.Severity <= math.MaxInt32 && l.EventID <= math.MaxInt32 &&
		readable([]byte(l.Source)) && readable([]byte(l.Text))
	values[0].int4(int32(min(max(l.At, math.MinInt32), math.MaxInt32)))
	values[1].text(readably([]byte(l.Source)))
	values[2].int4(int32(min(l.Severity, math.MaxInt32)))
	values[3].text(readably([]byte(l.Text)))
	values[4].int4(int32(min(l.EventID, math.MaxInt32)))
	if fits {
		values[5].null()
	} else {
		values[5].data(p)
	}
}

// payload reads the columns of names back: bits of a number, else the bytes, which are valid as long as cells are.
func (k tableKey) payload(cells [][]byte) (bits uint64, text []byte, err error) {
	switch k.valueType {
	case model.Float:
		v, err := decodeInt8(cells[0])
		return uint64(v), nil, err
	case model.Uint:
		bits, err = decodeNumeric(cells[0])
		return bits, nil, err
	case model.Binary:
		return 0, cells[0], nil
	case model.LogEntry:
		text, err = logOf(cells)
		return 0, text, err
	}
	if cells[1] != nil {
		return 0, cells[1], nil
	}
	return 0, cells[0], nil
}

func logOf(cells [][]byte) ([]byte, error) {
	if cells[5] != nil {
		return cells[5], nil
	}
	var numbers [3]int32
	for i, c := range []int{0, 2, 4} {
		v, err := decodeInt4(cells[c])
		if err != nil {
			return nil, err
		}
		numbers[i] = v
	}
	return model.AppendLog(nil, model.Log{
		At: int64(numbers[0]), Source: string(cells[1]), Severity: uint32(numbers[1]), Text: string(cells[3]), EventID: uint32(numbers[2]),
	}), nil
}

// row is a row on its way into a table. at may differ from that of the batch after the row was moved.
type row struct {
	item model.ItemID
	at   int64
	p    *pending
	row  int
}

// same reports whether a stored payload is the row's.
func (r *row) same(bits uint64, text []byte) bool { return r.p.same(r.row, bits, text) }

func (p *pending) same(i int, bits uint64, text []byte) bool {
	if p.Batch.Types[i].InArena() {
		return bytes.Equal(p.Batch.Bytes(i), text)
	}
	return p.Batch.Bits[i] == bits
}
