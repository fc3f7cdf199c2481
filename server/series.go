package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/collect/otlp"
	"tidemark/collect/remotewrite"
	"tidemark/collect/scrape"
	"tidemark/collect/series"
	"tidemark/confdb"
	"tidemark/internal/guard"
	"tidemark/model"
	"tidemark/storage"
)

// maxMetricHosts bounds the hosts that targets of metrics make, so that targets that come and go cannot fill the configuration.
const maxMetricHosts = 2000

// seriesItems makes hosts and items of series.
type seriesItems struct {
	definitions *definitions
	engine      storage.Engine
	classes     []retentionClass
	db          *confdb.DB
	logger      *slog.Logger
}

// Hosts implements series.Items.
func (s *seriesItems) Hosts(ctx context.Context, hosts []series.Host) ([]model.HostID, error) {
	snapshot := s.definitions.cache.Snapshot()
	ids := make([]model.HostID, len(hosts))
	room, counted := 0, false
	var wanted []confdb.MetricHost
	var places []int
	for i, h := range hosts {
		if known, ok := snapshot.Host(h.Name); ok {
			if known.Enabled {
				ids[i] = known.ID
			}
			continue
		}
		if !counted {
			room, counted = maxMetricHosts-len(s.metricHosts()), true
		}
		if room--; room < 0 {
			continue
		}
		wanted, places = append(wanted, confdb.MetricHost{Host: h.Name, Name: h.Visible}), append(places, i)
	}
	if counted && room < 0 {
		s.logger.Warn("targets of metrics get no host: there are as many as there may be; hosts whose series are gone for 7 days make room", "limit", maxMetricHosts, "refused", -room)
	}
	if len(wanted) == 0 {
		return ids, nil
	}
	made, count, err := s.db.MetricHosts(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		ids[place] = made[i]
	}
	if _, err := s.definitions.cache.Refresh(ctx); err != nil {
		return nil, err
	}
	if count > 0 {
		s.logger.Info("hosts made for targets of metrics", "hosts", count, "first", wanted[0].Host)
	}
	return ids, nil
}

