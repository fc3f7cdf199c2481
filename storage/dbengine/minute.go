package dbengine

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// minute is the step of the finer tier in nanoseconds.
const minute = int64(time.Minute)

// minuteOf returns the start of the minute that holds at.
func minuteOf(at int64) int64 {
	start := at - at%minute
	if start > at {
		start -= minute
	}
	return start
}

// minuteRow sums up the values of one minute that one pair holds. Its increase is that between its own values; what lies between two rows
// is added when they are read, so that no row depends on another.
type minuteRow struct {
	model.Trend
	valueType model.ValueType
	// late means that some of its values are older than others of the minute in an earlier pair may be.
	late bool
}

// minuteRows collects rows of one series from its values in order of time.
type minuteRows struct {
	rows        []minuteRow
	previous    uint64
	hasPrevious bool
	// decimals are those of all floats so far; more than maxScale if one has more, or none.
	decimals uint8
}

// take adds values.
func (m *minuteRows) take(c *model.Columns) {
	at, values := c.At, c.Bits
	for len(at) > 0 {
		start := minuteOf(at[0])
		n := searchTimes(at, start+minute)
		if k := len(m.rows); k == 0 || m.rows[k-1].At != start || m.rows[k-1].valueType != c.Type {
			m.rows = append(m.rows, minuteRow{Trend: model.Trend{At: start}, valueType: c.Type})
			m.hasPrevious = false
		}
		if c.Type == model.Float {
			m.scan(values[:n])
		}
		row := &m.rows[len(m.rows)-1]
		m.previous, m.hasPrevious = storage.AddRunToTrend(&row.Trend, c.Type, values[:n], m.previous, m.hasPrevious)
		at, values = at[n:], values[n:]
	}
}

// scan finds how many decimals floats have.
func (m *minuteRows) scan(values []uint64) {
	for _, bits := range values {
		for m.decimals <= maxScale {
			if _, ok := scaled(bits, m.decimals); ok || math.IsNaN(math.Float64frombits(bits)) {
				break
			}
			m.decimals++
		}
	}
}

// round takes what additions left behind the last decimal off the sums of floats that have few: so they are exact, and take a third of the room.
func (m *minuteRows) round() {
	if m.decimals > maxScale {
		return
	}
	power := powers[m.decimals]
	nearest := func(x float64) float64 {
		if y := math.Round(x * power); math.Abs(y) < maxScaled {
			return y / power
		}
		return x
	}
	for i := range m.rows {
		if r := &m.rows[i]; r.valueType == model.Float {
			r.Sum, r.Increase = nearest(r.Sum), nearest(r.Increase)
		}
	}
}

// mark marks the rows that hold values which came late: those up to the minute of base, the first value that did not, if there are
// late values before it.
func (m *minuteRows) mark(base, firstLate int64) {
	if firstLate >= base {
		return
	}
	for i := range m.rows {
		m.rows[i].late = m.rows[i].At <= minuteOf(base)
	}
}

const (
	// minuteForm is the first byte of a page of rows: it says how the columns are to be read.
	minuteForm = 1
	// flatForm is that of rows whose values are all the same within each of them: only counts and firsts are there.
	flatForm = 2
	// lateForm is added when a column of marks stands before the others.
	lateForm = 0x80
)

// appendMinutes encodes rows of one type as a page's values: the form; if it has lateForm a column of marks; columns of counts and
// firsts, and unless all rows are flat of lasts, minima, maxima, sums (two columns for integers, low and high half) and increases.
func appendMinutes(dst []byte, rows []minuteRow) []byte {
	form, floats := byte(flatForm), rows[0].valueType == model.Float
	marked := false
	for i := range rows {
		r := &rows[i]
		marked = marked || r.late
		if !r.flat() {
			form = minuteForm
		}
	}
	column := func(get func(*minuteRow) uint64, floats bool) {
		v := make([]uint64, len(rows))
		for i := range rows {
			v[i] = get(&rows[i])
		}
		encoded := []byte(nil)
		if floats {
			encoded = page.AppendFloats(nil, v)
		} else {
			encoded = page.AppendUints(nil, v)
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(encoded))), encoded...)
	}
	if marked {
		dst = append(dst, form|lateForm)
		column(func(r *minuteRow) uint64 {
			if r.late {
				return 1
			}
			return 0
		}, false)
	} else {
		dst = append(dst, form)
	}
	column(func(r *minuteRow) uint64 { return r.Count }, false)
	column(func(r *minuteRow) uint64 { return r.First }, floats)
	if form == flatForm {
		return dst
	}
	column(func(r *minuteRow) uint64 { return r.Last }, floats)
	column(func(r *minuteRow) uint64 { return r.Min }, floats)
	column(func(r *minuteRow) uint64 { return r.Max }, floats)
	if floats {
		column(func(r *minuteRow) uint64 { return math.Float64bits(r.Sum) }, true)
	} else {
		column(func(r *minuteRow) uint64 { return r.SumLow }, false)
		column(func(r *minuteRow) uint64 { return r.SumHigh }, false)
	}
	column(func(r *minuteRow) uint64 { return math.Float64bits(r.Increase) }, true)
	return dst
}

