// Package zabbixdb reads the configuration, people and history of a Zabbix 6.0 or 7.0 server out of its database on PostgreSQL, MySQL or
// MariaDB. It writes nothing there: everything is read in one read-only transaction, each statement within a time limit.
//
// Configuration comes out in the form of Zabbix's own export, so that what a database says and what a file says are taken by the same code.
package zabbixdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/jackc/pgx/v5"
)

// StatementTimeout bounds each statement on the source.
const StatementTimeout = 5 * time.Minute

// ErrVersion is for databases that are none of Zabbix 6.0 to 7.0.
var ErrVersion = errors.New("the version is not supported")

// Source is an open Zabbix database. It is for one goroutine.
type Source struct {
	// Progress, if not nil, is told what is begun, such as reading items, in the goroutine that reads.
	Progress func(what string)

	db *sql.DB
	tx *sql.Tx
	// mandatory is the number of the database's version: 6000000 for 6.0, 7000000 for 7.0.
	mandatory int
	mysql     bool
	left      map[leftKey]int
}

// Open connects and begins the read-only transaction. dsn is postgres://user:password@host:port/database or
// mysql://user:password@host:port/database; the parameter socket of the latter is the path of a socket.
func Open(ctx context.Context, dsn string) (*Source, error) {
	s := &Source{left: make(map[leftKey]int)}
	if err := s.connect(dsn); err != nil {
		return nil, err
	}
	if err := s.answers(ctx, connectTime); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connectTime bounds the wait for the database's answer to a connection.
const connectTime = 30 * time.Second

// answers connects within a time: what takes the connection and says nothing is no database.
func (s *Source) answers(ctx context.Context, within time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := s.db.PingContext(waiting)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		err = fmt.Errorf("no answer within %v; is it a database's address and port?", within)
	}
	if err != nil {
		return fmt.Errorf("connect to the Zabbix database: %w", err)
	}
	return nil
}

func (s *Source) connect(dsn string) error {
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return fmt.Errorf("the connection string: %w", err)
		}
		c.RuntimeParams["application_name"] = "tidemark import"
		s.db = stdlib.OpenDB(*c)
	case strings.HasPrefix(dsn, "mysql://"), strings.HasPrefix(dsn, "mariadb://"):
		c, err := mysqlConfig(dsn)
		if err != nil {
			return err
		}
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return fmt.Errorf("the connection string: %w", err)
		}
		s.db, s.mysql = sql.OpenDB(connector), true
	default:
		return errors.New("the connection string is no address; expected postgres://user:password@host:port/database or mysql://user:password@host:port/database")
	}
	s.db.SetMaxOpenConns(1)
	return nil
}

// mysqlConfig turns an address into the driver's settings.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("the connection string is no address; expected mysql://user:password@host:port/database, with special characters as %XX")
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	c.Net, c.Addr = "tcp", u.Host
	if u.Port() == "" {
		c.Addr = u.Host + ":3306"
	}
	q := u.Query()
	if path := q.Get("socket"); path != "" {
		c.Net, c.Addr = "unix", path
	}
	c.TLSConfig = q.Get("tls")
	for name := range q {
		if name != "socket" && name != "tls" {
			return nil, fmt.Errorf("the connection string has the parameter %.40q; expected socket or tls", name)
		}
	}
	if c.DBName == "" {
		return nil, errors.New("the connection string names no database; expected mysql://user:password@host:port/database")
	}
	c.Timeout, c.ReadTimeout = 15*time.Second, StatementTimeout+15*time.Second
	c.Collation = "utf8mb4_bin"
	return c, nil
}

func (s *Source) begin(ctx context.Context) error {
	ms := strconv.FormatInt(StatementTimeout.Milliseconds(), 10)
	if s.mysql {
		// MariaDB and MySQL have another name for it.
		if _, err := s.db.ExecContext(ctx, "SET SESSION max_statement_time = "+strconv.Itoa(int(StatementTimeout.Seconds()))); err != nil {
			if _, err = s.db.ExecContext(ctx, "SET SESSION max_execution_time = "+ms); err != nil {
				return fmt.Errorf("connect to the Zabbix database: %w", err)
			}
		}
	}
	var err error
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}); err != nil {
		return fmt.Errorf("connect to the Zabbix database: %w", err)
	}
	if !s.mysql {
		if _, err := s.tx.ExecContext(ctx, "SET LOCAL statement_timeout = "+ms); err != nil {
			return fmt.Errorf("set the time limit: %w", err)
		}
	}
	if err := s.tx.QueryRowContext(ctx, "SELECT mandatory FROM dbversion").Scan(&s.mandatory); err != nil {
		return fmt.Errorf("read the version of the database; is it one of Zabbix? %w", err)
	}
	if s.mandatory < 6000000 || s.mandatory >= 7010000 {
		return fmt.Errorf("the database has Zabbix's version %s: %w; expected 6.0 to 7.0, upgrade Zabbix first or import its export files", s.Version(), ErrVersion)
	}
	return nil
}

// Version is Zabbix's, such as 6.0.
func (s *Source) Version() string {
	return fmt.Sprintf("%d.%d", s.mandatory/1000000, s.mandatory/10000%100)
}

// Close ends the transaction and the connection.
func (s *Source) Close() error {
	var err error
	if s.tx != nil {
		if err = s.tx.Rollback(); errors.Is(err, sql.ErrTxDone) {
			err = nil
		}
		s.tx = nil
	}
	return errors.Join(err, s.db.Close())
}

func (s *Source) begins(what string) {
	if s.Progress != nil {
		s.Progress(what)
	}
}

// Left is something that the database has and that cannot be taken.
type Left struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

type leftKey struct{ kind, reason string }

func (s *Source) leave(kind string, count int, format string, args ...any) {
	if count > 0 {
		s.left[leftKey{kind, fmt.Sprintf(format, args...)}] += count
	}
}
