package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Dashboards returns the dashboards that the caller may see, by name.
func (c *Client) Dashboards(ctx context.Context) (DashboardList, error) {
	return get[DashboardList](ctx, c, "/api/dashboards", nil)
}

// Dashboard returns one version of a dashboard; version 0 is the newest.
func (c *Client) Dashboard(ctx context.Context, id string, version uint32) (DashboardAnswer, error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatUint(uint64(version), 10))
	}
	return get[DashboardAnswer](ctx, c, "/api/dashboards/"+url.PathEscape(id), query)
}

// DashboardVersions returns the versions of a dashboard, the newest first; 50 are kept.
func (c *Client) DashboardVersions(ctx context.Context, id string) (DashboardList, error) {
	return get[DashboardList](ctx, c, "/api/dashboards/"+url.PathEscape(id)+"/versions", nil)
}

// MakeDashboard makes a dashboard. What is not private needs the role editor.
func (c *Client) MakeDashboard(ctx context.Context, d DashboardBody) (DashboardHead, error) {
	return change[DashboardHead](ctx, c, http.MethodPost, "/api/dashboards", d)
}

// SaveDashboard saves a new version; an Error with the status 409 says that somebody else saved one since the version that d names.
func (c *Client) SaveDashboard(ctx context.Context, id string, d DashboardBody) (DashboardHead, error) {
	return change[DashboardHead](ctx, c, http.MethodPut, "/api/dashboards/"+url.PathEscape(id), d)
}

// DeleteDashboard removes a dashboard with all its versions.
func (c *Client) DeleteDashboard(ctx context.Context, id string) error {
	return c.remove(ctx, "/api/dashboards/"+url.PathEscape(id))
}

// DashboardFile returns dashboards as YAML, all of them without names. Applying it and asking again gives the same bytes.
func (c *Client) DashboardFile(ctx context.Context, names ...string) ([]byte, error) {
	return c.Send(ctx, Request{Path: "/api/dashboard-file", Query: url.Values{"name": names}})
}

// PlanDashboards says what ApplyDashboards would do with the same file; nothing is changed.
func (c *Client) PlanDashboards(ctx context.Context, file []byte, replace bool) (plan DashboardPlan, err error) {
	query := url.Values{}
	setFlag(query, "replace", replace)
	err = c.sendFile(ctx, http.MethodPost, "/api/dashboard-file/plan", query, file, &plan)
	return plan, err
}

// ApplyDashboards saves the dashboards of a file in YAML over those of the same name, all or none; with replace those that are not in it are deleted.
// The caller must be an editor of all hosts.
func (c *Client) ApplyDashboards(ctx context.Context, file []byte, replace bool) (done DashboardPlan, err error) {
	query := url.Values{}
	setFlag(query, "replace", replace)
	err = c.sendFile(ctx, http.MethodPut, "/api/dashboard-file", query, file, &done)
	return done, err
}
