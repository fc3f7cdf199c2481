// Package rest is the product's own HTTP interface, as docs/design/0002-rest.md describes it.
//
// It declares the small interfaces that it needs of the configuration, the problems and the server; everything about
// values comes from query and catalog.
package rest

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/catalog"
	"tidemark/client"
	"tidemark/model"
	"tidemark/query"
	"tidemark/query/requests"
)

// Configuration is one unchanging view of what is configured. What it returns is shared and must not be changed.
type Configuration interface {
	HostByID(id model.HostID) (*model.Host, bool)
	// Hosts walks all hosts in any order.
	Hosts() iter.Seq[*model.Host]
	Item(id model.ItemID) (*model.Item, bool)
	Trigger(id model.TriggerID) (*model.Trigger, bool)
	// Triggers walks the triggers of all hosts.
	Triggers() iter.Seq[*model.Trigger]
}

// Catalog knows which items exist, configured and declared.
type Catalog interface {
	query.Catalog
	Search(f catalog.Filter) ([]model.Entry, int)
	HostItems(host model.HostID) []model.ItemID
	HostItemCount(host model.HostID) (items, declared int)
	ByKey(host model.HostID, key string) (model.Entry, bool)
}

// ProblemFilter says which problems are looked for. Zero fields do not filter.
type ProblemFilter struct {
	// Open leaves out problems that are over.
	Open bool
	Host model.HostID
	// Hosts, if not empty, are the only ones.
	Hosts []model.HostID
	// Severities, if not empty, are the only ones.
	Severities []model.Severity
	// Search must be in the problem's name, in any case of letters.
	Search string
	// From and To bound the time of the beginning, Unix nanoseconds, half-open; both zero for any.
	From, To int64
	// Before is where the page before this one ended: only problems with a smaller event id.
	Before model.EventID
	// Limit bounds the answer.
	Limit int
}

// Problems knows what is and was wrong.
type Problems interface {
	// Open returns the problems that are open, in any order; shared, must not be changed.
	Open() []model.Problem
	// Find returns problems with falling event ids, and how many the filter fits without Before and Limit.
	Find(ctx context.Context, f ProblemFilter) ([]model.Problem, int, error)
	// State returns what is known of a trigger's state; false when it was never evaluated.
	State(id model.TriggerID) (model.TriggerState, bool)
	// Items returns the items in a trigger's expression, in its order.
	Items(id model.TriggerID) []model.ItemID
	// OpData returns what is shown beside a problem: of an open one as it is now.
	OpData(ctx context.Context, p *model.Problem) string
	// Marks returns what was done to a problem and by whom, oldest first.
	Marks(ctx context.Context, id model.EventID) ([]ProblemMark, error)
}

// Importer takes over exported configuration.
type Importer interface {
	// Import reads one export; json says that it is JSON and not YAML. The report is sent as it is encoded. An error
	// says that the file cannot be read as an export; it is answered with 422.
	Import(ctx context.Context, content []byte, json bool) (report any, err error)
}

// Health is how the server is doing.
type Health struct {
	ValuesPerSecond float64
	// HistoryCacheUsed is from 0 to 1.
	HistoryCacheUsed float64
	StoreUsedBytes   int64
	// StoreQuotaBytes is zero for no limit.
	StoreQuotaBytes int64
	// StoreFrom and StoreTo bound the stored times, Unix nanoseconds; zero when empty.
	StoreFrom, StoreTo int64
	// RetentionDays is how far back the store reaches once it is full; nil when not known yet.
	RetentionDays *float64
}