// metricHosts are the hosts that targets of metrics made.
func (s *seriesItems) metricHosts() []model.HostID {
	var ids []model.HostID
	for h := range s.definitions.cache.Snapshot().Hosts() {
		if slices.Contains(h.Groups, confdb.MetricsGroup) {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// Declare implements series.Items.
func (s *seriesItems) Declare(ctx context.Context, host model.HostID, list []series.Declaration) ([]model.ItemID, error) {
	h, ok := s.definitions.cache.Snapshot().HostByID(host)
	if !ok {
		return nil, errors.New("the host is not there any more")
	}
	decls := make([]catalog.Declaration, len(list))
	for i, d := range list {
		decls[i] = catalog.Declaration{
			Key: d.Key, Metric: d.Metric, Labels: d.Labels, Help: d.Help, Units: cutUnit(d.Unit), ValueType: model.Float, Interval: d.Interval,
		}
	}
	entries, created, err := s.definitions.catalog.Declare(ctx, host, h.Host, decls)
	if refused, ok := errors.AsType[*catalog.RefusedError](err); ok {
		s.logger.Warn("series refused", "host", h.Host, "error", refused)
	} else if err != nil {
		return nil, err
	}
	ids := make([]model.ItemID, len(entries))
	var defs []storage.ItemDefinition
	for i, e := range entries {
		ids[i] = e.ID
		s.definitions.forget(ids[i : i+1])
		if item, ok := s.definitions.Item(e.ID); ok {
			defs = append(defs, definition(s.classes, item))
		}
	}
	if definer, ok := s.engine.(storage.Definer); ok {
		if err := definer.Define(ctx, defs); err != nil {
			return nil, err
		}
	}
	if created > 0 {
		s.logger.Debug("new series", "host", h.Host, "series", created)
	}
	return ids, nil
}

// cutUnit leaves out units that are too long for an item.
func cutUnit(unit string) string {
	if len(unit) > 255 {
		return ""
	}
	return unit
}

// Takes implements series.Items.
func (s *seriesItems) Takes(id model.ItemID) (there, enabled bool) {
	item, ok := s.definitions.Item(id)
	if !ok {
		return false, false
	}
	h, ok := s.definitions.cache.Snapshot().HostByID(item.HostID)
	return ok, ok && h.Enabled
}

// Each implements series.Items.
func (s *seriesItems) Each(fn func(key string, id model.ItemID)) {
	s.definitions.catalog.Each(func(e model.Entry) {
		if e.Kind == model.Declared && catalog.IsSeries(e.Key) {
			fn(e.Key, e.ID)
		}
	})
}

// openSeries makes the ways in for samples of Prometheus and OpenTelemetry.
func (s *Server) openSeries() error {
	s.seriesItems = &seriesItems{definitions: s.definitions, engine: s.engine, classes: s.classes, db: s.db, logger: s.logger}
	s.series = series.New(series.Options{Items: s.seriesItems, Sink: s.preproc, Metrics: s.metrics})
	s.metrics.NewGauge("tidemark_series_hosts", func() float64 { return float64(len(s.seriesItems.metricHosts())) })
	s.metrics.NewGauge("tidemark_series_hosts_limit", func() float64 { return maxMetricHosts })
	s.remoteWrite = remotewrite.New(remotewrite.Options{Table: s.series, Logger: s.logger, Metrics: s.metrics})
	s.otlp = otlp.New(otlp.Options{Table: s.series, Logger: s.logger, Metrics: s.metrics})
	var err error
	// The administrator's file says what is scraped, so this server's own metrics may be.
	rules := guard.New(guard.Options{Allowed: s.o.Collect.Allowed, Denied: s.o.Collect.Denied})
	s.scraper, err = scrape.New(scrape.Options{Jobs: s.o.Scrape, Table: s.series, Rules: rules, Agent: "Tidemark " + s.o.Version, Logger: s.logger, Metrics: s.metrics})
	return err
}

// expireSeries forgets series whose items are gone, and hosts of targets that have none left.
func (s *Server) expireSeries(ctx context.Context) error {
	return s.series.Sweep(func() error {
		var empty []model.HostID
		for _, id := range s.seriesItems.metricHosts() {
			if items, _ := s.catalog.HostItemCount(id); items == 0 {
				empty = append(empty, id)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		gone, err := s.db.ForgetMetricHosts(ctx, empty)
		if gone > 0 {
			s.logger.Info("hosts of targets without series deleted", "hosts", gone)
		}
		if err != nil {
			return err
		}
		_, err = s.cache.Refresh(ctx)
		return err
	})
}

// scrapeTargets is the answer about scrapes.
type scrapeTargets struct {
	Jobs []scrape.Status `json:"jobs"`
}

// seriesRoutes are those that take samples. Whoever may change hosts and items may send them, because new series make both.
func (s *Server) seriesRoutes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/scrape/targets", Permission: api.View,
			Handler: api.JSON(func(*http.Request) (any, error) { return scrapeTargets{s.scraper.Status()}, nil }),
			Doc:     &api.Doc{Summary: "Jobs of scrapes, their targets and how the last scrape of each went.", Answer: scrapeTargets{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/v1/write", Permission: api.Edit, Unaudited: true, MaxBodyBytes: remotewrite.MaxBodyBytes,
			Handler: s.remoteWrite,
			Doc:     &api.Doc{Summary: "Prometheus remote write 1.0 and 2.0.", BodyTypes: []string{"application/x-protobuf"}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/v1/otlp/v1/metrics", Permission: api.Edit, Unaudited: true, MaxBodyBytes: otlp.MaxBodyBytes,
			Handler: s.otlp,
			Doc:     &api.Doc{Summary: "Metrics of OpenTelemetry (OTLP/HTTP).", BodyTypes: []string{"application/x-protobuf", "application/json"}},
		},
	}
}
