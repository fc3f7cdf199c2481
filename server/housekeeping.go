package server

import (
	"context"
	"net/http"

	"tidemark/api"
	"tidemark/storage/postgres"
)

// housekept is an engine that says what it keeps and drops.
type housekept interface {
	Housekeeping(ctx context.Context) (postgres.Housekeeping, error)
}

// housekeepingRoutes are those of stores that drop partitions.
func housekeepingRoutes(e housekept) []api.Route {
	return []api.Route{{
		Method: http.MethodGet, Pattern: "/api/storage/housekeeping", Permission: api.View,
		Handler: api.JSON(func(r *http.Request) (any, error) { return e.Housekeeping(r.Context()) }),
		Doc:     &api.Doc{Summary: "Tables of values with their retention, what is dropped next and when, and what was dropped since the start.", Answer: postgres.Housekeeping{}},
	}}
}
