package dbengine

import (
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
)

// folding makes the pages of one item anew: small ones become large ones, late values go where they belong.
type folding struct {
	out    []coldPage
	folded uint64
	// lean leaves out rows of hours that follow from the values.
	lean bool

	base, late, merged decoded
	page               decoded
}

// item returns the pages of an item at rest. They are valid until the next call.
func (f *folding) item(pages []coldPage) ([]coldPage, error) {
	f.out = f.out[:0]
	item, values := pages[0].Item, 0
	for values < len(pages) && pages[values].Kind <= extent.Late {
		values++
	}
	one, whole := true, false // whole means that merged has all values
	for i := range values {
		one = one && pages[i].Type == pages[0].Type
	}
	for len(pages[:values]) > 0 {
		n := values
		if !one { // each page stays what it is
			n = 1
		} else if size := foldSize(pages[:values]); size > maxFold {
			n = foldLength(pages[:values])
		} else {
			whole = pages[0].Type.Numeric()
		}
		if err := f.values(pages[:n]); err != nil {
			return nil, err
		}
		pages, values = pages[n:], values-n
	}
	for i := range f.out {
		f.out[i].Item = item
	}
	f.hours(pages, f.lean && whole)
	return f.out, nil
}

// hours joins pages of hourly rows: of several rows of an hour the one that was written last counts. Those of several types stay as they are. If lean, rows
// that follow from the merged values are left out.
func (f *folding) hours(pages []coldPage, lean bool) {
	var rows []hourRow
	lsn := model.LSN(0)
	for i := range pages {
		p := &pages[i]
		read, err := decodeRows(&p.Page)
		if err != nil || p.Kind != extent.Hourly || p.Type != pages[0].Type || len(pages) == 1 && !lean {
			f.out = append(f.out, pages...)
			return
		}
		rows, lsn = append(rows, read...), max(lsn, p.lsn)
	}
	rows = newestRows(rows)
	if lean {
		rows = f.unlike(rows)
		if last := len(f.out) - 1; last >= 0 { // they may be all that said how far the log was
			f.out[last].lsn = max(f.out[last].lsn, lsn)
		}
	}
	for len(rows) > 0 {
		n := min(len(rows), tierRows)
		f.out = append(f.out, coldPage{Page: hoursPage(pages[0].Item, rows[:n]), lsn: lsn})
		rows = rows[n:]
	}
}

