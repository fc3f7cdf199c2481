package client

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// TestClient_methods names the request that calls make of what they are given: names are escaped, options become parameters, files go as they are. That each
// method fits its route is tested by the server.
func TestClient_methods(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_250)
	file := []byte("a: 1\n")
	for _, one := range []struct {
		want string
		call func(*Client) error
	}{
		{"DELETE /api/configuration/hosts/a%2Fb%20c ", func(c *Client) error { return c.DeleteHost(t.Context(), "a/b c") }},
		{"PUT /api/configuration/templates/x?revision=r1 application/yaml a: 1\n", func(c *Client) error {
			_, err := c.SaveTemplate(t.Context(), "x", file, "r1")
			return err
		}},
		{"POST /api/configuration/plan?create=true&exact=true&kind=host&name=x application/yaml a: 1\n", func(c *Client) error {
			_, err := c.Plan(t.Context(), file, PlanOptions{Exact: true, Kind: "host", Name: "x", Create: true})
			return err
		}},
		{"POST /api/configuration/plan application/yaml a: 1\n", func(c *Client) error { _, err := c.Plan(t.Context(), file, PlanOptions{}); return err }},
		{"POST /api/import application/json {\"a\":\n\t1}", func(c *Client) error { _, err := c.Import(t.Context(), []byte("{\"a\":\n\t1}")); return err }},
		{"GET /api/export?host=a&host=b&version=6.0 ", func(c *Client) error {
			_, err := c.Export(t.Context(), ExportOptions{Hosts: []string{"a", "b"}, Version: "6.0"})
			return err
		}},
		{"PUT /api/alerting?replace=true application/yaml a: 1\n", func(c *Client) error { return c.SetAlerting(t.Context(), file, true) }},
		{`PUT /api/alerting/paused application/json {"paused":false}`, func(c *Client) error { _, err := c.PauseAlerts(t.Context(), false); return err }},
		{"GET /api/chart?from=1790000000250&items=1%2C2&points=9 ", func(c *Client) error {
			_, err := c.Chart(t.Context(), []string{"1", "2"}, at, time.Time{}, 9)
			return err
		}},
		{"GET /api/alerts?cursor=c&limit=5&problem=7&state=waiting%2Cfailed ", func(c *Client) error {
			_, err := c.Alerts(t.Context(), AlertFilter{ProblemID: "7", States: []string{"waiting", "failed"}}, Page{Limit: 5, Cursor: "c"})
			return err
		}},
		{"GET /api/mongo/requests/all?from=1790000000250&instance=db1%2F%3A27017&points=30 ", func(c *Client) error {
			_, err := c.MongoRequest(t.Context(), "all", MongoFilter{Instance: "db1/:27017", From: at, Search: "x"}, 30)
			return err
		}},
		{"GET /api/v1/query_range?end=1790000000.250&query=up&start=1790000000.250&step=0.5 ", func(c *Client) error {
			_, err := c.QueryRange(t.Context(), "up", at, at, 500*time.Millisecond)
			return err
		}},
		{"GET /api/v1/label/job/values?match%5B%5D=up&match%5B%5D=down ", func(c *Client) error {
			_, err := c.LabelValues(t.Context(), "job", "up", "down")
			return err
		}},
		{"GET /api/dashboards/4 ", func(c *Client) error { _, err := c.Dashboard(t.Context(), "4", 0); return err }},
		{"GET /api/dashboards/4?version=2 ", func(c *Client) error { _, err := c.Dashboard(t.Context(), "4", 2); return err }},
	} {
		var got string
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Content-Type")
			if len(body) > 0 {
				got += " " + string(body)
			}
			_, _ = io.WriteString(w, "{}")
		}, "")
		if err := one.call(c); err != nil || got != one.want {
			t.Errorf("%q %v\nwant %q", got, err, one.want)
		}
	}
}

// TestClient_prometheus reads results and errors of the routes that have Prometheus' form.
func TestClient_prometheus(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("query") == "up" {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"status":"error","errorType":"bad_data","error":"unexpected end of input"}`)
	}, "")
	got, err := c.Query(t.Context(), "up", time.Time{})
	if err != nil || got.Type != "vector" || string(got.Result) != `[{"metric":{},"value":[1,"2"]}]` {
		t.Errorf("%+v %v", got, err)
	}
	_, err = c.Query(t.Context(), "sum(", time.Time{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != "bad_data" || e.Message != "unexpected end of input" || e.Status != http.StatusBadRequest {
		t.Errorf("%v", err)
	}
}

// TestFilters_query leaves out what is not given.
func TestFilters_query(t *testing.T) {
	at := time.UnixMilli(5)
	for want, query := range map[string]url.Values{
		"":                    TriggerFilter{}.Query(),
		"host=1&search=a":     TriggerFilter{HostID: "1", Search: "a"}.Query(),
		"actor=ann&from=5":    AuditFilter{Actor: "ann", From: at}.Query(),
		"failing=true&host=1": DiscoveryFilter{HostID: "1", Failing: true}.Query(),
		"collection=c&command=find&db=d&group_by=client&instance=h%2Fa&limit=3&to=5": MongoFilter{
			Instance: "h/a", To: at, GroupBy: "client", Database: "d", Collection: "c", Command: "find", Limit: 3,
		}.Query(),
	} {
		if got := query.Encode(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
