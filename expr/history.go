package expr

import (
	"context"
	"errors"
	"math"

	"tidemark/model"
)

// history evaluates a function of an item into dst.
func (m *Machine) history(ctx context.Context, f *Func, index int16, dst *operand) {
	item := &m.items[f.Ref]
	if f.Kind.isForeach() {
		m.foreach(ctx, f, index, item.Many, dst)
		return
	}
	if item.Missing {
		m.fail(FailMissing, index)
		return
	}
	code := FailUnsupported
	if !item.Unsupported || f.Kind == kindNodata {
		*dst, code = m.historyValue(ctx, f, item)
	}
	if code != FailNone {
		*dst = operand{kind: isUnknown, cause: Failure{Code: code, Func: index}}
	}
}

func unknown(c FailCode) (operand, FailCode) { return operand{}, c }

func known(v float64) (operand, FailCode) { return operand{number: v}, FailNone }

// readFailure maps an error of Values to a reason.
func readFailure(err error) FailCode {
	switch {
	case errors.Is(err, ErrTooOld):
		return FailTooOld
	case errors.Is(err, ErrTooMany):
		return FailTooMany
	}
	return FailHistory
}

// historyValue picks the function. Functions of one value come first: they are nearly all that triggers use.
func (m *Machine) historyValue(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	switch f.Kind {
	case kindLast:
		return m.last(ctx, f, item)
	case kindAvg, kindSum, kindMin, kindMax:
		return m.aggregate(ctx, f, item)
	case kindFind, kindCount:
		return m.find(ctx, f, item)
	case kindNodata:
		return m.nodata(f, item)
	case kindChange:
		return m.change(ctx, f, item)
	case kindFirst:
		found, err := m.Values.First(ctx, item.ID, f.Window.At(m.moment.At, m.Zone), &m.sample)
		return m.sampled(found, err)
	case kindFuzzytime:
		return m.fuzzytime(ctx, f, item)
	case kindLogEventID, kindLogSeverity, kindLogSource:
		return m.logPart(ctx, f, item)
	}
	if f.Kind.isTrend() {
		return m.trend(ctx, f, item)
	}
	if err := m.read(ctx, item.ID, f.Window.At(m.moment.At, m.Zone)); err != nil {
		return unknown(readFailure(err))
	}
	return m.statistic(f)
}

// read fills m.columns.
func (m *Machine) read(ctx context.Context, item model.ItemID, r Range) error {
	err := m.Values.Read(ctx, item, r, &m.columns)
	m.ValuesRead += int64(len(m.columns.At))
	return err
}

// last is the n-th newest value.
func (m *Machine) last(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if row := &m.moment.Row; row.Item == item.ID && row.At == m.moment.At && f.NewestOnly() {
		return m.value(row.Type, row.Bits, row.Arena)
	}
	end := f.Window.At(m.moment.At, m.Zone).To - 1
	found, err := m.Values.Last(ctx, item.ID, f.Window.Count, end, &m.sample)
	return m.sampled(found, err)
}

// sampled turns m.sample into an operand.
func (m *Machine) sampled(found bool, err error) (operand, FailCode) {
	if err != nil {
		return unknown(readFailure(err))
	}
	if !found {
		return unknown(FailNoData)
	}
	s := &m.sample
	if s.Type.Numeric() {
		return numberOperand(s.Type, s.Bits), FailNone
	}
	return m.textValue(s.Type, s.Text)
}

// value turns a payload into an operand.
func (m *Machine) value(t model.ValueType, bits uint64, arena []byte) (operand, FailCode) {
	if t.Numeric() {
		return numberOperand(t, bits), FailNone
	}
	return m.textValue(t, model.SpanBytes(arena, bits))
}

// numberOperand turns a numeric payload into an operand.
func numberOperand(t model.ValueType, bits uint64) operand {
	if t == model.Uint {
		return unsigned(bits)
	}
	return operand{number: number(t, bits)}
}

func (m *Machine) textValue(t model.ValueType, payload []byte) (operand, FailCode) {
	text, ok := textOf(t, payload)
	if !ok {
		return unknown(FailType)
	}
	return operand{kind: isText, text: m.keepBytes(text)}, FailNone
}

// textOf returns the text of a payload in the arena; binary values have none.
func textOf(t model.ValueType, payload []byte) ([]byte, bool) {
	switch t {
	case model.Character, model.Text:
		return payload, true
	case model.LogEntry:
		text, err := model.LogText(payload)
		return text, err == nil
	}
	return nil, false
}

func (m *Machine) aggregate(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if !item.Type.Numeric() {
		return unknown(FailType)
	}
	want := WantSum
	switch f.Kind {
	case kindMin:
		want = WantMin
	case kindMax:
		want = WantMax
	}
	s := &m.summary
	if err := m.Values.Summary(ctx, item.ID, f.Window.At(m.moment.At, m.Zone), want, s); err != nil {
		return unknown(readFailure(err))
	}
	if s.Count == 0 {
		return unknown(FailNoData)
	}
	switch f.Kind {
	case kindAvg:
		return known(s.Sum / float64(s.Count))
	case kindSum:
		return known(s.Sum)
	case kindMin:
		return known(s.Min)
	}
	return known(s.Max)
}

