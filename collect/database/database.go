// Package database makes database checks: one query, whose first field is the value, or whose rows are JSON. PostgreSQL and MySQL are
// asked by their own protocols; nothing like ODBC is installed.
//
// Source of the meaning of the keys: the public Zabbix manual, "ODBC monitoring".
package database

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/internal/guard"
	"tidemark/model"
)

// Options are the settings of a Checker.
type Options struct {
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
}

const (
	// maxRows and maxBytes bound a result.
	maxRows  = 100_000
	maxBytes = 16 << 20
	// defaultTimeout is how long a check may take.
	defaultTimeout = 3 * time.Second
)

// Checker makes database checks. It implements poller.Checker.
type Checker struct{ dialer net.Dialer }

// New returns a checker.
func New(o Options) *Checker { return &Checker{net.Dialer{Control: o.Rules.Control}} }

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "database", Types: []model.ItemType{model.Database}, Checker: c, MaxInFlight: 200, MaxPerHost: 2, Timeout: defaultTimeout}
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(ctx, t.Item)
		if err == nil {
			results[i] = poller.Result{Outcome: poller.Value, Text: value}
			continue
		}
		var refused *guard.Error
		switch {
		case errors.As(err, &refused):
			err = refused
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = errors.New("the database did not answer in time; a longer timeout can be set for the item")
		}
		results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
	}
}

func (c *Checker) check(ctx context.Context, item *model.Item) ([]byte, error) {
	s, err := parse(item)
	if err != nil {
		return nil, err
	}
	r := &rows{single: s.form == selectForm}
	switch s.driver {
	case postgres:
		err = c.askPostgres(ctx, s, item.Params, r)
	default:
		err = c.askMySQL(ctx, s, item.Params, r)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return r.value(s.form)
}

// The forms of results and the drivers.
const (
	selectForm = iota
	getForm
	discoveryForm

	postgres = "postgres"
	mysql    = "mysql"
)

// source is where and how an item asks.
type source struct {
	form                                         int
	driver, host, port, database, user, password string
	// options are further ones of the driver.
	options url.Values
}

// parse reads db.odbc.select[name,dsn,<connection string>] and its sisters. The connection string is a URL, or pairs as ODBC has them.
func parse(item *model.Item) (*source, error) {
	name, params := expr.SplitKey(item.CheckKey())
	forms := map[string]int{"db.odbc.select": selectForm, "db.odbc.get": getForm, "db.odbc.discovery": discoveryForm}
	form, ok := forms[name]
	if !ok || len(params) < 2 || len(params) > 3 || params[0] == "" {
		return nil, fmt.Errorf("key %s is not known; expected db.odbc.select, db.odbc.get or db.odbc.discovery with [name,,connection string]", name)
	}
	if strings.TrimSpace(item.Params) == "" {
		return nil, errors.New("the item has no SQL query")
	}
	text := params[len(params)-1]
	if text == "" {
		text = params[1]
	}
	var s *source
	var err error
	switch {
	case strings.Contains(text, "://"):
		s, err = parseURL(text)
	case strings.Contains(text, "="):
		s, err = parsePairs(text)
	default:
		return nil, fmt.Errorf("%q is the name of an ODBC data source, which there are none of; expected a connection string such as postgres://host:5432/database or mysql://host:3306/database", text)
	}
	if err != nil {
		return nil, err
	}
	s.form = form
	if item.Collect != nil && item.Collect.Username != "" {
		s.user, s.password = item.Collect.Username, item.Collect.Password
	}
	return s, nil
}

func parseURL(text string) (*source, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("the connection string is no address; expected postgres://host:port/database or mysql://host:port/database")
	}
	s := &source{host: u.Hostname(), port: u.Port(), database: strings.TrimPrefix(u.Path, "/"), options: u.Query()}
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	return s, s.use(u.Scheme)
}

// parsePairs reads "Driver=PostgreSQL;Server=db1;Port=5432;Database=app".
func parsePairs(text string) (*source, error) {
	s, driver := &source{options: url.Values{}}, ""
	for pair := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			if name == "" {
				continue
			}
			return nil, fmt.Errorf("the connection string has %q; expected name=value pairs with ; between them", name)
		}
		value = strings.Trim(strings.TrimSpace(value), "{}")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "driver":
			driver = value
		case "server", "servername", "host":
			s.host = value
		case "port":
			s.port = value
		case "database", "db":
			s.database = value
		case "uid", "user", "username":
			s.user = value
		case "pwd", "password":
			s.password = value
		case "sslmode":
			s.options.Set("sslmode", value)
		}
	}
	if s.host == "" {
		return nil, errors.New("the connection string has no Server")
	}
	return s, s.use(driver)
}

// use sets the driver by what it is called.
func (s *source) use(name string) error {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "postgres") || strings.Contains(name, "psql"):
		s.driver = postgres
		s.port = orPort(s.port, "5432")
	case strings.Contains(name, "mysql") || strings.Contains(name, "mariadb") || strings.Contains(name, "maria"):
		s.driver = mysql
		s.port = orPort(s.port, "3306")
	default:
		return fmt.Errorf("databases of kind %q are not asked; expected postgres or mysql", name)
	}
	return nil
}

func orPort(port, usual string) string {
	if port == "" {
		return usual
	}
	return port
}

// rows are a result.
type rows struct {
	// single says that the first field of the first row is enough.
	single  bool
	columns []string
	values  [][]*string
	size    int
}

// errEnough ends the reading.
var errEnough = errors.New("enough")

// add adds a row; nil fields are NULL.
func (r *rows) add(fields [][]byte) error {
	row := make([]*string, len(fields))
	for i, f := range fields {
		if f != nil {
			text := string(f)
			row[i] = &text
			r.size += len(f)
		}
	}
	r.values = append(r.values, row)
	switch {
	case r.single:
		return errEnough
	case len(r.values) > maxRows:
		return fmt.Errorf("the result has more than %d rows", maxRows)
	case r.size > maxBytes:
		return fmt.Errorf("the result has more than %d bytes", maxBytes)
	}
	return nil
}

// value is the result in a form.
func (r *rows) value(form int) ([]byte, error) {
	if form == selectForm {
		switch {
		case len(r.values) == 0 || len(r.values[0]) == 0:
			return nil, errors.New("the query returned no rows")
		case r.values[0][0] == nil:
			return nil, errors.New("the query returned NULL")
		}
		return []byte(*r.values[0][0]), nil
	}
	out := []byte{'['}
	for n, row := range r.values {
		if n > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		for i, field := range row {
			if i > 0 {
				out = append(out, ',')
			}
			name := r.columns[i]
			if form == discoveryForm {
				name = "{#" + strings.ToUpper(name) + "}"
				if field == nil {
					field = new(string)
				}
			}
			out = append(appendJSON(out, &name), ':')
			out = appendJSON(out, field)
		}
		out = append(out, '}')
	}
	return append(out, ']'), nil
}

func appendJSON(out []byte, text *string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // texts always have JSON
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
