package server

import (
	"testing"
	"time"

	"tidemark/client"
)

// TestClient_server takes a host, a dashboard, a user and alerting through their lives with the Go client.
func TestClient_server(t *testing.T) {
	ctx := t.Context()
	c, err := client.New(client.Options{Address: run(t, t.TempDir()).http})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error, good bool) {
		t.Helper()
		if err != nil || !good {
			t.Errorf("%s: %v, as expected: %v", what, err, good)
		}
	}
	const host = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"Web"}],"hosts":[{"host":"a b","name":"a b","groups":[{"name":"Web"}],"items":[
		{"name":"n","type":"TRAP","key":"n","delay":"0"}]}]}}`
	plan, err := c.Plan(ctx, []byte(host), client.PlanOptions{})
	check("plan", err, plan.Report != nil && plan.Report.Plan)
	report, err := c.Import(ctx, []byte(host))
	check("import", err, len(report.Objects) > 0 && len(report.Remarks) == 0)
	document, err := c.HostDocument(ctx, "a b")
	if err != nil {
		t.Fatalf("document: %v, after %+v", err, report)
	}
	check("document", err, document.Revision != "" && document.ID != "")
	saved, err := c.SaveHost(ctx, "a b", document.Document, document.Revision)
	check("save", err, saved.Revision == document.Revision)
	one, err := c.Host(ctx, document.ID)
	check("host", err, one.Host == "a b" && one.Items == 1)
	items, err := c.Items(ctx, client.ItemFilter{HostID: one.ID}, client.Page{})
	check("items", err, len(items.Items) == 1)
	if len(items.Items) == 1 {
		chart, err := c.Chart(ctx, []string{items.Items[0].ID}, time.Now().Add(-time.Hour), time.Time{}, 0)
		check("chart", err, len(chart.Series) == 1)
	}
	check("delete", c.DeleteHost(ctx, "a b"), true)
	if _, err := c.HostDocument(ctx, "a b"); !client.IsNotFound(err) {
		t.Errorf("a host that is gone: %v", err)
	}

	made, err := c.MakeDashboard(ctx, client.DashboardBody{Dashboard: []byte(`{"name":"D","everyone":true,"widgets":[]}`)})
	check("dashboard", err, made.ID != "")
	file, err := c.DashboardFile(ctx)
	check("dashboard file", err, len(file) > 0)
	steps, err := c.PlanDashboards(ctx, file, false)
	check("dashboard plan", err, len(steps.Steps) == 1 && steps.Steps[0].What == "unchanged")
	check("dashboard deleted", c.DeleteDashboard(ctx, made.ID), true)

	whole, err := c.Alerting(ctx)
	check("alerting", err, len(whole) > 0)
	check("alerting set", c.SetAlerting(ctx, whole, true), true)
	pause, err := c.PauseAlerts(ctx, true)
	check("pause", err, pause.Paused)
	result, err := c.Query(ctx, "1+1", time.Time{})
	check("query", err, result.Type == "scalar")
	_, err = c.QueryRange(ctx, "1+1", time.Now().Add(-time.Minute), time.Now(), 15*time.Second)
	check("query range", err, true)
	_, err = c.Storage(ctx)
	check("storage", err, true)
	if _, err := c.Housekeeping(ctx); !client.IsNotFound(err) {
		t.Errorf("housekeeping of the embedded engine: %v", err)
	}
	check("groups", c.SaveUserGroup(ctx, "g", client.UserGroupBody{Grants: []client.Grant{}}), true)
	user, err := c.MakeUser(ctx, client.UserBody{Name: "ann", Role: "viewer", Groups: []string{"g"}})
	check("user", err, user.ID != "")
	token, err := c.MakeToken(ctx, client.NewToken{Name: "t", User: "ann"})
	check("token", err, token.Text != "" && token.User == "ann")
	check("revoked", c.RevokeToken(ctx, token.ID), true)
	audit, err := c.Audit(ctx, client.AuditFilter{Search: "ann"}, client.Page{})
	check("audit", err, len(audit.Entries) > 0)
}