// find is count limited to one.
func (m *Machine) find(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if item.Type == model.Binary || f.match != nil && f.match.ordered() && !item.Type.Numeric() {
		return unknown(FailType)
	}
	if row := &m.moment.Row; f.NewestOnly() && row.Item == item.ID && row.At == m.moment.At {
		var payload []byte
		if row.Type.InArena() {
			payload = model.SpanBytes(row.Arena, row.Bits)
		}
		return known(truth(m.fits(f, row.Type, row.Bits, payload)))
	}
	r := f.Window.At(m.moment.At, m.Zone)
	if f.match == nil {
		s := &m.summary
		if err := m.Values.Summary(ctx, item.ID, r, WantCount, s); err != nil {
			return unknown(readFailure(err))
		}
		if f.Kind == kindFind {
			return known(truth(s.Count > 0))
		}
		return known(float64(s.Count))
	}
	if err := m.read(ctx, item.ID, r); err != nil {
		return unknown(readFailure(err))
	}
	c := &m.columns
	count := 0
	for i := range c.At {
		if m.fitsColumn(f, c, i) {
			if count++; f.Kind == kindFind {
				break
			}
		}
	}
	return known(float64(count))
}

func (m *Machine) fitsColumn(f *Func, c *model.Columns, i int) bool {
	if c.Type.Numeric() {
		return m.fits(f, c.Type, c.Bits[i], nil)
	}
	return m.fits(f, c.Type, 0, c.Bytes(i))
}

// fits applies the operator and pattern of a function to a value.
func (m *Machine) fits(f *Func, t model.ValueType, bits uint64, payload []byte) bool {
	if f.match == nil {
		return true
	}
	if t.Numeric() {
		return f.match.matchNumber(t, bits, &m.buf)
	}
	text, ok := textOf(t, payload)
	return ok && f.match.matchText(text)
}

// nodata needs no values: the time of the newest that came in decides.
func (m *Machine) nodata(f *Func, item *Item) (operand, FailCode) {
	span := int64(f.Window.Span)
	since := item.Since
	if f.number != 1 { // not strict
		span += int64(item.Lag)
		since = max(since, item.ProxySince)
	}
	if m.moment.Now-item.NewestAt < span && item.NewestAt != 0 {
		return known(0)
	}
	if m.moment.Now-since < span {
		return unknown(FailStart)
	}
	return known(1)
}

// change is the newest value minus the one before it; for text whether they differ.
func (m *Machine) change(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if err := m.read(ctx, item.ID, f.Window.At(m.moment.At, m.Zone)); err != nil {
		return unknown(readFailure(err))
	}
	c := &m.columns
	if len(c.At) < 2 {
		return unknown(FailNoData)
	}
	n := len(c.At)
	return known(m.difference(c, n-2, n-1))
}

// difference returns value j minus value i, exact for unsigned integers as far as a float can hold it.
func (m *Machine) difference(c *model.Columns, i, j int) float64 {
	switch c.Type {
	case model.Uint:
		if c.Bits[j] < c.Bits[i] {
			return -float64(c.Bits[i] - c.Bits[j])
		}
		return float64(c.Bits[j] - c.Bits[i])
	case model.Float:
		return math.Float64frombits(c.Bits[j]) - math.Float64frombits(c.Bits[i])
	}
	a, _ := textOf(c.Type, c.Bytes(i))
	b, _ := textOf(c.Type, c.Bytes(j))
	return truth(string(a) != string(b))
}

// fuzzytime is 1 while the value, a Unix time in seconds, is near the moment of evaluation: the time of the value that
// caused it.
func (m *Machine) fuzzytime(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if !item.Type.Numeric() {
		return unknown(FailType)
	}
	found, err := m.Values.Last(ctx, item.ID, 1, m.moment.At, &m.sample)
	if err != nil {
		return unknown(readFailure(err))
	}
	if !found {
		return unknown(FailNoData)
	}
	off := math.Abs(number(m.sample.Type, m.sample.Bits) - float64(floorSecond(m.moment.At)/1e9))
	return known(truth(off <= f.Window.Span.Seconds()))
}

// logPart reads severity, event id or source of a log value.
func (m *Machine) logPart(ctx context.Context, f *Func, item *Item) (operand, FailCode) {
	if item.Type != model.LogEntry {
		return unknown(FailType)
	}
	end := f.Window.At(m.moment.At, m.Zone).To - 1
	found, err := m.Values.Last(ctx, item.ID, f.Window.Count, end, &m.sample)
	if err != nil {
		return unknown(readFailure(err))
	}
	if !found {
		return unknown(FailNoData)
	}
	entry, err := model.DecodeLog(m.sample.Text)
	if err != nil {
		return unknown(FailType)
	}
	switch f.Kind {
	case kindLogSeverity:
		return known(float64(entry.Severity))
	case kindLogSource:
		return known(truth(f.match == nil || f.match.matchText([]byte(entry.Source))))
	}
	m.buf = appendNumber(m.buf[:0], model.Uint, uint64(entry.EventID))
	return known(truth(f.match == nil || f.match.matchText(m.buf)))
}
