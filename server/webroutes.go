package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tidemark/api"
	"tidemark/confcache"
	"tidemark/model"
)

// scenarioList are the web scenarios of a host. Addresses are left out, because they may hold secrets.
type scenarioList struct {
	Scenarios []scenarioView `json:"scenarios"`
}

// webRoutes are those of web scenarios.
func (p *polling) webRoutes() []api.Route {
	return []api.Route{{
		Method: http.MethodGet, Pattern: "/api/hosts/{id}/webscenarios", Permission: api.View, PerHost: true, Handler: api.JSON(p.showScenarios),
		Doc: &api.Doc{
			Summary: "Web scenarios of a host with their steps, and the items that have their values.", Answer: scenarioList{},
			Params: []api.Param{{Name: "id", Type: "string", About: "Id of the host.", Required: true}},
		},
	}}
}

func (p *polling) showScenarios(r *http.Request) (any, error) {
	id, err := hostOf(r)
	if err != nil {
		return nil, err
	}
	s := p.o.names.cache.Snapshot()
	if _, ok := s.HostByID(id); !ok || !visibleHosts(r, s).Has(id) {
		return nil, api.NotFound("no host has this id")
	}
	list := scenarioList{Scenarios: []scenarioView{}}
	items := s.Items(id)
	for i := range items {
		if item := &items[i]; item.Type == model.WebTest && item.Collect != nil && item.Collect.Web != nil {
			list.Scenarios = append(list.Scenarios, viewScenario(s, item))
		}
	}
	slices.SortFunc(list.Scenarios, func(a, b scenarioView) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func viewScenario(s *confcache.Snapshot, item *model.Item) scenarioView {
	w := item.Collect.Web
	out := scenarioView{Name: w.Name, Enabled: item.Enabled, Delay: item.Delay, Attempts: w.Attempts, Items: map[string]string{}, Steps: make([]scenarioStepView, len(w.Steps))}
	for i := range w.Steps {
		out.Steps[i] = scenarioStepView{Name: w.Steps[i].Name, Timeout: w.Steps[i].Timeout.Seconds(), Items: map[string]string{}}
	}
	for _, d := range s.Dependents(item.ID) {
		if len(d.Steps) != 1 || len(d.Steps[0].Params) != 1 {
			continue
		}
		// The path says what the item takes: $.fail, $.steps[0].time.
		path, what := strings.TrimPrefix(d.Steps[0].Params[0], "$."), strconv.FormatUint(uint64(d.ID), 10)
		step, field, of := strings.Cut(strings.TrimPrefix(path, "steps["), "].")
		if !of {
			out.Items[path] = what
			continue
		}
		if n, err := strconv.Atoi(step); err == nil && n < len(out.Steps) {
			out.Steps[n].Items[field] = what
		}
	}
	return out
}
