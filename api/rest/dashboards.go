package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"tidemark/access"
	"tidemark/api"
	"tidemark/dashboard"
	"tidemark/model"
)

// Dashboards keeps dashboards and their versions. Its errors are answered as they are.
type Dashboards interface {
	// List returns the newest version of each without its body, by name; All with it.
	List(ctx context.Context) ([]model.SavedDashboard, error)
	All(ctx context.Context) ([]model.SavedDashboard, error)
	// Get returns a version; zero is the newest.
	Get(ctx context.Context, id model.DashboardID, version uint32) (model.SavedDashboard, error)
	// Versions lists the versions of one without their bodies, the newest first.
	Versions(ctx context.Context, id model.DashboardID) ([]model.SavedDashboard, error)
	// Put saves the version after the one that s names; id zero makes a new dashboard.
	Put(ctx context.Context, s model.SavedDashboard) (model.SavedDashboard, error)
	Delete(ctx context.Context, id model.DashboardID) error
	Apply(ctx context.Context, change model.DashboardChange) error
}

// DashboardHead is one dashboard in lists, or one version of it.
type DashboardHead struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Everyone bool   `json:"everyone"`
	Version  uint32 `json:"version"`
	// SavedAt is Unix milliseconds.
	SavedAt int64  `json:"saved_at"`
	SavedBy string `json:"saved_by"`
	Note    string `json:"note"`
}

// DashboardList is all dashboards, or the versions of one.
type DashboardList struct {
	Dashboards []DashboardHead `json:"dashboards"`
}

// DashboardAnswer is one version of a dashboard.
type DashboardAnswer struct {
	DashboardHead
	// Newest is the number of the newest version.
	Newest    uint32          `json:"newest"`
	Dashboard json.RawMessage `json:"dashboard"`
}

// DashboardBody is the body of a save.
type DashboardBody struct {
	// Version is the one that the change was made from; left out for a new dashboard.
	Version uint32 `json:"version,omitempty"`
	// Note says what was changed, at most 200 bytes.
	Note      string          `json:"note,omitempty"`
	Dashboard json.RawMessage `json:"dashboard"`
}

// DashboardPlan says what applying a file does, or did.
type DashboardPlan struct {
	Steps []dashboard.Step `json:"steps"`
}

// dashboardRoutes are the routes of dashboards; none without them.
func (a *API) dashboardRoutes() []api.Route {
	if a.options.Dashboards == nil {
		return nil
	}
	id := api.Param{Name: "id", Type: "string", About: "The dashboard's id, decimal.", Required: true}
	replace := api.Param{Name: "replace", Type: "boolean", About: "true deletes every dashboard that is not in the file."}
	read := func(pattern string, fn func(*API, *http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.View, PerHost: true, Handler: a.handle(fn), Doc: &doc}
	}
	change := func(method, pattern string, fn func(*http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: method, Pattern: pattern, Permission: api.Edit, Handler: api.JSON(fn), Doc: &doc, MaxBodyBytes: 2 * dashboard.MaxBytes}
	}
	plan := change(http.MethodPost, "/api/dashboard-file/plan", a.planDashboards, api.Doc{
		Summary: "What putting a file of dashboards into force would do; changes nothing.", BodyTypes: []string{"application/yaml"}, Params: []api.Param{replace}, Answer: DashboardPlan{},
	})
	apply := change(http.MethodPut, "/api/dashboard-file", a.applyDashboards, api.Doc{
		Summary: "Saves the dashboards of a file over those of the same name; all or none.", BodyTypes: []string{"application/yaml"}, Params: []api.Param{replace}, Answer: DashboardPlan{},
	})
	plan.Unaudited, plan.MaxBodyBytes, apply.MaxBodyBytes = true, dashboard.MaxFileBytes, dashboard.MaxFileBytes
	return []api.Route{
		read("/api/dashboards", (*API).listDashboards, api.Doc{Summary: "Dashboards by name.", Answer: DashboardList{}}),
		read("/api/dashboards/{id}", (*API).getDashboard, api.Doc{
			Summary: "One dashboard.", Answer: DashboardAnswer{}, Params: []api.Param{id, {Name: "version", Type: "integer", About: "An earlier version; the newest if not given."}},
		}),
		read("/api/dashboards/{id}/versions", (*API).listDashboardVersions, api.Doc{Summary: "The versions of a dashboard, the newest first; 50 are kept.", Answer: DashboardList{}, Params: []api.Param{id}}),
		change(http.MethodPost, "/api/dashboards", a.createDashboard, api.Doc{Summary: "Makes a dashboard.", Body: DashboardBody{}, Answer: DashboardHead{}}),
		change(http.MethodPut, "/api/dashboards/{id}", a.saveDashboard, api.Doc{
			Summary: "Saves a new version; 409 when somebody else saved one since the version that the body names.", Body: DashboardBody{}, Answer: DashboardHead{}, Params: []api.Param{id},
		}),
		change(http.MethodDelete, "/api/dashboards/{id}", a.deleteDashboard, api.Doc{Summary: "Deletes a dashboard with all its versions.", Answer: map[string]any{}, Params: []api.Param{id}}),
		{
			Method: http.MethodGet, Pattern: "/api/dashboard-file", Permission: api.View, PerHost: true, Handler: http.HandlerFunc(a.exportDashboards), Doc: &api.Doc{
				Summary: "Dashboards as YAML; applying it and asking again gives the same bytes.", AnswerType: "application/yaml",
				Params: []api.Param{{Name: "name", Type: "string", About: "Name of a dashboard; may be repeated; all if not given.", Repeated: true}},
			},
		},
		plan, apply,
	}
}

