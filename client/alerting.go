package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// sendFile sends a file in YAML or JSON and decodes the answer into into, if that is not nil.
func (c *Client) sendFile(ctx context.Context, method, path string, query url.Values, file []byte, into any) error {
	if file == nil {
		file = []byte{} // the server says what is missing
	}
	kind := "application/yaml"
	if json.Valid(file) {
		kind = "application/json"
	}
	return c.decode(ctx, Request{Method: method, Path: path, Query: query, Body: file, ContentType: kind}, into)
}

// Problem returns one problem: the expression that fired, its items, what was done to it, and when the same trigger fired before.
func (c *Client) Problem(ctx context.Context, eventID string) (ProblemDetail, error) {
	return get[ProblemDetail](ctx, c, "/api/problems/"+url.PathEscape(eventID), nil)
}

// TriggerFilter says which triggers are listed. Zero fields do not filter.
type TriggerFilter struct {
	// HostID is the id of the only host; Search must be in the name, in any case of letters.
	HostID, Search string
}

// Query is the filter as the route /api/triggers takes it.
func (f TriggerFilter) Query() url.Values {
	query := url.Values{}
	setText(query, "host", f.HostID)
	setText(query, "search", f.Search)
	return query
}

// Triggers returns a page of triggers with their state, by host and name.
func (c *Client) Triggers(ctx context.Context, f TriggerFilter, p Page) (TriggerList, error) {
	return page[TriggerList](ctx, c, "/api/triggers", f.Query(), p)
}

// AllTriggers walks all triggers that fit, page by page.
func (c *Client) AllTriggers(ctx context.Context, f TriggerFilter) iter.Seq2[Trigger, error] {
	return all(func(p Page) ([]Trigger, string, error) {
		list, err := c.Triggers(ctx, f, p)
		return list.Triggers, list.Next, err
	})
}

// AlertFilter says which alerts are listed. Zero fields do not filter.
type AlertFilter struct {
	// ProblemID is the event id of the only problem.
	ProblemID string
	// States are the only ones: waiting, sent, failed.
	States []string
}

// Query is the filter as the route /api/alerts takes it.
func (f AlertFilter) Query() url.Values {
	query := url.Values{}
	setText(query, "problem", f.ProblemID)
	setText(query, "state", strings.Join(f.States, ","))
	return query
}

// Alerts returns a page of messages to receivers and their state, the newest first.
func (c *Client) Alerts(ctx context.Context, f AlertFilter, p Page) (AlertList, error) {
	return page[AlertList](ctx, c, "/api/alerts", f.Query(), p)
}

// AllAlerts walks all alerts that fit, page by page, the newest first.
func (c *Client) AllAlerts(ctx context.Context, f AlertFilter) iter.Seq2[Alert, error] {
	return all(func(p Page) ([]Alert, string, error) {
		list, err := c.Alerts(ctx, f, p)
		return list.Alerts, list.Next, err
	})
}

// Alerting returns the actions, receivers, media types and maintenances as one document, which SetAlerting takes; secrets are hidden. Its form is in
// docs/user/alerts.md. The caller must be an editor of all hosts.
func (c *Client) Alerting(ctx context.Context) (json.RawMessage, error) {
	return get[json.RawMessage](ctx, c, "/api/alerting", nil)
}

// SetAlerting puts the objects of a file in YAML or JSON over those of the same name; with replace what is not in it is deleted. The caller must be an
// editor of all hosts.
func (c *Client) SetAlerting(ctx context.Context, file []byte, replace bool) error {
	query := url.Values{}
	setFlag(query, "replace", replace)
	return c.sendFile(ctx, http.MethodPut, "/api/alerting", query, file, nil)
}

// DeleteAlerting removes one object; kind is media, receiver, action or maintenance. The caller must be an editor of all hosts.
func (c *Client) DeleteAlerting(ctx context.Context, kind, name string) error {
	return c.remove(ctx, "/api/alerting/"+url.PathEscape(kind)+"/"+url.PathEscape(name))
}

// ImportMedia takes over media types from a Zabbix export in YAML or JSON and returns remarks. The caller must be an editor of all hosts.
func (c *Client) ImportMedia(ctx context.Context, file []byte) (remarks []string, err error) {
	var answer ImportedMedia
	err = c.sendFile(ctx, http.MethodPost, "/api/alerting/import", nil, file, &answer)
	return answer.Remarks, err
}

// TestAlert sends a test message at once and says what came of it. The caller must be an editor of all hosts.
func (c *Client) TestAlert(ctx context.Context, t AlertTest) (AlertTestAnswer, error) {
	return change[AlertTestAnswer](ctx, c, http.MethodPost, "/api/alerting/test", t)
}

// AlertPause says whether the sending of alerts is paused.
func (c *Client) AlertPause(ctx context.Context) (AlertPause, error) {
	return get[AlertPause](ctx, c, "/api/alerting/paused", nil)
}

// PauseAlerts pauses the sending of alerts, or goes on with it, until the server's next start. The caller must be an editor of all hosts.
func (c *Client) PauseAlerts(ctx context.Context, pause bool) (AlertPause, error) {
	return change[AlertPause](ctx, c, http.MethodPut, "/api/alerting/paused", map[string]bool{"paused": pause})
}
