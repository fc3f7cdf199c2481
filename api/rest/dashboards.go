package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	own := func(method, pattern string, fn func(*API, *http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: method, Pattern: pattern, Permission: api.View, PerHost: true, Handler: a.handle(fn), Doc: &doc, MaxBodyBytes: 2 * dashboard.MaxBytes}
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
		own(http.MethodPost, "/api/dashboards", (*API).createDashboard, api.Doc{Summary: "Makes a dashboard. What is not private needs the role editor.", Body: DashboardBody{}, Answer: DashboardHead{}}),
		own(http.MethodPut, "/api/dashboards/{id}", (*API).saveDashboard, api.Doc{
			Summary: "Saves a new version; 409 when somebody else saved one since the version that the body names.", Body: DashboardBody{}, Answer: DashboardHead{}, Params: []api.Param{id},
		}),
		own(http.MethodDelete, "/api/dashboards/{id}", (*API).deleteDashboard, api.Doc{Summary: "Deletes a dashboard with all its versions.", Answer: struct{}{}, Params: []api.Param{id}}),
		{
			Method: http.MethodGet, Pattern: "/api/dashboard-file", Permission: api.View, PerHost: true, Handler: http.HandlerFunc(a.exportDashboards), Doc: &api.Doc{
				Summary: "Dashboards as YAML; applying it and asking again gives the same bytes.", AnswerType: "application/yaml",
				Params: []api.Param{{Name: "name", Type: "string", About: "Name of a dashboard; may be repeated; all if not given.", Repeated: true}},
			},
		},
		plan, apply,
	}
}

func formatDashboard(who *access.Identity, s *model.SavedDashboard) DashboardHead {
	return DashboardHead{
		ID: formatID(s.ID), Name: s.Name, Everyone: s.Everyone, Owner: s.OwnerName, Private: s.Private, Groups: append([]string{}, s.Groups...), Editable: changesDashboard(who, s),
		Version: s.Version, SavedAt: floorMillis(s.At), SavedBy: s.Author, Note: s.Note,
	}
}

func formatDashboards(who *access.Identity, saved []model.SavedDashboard) DashboardList {
	list := DashboardList{Dashboards: []DashboardHead{}}
	for i := range saved {
		if seesDashboard(who, &saved[i]) {
			list.Dashboards = append(list.Dashboards, formatDashboard(who, &saved[i]))
		}
	}
	return list
}

func (a *API) listDashboards(r *http.Request) (any, error) {
	saved, err := a.options.Dashboards.List(r.Context())
	return formatDashboards(access.From(r.Context()), saved), err
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
	if err == nil && !seesDashboard(access.From(r.Context()), &s) {
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
	text, err := ownedBody(&s)
	return DashboardAnswer{DashboardHead: formatDashboard(access.From(r.Context()), &s), Newest: newest, Dashboard: text}, err
}

func (a *API) listDashboardVersions(r *http.Request) (any, error) {
	s, _, err := a.dashboard(r, 0)
	if err != nil {
		return nil, err
	}
	saved, err := a.options.Dashboards.Versions(r.Context(), s.ID)
	return formatDashboards(access.From(r.Context()), saved), err
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
	return s, d, nil
}

// encodeDashboard fills in what is kept of a dashboard. The owner is kept by id, so that it stays right when a user gets another name.
func encodeDashboard(s *model.SavedDashboard, d *dashboard.Dashboard) (err error) {
	kept := *d
	kept.Owner = ""
	s.Name = d.Name
	s.Body, err = kept.Encode()
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
	who := access.From(r.Context())
	a.making.Lock()
	defer a.making.Unlock()
	if err := a.mayMakeDashboard(r, who); err != nil {
		return nil, err
	}
	if err := a.fillDashboard(who, &s, nil, d); err != nil {
		return nil, err
	}
	if s, err = a.options.Dashboards.Put(r.Context(), s); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "dashboard "+s.Name, nil, d)
	return formatDashboard(who, &s), nil
}

// fillDashboard sets what is kept of a dashboard, if whoever sends it may have it kept like that. old is nil for a new one.
func (a *API) fillDashboard(who *access.Identity, s, old *model.SavedDashboard, d *dashboard.Dashboard) error {
	if err := mayShow(who, d); err != nil {
		return err
	}
	if err := a.setOwner(who, s, old, d); err != nil {
		return err
	}
	d.Owner = s.OwnerName
	return encodeDashboard(s, d)
}