// shownDashboard reports whether whoever asks may see a dashboard: people who may see only some hosts see what is for everyone.
func (a *API) shownDashboard(s *model.SavedDashboard) bool { return a.visible == nil || s.Everyone }

func formatDashboard(s *model.SavedDashboard) DashboardHead {
	return DashboardHead{ID: formatID(s.ID), Name: s.Name, Everyone: s.Everyone, Version: s.Version, SavedAt: floorMillis(s.At), SavedBy: s.Author, Note: s.Note}
}

func (a *API) formatDashboards(saved []model.SavedDashboard) DashboardList {
	list := DashboardList{Dashboards: []DashboardHead{}}
	for i := range saved {
		if a.shownDashboard(&saved[i]) {
			list.Dashboards = append(list.Dashboards, formatDashboard(&saved[i]))
		}
	}
	return list
}

func (a *API) listDashboards(r *http.Request) (any, error) {
	saved, err := a.options.Dashboards.List(r.Context())
	return a.formatDashboards(saved), err
}

// dashboard finds a version of a dashboard that whoever asks may see, and the number of the newest.
func (a *API) dashboard(r *http.Request, version uint32) (s model.SavedDashboard, newest uint32, err error) {
	id, err := parseID("the dashboard's id", r.PathValue("id"))
	if err != nil {
		return s, 0, err
	}
	s, err = a.options.Dashboards.Get(r.Context(), model.DashboardID(id), 0)
	newest = s.Version
	// Whether somebody may see old versions too is what the newest one says.
	if err == nil && !a.shownDashboard(&s) {
		err = api.NotFound(fmt.Sprintf("dashboard %d: not found", id))
	}
	if err == nil && version != 0 && version != newest {
		s, err = a.options.Dashboards.Get(r.Context(), model.DashboardID(id), version)
	}
	return s, newest, err
}

func (a *API) getDashboard(r *http.Request) (any, error) {
	p := readParams(r)
	version := uint32(p.number("version", 0, 1, 1<<31))
	if p.err != nil {
		return nil, p.err
	}
	s, newest, err := a.dashboard(r, version)
	if err != nil {
		return nil, err
	}
	return DashboardAnswer{DashboardHead: formatDashboard(&s), Newest: newest, Dashboard: s.Body}, nil
}

func (a *API) listDashboardVersions(r *http.Request) (any, error) {
	s, _, err := a.dashboard(r, 0)
	if err != nil {
		return nil, err
	}
	saved, err := a.options.Dashboards.Versions(r.Context(), s.ID)
	return a.formatDashboards(saved), err
}

// maxNoteBytes bounds the note of a version.
const maxNoteBytes = 200

// readDashboard reads the body of a save.
func (a *API) readDashboard(r *http.Request) (s model.SavedDashboard, d *dashboard.Dashboard, err error) {
	var body DashboardBody
	if err := decodeBody(r, &body); err != nil {
		return s, nil, err
	}
	if len(body.Note) > maxNoteBytes || !utf8.ValidString(body.Note) {
		return s, nil, api.BadRequest(fmt.Sprintf("note is no text of at most %d bytes", maxNoteBytes))
	}
	if d, err = dashboard.Decode(body.Dashboard); err != nil {
		return s, nil, dashboardError(err)
	}
	s = model.SavedDashboard{Version: body.Version, Note: strings.TrimSpace(body.Note), At: a.options.Now().UnixNano(), Author: authorOf(r)}
	return s, d, encodeDashboard(&s, d)
}

func encodeDashboard(s *model.SavedDashboard, d *dashboard.Dashboard) (err error) {
	s.Name, s.Everyone = d.Name, d.Everyone
	s.Body, err = d.Encode()
	return dashboardError(err)
}

// authorOf is who sends a request.
func authorOf(r *http.Request) string {
	if who := access.From(r.Context()); who != nil {
		return who.Name
	}
	return ""
}

// dashboardError gives a mistake in a dashboard the form of an answer.
func dashboardError(err error) error {
	if errors.Is(err, dashboard.ErrInvalid) {
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "dashboard", Message: err.Error()}
	}
	return err
}

