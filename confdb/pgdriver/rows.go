package pgdriver

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"io"
)

// rows are the rows of a query, read from the connection or, once another statement needs that, from memory.
type rows struct {
	inner driver.Rows
	conn  *Conn
	// columns, kept and err are what is left of rows that were moved to memory.
	columns []string
	kept    [][]driver.Value
	err     error
	moved   bool
}

func (r *rows) Columns() []string {
	if r.moved {
		return r.columns
	}
	return r.inner.Columns()
}

func (r *rows) Next(dest []driver.Value) error {
	if !r.moved {
		return r.inner.Next(dest)
	}
	if len(r.kept) == 0 {
		if r.err != nil {
			return r.err
		}
		return io.EOF
	}
	copy(dest, r.kept[0])
	r.kept = r.kept[1:]
	return nil
}

func (r *rows) Close() error {
	r.kept = nil
	if r.moved {
		return nil
	}
	if r.conn.open == r {
		r.conn.open = nil
	}
	return r.inner.Close()
}

// keep moves the rows that are left to memory.
func (r *rows) keep() error {
	r.columns = r.inner.Columns()
	for {
		row := make([]driver.Value, len(r.columns))
		err := r.inner.Next(row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.err = err
			break
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = bytes.Clone(b)
			}
		}
		r.kept = append(r.kept, row)
	}
	err := r.inner.Close()
	r.moved, r.conn.open = true, nil
	return err
}
