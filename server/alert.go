package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"tidemark/alert"
	"tidemark/alert/media"
	"tidemark/api"
	"tidemark/api/rest"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/event"
	"tidemark/internal/guard"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/preproc/script"
	"tidemark/trigger"
)

// scriptFolder is where the programs of script media are, in the data folder.
const scriptFolder = "alertscripts"

// alertSink hands stored events to alerting, which is opened after the event log. What comes before alerting reads from the store.
type alertSink struct{ alerter atomic.Pointer[alert.Alerter] }

// Put implements event.Sink.
func (s *alertSink) Put(events []model.Event) {
	if a := s.alerter.Load(); a != nil {
		a.Put(events)
	}
}

// alertObjects is what alerting asks for definitions.
type alertObjects struct {
	eventObjects
	template func(model.TemplateID) string
}

// HostByID implements alert.Objects.
func (o alertObjects) HostByID(id model.HostID) (*model.Host, bool) {
	return soon(o.items.cache, func(s *confcache.Snapshot) (*model.Host, bool) { return s.HostByID(id) })
}

// Template implements alert.Objects.
func (o alertObjects) Template(id model.TemplateID) string { return o.template(id) }

// UserMacro implements alert.Objects.
func (o alertObjects) UserMacro(host model.HostID, macro string) (string, bool) {
	return o.items.cache.Snapshot().UserMacro(host, macro)
}

// alertScripts is how many webhooks in JavaScript run at once.
const alertScripts = 4

// webhooks runs the scripts of media types.
type webhooks struct{ runner *script.Runner }

// RunWebhook implements media.Runner.
func (w webhooks) RunWebhook(ctx context.Context, j media.Job) ([]byte, string, error) {
	out, err := w.runner.Do(ctx, script.Job{Source: j.Source, Value: j.Value, Timeout: j.Timeout, Webhook: true, Allow: j.Allow})
	return out.Value, out.Log, err
}

// openWebhooks makes the processes of webhooks: their own, so that a slow service keeps no value from its steps. They start when they are needed.
func (s *Server) openWebhooks() media.Runner {
	if len(s.o.ScriptWorker) == 0 {
		return nil
	}
	s.alertScripts = script.New(script.Options{
		Command: s.o.ScriptWorker, Workers: alertScripts, Use: "alerts", Metrics: s.metrics,
		Rules: guard.Options{Denied: s.o.Collect.Denied, OwnPorts: ports(s.o.HTTP)},
	})
	return webhooks{s.alertScripts}
}

// openAlerts opens alerting over the events.
func (s *Server) openAlerts(ctx context.Context, _ vfs.FS) error {
	a, err := alert.Open(ctx, alert.Options{
		Store: s.db, Objects: alertObjects{eventObjects{s.names}, s.templateName}, Problems: s.events, Names: s.events, Scripts: s.openWebhooks(), Commands: &alertCommands{server: s},
		Once: s.o.term != nil, ScriptFolder: filepath.Join(s.o.Data, scriptFolder), Healthy: s.healthyForHeartbeat, Metrics: s.metrics, Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("open alerting: %w", err)
	}
	a.Pause(s.o.AlertsPaused || s.refusal() != nil)
	s.alerter = a
	s.alertSink.alerter.Store(a)
	return nil
}

// fullCache is the use of the history cache from which on the pipeline counts as stuck.
const fullCache = 0.98

// healthyForHeartbeat says why the outside world should worry.
func (s *Server) healthyForHeartbeat() error {
	if s.replica != nil && s.replica.source != nil {
		if why := s.replica.source.Alone(); why != "" {
			return errors.New(why)
		}
	}
	if used, limit := s.histcache.Used(); limit > 0 && float64(used) > fullCache*float64(limit) {
		return fmt.Errorf("the history cache is full: %d of %d bytes", used, limit)
	}
	return nil
}

// problemStore keeps what people do to problems.
type problemStore interface {
	UpdateProblems(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.StoredUpdate, error)
}

// alerting is alerting as the interface sees it.
type alerting struct {
	alerter *alert.Alerter
	db      problemStore
	events  *event.Log
	// evaluated closes problems by hand.
	evaluated *trigger.Evaluator
	// updating is held by one update of problems at a time.
	updating *sync.Mutex
}

func (s *Server) alerting() alerting {
	return alerting{alerter: s.alerter, db: s.db, events: s.events, evaluated: s.evaluator, updating: &s.updating}
}

// apiError gives what the caller did wrong the form of an answer.
func apiError(err error) error {
	switch {
	case errors.Is(err, alert.ErrInvalid), errors.Is(err, confdb.ErrInvalid):
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "alerting", Message: err.Error()}
	case errors.Is(err, alert.ErrNotFound), errors.Is(err, confdb.ErrNotFound):
		return api.NotFound(err.Error())
	}
	return err
}

