package server

import (
	"context"
	"fmt"
	"net/http"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/internal/vfs"
)

// openAccess reads the users.
func (s *Server) openAccess(ctx context.Context, _ vfs.FS) error {
	var err error
	s.access, err = access.Open(ctx, access.Options{Store: s.db, Token: s.o.Token, ReadOnly: s.o.Mirror, Logger: s.logger, Metrics: s.metrics})
	if err != nil {
		return fmt.Errorf("open the users: %w", err)
	}
	return nil
}

// FirstKey makes the key of the one-time link for the first administrator; empty when there is one already.
func (s *Server) FirstKey() string { return s.access.FirstKey() }

// HasAdministrator reports whether somebody can sign in as administrator; until then the page is for loopback only.
func (s *Server) HasAdministrator() bool { return s.access.HasAdministrator() }

// audit writes what a request changed into the audit log.
func (s *Server) audit(r *http.Request, route api.Route, changes *access.Changes) {
	if err := s.refusal(); err != nil { // the audit log is in the copy of the primary's database
		s.logger.Info("done on a server that cannot write its audit log", "action", r.Method+" "+r.URL.Path, "by", r.RemoteAddr, "reason", err)
		return
	}
	e := changes.Entry(r.Method+" "+route.Pattern, r.RemoteAddr)
	if e.Object == "" {
		e.Object = r.URL.Path
	}
	s.access.Audit(r.Context(), access.From(r.Context()), e)
}

var _ access.Store = (*confdb.DB)(nil)
