package rest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"tidemark/api"
	"tidemark/model"
)

const (
	maxGraphs     = 500
	maxGraphItems = 100
)

// graphRoutes are the routes of the graphs that come with templates; none without a source.
func (a *API) graphRoutes() []api.Route {
	if a.options.Graphs == nil {
		return nil
	}
	return []api.Route{{
		Method: http.MethodGet, Pattern: "/api/hosts/{id}/graphs", Permission: api.View, PerHost: true, Handler: a.handle((*API).listGraphs), Doc: &api.Doc{
			Summary: "The graphs of a host's templates, with the items that they have on it.", Answer: GraphList{},
			Params: []api.Param{
				{Name: "id", Type: "string", About: "The id, decimal.", Required: true},
				{Name: "name", Type: "string", About: "Name of the only graph to list; one of a prototype as it is on this host."},
			},
		},
	}}
}

func (a *API) listGraphs(r *http.Request) (any, error) {
	p := readParams(r)
	only := p.values.Get("name")
	if p.err != nil {
		return nil, p.err
	}
	id, err := parseID("the host's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	h, ok := a.options.Configuration().HostByID(model.HostID(id))
	if !ok {
		return nil, api.NotFound(fmt.Sprintf("there is no host with id %d", id))
	}
	graphs, err := a.options.Graphs(r.Context(), h.ID)
	if err != nil {
		return nil, err
	}
	list := GraphList{Graphs: []Graph{}}
	hostItems := a.entriesOf(h.ID)
	for i := range graphs {
		if err := a.addGraphs(r.Context(), &list, &graphs[i], hostItems, only); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// entriesOf returns the items of a host by key.
func (a *API) entriesOf(host model.HostID) map[string]model.Entry {
	entries := make(map[string]model.Entry)
	for _, id := range a.options.Catalog.HostItems(host) {
		if e, ok := a.options.Catalog.Item(id); ok {
			entries[e.Key] = e
		}
	}
	return entries
}

// addGraphs adds a graph, or all that its prototype stands for.
func (a *API) addGraphs(ctx context.Context, list *GraphList, g *model.Graph, entries map[string]model.Entry, only string) error {
	found := []drawn{{name: g.Name, entries: entriesWith(g.Keys, entries)}}
	if g.Prototype {
		found = drawnPrototypes(g, entries)
	}
	for _, d := range found {
		switch {
		case only != "" && d.name != only:
			continue
		case len(d.entries) == 0:
			list.Empty++
			continue
		case len(list.Graphs) == maxGraphs:
			list.Left++
			continue
		}
		items, err := a.formatItems(ctx, d.entries[:min(len(d.entries), maxGraphItems)])
		if err != nil {
			return err
		}
		list.Graphs = append(list.Graphs, Graph{Name: d.name, Stack: g.Stack, Items: items})
	}
	return nil
}

// DrawnGraph is a graph with the items that it has on a host.
type DrawnGraph struct {
	Name    string
	Entries []model.Entry
}

// DrawGraph returns a graph as it is on a host with these items by key: one, or all that a prototype stands for.
func DrawGraph(g *model.Graph, entries map[string]model.Entry) []DrawnGraph {
	if !g.Prototype {
		return []DrawnGraph{{g.Name, entriesWith(g.Keys, entries)}}
	}
	var list []DrawnGraph
	for _, d := range drawnPrototypes(g, entries) {
		list = append(list, DrawnGraph{d.name, d.entries})
	}
	return list
}

// drawn is a graph with its items on a host.
type drawn struct {
	name    string
	entries []model.Entry
}

func entriesWith(keys []string, entries map[string]model.Entry) (found []model.Entry) {
	for _, key := range keys {
		if e, ok := entries[key]; ok {
			found = append(found, e)
		}
	}
	return found
}

var discoveryMacro = regexp.MustCompile(`\{#[A-Z0-9_.]+\}`)

// drawnPrototypes finds the sets of items whose keys are those of a prototype with the same values for its discovery macros: items do not
// say of which element of a rule they were made. They come in the order of keys.
func drawnPrototypes(g *model.Graph, entries map[string]model.Entry) []drawn {
	var sets []drawn
	seen := make(map[string]bool)
	for _, key := range g.Keys {
		pattern, names := keyPattern(key)
		if pattern == nil {
			continue
		}
		for _, at := range slices.Sorted(maps.Keys(entries)) {
			m := pattern.FindStringSubmatch(at)
			if m == nil {
				continue
			}
			values, ok := macroValues(names, m[1:])
			if !ok {
				continue
			}
			d := drawn{name: expandMacros(g.Name, values)}
			for _, other := range g.Keys {
				if e, ok := entries[expandMacros(other, values)]; ok {
					d.entries = append(d.entries, e)
				}
			}
			set := fmt.Sprint(values)
			if len(d.entries) > 0 && !seen[set] {
				seen[set] = true
				sets = append(sets, d)
			}
		}
		if len(sets) > 0 {
			break // the other keys name the same elements
		}
	}
	return sets
}

// keyPattern makes a regular expression of a key with discovery macros; nil when it has none.
func keyPattern(key string) (pattern *regexp.Regexp, names []string) {
	names = discoveryMacro.FindAllString(key, -1)
	if len(names) == 0 {
		return nil, nil
	}
	var b strings.Builder
	b.WriteString("^")
	for n, part := range discoveryMacro.Split(key, -1) {
		if n > 0 {
			b.WriteString(`(.+)`)
		}
		b.WriteString(regexp.QuoteMeta(part))
	}
	b.WriteString("$")
	pattern, err := regexp.Compile(b.String())
	if err != nil {
		return nil, nil // too large for a pattern: a key of that length is on no host
	}
	return pattern, names
}

// macroValues pairs macros with what stands in their place; one that stands for two values does not fit.
func macroValues(names, found []string) (map[string]string, bool) {
	values := make(map[string]string, len(names))
	for n, name := range names {
		if old, ok := values[name]; ok && old != found[n] {
			return nil, false
		}
		values[name] = found[n]
	}
	return values, true
}

func expandMacros(text string, values map[string]string) string {
	return discoveryMacro.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok {
			return value
		}
		return name
	})
}
