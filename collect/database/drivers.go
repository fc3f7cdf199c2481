package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// askPostgres makes a query, which may be several statements; the rows are those of the last that has any.
func (c *Checker) askPostgres(ctx context.Context, s *source, query string, r *rows) error {
	config, err := pgx.ParseConfig("sslmode=" + sslMode(s))
	if err != nil {
		return fmt.Errorf("sslmode: %w", err)
	}
	port, err := strconv.ParseUint(s.port, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("port %q; expected a number from 1 to 65535", s.port)
	}
	config.Host, config.Port, config.Database, config.User, config.Password = s.host, uint16(port), s.database, s.user, s.password
	config.Fallbacks = nil
	if config.TLSConfig != nil {
		config.TLSConfig.ServerName = s.host
	}
	config.DialFunc = c.dialer.DialContext
	config.RuntimeParams = map[string]string{"application_name": "tidemark"}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return shortened(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing depends on it
	results := conn.Exec(ctx, query)
	for results.NextResult() {
		reader := results.ResultReader()
		if fields := reader.FieldDescriptions(); len(fields) > 0 {
			r.columns, r.values = nil, nil
			for _, f := range fields {
				r.columns = append(r.columns, f.Name)
			}
		}
		for reader.NextRow() {
			if err := r.add(reader.Values()); err != nil {
				return err
			}
		}
		if _, err := reader.Close(); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	if err := results.Close(); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return nil
}

// shortened is an error of a connection without the settings that the library repeats, which hold the user's name.
func shortened(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Errorf("cannot connect: %s", refused.Message)
	}
	var asConnect *pgconn.ConnectError
	if errors.As(err, &asConnect) {
		return fmt.Errorf("cannot connect: %w", asConnect.Unwrap())
	}
	return fmt.Errorf("cannot connect: %w", err)
}

// sslMode is that of libpq; prefer falls back to nothing here, so it is said what is meant.
func sslMode(s *source) string {
	switch mode := s.options.Get("sslmode"); mode {
	case "require", "verify-ca", "verify-full":
		return mode
	}
	return "disable"
}

// askMySQL makes a query of one statement.
func (c *Checker) askMySQL(ctx context.Context, s *source, query string, r *rows) error {
	config := driver.NewConfig()
	config.Net, config.Addr, config.DBName, config.User, config.Passwd = "tcp", net.JoinHostPort(s.host, s.port), s.database, s.user, s.password
	config.DialFunc = c.dialer.DialContext
	config.AllowNativePasswords = true
	switch s.options.Get("tls") {
	case "", "false":
	case "true":
		config.TLS = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}
	case "skip-verify":
		config.TLS = &tls.Config{ServerName: s.host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} // as the connection string says
	default:
		return fmt.Errorf("tls is %q; expected true, false or skip-verify", s.options.Get("tls"))
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	list, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer list.Close()
	if r.columns, err = list.Columns(); err != nil {
		return err
	}
	fields, targets := make([]sql.RawBytes, len(r.columns)), make([]any, len(r.columns))
	for i := range fields {
		targets[i] = &fields[i]
	}
	row := make([][]byte, len(fields))
	for list.Next() {
		if err := list.Scan(targets...); err != nil {
			return err
		}
		for i := range fields {
			row[i] = fields[i]
		}
		if err := r.add(row); err != nil {
			return err
		}
	}
	return list.Err()
}
