package dbengine

import (
	"context"
	"fmt"

	"tidemark/storage"
)

// maxImportRows bounds the rows that ImportTrends takes before it writes them, and with it the memory: about 100 bytes a row.
const maxImportRows = 200_000

// ImportTrends stores hours whose values the engine never had, such as those of another server. They are durable when it returns. An hour
// that is there already is replaced, so only hours without values must be given: the rows of hours with values are the engine's own to make.
func (db *DB) ImportTrends(ctx context.Context, columns []storage.TrendColumns) error {
	waiting := 0
	for i := range columns {
		c := &columns[i]
		if !c.Type.Numeric() {
			return fmt.Errorf("item %d: trends of type %v, expected numbers", c.Item, c.Type)
		}
		rows := make([]hourRow, len(c.Trends))
		for k := range c.Trends {
			rows[k] = hourRow{Trend: c.Trends[k], valueType: c.Type}
			rows[k].At = storage.HourOf(rows[k].At)
		}
		if err := db.importRows(c, rows); err != nil {
			return err
		}
		if waiting += len(rows); waiting >= maxImportRows {
			waiting = 0
			if err := db.Flush(ctx); err != nil {
				return err
			}
		}
	}
	if waiting == 0 {
		return nil
	}
	return db.Flush(ctx)
}

// importRows hands rows of an item to the flusher. They are not in the log: what is not flushed is lost with the process.
func (db *DB) importRows(c *storage.TrendColumns, rows []hourRow) error {
	sh := db.shardOf(c.Item)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return storage.ErrClosed
	}
	s := sh.get(c.Item)
	if !s.known {
		db.learn(s)
	}
	t := db.trendOf(s)
	if t.done == nil {
		t.done = new([]hourRow)
	}
	*t.done = append(*t.done, rows...)
	end := db.log.End()
	if !s.unsealed() {
		s.valueType, s.logFrom = c.Type, end
	}
	db.detach(s, end, db.o.Now())
	return nil
}
