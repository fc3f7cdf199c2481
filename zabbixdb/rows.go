package zabbixdb

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// maxRows bounds what one statement may bring into memory.
const maxRows = 5_000_000

// row is one row of a table by column; NULL is left out. Reading all columns by name keeps one reader for all versions.
type row map[string]string

// id is an identifier, zero when it is NULL.
func (r row) id(column string) int64 {
	n, _ := strconv.ParseInt(r[column], 10, 64) // identifiers are bigint
	return n
}

func (r row) num(column string) int {
	n, _ := strconv.Atoi(r[column]) // columns asked for are integers
	return n
}

// rows reads the result of a statement.
func (s *Source) rows(ctx context.Context, query string) ([]row, error) {
	var list []row
	err := s.each(ctx, query, func(r row) error {
		if len(list) >= maxRows {
			return fmt.Errorf("more than %d rows", maxRows)
		}
		list = append(list, r)
		return nil
	})
	return list, err
}

// each hands over the rows one after another.
func (s *Source) each(ctx context.Context, query string, f func(row) error) error {
	rows, err := s.tx.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read the Zabbix database: %w (%.120s)", err, query)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.NullString, len(names))
	pointers := make([]any, len(names))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return fmt.Errorf("read the Zabbix database: %w", err)
		}
		r := make(row, len(names))
		for i, name := range names {
			if values[i].Valid && values[i].String != "" {
				r[strings.ToLower(name)] = values[i].String
			}
		}
		if err := f(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the Zabbix database: %w (%.120s)", err, query)
	}
	return nil
}

// grouped reads rows and puts them together by one of their columns.
func (s *Source) grouped(ctx context.Context, by, query string) (map[int64][]row, error) {
	m := make(map[int64][]row)
	err := s.each(ctx, query, func(r row) error {
		m[r.id(by)] = append(m[r.id(by)], r)
		return nil
	})
	return m, err
}

// count is what SELECT count(*) says.
func (s *Source) count(ctx context.Context, query string) (int, error) {
	var n int
	err := s.tx.QueryRowContext(ctx, query).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read the Zabbix database: %w (%.120s)", err, query)
	}
	return n, nil
}

// list writes identifiers for IN.
func list(ids []int64) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	if len(ids) == 0 {
		b.WriteString("NULL")
	}
	b.WriteByte(')')
	return b.String()
}

// object is one object of an export.
type object map[string]any

// put sets a field unless it has the value that exports leave out.
func (o object) put(name, value, missing string) {
	if value != missing && value != "" {
		o[name] = value
	}
}

// putList sets a field that is a list unless it is empty.
func (o object) putList(name string, list []object) {
	if len(list) > 0 {
		o[name] = list
	}
}

// enum is the name of a number; numbers that are not known stay numbers, which the import refuses with the reason.
func enum(names map[string]string, value string) string {
	if value == "" {
		value = "0"
	}
	if name, ok := names[value]; ok {
		return name
	}
	return value
}