// Options are everything that the interface shows; all must be set but Alerting, Access and Now.
type Options struct {
	// Configuration returns the newest view.
	Configuration func() Configuration
	Catalog       Catalog
	Querier       *query.Querier
	Latest        *query.Latest
	Hub           *query.Hub
	Problems      Problems
	Importer      Importer
	// Alerting may be nil: then it has no routes.
	Alerting Alerting
	// Trapper is the address on which the server listens for agents and senders; empty when it does not.
	Trapper string
	// Discovery may be nil: then it has no routes.
	Discovery Discovery
	// Graphs returns the graphs of a host and its templates; nil: then they have no route.
	Graphs func(ctx context.Context, host model.HostID) ([]model.Graph, error)
	// Dashboards may be nil: then there are no routes of them.
	Dashboards Dashboards
	// Access may be nil: then there are no routes of users.
	Access *access.Control
	Health func() Health
	// Hour lists how the numbers of the overview were in the last hour, the oldest first; nil: not known.
	Hour func() []HourPoint
	// Seen returns when something last came from a host, Unix nanoseconds; zero for never.
	Seen func(model.HostID) int64
	// ValueSeen returns, for a host without an agent of its own, when its newest value came and whether it is as new as its items say; nil: no
	// host has one. Values from before the start may be missing.
	ValueSeen func(model.HostID) (at int64, fresh bool)
	// Proxy, if not nil, names a proxy.
	Proxy func(model.ProxyID) string
	// Template returns a template's name, empty when unknown.
	Template func(model.TemplateID) string
	Version  string
	// StartedAt is when the server started.
	StartedAt time.Time
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// API serves the interface.
type API struct {
	options  Options
	requests *requests.Reader
	// visible is, in the view of somebody who sees only some hosts, which they are.
	visible api.Visible
	// making is held by who makes a dashboard, from counting those that there are; views share it.
	making *sync.Mutex

	overviewMu sync.Mutex
	overview   json.RawMessage
	overviewAt time.Time
}

// New returns the interface over its sources.
func New(options Options) *API {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &API{options: options, requests: requests.New(options.Querier, options.Catalog), making: &sync.Mutex{}}
}

// The limits of lists.
const (
	defaultLimit = 100
	maxLimit     = 10_000
	// maxImportBytes bounds one import.
	maxImportBytes = 64 << 20
	// importTimeout is longer than that of other routes: an import may hold thousands of templates.
	importTimeout = 10 * time.Minute
)

var (
	paramLimit  = api.Param{Name: "limit", Type: "integer", About: "At most so many, 1 to 10,000; 100 if not given."}
	paramCursor = api.Param{Name: "cursor", Type: "string", About: "What the page before gave as next."}
	paramSearch = api.Param{Name: "search", Type: "string", About: "A text that must occur, in any case of letters."}
	paramFrom   = api.Param{Name: "from", Type: "integer", About: "Begin of the range, Unix milliseconds, included."}
	paramTo     = api.Param{Name: "to", Type: "integer", About: "End of the range, Unix milliseconds, not included; now if not given."}
)

// Routes returns the route table.
func (a *API) Routes() []api.Route {
	view := func(pattern string, fn func(*API, *http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.View, PerHost: true, Handler: a.handle(fn), Doc: &doc}
	}
	id := api.Param{Name: "id", Type: "string", About: "The id, decimal.", Required: true}
	host := api.Param{Name: "host", Type: "string", About: "Id of the only host to list."}
	return append(slices.Concat(a.alertRoutes(), a.mongoRoutes(), a.discoveryRoutes(), a.peopleRoutes(), a.dashboardRoutes(), a.graphRoutes(), a.stateRoutes()), []api.Route{
		view("/api/overview", (*API).getOverview, api.Doc{Summary: "The state of everything in one look.", Answer: Overview{}}),
		view("/api/overview/hour", (*API).getHour, api.Doc{Summary: "The numbers of the overview in the last hour, every 30 s since the server's start.", Answer: HourList{}}),
		view("/api/hosts", (*API).listHosts, api.Doc{
			Summary: "Hosts by visible name.", Answer: HostList{},
			Params: []api.Param{
				paramSearch,
				{Name: "group", Type: "string", About: "Name of the only host group to list."},
				{Name: "editable", Type: "boolean", About: "true for those only that the caller may change."},
				paramLimit, paramCursor,
			},
		}),
		view("/api/hosts/{id}", (*API).getHost, api.Doc{Summary: "One host, with macros and metadata.", Params: []api.Param{id}, Answer: Host{}}),
		view("/api/items", (*API).listItems, api.Doc{
			Summary: "Items with their last two values, by id.", Answer: ItemList{},
			Params: []api.Param{
				host, paramSearch,
				{Name: "host_name", Type: "string", About: "Technical name of the only host to list."},
				{Name: "group", Type: "string", About: "Name of the only host group to list."},
				{Name: "key", Type: "string", About: "The whole key; * stands for anything."},
				paramLimit, paramCursor,
			},
		}),
		view("/api/items/{id}", (*API).getItem, api.Doc{Summary: "One item, with its preprocessing and storage.", Params: []api.Param{id}, Answer: Item{}}),
		view("/api/values", (*API).listValues, api.Doc{
			Summary: "Every stored value of one item, exactly as stored.", Answer: ValueList{},
			Params: []api.Param{
				{Name: "item", Type: "string", About: "Id of the item.", Required: true},
				paramFrom, paramTo, paramLimit, paramCursor,
				{Name: "order", Type: "string", About: "asc (oldest first, the default) or desc."},
				{Name: "search", Type: "string", About: "A text that must occur in the value, in any case of letters."},
				{Name: "level", Type: "string", About: "information, warning or error: values of a log that are at least so bad, by their severity or the words in them."},
			},
		}),
		view("/api/chart", (*API).getChart, api.Doc{
			Summary: "Columns for drawing: every value, or average, least and largest per step.", Answer: Chart{},
			Params: []api.Param{
				{Name: "items", Type: "string", About: "Ids with commas between, at most 200.", Required: true},
				paramFrom, paramTo,
				{Name: "points", Type: "integer", About: "Points per series, 1 to 4,000; 500 if not given."},
			},
		}),
		view("/api/problems", (*API).listProblems, api.Doc{
			Summary: "Problems, the newest first.", Answer: ProblemList{},
			Params: []api.Param{
				{Name: "open", Type: "boolean", About: "true for those that are not over."},
				host,
				{Name: "severity", Type: "string", About: "Names of severities with commas between."},
				paramSearch, paramFrom, paramTo, paramLimit, paramCursor,
			},
		}),
		view("/api/problems/{id}", (*API).getProblem, api.Doc{
			Summary: "One problem: the expression that fired, its items, who has seen it, and when the same trigger fired before.", Answer: ProblemDetail{},
			Params: []api.Param{{Name: "id", Type: "string", About: "The id of the problem's event, decimal.", Required: true}},
		}),
		view("/api/triggers", (*API).listTriggers, api.Doc{
			Summary: "Triggers and their state, by host and name.", Answer: TriggerList{}, Params: []api.Param{host, paramSearch, paramLimit, paramCursor},
		}),
		view("/api/search", (*API).search, api.Doc{
			Summary: "Hosts, items, triggers and pages that fit a text.", Answer: SearchAnswer{},
			Params: []api.Param{{Name: "q", Type: "string", About: "The text, 1 to 200 bytes.", Required: true}, {Name: "limit", Type: "integer", About: "1 to 100; 20 if not given."}},
		}),
		{
			Method: http.MethodGet, Pattern: "/api/live", Permission: api.View, PerHost: true, Streaming: true, Handler: http.HandlerFunc(a.serveLive),
			Doc: &api.Doc{
				Summary:    "Server-sent events: values, problems, overview.",
				AnswerType: "text/event-stream",
				Params: []api.Param{
					{Name: "items", Type: "string", About: "Ids with commas between, at most 2,000."},
					{Name: "host", Type: "string", About: "Id of a host, for all its items."},
					{Name: "overview", Type: "string", About: "1 for the overview every second."},
				},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/import", Permission: api.Edit, Handler: api.JSON(a.importFile), MaxBodyBytes: maxImportBytes, Timeout: importTimeout,
			Doc: &api.Doc{Summary: "Takes over one export in YAML or JSON; answers with a report.", BodyTypes: []string{"application/yaml", "application/json"}, Answer: client.ImportReport{}},
		},
	}...)
}