// unlike returns the rows that the merged values do not come to, such as the first hour's, whose increase counts from an earlier pair.
func (f *folding) unlike(rows []hourRow) []hourRow {
	var made hourRows
	made.take(&model.Columns{Type: f.merged.valueType, At: f.merged.at, Bits: f.merged.bits})
	kept, k := rows[:0], 0
	for i := range rows {
		for k < len(made.rows) && made.rows[k].At < rows[i].At {
			k++
		}
		if k == len(made.rows) || !rows[i].equal(&made.rows[k]) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}

// maxFold bounds what is decoded at once, in values, a byte of a column counting as one.
const maxFold = 4 << 20

func foldSize(pages []coldPage) int {
	size := 0
	for i := range pages {
		size += pages[i].Count + len(pages[i].Values)
	}
	return size
}

// foldLength returns how many pages of one kind from the start on can be joined within the bound; at least one.
func foldLength(pages []coldPage) int {
	n := 1
	for n < len(pages) && pages[n].Kind == pages[0].Kind && foldSize(pages[:n+1]) <= maxFold {
		n++
	}
	return n
}

// values joins pages of one type.
func (f *folding) values(pages []coldPage) error {
	f.base.reset(pages[0].Type)
	f.late.reset(pages[0].Type)
	lsn := model.LSN(0)
	for i := range pages {
		p := &pages[i]
		lsn = max(lsn, p.lsn)
		if err := f.page.decode(&p.Page); err != nil {
			return err
		}
		to := &f.base
		if p.Kind == extent.Late {
			to = &f.late
		}
		if n := len(to.at); p.Kind == extent.Values && n > 0 && to.at[n-1] >= f.page.at[0] {
			to = &f.late // damage put an older page behind a newer one
		}
		to.append(&f.page)
	}
	f.late.sort()
	f.merge()
	f.emit(&f.merged, extent.Values, lsn)
	f.emit(&f.late, extent.Late, lsn)
	return nil
}

// merge puts base and what of late lies within its times into merged; what does not stays in late: it would overlap the pages of other pairs.
func (f *folding) merge() {
	f.merged.reset(f.base.valueType)
	if len(f.base.at) == 0 {
		return
	}
	first, last := f.base.at[0], f.base.at[len(f.base.at)-1]
	var rest decoded
	rest.reset(f.late.valueType)
	i := 0
	for k, at := range f.late.at {
		if at < first || at > last {
			rest.take(&f.late, k)
			continue
		}
		for i < len(f.base.at) && f.base.at[i] < at {
			f.merged.take(&f.base, i)
			i++
		}
		if i < len(f.base.at) && f.base.at[i] == at || len(f.merged.at) > 0 && f.merged.at[len(f.merged.at)-1] == at {
			rest.take(&f.late, k) // readers know what to do with two values of one instant
			continue
		}
		f.merged.take(&f.late, k)
		f.folded++
	}
	for ; i < len(f.base.at); i++ {
		f.merged.take(&f.base, i)
	}
	f.late = rest
}

// emit cuts values into pages. Late values of one instant go to different pages, since those of a page rise.
func (f *folding) emit(d *decoded, kind uint8, lsn model.LSN) {
	for start := 0; start < len(d.at); {
		end, text := start, 0
		for end < len(d.at) && end-start < coldPageValues && (end == start || d.at[end] > d.at[end-1]) {
			if d.valueType.InArena() {
				if text += int(d.bits[end] & 0xFFFFFFFF); text > maxTextPageBytes && end > start {
					break
				}
			}
			end++
		}
		at, bits := d.at[start:end], d.bits[start:end]
		p := extent.Page{
			Type: d.valueType, Kind: kind, From: at[0], To: at[len(at)-1], Count: len(at), Times: page.AppendDenseTimes(nil, at),
		}
		switch d.valueType {
		case model.Float:
			p.Values = page.AppendDenseFloats(nil, bits)
		case model.Uint:
			p.Values = page.AppendDenseUints(nil, bits)
		default:
			p.Values = page.AppendBlobs(nil, d.arena, bits)
		}
		f.out = append(f.out, coldPage{Page: p, lsn: lsn})
		start = end
	}
}

func (d *decoded) reset(t model.ValueType) {
	d.valueType, d.at, d.bits, d.arena = t, d.at[:0], d.bits[:0], d.arena[:0]
}

// append adds all values of another.
func (d *decoded) append(o *decoded) {
	if !d.valueType.InArena() {
		d.at, d.bits = append(d.at, o.at...), append(d.bits, o.bits...)
		return
	}
	for i := range o.at {
		d.take(o, i)
	}
}

// take adds one value of another.
func (d *decoded) take(o *decoded, i int) {
	bits := o.bits[i]
	if d.valueType.InArena() {
		text := model.SpanBytes(o.arena, bits)
		bits = model.Span(len(d.arena), len(text))
		d.arena = append(d.arena, text...)
	}
	d.at, d.bits = append(d.at, o.at[i]), append(d.bits, bits)
}

// sort brings the values into the order of time; those of one instant stay as they were.
func (d *decoded) sort() {
	if slices.IsSorted(d.at) {
		return
	}
	order := make([]int, len(d.at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case d.at[a] < d.at[b]:
			return -1
		case d.at[a] > d.at[b]:
			return 1
		}
		return 0
	})
	at, bits := make([]int64, len(order)), make([]uint64, len(order))
	for i, k := range order {
		at[i], bits[i] = d.at[k], d.bits[k]
	}
	d.at, d.bits = at, bits
}
