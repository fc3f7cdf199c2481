package server

import (
	"tidemark/discovery"
)

// newDiscovery makes the engine of low-level discovery over the configuration.
func (s *Server) newDiscovery() *discovery.Engine {
	return discovery.New(discovery.Options{
		Rules: func() discovery.Rules { return s.cache.Snapshot() }, Store: s.db, Metrics: s.metrics, Logger: s.logger,
	})
}
