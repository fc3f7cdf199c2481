package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/storage/dbengine"
	"tidemark/storage/postgres"
)

// The bounds of an override, as Zabbix has them.
const (
	minOverride = time.Hour
	maxOverride = 25 * 365 * day
)

// overrideRetention returns classes that all keep values or trends as long as it says, whatever items ask for; zero leaves what they ask for. Items keep
// their class, so that an override may come and go while the server runs.
func overrideRetention(classes []retentionClass, history, trends time.Duration) []retentionClass {
	out := make([]retentionClass, len(classes))
	for i, c := range classes {
		if history > 0 {
			c.History = history
		}
		if trends > 0 {
			c.Trends = trends
		}
		out[i] = c
	}
	return out
}

// override is what is in force: the configuration file's, else what was set on the page.
func (s *Server) override(ctx context.Context) (history, trends time.Duration, err error) {
	history, trends, err = s.db.RetentionOverride(ctx)
	if s.o.OverrideHistory > 0 {
		history = s.o.OverrideHistory
	}
	if s.o.OverrideTrends > 0 {
		trends = s.o.OverrideTrends
	}
	return history, trends, err
}

// applyOverride hands it to the engine.
func (s *Server) applyOverride(ctx context.Context) error {
	history, trends, err := s.override(ctx)
	if err != nil {
		return err
	}
	classes := overrideRetention(s.classes, history, trends)
	switch e := s.engine.(type) {
	case *dbengine.DB:
		out := make([]dbengine.Class, len(classes))
		for i, c := range classes {
			out[i] = dbengine.Class{History: c.History, Trends: c.Trends, MinimumAge: s.o.minimumAge(c.History)}
		}
		return e.SetClasses(out)
	case *postgres.DB:
		out := make([]postgres.Class, len(classes))
		for i, c := range classes {
			out[i] = postgres.Class(c)
		}
		return e.SetClasses(out)
	}
	return fmt.Errorf("override the retention: the engine %T has no classes", s.engine)
}

// retentionRoutes read and change the override.
func (s *Server) retentionRoutes() []api.Route {
	const pattern = "/api/storage/retention"
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: pattern, Permission: api.View, Handler: api.JSON(s.getRetention),
			Doc: &api.Doc{Summary: "How long values and trends of all items are kept, whatever the items say; 0 leaves it to the items.", Answer: retentionAnswer{}},
		},
		{
			Method: http.MethodPut, Pattern: pattern, Permission: api.Administer, Handler: api.JSON(s.putRetention),
			Doc: &api.Doc{Summary: "Changes it, in force at once; what is too old by then goes with the next housekeeping.", Body: retentionBody{}, Answer: retentionAnswer{}},
		},
	}
}

func (s *Server) getRetention(r *http.Request) (any, error) { return s.retentionNow(r.Context()) }

func (s *Server) retentionNow(ctx context.Context) (retentionAnswer, error) {
	history, trends, err := s.override(ctx)
	return retentionAnswer{
		HistorySeconds: int64(history / time.Second), TrendsSeconds: int64(trends / time.Second),
		HistoryFixed: s.o.OverrideHistory > 0, TrendsFixed: s.o.OverrideTrends > 0,
	}, err
}

func (s *Server) putRetention(r *http.Request) (any, error) {
	var in retentionBody
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	s.retaining.Lock()
	defer s.retaining.Unlock()
	before, err := s.retentionNow(r.Context())
	if err != nil {
		return nil, err
	}
	if err := checkRetention("history_seconds", "storage.override_history", in.HistorySeconds, before.HistorySeconds, before.HistoryFixed); err != nil {
		return nil, err
	}
	if err := checkRetention("trends_seconds", "storage.override_trends", in.TrendsSeconds, before.TrendsSeconds, before.TrendsFixed); err != nil {
		return nil, err
	}
	if in.HistorySeconds > 0 && in.TrendsSeconds > 0 && in.TrendsSeconds < in.HistorySeconds {
		return nil, api.BadRequest("trends_seconds is less than history_seconds; trends are kept at least as long as the values")
	}
	if before.HistoryFixed {
		in.HistorySeconds = 0
	}
	if before.TrendsFixed {
		in.TrendsSeconds = 0
	}
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	if err := s.db.SetRetentionOverride(r.Context(), seconds(in.HistorySeconds), seconds(in.TrendsSeconds)); err != nil {
		return nil, err
	}
	if err := s.applyOverride(r.Context()); err != nil {
		return nil, err
	}
	after, err := s.retentionNow(r.Context())
	access.Changed(r.Context(), "retention", before, after)
	return after, err
}

// checkRetention refuses what is out of bounds, and a change of what the configuration file sets.
func checkRetention(field, setting string, seconds, now int64, fixed bool) error {
	switch {
	case fixed && seconds != now:
		return &api.Error{Status: http.StatusConflict, Code: "fixed", Message: setting + " is set in the configuration file; change it there, or remove it and start the server again"}
	case seconds != 0 && (seconds < int64(minOverride/time.Second) || seconds > int64(maxOverride/time.Second)):
		return api.BadRequest(fmt.Sprintf("%s is %d; expected 0 for what the items say, or %d to %d (an hour to 25 years)", field, seconds, int64(minOverride/time.Second), int64(maxOverride/time.Second)))
	}
	return nil
}
