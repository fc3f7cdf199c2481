package server

import "net/http"

func (s *Server) handler() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { s.metrics.WritePrometheus(w) })
	return mux, nil
}
