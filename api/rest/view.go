package rest

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"tidemark/access"
	"tidemark/api"
	"tidemark/catalog"
	"tidemark/model"
	"tidemark/query"
	"tidemark/query/requests"
)

// view returns the interface as whoever sent a request may see it: with everything for those who see all hosts, else over sources in
// which other hosts do not exist. Every handler of a route with PerHost works on a view, so that none can forget to look.
func (a *API) view(r *http.Request) *API {
	who := access.From(r.Context())
	if who.SeesAllHosts() {
		return a
	}
	o := a.options
	configuration := o.Configuration()
	v := api.VisibleHosts(who, configuration.Hosts())
	limited := limitedConfiguration{configuration, v}
	o.Configuration = func() Configuration { return limited }
	o.Catalog = limitedCatalog{api.LimitedCatalog{Catalog: a.options.Catalog, Visible: v}, a.options.Catalog}
	o.Querier = o.Querier.WithCatalog(o.Catalog)
	o.Problems = limitedProblems{o.Problems, v, limited, o.Catalog}
	if o.Alerting != nil {
		o.Alerting = limitedAlerting{o.Alerting, v}
	}
	return &API{options: o, requests: requests.New(o.Querier, o.Catalog), visible: v, making: a.making}
}

// handle makes a handler that works on the view of whoever sends the request.
func (a *API) handle(fn func(*API, *http.Request) (any, error)) http.Handler {
	return api.JSON(func(r *http.Request) (any, error) { return fn(a.view(r), r) })
}

// limitedConfiguration is a configuration of visible hosts only.
type limitedConfiguration struct {
	Configuration
	visible api.Visible
}

// HostByID implements Configuration.
func (c limitedConfiguration) HostByID(id model.HostID) (*model.Host, bool) {
	if !c.visible.Has(id) {
		return nil, false
	}
	return c.Configuration.HostByID(id)
}

// Hosts implements Configuration.
func (c limitedConfiguration) Hosts() iter.Seq[*model.Host] {
	return func(yield func(*model.Host) bool) {
		for h := range c.Configuration.Hosts() {
			if c.visible.Has(h.ID) && !yield(h) {
				return
			}
		}
	}
}

// Item implements Configuration.
func (c limitedConfiguration) Item(id model.ItemID) (*model.Item, bool) {
	i, ok := c.Configuration.Item(id)
	if !ok || !c.visible.Has(i.HostID) {
		return nil, false
	}
	return i, true
}

// Trigger implements Configuration.
func (c limitedConfiguration) Trigger(id model.TriggerID) (*model.Trigger, bool) {
	t, ok := c.Configuration.Trigger(id)
	if !ok || !c.visible.Has(t.HostID) {
		return nil, false
	}
	return t, true
}

// Triggers implements Configuration.
func (c limitedConfiguration) Triggers() iter.Seq[*model.Trigger] {
	return func(yield func(*model.Trigger) bool) {
		for t := range c.Configuration.Triggers() {
			if c.visible.Has(t.HostID) && !yield(t) {
				return
			}
		}
	}
}

// limitedCatalog is a catalog of the items of visible hosts only.
type limitedCatalog struct {
	api.LimitedCatalog
	whole Catalog
}

// Search implements Catalog.
func (c limitedCatalog) Search(f catalog.Filter) ([]model.Entry, int) {
	f.Visible = c.Visible.Has
	return c.whole.Search(f)
}

// HostItems implements Catalog.
func (c limitedCatalog) HostItems(host model.HostID) []model.ItemID {
	if !c.Visible.Has(host) {
		return nil
	}
	return c.whole.HostItems(host)
}

// ByKey implements Catalog.
func (c limitedCatalog) ByKey(host model.HostID, key string) (model.Entry, bool) {
	if !c.Visible.Has(host) {
		return model.Entry{}, false
	}
	return c.whole.ByKey(host, key)
}

// HostItemCount implements Catalog.
func (c limitedCatalog) HostItemCount(host model.HostID) (items, declared int) {
	if !c.Visible.Has(host) {
		return 0, 0
	}
	return c.whole.HostItemCount(host)
}

// limitedProblems is the problems of visible hosts only.
type limitedProblems struct {
	Problems
	visible       api.Visible
	configuration Configuration
	catalog       query.Catalog
}

// Open implements Problems.
func (p limitedProblems) Open() []model.Problem {
	var open []model.Problem
	for _, problem := range p.Problems.Open() {
		if p.visible.Has(problem.HostID) {
			open = append(open, problem)
		}
	}
	return open
}

// Find implements Problems.
func (p limitedProblems) Find(ctx context.Context, f ProblemFilter) ([]model.Problem, int, error) {
	if f.Hosts = p.visible.IDs(); len(f.Hosts) == 0 {
		return nil, 0, nil
	}
	return p.Problems.Find(ctx, f)
}

// State implements Problems.
func (p limitedProblems) State(id model.TriggerID) (model.TriggerState, bool) {
	if _, ok := p.configuration.Trigger(id); !ok {
		return model.TriggerState{}, false
	}
	return p.Problems.State(id)
}

// OpData implements Problems. Values of now of hosts that are not visible are not shown.
func (p limitedProblems) OpData(ctx context.Context, problem *model.Problem) string {
	if len(p.Items(problem.TriggerID)) < len(p.Problems.Items(problem.TriggerID)) {
		return problem.OpData
	}
	return p.Problems.OpData(ctx, problem)
}

// Items implements Problems: an expression may hold items of hosts that are not visible.
func (p limitedProblems) Items(id model.TriggerID) []model.ItemID {
	var seen []model.ItemID
	for _, item := range p.Problems.Items(id) {
		if _, ok := p.catalog.Item(item); ok {
			seen = append(seen, item)
		}
	}
	return seen
}

// limitedAlerting is the messages about visible hosts only.
type limitedAlerting struct {
	Alerting
	visible api.Visible
}

// Alerts implements Alerting.
func (l limitedAlerting) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	if f.Hosts = l.visible.IDs(); len(f.Hosts) == 0 {
		return nil, nil
	}
	return l.Alerting.Alerts(ctx, f)
}

// mayOnProblem reports whether somebody may do something with the host of a problem; a problem that is not visible is not found.
func (a *API) mayOnProblem(ctx context.Context, id model.EventID, need model.Role) error {
	if a.visible == nil {
		return nil
	}
	found, _, err := a.options.Problems.Find(ctx, ProblemFilter{Before: id + 1, Limit: 1})
	switch {
	case err != nil:
		return fmt.Errorf("find the problem: %w", err)
	case len(found) == 0 || found[0].ID != id:
		return api.NotFound(fmt.Sprintf("there is no problem with id %d", id))
	case a.visible[found[0].HostID] < need:
		return &api.Error{Status: http.StatusForbidden, Code: "denied", Message: fmt.Sprintf("this needs the role %s on the problem's host", need)}
	}
	return nil
}
