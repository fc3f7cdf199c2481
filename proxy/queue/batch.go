package queue

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"

	"tidemark/model"
	"tidemark/storage/spool"
)

// Batch is a part of the queue.
type Batch struct {
	Rows []Row
	// More says that there is more behind it.
	More bool
	end  model.LSN
}

// Row is a value, or without one how far a log was read.
type Row struct {
	ID   uint64
	Item model.ItemID
	// At is the time of the value, Unix nanoseconds.
	At int64
	// Value is the text that the server gets; nil for none.
	Value       []byte
	Unsupported bool
	// Log is set for values of logs, Position for rows that say how far one was read.
	Log      *model.Log
	Position *Position
}

// Position is how far a log was read.
type Position struct{ Size, MTime uint64 }

// Next returns the oldest values that the server does not have: whole records, as long as there are fewer than limit rows of fewer bytes
// together.
func (q *Queue) Next(ctx context.Context, limit, limitBytes int) (*Batch, error) {
	q.mu.Lock()
	from := q.position
	q.mu.Unlock()
	synced, size := q.log.Synced(), 0
	batch := &Batch{end: from}
	err := q.log.Read(ctx, from, func(end model.LSN, r spool.Record) error {
		if end > synced {
			return errEnough
		}
		if len(batch.Rows) >= limit || size >= limitBytes {
			batch.More = true
			return errEnough
		}
		batch.end = end
		if q.log.Lost(end) {
			return nil // it was written again
		}
		size += r.Batch.SizeBytes()
		batch.Rows = appendRows(batch.Rows, end, &r)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return batch, nil
	case err != nil:
		return nil, err
	}
	// What was not read up to here is damaged, or could not be synced and was written again.
	batch.end = max(batch.end, synced)
	q.damaged.Set(uint64(q.log.Damage().Places))
	return batch, nil
}

// appendRows makes the rows of a record. Their ids end where it ends; a record takes many more bytes than it has rows.
func appendRows(rows []Row, end model.LSN, r *spool.Record) []Row {
	b := r.Batch
	id := uint64(end) - uint64(rowCount(b))
	for i := range b.Len() {
		id++
		row := Row{ID: id, Item: b.Items[i], At: b.At[i], Unsupported: r.Classes[i] == unsupportedRow}
		switch t := b.Types[i]; {
		case t == model.Float:
			row.Value = strconv.AppendFloat(nil, math.Float64frombits(b.Bits[i]), 'g', -1, 64)
		case t == model.Uint:
			row.Value = strconv.AppendUint(nil, b.Bits[i], 10)
		case t == model.LogEntry:
			l, err := model.DecodeLog(b.Bytes(i))
			if err != nil {
				continue
			}
			row.Value, row.Log = []byte(l.Text), &l
		case r.Classes[i] == base64Row:
			row.Value = base64.StdEncoding.AppendEncode(nil, b.Bytes(i))
		default:
			row.Value = b.Bytes(i)
		}
		if row.Value == nil {
			row.Value = []byte{}
		}
		rows = append(rows, row)
	}
	for _, m := range b.Marks {
		item, ok := strings.CutPrefix(m.Key, logMark)
		if !ok {
			continue
		}
		id++
		size, mtime, _ := strings.Cut(m.Value, " ")
		n, err := strconv.ParseUint(item, 10, 64)
		p := &Position{}
		var err2, err3 error
		p.Size, err2 = strconv.ParseUint(size, 10, 64)
		p.MTime, err3 = strconv.ParseUint(mtime, 10, 64)
		if err == nil && err2 == nil && err3 == nil {
			rows = append(rows, Row{ID: id, Item: model.ItemID(n), At: m.At, Position: p})
		}
	}
	return rows
}
