package server

import (
	"context"
	"errors"
	"net/http"

	"tidemark/api"
	"tidemark/api/rest"
	"tidemark/confdb"
	"tidemark/model"
)

// dashboards is the dashboards of the configuration as the interface sees them.
type dashboards struct{ db *confdb.DB }

var _ rest.Dashboards = dashboards{}

// dashboardError gives what the caller did wrong the form of an answer.
func dashboardError(err error) error {
	switch {
	case errors.Is(err, confdb.ErrConflict):
		return &api.Error{Status: http.StatusConflict, Code: "conflict", Message: err.Error()}
	case errors.Is(err, confdb.ErrInvalid):
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "dashboard", Message: err.Error()}
	case errors.Is(err, confdb.ErrNotFound):
		return api.NotFound(err.Error())
	}
	return err
}

// List implements rest.Dashboards.
func (d dashboards) List(ctx context.Context) ([]model.SavedDashboard, error) {
	return d.db.DashboardList(ctx)
}

// All implements rest.Dashboards.
func (d dashboards) All(ctx context.Context) ([]model.SavedDashboard, error) {
	return d.db.Dashboards(ctx)
}

// Get implements rest.Dashboards.
func (d dashboards) Get(ctx context.Context, id model.DashboardID, version uint32) (model.SavedDashboard, error) {
	s, err := d.db.Dashboard(ctx, id, version)
	return s, dashboardError(err)
}

// Versions implements rest.Dashboards.
func (d dashboards) Versions(ctx context.Context, id model.DashboardID) ([]model.SavedDashboard, error) {
	list, err := d.db.DashboardVersions(ctx, id)
	return list, dashboardError(err)
}

// Put implements rest.Dashboards.
func (d dashboards) Put(ctx context.Context, s model.SavedDashboard) (model.SavedDashboard, error) {
	s, err := d.db.PutDashboard(ctx, s)
	return s, dashboardError(err)
}

// Delete implements rest.Dashboards.
func (d dashboards) Delete(ctx context.Context, id model.DashboardID) error {
	return dashboardError(d.db.DeleteDashboard(ctx, id))
}

// Apply implements rest.Dashboards.
func (d dashboards) Apply(ctx context.Context, change model.DashboardChange) error {
	return dashboardError(d.db.ApplyDashboards(ctx, change))
}