// flat reports whether all of the row follows from its count and first value.
func (r *minuteRow) flat() bool {
	if r.Last != r.First || r.Min != r.First || r.Max != r.First || r.Increase != 0 || math.Signbit(r.Increase) {
		return false
	}
	f := *r
	f.fill()
	return f.Sum == r.Sum && math.Signbit(f.Sum) == math.Signbit(r.Sum) && f.SumLow == r.SumLow && f.SumHigh == r.SumHigh
}

// fill makes the rest of a flat row.
func (r *minuteRow) fill() {
	r.Last, r.Min, r.Max, r.Increase = r.First, r.First, r.First, 0
	if r.valueType == model.Float {
		r.Sum, r.SumLow, r.SumHigh = math.Float64frombits(r.First)*float64(r.Count), 0, 0
		return
	}
	f := page.UintFold{}
	f.Add(r.First, int(r.Count))
	r.Sum, r.SumLow, r.SumHigh = 0, f.SumLow, f.SumHigh
}

// decodeMinutes appends the rows of a page to dst.
func decodeMinutes(dst []minuteRow, p *extent.Page) ([]minuteRow, error) {
	times, err := page.DecodeTimes(nil, p.Times, p.Count)
	if err != nil {
		return dst, err
	}
	if len(p.Values) == 0 || !p.Type.Numeric() {
		return dst, fmt.Errorf("%w: %d rows of type %v in %d bytes", page.ErrColumn, p.Count, p.Type, len(p.Values))
	}
	form, rest := p.Values[0], p.Values[1:]
	if kind := form &^ lateForm; kind != minuteForm && kind != flatForm {
		return dst, fmt.Errorf("%w: minute rows of form %d", page.ErrColumn, form)
	}
	start := len(dst)
	for _, at := range times {
		dst = append(dst, minuteRow{Trend: model.Trend{At: at}, valueType: p.Type})
	}
	rows := dst[start:]
	room := make([]uint64, 0, p.Count)
	for _, set := range minuteColumns(form, p.Type == model.Float) {
		size, k := binary.Uvarint(rest)
		if k <= 0 || size > uint64(len(rest)-k) {
			return dst[:start], fmt.Errorf("%w: %d minute rows are cut off", page.ErrColumn, p.Count)
		}
		encoded := rest[k : k+int(size)]
		if rest = rest[k+int(size):]; set.floats {
			room, err = page.DecodeFloats(room[:0], encoded, p.Count)
		} else {
			room, err = page.DecodeUints(room[:0], encoded, p.Count)
		}
		if err != nil {
			return dst[:start], err
		}
		for i := range rows {
			set.put(&rows[i], room[i])
		}
	}
	if len(rest) != 0 {
		return dst[:start], fmt.Errorf("%w: %d bytes behind %d minute rows", page.ErrColumn, len(rest), p.Count)
	}
	if form&^lateForm == flatForm {
		for i := range rows {
			rows[i].fill()
		}
	}
	return dst, nil
}

// minuteColumn says what a column is for.
type minuteColumn struct {
	floats bool
	put    func(*minuteRow, uint64)
}

func minuteColumns(form byte, floats bool) []minuteColumn {
	var all []minuteColumn
	if form&lateForm != 0 {
		all = append(all, minuteColumn{false, func(r *minuteRow, v uint64) { r.late = v != 0 }})
	}
	all = append(all,
		minuteColumn{false, func(r *minuteRow, v uint64) { r.Count = v }},
		minuteColumn{floats, func(r *minuteRow, v uint64) { r.First = v }})
	if form&^lateForm == flatForm {
		return all
	}
	all = append(all,
		minuteColumn{floats, func(r *minuteRow, v uint64) { r.Last = v }},
		minuteColumn{floats, func(r *minuteRow, v uint64) { r.Min = v }},
		minuteColumn{floats, func(r *minuteRow, v uint64) { r.Max = v }})
	if floats {
		all = append(all, minuteColumn{true, func(r *minuteRow, v uint64) { r.Sum = math.Float64frombits(v) }})
	} else {
		all = append(all,
			minuteColumn{false, func(r *minuteRow, v uint64) { r.SumLow = v }},
			minuteColumn{false, func(r *minuteRow, v uint64) { r.SumHigh = v }})
	}
	return append(all, minuteColumn{true, func(r *minuteRow, v uint64) { r.Increase = math.Float64frombits(v) }})
}
