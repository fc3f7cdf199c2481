package server

import (
	"context"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/api/prom"
	"tidemark/api/rest"
	"tidemark/model"
	"tidemark/query/promql"
	"tidemark/web"
)

// handler puts the interfaces and the page behind one guard.
func (s *Server) handler() (http.Handler, error) {
	options := api.Options{
		Logger: s.logger, Metrics: s.metrics, Guard: api.Guard{AnyHost: func() bool { return !s.access.Open() }},
		Authorize: s.authorize, Audit: s.audit,
	}
	return api.NewHandler(s.confirming(s.routes()), s.page(), options), nil
}

// page is the page's files. They are compressed at a start, not once more at a promotion.
func (s *Server) page() http.Handler {
	k := s.o.kept
	if k == nil {
		return web.Handler()
	}
	if k.page == nil {
		k.page = web.Handler()
	}
	return k.page
}

// routes is the table of everything that is served but the page. Who may call what is kept in testdata/routes.txt too, which a test
// compares.
func (s *Server) routes() []api.Route {
	shown := problems{log: s.events, db: s.db, names: s.names, evaluated: s.evaluator}
	restAPI := rest.New(rest.Options{
		Configuration: func() rest.Configuration { return s.cache.Snapshot() },
		Catalog:       s.catalog, Querier: s.querier, Latest: s.latest, Hub: s.hub, Problems: shown,
		Discovery:  discovered{cache: s.cache, db: s.db},
		Dashboards: dashboards{s.db},
		Graphs:     s.db.Graphs, ValueSeen: s.valueSeen().Host,
		Access:   s.access,
		Alerting: s.alerting(),
		Importer: importer{db: s.db, refresh: func(ctx context.Context) error { _, err := s.cache.Refresh(ctx); return err }},
		Health:   s.health, Hour: s.hour.list, Seen: s.presence.LastSeen, Template: s.templateName, Proxy: s.proxies.name, Version: s.o.Version, StartedAt: s.started, Trapper: s.trapperAddress(),
	})
	promAPI := prom.New(prom.Options{
		Engine: promql.New(s.querier, promql.Options{Logger: s.logger}), Catalog: s.catalog,
		Configuration: func() prom.Configuration { return s.cache.Snapshot() }, Problems: shown, Version: s.o.Version,
	})
	routes := append(restAPI.Routes(), promAPI.Routes()...)
	routes = append(routes, s.ownRoutes()...)
	routes = append(routes, s.zabbixAPI(shown).Routes()...)
	routes = append(routes, s.exportRoute(), s.importSettingsRoute())
	routes = append(routes, append(s.shadowRoutes(), s.compareRoute())...)
	routes = append(routes, s.agents.routes()...)
	routes = append(routes, s.polling.routes()...)
	routes = append(routes, s.proxyRoutes()...)
	routes = append(routes, s.commandRoutes()...)
	routes = append(routes, s.network.routes()...)
	routes = append(routes, s.regexpRoutes()...)
	routes = append(routes, s.globalMacroRoutes()...)
	routes = append(routes, s.storageRoutes()...)
	routes = append(routes, s.standbyRoutes()...)
	routes = append(routes, s.leaseRoutes()...)
	routes = append(routes, s.alertPauseRoutes()...)
	routes = append(routes, s.seriesRoutes()...)
	routes = append(routes, s.configurator.routes()...)
	return append(routes, api.SpecRoute(s.o.Version, routes))
}

// valueSeen looks for the values of hosts without an agent.
func (s *Server) valueSeen() *valueSeen {
	return &valueSeen{
		items: s.catalog.HostItems, item: s.catalog.Item, lastAt: s.latest.LastAt, stored: s.newestStored, now: time.Now,
		hosts: make(map[model.HostID]valueSeenHost), forgotAt: s.started,
	}
}