func (a *API) createDashboard(r *http.Request) (any, error) {
	s, d, err := a.readDashboard(r)
	if err != nil {
		return nil, err
	}
	if s.Version != 0 {
		return nil, api.BadRequest("version is given for a new dashboard; save the one that it belongs to with PUT /api/dashboards/ID")
	}
	if s, err = a.options.Dashboards.Put(r.Context(), s); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "dashboard "+s.Name, nil, d)
	return formatDashboard(&s), nil
}

func (a *API) saveDashboard(r *http.Request) (any, error) {
	id, err := parseID("the dashboard's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	s, d, err := a.readDashboard(r)
	if err != nil {
		return nil, err
	}
	if s.Version == 0 {
		return nil, api.BadRequest("version is missing, expected the one that the change was made from")
	}
	s.ID = model.DashboardID(id)
	old, err := a.options.Dashboards.Get(r.Context(), s.ID, 0)
	if err != nil {
		return nil, err
	}
	if s, err = a.options.Dashboards.Put(r.Context(), s); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "dashboard "+s.Name, json.RawMessage(old.Body), d)
	return formatDashboard(&s), nil
}

func (a *API) deleteDashboard(r *http.Request) (any, error) {
	s, _, err := a.dashboard(r, 0)
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "dashboard "+s.Name, json.RawMessage(s.Body), nil)
	return done(a.options.Dashboards.Delete(r.Context(), s.ID))
}

// decodeSaved reads what is kept; what cannot be read any more is an error that names it.
func decodeSaved(saved []model.SavedDashboard) ([]*dashboard.Dashboard, error) {
	list := make([]*dashboard.Dashboard, 0, len(saved))
	for i := range saved {
		d, err := dashboard.Decode(saved[i].Body)
		if err != nil {
			return nil, fmt.Errorf("dashboard %q as it is kept: %w", saved[i].Name, err)
		}
		list = append(list, d)
	}
	return list, nil
}

func (a *API) exportDashboards(w http.ResponseWriter, r *http.Request) {
	text, err := a.view(r).dashboardFile(r)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", `attachment; filename="dashboards.yaml"`)
	_, _ = w.Write(text) // The caller may be gone; there is nobody left to tell.
}

func (a *API) dashboardFile(r *http.Request) ([]byte, error) {
	p := readParams(r)
	if p.err != nil {
		return nil, p.err
	}
	wanted := make(map[string]bool)
	for _, name := range p.values["name"] {
		wanted[strings.ToLower(name)] = true
	}
	saved, err := a.options.Dashboards.All(r.Context())
	if err != nil {
		return nil, err
	}
	var chosen []model.SavedDashboard
	for i := range saved {
		name := strings.ToLower(saved[i].Name)
		if a.shownDashboard(&saved[i]) && (len(p.values["name"]) == 0 || wanted[name]) {
			chosen = append(chosen, saved[i])
			delete(wanted, name)
		}
	}
	for name := range wanted {
		return nil, api.NotFound(fmt.Sprintf("there is no dashboard %.100q", name))
	}
	list, err := decodeSaved(chosen)
	if err != nil {
		return nil, err
	}
	return dashboard.Format(list)
}

// dashboardSteps reads a file and says what applying it does.
func (a *API) dashboardSteps(r *http.Request) (steps []dashboard.Step, want []*dashboard.Dashboard, err error) {
	p := readParams(r)
	replace := p.flag("replace")
	if p.err != nil {
		return nil, nil, p.err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, api.BodyError(err)
	}
	if want, err = dashboard.Parse(text); err != nil {
		return nil, nil, dashboardError(err)
	}
	saved, err := a.options.Dashboards.All(r.Context())
	if err != nil {
		return nil, nil, err
	}
	have, err := decodeSaved(saved)
	if err != nil {
		return nil, nil, err
	}
	steps, err = dashboard.Plan(have, want, replace)
	return steps, want, err
}

func (a *API) planDashboards(r *http.Request) (any, error) {
	steps, _, err := a.dashboardSteps(r)
	return DashboardPlan{Steps: steps}, err
}

func (a *API) applyDashboards(r *http.Request) (any, error) {
	steps, want, err := a.dashboardSteps(r)
	if err != nil {
		return nil, err
	}
	change := model.DashboardChange{At: a.options.Now().UnixNano(), Author: authorOf(r)}
	for n, step := range steps {
		switch step.What {
		case "delete":
			change.Deletes = append(change.Deletes, step.Name)
		case "create", "change":
			s := model.SavedDashboard{Note: "from a file"}
			if err := encodeDashboard(&s, want[n]); err != nil {
				return nil, err
			}
			change.Puts = append(change.Puts, s)
		}
	}
	access.Changed(r.Context(), "dashboards, from a file", nil, steps)
	return DashboardPlan{Steps: steps}, a.options.Dashboards.Apply(r.Context(), change)
}
