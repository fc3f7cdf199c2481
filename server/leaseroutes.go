package server

import (
	"net/http"
	"time"

	"tidemark/api"
	"tidemark/storage/lease"
)

// leaseRoutes are about the lease of a database that servers share.
func (s *Server) leaseRoutes() []api.Route {
	routes := []api.Route{{
		Method: http.MethodGet, Pattern: "/api/lease", Permission: api.View, Handler: api.JSON(func(*http.Request) (any, error) { return s.lease(), nil }),
		Doc: &api.Doc{Summary: "Whether servers share the database, and which of them works.", Answer: leaseAnswer{}},
	}}
	const pattern = "/api/lease/handover"
	if s.o.handOver == nil {
		return append(routes, otherStore(http.MethodPost, pattern, api.Administer, "this server shares its database with no other one; storage.shared is for two servers on one PostgreSQL"))
	}
	return append(routes, api.Route{
		Method: http.MethodPost, Pattern: pattern, Permission: api.Administer, Handler: api.JSON(s.handOverLease),
		Doc: &api.Doc{Summary: "Gives the work to the server that waits; this one stops and waits then.", Answer: leaseAnswer{}},
	})
}

func (s *Server) lease() leaseAnswer {
	t := s.o.term
	if t == nil {
		return leaseAnswer{Waiting: []lease.Waiting{}}
	}
	a := leaseAnswer{Shared: true, Role: roleWorking, Epoch: t.Epoch(), Holder: t.Holder(), Address: t.Address(), Since: t.Since(), LeftSeconds: t.Left().Seconds(), Waiting: append([]lease.Waiting{}, t.Waiting()...)}
	if err := t.Err(); err != nil {
		a.Role, a.Problem = roleWaiting, api.Shown(err)
	}
	return a
}

// handOverPause lets the answer out before the server stops.
const handOverPause = 200 * time.Millisecond

func (s *Server) handOverLease(*http.Request) (any, error) {
	time.AfterFunc(handOverPause, func() {
		select {
		case s.o.handOver <- struct{}{}:
		default: // it was asked for before
		}
	})
	return s.lease(), nil
}

// measureLease registers the metrics of the lease.
func (s *Server) measureLease() {
	t := s.o.term
	if t == nil {
		return
	}
	s.metrics.NewGauge("tidemark_lease_epoch", func() float64 { return float64(t.Epoch()) })
	s.metrics.NewGauge("tidemark_lease_waiting_servers", func() float64 { return float64(len(t.Waiting())) })
	s.metrics.NewGauge("tidemark_lease_left_seconds", func() float64 { return t.Left().Seconds() })
}