// Config implements rest.Alerting.
func (a alerting) Config() any { return a.alerter.Config() }

// Apply implements rest.Alerting.
func (a alerting) Apply(ctx context.Context, text []byte, replace bool) error {
	config, err := alert.Parse(text)
	if err != nil {
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "alerting", Message: err.Error()}
	}
	if err := a.mayHaveCommands(ctx, config); err != nil {
		return err
	}
	return apiError(a.alerter.Apply(ctx, config, replace))
}

// Delete implements rest.Alerting.
func (a alerting) Delete(ctx context.Context, kind, name string) error {
	return apiError(a.alerter.Delete(ctx, kind, name))
}

// ImportMedia implements rest.Alerting.
func (a alerting) ImportMedia(ctx context.Context, text []byte) ([]string, error) {
	config, remarks, err := alert.ImportZabbix(text)
	if err == nil {
		err = a.alerter.Apply(ctx, config, false)
	}
	return remarks, apiError(err)
}

// Test implements rest.Alerting.
func (a alerting) Test(ctx context.Context, t rest.AlertTest) (string, error) {
	answer, err := a.alerter.Test(ctx, alert.Test(t))
	return answer, apiError(err)
}

// Alerts implements rest.Alerting.
func (a alerting) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	return a.alerter.Alerts(ctx, f)
}

// Links implements rest.Alerting.
func (a alerting) Links(problems []model.Problem) [][]rest.Link {
	out := make([][]rest.Link, len(problems))
	for i, links := range a.alerter.Links(problems) {
		for _, l := range links {
			out[i] = append(out[i], rest.Link(l))
		}
	}
	return out
}

// Suppressions implements rest.Alerting.
func (a alerting) Suppressions(problems []model.Problem) []alert.Suppression {
	return a.alerter.Suppressions(problems)
}

// UpdateProblems implements rest.Alerting. What was done is told before what closing a problem brings about.
func (a alerting) UpdateProblems(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.EventID, error) {
	a.updating.Lock()
	defer a.updating.Unlock()
	// A problem may have been recorded a moment ago and not be written yet.
	if err := a.events.Flush(ctx); err != nil {
		return nil, err
	}
	if u.Actions.Has(model.ActionClose) {
		if err := a.closable(ids); err != nil {
			return nil, err
		}
	}
	stored, err := a.db.UpdateProblems(ctx, ids, u)
	if err != nil {
		return nil, apiError(err)
	}
	changed := make([]model.EventID, 0, len(stored))
	for i := range stored {
		a.events.Update(&stored[i].Problem)
		changed = append(changed, stored[i].Problem.ID)
	}
	if err := a.alerter.Updated(ctx, stored); err != nil {
		return nil, err
	}
	for i := range stored {
		if p := &stored[i].Problem; stored[i].Actions.Has(model.ActionClose) {
			if err := a.evaluated.CloseProblem(ctx, p.TriggerID, p.ID); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// closable reports which problem cannot be closed by hand. Of those that are over and those that are unknown the database tells.
func (a alerting) closable(ids []model.EventID) error {
	for _, id := range ids {
		p, open := a.events.Problem(id)
		if !open {
			continue
		}
		if err := a.evaluated.Closable(p.TriggerID); err != nil {
			return &api.Error{Status: http.StatusUnprocessableEntity, Code: "not_closable", Message: fmt.Sprintf("problem %d cannot be closed: %v", id, err)}
		}
	}
	return nil
}

var (
	_ rest.Alerting  = alerting{}
	_ event.Sink     = (*alertSink)(nil)
	_ alert.Store    = (*confdb.DB)(nil)
	_ alert.Problems = (*event.Log)(nil)
	_ alert.Names    = (*event.Log)(nil)
)