// newestStored is the time of the newest value of items, zero for none or when the store does not say in time.
func (s *Server) newestStored(items []model.ItemID) (at int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	values, err := s.latest.Get(ctx, items)
	if err != nil {
		return 0
	}
	for i := range values {
		if values[i].Last != nil {
			at = max(at, values[i].Last.At)
		}
	}
	return at
}

// profileTime bounds a profile that is taken over a time.
const profileTime = 5 * time.Minute

// ownRoutes are metrics, health and profiles of the process.
func (s *Server) ownRoutes() []api.Route {
	get := func(pattern string, need api.Permission, h http.HandlerFunc, summary string) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: need, Handler: h, Doc: &api.Doc{Summary: summary, AnswerType: "text/plain"}}
	}
	healthy := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	return []api.Route{
		get("/metrics", api.View, s.writeMetrics, "The server's own figures in the text form of Prometheus."),
		get("/-/healthy", api.Public, healthy, "Answers ok while the process works."),
		get("/-/ready", api.Public, s.sayReady, "Answers ok while this server takes values; 503 with the reason while it refuses them: as a standby, fenced by another server, or because its database is away."),
		get("/-/primary", api.Public, s.sayPrimary, "200 from the primary and 503 from a standby, for load balancers."),
		{
			Method: http.MethodGet, Pattern: "/debug/pprof/", Permission: api.Administer, Handler: http.HandlerFunc(profile), Timeout: profileTime, Streaming: true,
		},
	}
}

// sayReady answers ok while values are taken. A database that is away is named even then: they wait in the spool, and what is asked of it fails.
func (s *Server) sayReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.refusal(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, err.Error()+s.roleText()+"\n")
		return
	}
	text := "ok"
	if store, ok := s.engine.(interface{ Taking() (bool, error) }); ok {
		away, err := store.Taking()
		switch {
		case err != nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			text = err.Error()
		case away:
			text += "; the database cannot be written to, values wait in the spool"
		}
	}
	_, _ = io.WriteString(w, text+"\n")
}

// profile serves the profiles of net/http/pprof, which has a function of its own for some.
func profile(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

func (s *Server) writeMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.metrics.WritePrometheus(w)
	if s.o.kept != nil {
		s.o.kept.metrics.WritePrometheus(w)
	}
	metrics.WriteProcessMetrics(w)
}

// trapperAddress is where agents and senders reach this server, for the commands that the page shows.
func (s *Server) trapperAddress() string {
	if s.o.Trapper == nil {
		return ""
	}
	return s.o.Trapper.Addr().String()
}

// health is how the server is doing, for the overview.
func (s *Server) health() rest.Health {
	used, limit := s.histcache.Used()
	stats := s.engine.Stats()
	h := rest.Health{
		ValuesPerSecond: s.rates.ValuesPerSecond(), HistoryCacheUsed: float64(used) / float64(limit),
		StoreUsedBytes: stats.DiskBytes, StoreQuotaBytes: stats.QuotaBytes, StoreFrom: stats.From, StoreTo: stats.To,
	}
	h.RetentionDays = s.retention.days(stats, time.Now().UnixNano())
	return h
}

// templateNames is how long the names of templates are kept before they are read again.
const templateNames = 10 * time.Second

// templateTable is the names of the templates at one time.
type templateTable struct {
	at    time.Time
	names map[model.TemplateID]string
}

// templateName returns the name of a template for lists of hosts.
func (s *Server) templateName(id model.TemplateID) string {
	t := s.templates.Load()
	if t == nil || time.Since(t.at) > templateNames {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		list, err := s.db.Templates(ctx)
		if err != nil {
			return ""
		}
		t = &templateTable{at: time.Now(), names: make(map[model.TemplateID]string, len(list))}
		for _, template := range list {
			t.names[template.ID] = template.Name
		}
		s.templates.Store(t)
	}
	return t.names[id]
}

// templatePointer is where the names are kept.
type templatePointer = atomic.Pointer[templateTable]