// changeable is dashboard for whoever may change it.
func (a *API) changeable(r *http.Request) (s model.SavedDashboard, newest uint32, err error) {
	if s, newest, err = a.dashboard(r, 0); err == nil && !changesDashboard(access.From(r.Context()), &s) {
		err = denied("the dashboard %.100q is changed by its owner, by administrators and, where it is not private, by editors of all hosts", s.Name)
	}
	return s, newest, err
}

func (a *API) saveDashboard(r *http.Request) (any, error) {
	s, d, err := a.readDashboard(r)
	if err != nil {
		return nil, err
	}
	if s.Version == 0 {
		return nil, api.BadRequest("version is missing, expected the one that the change was made from")
	}
	old, _, err := a.changeable(r)
	if err != nil {
		return nil, err
	}
	s.ID = old.ID
	who := access.From(r.Context())
	if err := a.fillDashboard(who, &s, &old, d); err != nil {
		return nil, err
	}
	if s, err = a.options.Dashboards.Put(r.Context(), s); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "dashboard "+s.Name, json.RawMessage(old.Body), d)
	return formatDashboard(who, &s), nil
}

func (a *API) deleteDashboard(r *http.Request) (any, error) {
	s, _, err := a.changeable(r)
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
		d, err := ownedDashboard(&saved[i])
		if err != nil {
			return nil, err
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
		if seesDashboard(access.From(r.Context()), &saved[i]) && (len(p.values["name"]) == 0 || wanted[name]) {
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

// dashboardFilePlan is a file of dashboards, what applying it does, and what is then kept of each.
type dashboardFilePlan struct {
	steps []dashboard.Step
	want  []*dashboard.Dashboard
	puts  []model.SavedDashboard
}

// dashboardSteps reads a file and says what applying it does.
func (a *API) dashboardSteps(r *http.Request) (*dashboardFilePlan, error) {
	p := readParams(r)
	replace := p.flag("replace")
	if p.err != nil {
		return nil, p.err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	plan := &dashboardFilePlan{}
	if plan.want, err = dashboard.Parse(text); err != nil {
		return nil, dashboardError(err)
	}
	saved, err := a.options.Dashboards.All(r.Context())
	if err != nil {
		return nil, err
	}
	if plan.puts, err = a.fileDashboards(r, plan.want, saved); err != nil {
		return nil, err
	}
	who := access.From(r.Context())
	have, err := decodeSaved(slices.DeleteFunc(saved, func(s model.SavedDashboard) bool { return !changesDashboard(who, &s) }))
	if err != nil {
		return nil, err
	}
	plan.steps, err = dashboard.Plan(have, plan.want, replace)
	return plan, err
}

// fileDashboards are the dashboards of a file as they are to be kept, in its order.
func (a *API) fileDashboards(r *http.Request, want []*dashboard.Dashboard, saved []model.SavedDashboard) ([]model.SavedDashboard, error) {
	who := access.From(r.Context())
	var puts []model.SavedDashboard
	for _, d := range want {
		var old *model.SavedDashboard
		if i := slices.IndexFunc(saved, func(s model.SavedDashboard) bool { return strings.EqualFold(s.Name, d.Name) }); i >= 0 {
			old = &saved[i]
		}
		if old != nil && !changesDashboard(who, old) {
			return nil, denied("the name %.100q is that of a private dashboard of somebody else; choose another one", d.Name)
		}
		s := model.SavedDashboard{Note: "from a file"}
		if err := a.fillDashboard(who, &s, old, d); err != nil {
			return nil, err
		}
		puts = append(puts, s)
	}
	return puts, nil
}

func (a *API) planDashboards(r *http.Request) (any, error) {
	plan, err := a.dashboardSteps(r)
	if err != nil {
		return nil, err
	}
	return DashboardPlan{Steps: plan.steps}, nil
}

func (a *API) applyDashboards(r *http.Request) (any, error) {
	plan, err := a.dashboardSteps(r)
	if err != nil {
		return nil, err
	}
	change := model.DashboardChange{At: a.options.Now().UnixNano(), Author: authorOf(r)}
	for n, step := range plan.steps {
		switch step.What {
		case "delete":
			change.Deletes = append(change.Deletes, step.Name)
		case "create", "change":
			change.Puts = append(change.Puts, plan.puts[n])
		}
	}
	access.Changed(r.Context(), "dashboards, from a file", nil, plan.steps)
	return DashboardPlan{Steps: plan.steps}, a.options.Dashboards.Apply(r.Context(), change)
}
