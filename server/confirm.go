package server

import (
	"bytes"
	"net/http"

	"tidemark/api"
)

// confirming makes routes that change something wait, in synchronous mode, until a standby has the change: only then their answer goes out.
func (s *Server) confirming(routes []api.Route) []api.Route {
	if !s.o.Synchronous || s.replica == nil || s.replica.source == nil {
		return routes
	}
	for i := range routes {
		r := &routes[i]
		if r.Streaming || !changes(r) && r.Pattern != "/api_jsonrpc.php" {
			continue
		}
		next := r.Handler
		r.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.confirm(w, req, next) })
	}
	return routes
}

// heldAnswer is an answer that waits. Handlers of changes answer in a few kilobytes.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldAnswer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write implements http.ResponseWriter.
func (h *heldAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}

func (s *Server) confirm(w http.ResponseWriter, r *http.Request, next http.Handler) {
	before, err := s.db.ChangedRows(r.Context())
	if err != nil {
		api.WriteError(w, err)
		return
	}
	held := &heldAnswer{header: w.Header()}
	next.ServeHTTP(held, r)
	after, err := s.db.ChangedRows(r.Context())
	if err == nil && after != before && held.status < http.StatusBadRequest {
		err = s.replica.source.Confirmed(r.Context())
	}
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.WriteHeader(max(held.status, http.StatusOK))
	_, _ = held.body.WriteTo(w)
}
