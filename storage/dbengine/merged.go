package dbengine

import (
	"context"
	"math"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
)

// MaxMergedBytes bounds what Options.Merge may return.
const MaxMergedBytes = 64 << 10

// stepOf returns how long the rows of a tier are.
func stepOf(t header.Tier) int64 {
	if t == header.Hour {
		return int64(time.Hour)
	}
	return minute
}

// stepEnd returns the end of the step that an instant counts for. Binary values stand at the end of what they sum up, and so do merged ones: a
// step has the values behind its begin, up to and with its end.
func stepEnd(at, step int64) int64 {
	rest := at % step
	switch {
	case rest <= 0:
		return at - rest
	case at > math.MaxInt64-step:
		return math.MaxInt64
	}
	return at + step - rest
}

// mergedRows collects what the binary values of a series merge to in each step; they come in order of time.
type mergedRows struct {
	merge func(dst, a, b []byte) ([]byte, error)
	step  int64
	at    []int64
	spans []uint64
	arena []byte
	// row is what the values up to end came to so far, none if it is empty; room is for the next.
	row, room []byte
	end       int64
	// refused counts the values that do not merge.
	refused int
}

// take adds values.
func (m *mergedRows) take(c *model.Columns) {
	for i, at := range c.At {
		if end := stepEnd(at, m.step); end != m.end {
			m.finish()
			m.end = end
		}
		merged, err := m.merge(m.room[:0], m.row, c.Bytes(i))
		if err != nil || len(merged) == 0 || len(merged) > MaxMergedBytes {
			m.refused++
			continue
		}
		m.room, m.row = m.row, merged
	}
}

// finish ends a step.
func (m *mergedRows) finish() {
	if len(m.row) == 0 {
		return
	}
	m.at, m.spans = append(m.at, m.end), append(m.spans, model.Span(len(m.arena), len(m.row)))
	m.arena = append(m.arena, m.row...)
	m.row = m.row[:0]
}

// mergeBinary writes what the binary values of an item merge to.
func (db *DB) mergeBinary(ctx context.Context, w *tierWriter, id model.ItemID, refs []pageRef) error {
	binary := func(t model.ValueType) bool { return t == model.Binary }
	r := db.passingRead(ctx, w.past, refs, binary)
	defer r.free()
	if len(r.view.base)+len(r.view.late) == 0 {
		return nil
	}
	m := mergedRows{merge: db.o.Merge, step: stepOf(w.pair.tier)}
	var failed error
	r.fn = func(c *model.Columns) error {
		m.take(c)
		if failed == nil && len(m.at) >= tierRows || len(m.arena) >= maxTextPageBytes {
			failed = w.addMerged(id, &m)
		}
		return failed
	}
	if err := r.stream(id, &r.view); err != nil {
		return err
	}
	m.finish()
	db.m.mergeRefused.Add(m.refused)
	return w.addMerged(id, &m)
}

// addMerged writes the finished steps of an item.
func (w *tierWriter) addMerged(id model.ItemID, m *mergedRows) error {
	for from := 0; from < len(m.at); {
		to, size := from, 0
		for to < len(m.at) && to-from < tierRows && size < maxTextPageBytes {
			size += int(m.spans[to] & math.MaxUint32)
			to++
		}
		at := m.at[from:to]
		err := w.add(extent.Page{
			Item: id, Type: model.Binary, Kind: extent.Merged, From: at[0], To: at[len(at)-1], Count: len(at),
			Times: page.AppendTimes(nil, at), Values: page.AppendBlobs(nil, m.arena, m.spans[from:to]),
		})
		if err != nil {
			return err
		}
		from = to
	}
	m.at, m.spans, m.arena = m.at[:0], m.spans[:0], m.arena[:0]
	return nil
}
