package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/api"
	"tidemark/client"
	"tidemark/model"
)

// Alerting tells people of problems. Its errors are answered as they are.
type Alerting interface {
	// Config returns the configuration, to be encoded; secrets are hidden.
	Config() any
	// Apply puts objects, in YAML or JSON, over those of the same name, or replaces everything.
	Apply(ctx context.Context, text []byte, replace bool) error
	// Delete removes one object.
	Delete(ctx context.Context, kind, name string) error
	// ImportMedia takes over Zabbix's export of media types, and says what was not taken or does not work.
	ImportMedia(ctx context.Context, text []byte) (remarks []string, err error)
	// Test sends a message at once and returns what the other side said.
	Test(ctx context.Context, t AlertTest) (answer string, err error)
	// Alerts lists alerts, newest first.
	Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error)
	// Links returns the links of problems, a list for each: those that media types make of the tags their messages added.
	Links(problems []model.Problem) [][]Link
	// Suppressions returns for each of some problems whether and until when its messages are held back.
	Suppressions(problems []model.Problem) []alert.Suppression
	// UpdateProblems changes problems, all or none, tells those whom an action names, and returns those that were changed.
	UpdateProblems(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.EventID, error)
}

// alertRoutes are the routes of alerting; none without it.
func (a *API) alertRoutes() []api.Route {
	if a.options.Alerting == nil {
		return nil
	}
	yamlOrJSON := []string{"application/yaml", "application/json"}
	return append(a.problemUpdateRoutes(), []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/alerts", Permission: api.View, PerHost: true, Handler: a.handle((*API).listAlerts), Doc: &api.Doc{
				Summary: "Messages to receivers and their state, the newest first.", Answer: AlertList{}, Params: []api.Param{
					{Name: "problem", Type: "string", About: "Id of the problem whose messages are listed."},
					{Name: "state", Type: "string", About: "waiting, sent, failed, with commas between."},
					paramLimit, paramCursor,
				},
			},
		},
		{
			Method: http.MethodGet, Pattern: "/api/alerting", Permission: api.Edit, Handler: api.JSON(func(*http.Request) (any, error) { return a.options.Alerting.Config(), nil }),
			Doc: &api.Doc{Summary: "Actions, receivers, media types, maintenances; secrets are hidden.", Answer: map[string]any{}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/alerting", Permission: api.Edit, Handler: api.JSON(a.applyAlerting), Doc: &api.Doc{
				Summary: "Puts actions, receivers, media types and maintenances over those of the same name.", BodyTypes: yamlOrJSON, Answer: struct{}{},
				Params: []api.Param{{Name: "replace", Type: "boolean", About: "true deletes everything that is not in the body."}},
			},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/alerting/{kind}/{name}", Permission: api.Edit, Handler: api.JSON(a.deleteAlerting), Doc: &api.Doc{
				Summary: "Deletes one object.", Answer: struct{}{}, Params: []api.Param{
					{Name: "kind", Type: "string", About: "media, receiver, action or maintenance.", Required: true},
					{Name: "name", Type: "string", About: "Its name.", Required: true},
				},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/alerting/import", Permission: api.Edit, Handler: api.JSON(a.importMedia),
			Doc: &api.Doc{Summary: "Takes over media types from a Zabbix export; answers with remarks.", BodyTypes: yamlOrJSON, Answer: client.ImportedMedia{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/alerting/test", Permission: api.Edit, Handler: api.JSON(a.testAlert),
			Doc: &api.Doc{Summary: "Sends a test message at once and answers with what came of it.", Body: AlertTest{}, Answer: AlertTestAnswer{}},
		},
	}...)
}

