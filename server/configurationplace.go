package server

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/confdb"
)

// ConfigurationPlace says where hosts, templates, users, problems and events are.
type ConfigurationPlace struct {
	// Engine is sqlite, postgres, or empty: as the data folder says.
	Engine string
	// DSN is the connection string of PostgreSQL, Schema that of its tables; empty for confdb.DefaultSchema.
	DSN, Schema string
}

// configurationInPostgres reports whether the settings or the data folder say so.
func (s *Server) configurationInPostgres() (bool, error) {
	if s.o.Configuration.DSN != "" {
		return true, nil
	}
	return confdb.InPostgres(s.o.Data)
}

func (s *Server) openConfiguration(ctx context.Context, ids confdb.IDs, set *metrics.Set) (err error) {
	is := &s.o.Configuration
	inPostgres, err := confdb.InPostgres(s.o.Data)
	if err != nil && is.DSN == "" {
		return err
	}
	if inPostgres && is.Engine == "sqlite" {
		return fmt.Errorf("%s says that the configuration is in PostgreSQL, and configuration.engine is sqlite; bring it back with 'tidemark config migrate', or set engine postgres",
			filepath.Join(s.o.Data, confdb.PlaceFileName))
	}
	options := confdb.Options{DSN: is.DSN, Schema: is.Schema, IDs: ids, Logger: s.logger, Metrics: set}
	if t := s.o.term; t != nil {
		options.Session = t.Session
	}
	s.db, err = confdb.Open(ctx, s.o.Data, options)
	return err
}
