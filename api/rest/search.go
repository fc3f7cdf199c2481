package rest

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"tidemark/access"
	"tidemark/api"
	"tidemark/catalog"
	"tidemark/model"
)

// page is a page of the web app that search offers.
type page struct{ url, title, about string }

var pages = []page{
	{"/", "Overview", "The fleet at a glance"},
	{"/problems", "Problems", "What is wrong, and what was"},
	{"/hosts", "Hosts", "All hosts"},
	{"/hosts/values", "Latest values", "The last value of every item"},
	{"/requests", "Requests", "Which requests load MongoDB"},
	{"/explore", "Explore", "Ask with PromQL"},
	{"/dashboards", "Dashboards", "Charts and tables put together by hand"},
	{"/alerting", "Alerting", "Who is told, and what was sent"},
	{"/storage", "Storage", "What is kept, and how long it lasts"},
	{"/configuration", "Configuration", "Hosts, templates, items, triggers"},
	{"/configuration/add", "Add a host", "A new host, and the command for its machine"},
	{"/server", "Server", "How this server is doing"},
}

const (
	defaultResults = 20
	maxResults     = 100
)

func (a *API) search(r *http.Request) (any, error) {
	p := readParams(r)
	text, limit := strings.ToLower(p.text("q")), int(p.number("limit", defaultResults, 1, maxResults))
	if text == "" {
		p.fail("q is missing, expected a text")
	}
	if p.err != nil {
		return nil, p.err
	}
	dashboards, err := a.searchDashboards(r, text)
	if err != nil {
		return nil, err
	}
	kinds := [][]SearchResult{searchPages(text), a.searchHosts(text, limit), dashboards, a.searchTriggers(text, limit), a.searchShapes(text, limit), a.searchItems(text, limit)}
	answer := SearchAnswer{Results: []SearchResult{}}
	// Every kind gets an equal part first, so that a thousand items do not hide the one host.
	part := max(limit/len(kinds), 1)
	var rest []SearchResult
	for _, found := range kinds {
		n := min(len(found), part)
		answer.Results = append(answer.Results, found[:n]...)
		rest = append(rest, found[n:]...)
	}
	answer.Results = append(answer.Results, rest...)
	if len(answer.Results) > limit {
		answer.Results = answer.Results[:limit]
	}
	order := map[string]int{"host": 0, "dashboard": 1, "request": 2, "item": 3, "trigger": 4, "page": 5}
	slices.SortStableFunc(answer.Results, func(x, y SearchResult) int { return order[x.Kind] - order[y.Kind] })
	return answer, nil
}

func searchPages(text string) []SearchResult {
	var found []SearchResult
	for _, p := range pages {
		if contains(p.title, text) {
			found = append(found, SearchResult{Kind: "page", ID: p.url, Title: p.title, Subtitle: p.about, URL: p.url})
		}
	}
	return found
}

func (a *API) searchHosts(text string, limit int) []SearchResult {
	var found []SearchResult
	for h := range a.options.Configuration().Hosts() {
		if contains(h.Host, text) || contains(h.Name, text) {
			found = append(found, SearchResult{
				Kind: "host", ID: formatID(h.ID), Title: visibleName(h), Subtitle: strings.Join(h.Groups, ", "), URL: "/hosts/" + formatID(h.ID),
			})
		}
	}
	// The shortest name fits best: it has the least besides the text.
	slices.SortStableFunc(found, func(x, y SearchResult) int {
		if n := len(x.Title) - len(y.Title); n != 0 {
			return n
		}
		return strings.Compare(x.Title, y.Title)
	})
	return found[:min(len(found), limit)]
}

// searchDashboards finds dashboards that whoever asks may see.
func (a *API) searchDashboards(r *http.Request, text string) ([]SearchResult, error) {
	if a.options.Dashboards == nil {
		return nil, nil
	}
	saved, err := a.options.Dashboards.List(r.Context())
	if err != nil {
		return nil, err
	}
	var found []SearchResult
	for _, d := range formatDashboards(access.From(r.Context()), saved).Dashboards {
		if contains(d.Name, text) {
			found = append(found, SearchResult{Kind: "dashboard", ID: d.ID, Title: d.Name, Subtitle: fmt.Sprintf("version %d", d.Version), URL: "/dashboards/" + d.ID})
		}
	}
	return found, nil
}

func (a *API) searchItems(text string, limit int) []SearchResult {
	entries, _ := a.options.Catalog.Search(catalog.Filter{Text: text, Limit: limit})
	found := make([]SearchResult, 0, len(entries))
	for _, e := range entries {
		title := e.Name
		if title == "" {
			title = e.Key
		}
		found = append(found, SearchResult{Kind: "item", ID: formatID(e.ID), Title: title, Subtitle: e.Host + " · " + e.Key, URL: "/items/" + formatID(e.ID)})
	}
	return found
}

func (a *API) searchTriggers(text string, limit int) []SearchResult {
	configuration := a.options.Configuration()
	var found []SearchResult
	for t := range configuration.Triggers() {
		if !contains(t.Name, text) {
			continue
		}
		host := ""
		if h, ok := configuration.HostByID(t.HostID); ok {
			host = visibleName(h)
		}
		found = append(found, SearchResult{
			Kind: "trigger", ID: formatID(t.ID), Title: t.Name, Subtitle: host + " · " + t.Severity.String(), URL: "/hosts/" + formatID(t.HostID) + "/triggers",
		})
		if len(found) == limit {
			break
		}
	}
	return found
}

func (a *API) importFile(r *http.Request) (any, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isJSON := media == "application/json"
	if err != nil || !isJSON && media != "application/yaml" && media != "application/x-yaml" && media != "text/yaml" {
		return nil, &api.Error{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: fmt.Sprintf("Content-Type is %.80q, expected application/yaml or application/json", r.Header.Get("Content-Type")),
		}
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	report, err := a.options.Importer.Import(r.Context(), content, isJSON)
	if err != nil {
		if known := api.AsError(err); known.Code != "internal" {
			return nil, err
		}
		return nil, &api.Error{Status: http.StatusUnprocessableEntity, Code: "import", Message: err.Error()}
	}
	access.Changed(r.Context(), "configuration, by import", nil, report)
	return report, nil
}

// hostItems lists the items that a live view of a host listens to.
func (a *API) hostItems(host model.HostID) []model.ItemID {
	ids := a.options.Catalog.HostItems(host)
	return ids[:min(len(ids), maxLiveItems)]
}