func (a *API) listAlerts(r *http.Request) (any, error) {
	p := readParams(r)
	f := model.AlertFilter{Limit: p.limit() + 1, Before: p.cursorID("alert")}
	if v := p.text("problem"); v != "" {
		id, err := parseID("problem", v)
		if err != nil {
			return nil, err
		}
		f.Problem = model.EventID(id)
	}
	if v := p.text("state"); v != "" {
		for name := range strings.SplitSeq(v, ",") {
			state, ok := parseAlertState(strings.TrimSpace(name))
			if !ok {
				p.fail("state is %.40q, expected waiting, sent or failed", name)
			}
			f.States = append(f.States, state)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	alerts, err := a.options.Alerting.Alerts(r.Context(), f)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	list := AlertList{Alerts: make([]Alert, 0, len(alerts))}
	if len(alerts) == f.Limit {
		alerts = alerts[:f.Limit-1]
		list.Next = encodeCursor("alert", formatID(alerts[len(alerts)-1].ID))
	}
	for i := range alerts {
		list.Alerts = append(list.Alerts, formatAlert(&alerts[i]))
	}
	return list, nil
}

func parseAlertState(name string) (model.AlertState, bool) {
	for s := model.AlertWaiting; s <= model.AlertFailed; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

func formatAlert(m *model.Alert) Alert {
	out := Alert{
		ID: formatID(m.ID), Action: m.Action, Kind: m.Kind.String(), EventID: formatID(m.EventID), Problem: formatID(m.ProblemID),
		Severity: m.Severity.String(), Host: m.Host, Name: m.Name, Step: m.Step, Receiver: m.Receiver, Media: m.Media, To: shownAddress(m.To),
		Subject: m.Subject, State: m.State.String(), Attempts: m.Attempts, CreatedAt: floorMillis(m.CreatedAt), SentAt: optionalMillis(m.SentAt), Error: m.Error,
	}
	if m.Together != 0 {
		out.Together = formatID(m.Together)
	}
	return out
}

// shownAddress leaves out what may be a secret: the path of a webhook's address often is its password.
func shownAddress(to string) string {
	if !strings.Contains(to, "://") {
		return to
	}
	u, err := url.Parse(to)
	if err != nil {
		return "…"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// changeAlerting changes alerting and notes what became different; secrets are hidden in both.
func (a *API) changeAlerting(r *http.Request, object string, change func() error) (any, error) {
	before := a.options.Alerting.Config()
	err := change()
	access.Changed(r.Context(), object, before, a.options.Alerting.Config())
	return done(err)
}

// done is the answer of calls that have nothing to say.
func done(err error) (any, error) { return struct{}{}, err }

func (a *API) applyAlerting(r *http.Request) (any, error) {
	p := readParams(r)
	replace := p.flag("replace")
	if p.err != nil {
		return nil, p.err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	return a.changeAlerting(r, "alerting", func() error { return a.options.Alerting.Apply(r.Context(), text, replace) })
}

func (a *API) deleteAlerting(r *http.Request) (any, error) {
	kind, name := r.PathValue("kind"), r.PathValue("name")
	return a.changeAlerting(r, kind+" "+name, func() error { return a.options.Alerting.Delete(r.Context(), kind, name) })
}

func (a *API) importMedia(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	before := a.options.Alerting.Config()
	remarks, err := a.options.Alerting.ImportMedia(r.Context(), text)
	access.Changed(r.Context(), "alerting, by import", before, a.options.Alerting.Config())
	if err != nil {
		return nil, err
	}
	if remarks == nil {
		remarks = []string{}
	}
	return client.ImportedMedia{Remarks: remarks}, nil
}

// decodeBody reads a small JSON body strictly.
func decodeBody(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return api.BodyError(err)
		}
		return api.BadRequest("the body cannot be read: " + err.Error())
	}
	return nil
}

func (a *API) testAlert(r *http.Request) (any, error) {
	var t AlertTest
	if err := decodeBody(r, &t); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "test message over "+t.Media, nil, nil)
	answer, err := a.options.Alerting.Test(r.Context(), t)
	var known *api.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return AlertTestAnswer{Answer: answer, Error: api.Shown(err)}, nil
	}
	return AlertTestAnswer{Sent: true, Answer: answer}, nil
}
