// Package prom serves Prometheus' HTTP API under /api/v1/, so that Grafana and other clients of Prometheus can read
// from the product.
//
// Paths, parameters and answers are those of https://prometheus.io/docs/prometheus/latest/querying/api/. Native
// histograms and exemplars are not kept, so they never appear; start and end of the calls about labels and series are
// checked and not used, because the catalog knows which items exist and not when.
package prom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	commonmodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/model"
	"tidemark/query"
	tidepromql "tidemark/query/promql"
)

// Catalog knows which items exist.
type Catalog interface {
	query.Catalog
	Metadata(metric string, limit int) []catalog.Metadata
}

// Configuration is one unchanging view of what is configured.
type Configuration interface {
	HostByID(id model.HostID) (*model.Host, bool)
	Hosts() iter.Seq[*model.Host]
	Triggers() iter.Seq[*model.Trigger]
}

// Problems knows what is wrong.
type Problems interface {
	// Open returns the problems that are open; shared, must not be changed.
	Open() []model.Problem
	// State returns what is known of a trigger's state; false when it was never evaluated.
	State(id model.TriggerID) (model.TriggerState, bool)
}

// Options are everything that the interface shows; all must be set but Now.
type Options struct {
	Engine        *tidepromql.Engine
	Catalog       Catalog
	Configuration func() Configuration
	Problems      Problems
	Version       string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// API serves the interface.
type API struct{ options Options }

// New returns the interface over its sources.
func New(options Options) *API {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &API{options: options}
}

// Routes returns the route table.
func (a *API) Routes() []api.Route {
	var routes []api.Route
	add := func(pattern, summary string, post bool, handle func(*API, http.ResponseWriter, *http.Request), params ...api.Param) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(a.view(r), w, r) })
		doc := &api.Doc{Summary: summary, Params: params, Answer: answer{}, Failure: failureBody{}}
		routes = append(routes, api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.View, PerHost: true, Handler: handler, Doc: doc})
		if post {
			routes = append(routes, api.Route{
				Method: http.MethodPost, Pattern: pattern, Permission: api.View, PerHost: true, Handler: handler,
				Doc: &api.Doc{Summary: summary, Answer: answer{}, Failure: failureBody{}, Form: params},
			})
		}
	}
	text := func(name, about string) api.Param { return api.Param{Name: name, Type: "string", About: about} }
	expr := api.Param{Name: "query", Type: "string", About: "A PromQL expression.", Required: true}
	match := api.Param{Name: "match[]", Type: "string", About: "A series selector.", Repeated: true}
	start, end := text("start", "Unix seconds or RFC 3339."), text("end", "Unix seconds or RFC 3339.")
	limit := api.Param{Name: "limit", Type: "integer", About: "At most so many; 0 for no limit."}
	timeout := text("timeout", "A duration, at most the server's.")
	lookback := text("lookback_delta", "A look-back for all series instead of each item's own.")
	add("/api/v1/query", "Prometheus: an instant query.", true, (*API).query, expr, text("time", "Unix seconds or RFC 3339; now if not given."), timeout, lookback, limit)
	add("/api/v1/query_range", "Prometheus: a range query, at most 11,000 steps.", true, (*API).queryRange, expr, start, end, text("step", "A duration or seconds."), timeout, lookback, limit)
	add("/api/v1/query_exemplars", "Prometheus: exemplars; there are none.", true, (*API).exemplars, expr, start, end)
	add("/api/v1/format_query", "Prometheus: a query in its standard form.", true, (*API).formatQuery, expr)
	add("/api/v1/labels", "Prometheus: names of labels.", true, (*API).labelNames, match, start, end, limit)
	add("/api/v1/label/{name}/values", "Prometheus: values of a label.", false, (*API).labelValues,
		api.Param{Name: "name", Type: "string", About: "The label's name.", Required: true}, match, start, end, limit)
	add("/api/v1/series", "Prometheus: series that fit selectors.", true, (*API).series, match, start, end, limit)
	add("/api/v1/metadata", "Prometheus: types, helps and units of metric names.", false, (*API).metadata, text("metric", "The only name to list."), limit)
	add("/api/v1/rules", "Prometheus: triggers as alerting rules, one group per host.", false, (*API).rules, text("type", "alert or record."), limitGroups, text("group_next_token", "What the page before gave."))
	add("/api/v1/alerts", "Prometheus: open problems as firing alerts.", false, (*API).alerts)
	add("/api/v1/status/buildinfo", "Prometheus: the version that this API is like.", false, (*API).buildInfo)
	return routes
}

var limitGroups = api.Param{Name: "group_limit", Type: "integer", About: "At most so many groups; 1,000 if not given."}

// failure is an error of a kind that Prometheus names.
type failure struct {
	status int
	kind   string
	err    error
}

// statusClosed is Prometheus' status for a caller that went away.
const statusClosed = 499

func badData(format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, "bad_data", fmt.Errorf(format, args...)}
}

// classify gives an error of a query its kind.
func classify(err error) *failure {
	var input *tidepromql.InputError
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var stored promql.ErrStorage
	switch {
	case errors.As(err, &input):
		return &failure{http.StatusBadRequest, "bad_data", err}
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return &failure{http.StatusServiceUnavailable, "timeout", err}
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &failure{statusClosed, "canceled", err}
	}
	if known := api.AsError(err); known.Code == "unavailable" {
		return &failure{http.StatusServiceUnavailable, "unavailable", known}
	}
	if errors.As(err, &stored) {
		return &failure{http.StatusInternalServerError, "internal", err}
	}
	return &failure{http.StatusUnprocessableEntity, "execution", errors.New(api.Shown(err))}
}

func (f *failure) write(w http.ResponseWriter) {
	text := f.err.Error()
	if f.status == http.StatusInternalServerError {
		text = api.Named(api.Shown(f.err), api.ExplainTo(w, f.err))
	}
	api.WriteJSON(w, f.status, failureBody{"error", f.kind, text})
}

// failureBody is the body of an answer that is no success.
type failureBody struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
}

// answer is the body of a success whose data is small.
type answer struct {
	Status   string   `json:"status"`
	Data     any      `json:"data"`
	Warnings []string `json:"warnings,omitempty"`
}

func succeed(w http.ResponseWriter, data any, warnings ...string) {
	api.WriteJSON(w, http.StatusOK, answer{"success", data, warnings})
}

const truncated = "results truncated due to limit"

// form reads the parameters of a request, from address and body, and keeps the first mistake.
type form struct {
	r   *http.Request
	err *failure
}

func readForm(r *http.Request) *form {
	f := &form{r: r}
	if err := r.ParseForm(); err != nil {
		f.err = badData("error parsing form values: %w", err)
	}
	return f
}

func (f *form) fail(name string, err error) {
	if f.err == nil {
		f.err = badData("invalid parameter %q: %w", name, err)
	}
}

func (f *form) text(name string) string { return f.r.Form.Get(name) }

// limit returns zero for none.
func (f *form) limit(name string) int {
	v := f.text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		f.fail(name, errors.New("limit must be a number"))
	} else if n < 0 {
		f.fail(name, errors.New("limit must be non-negative"))
	}
	return n
}

func (f *form) time(name string, otherwise time.Time) time.Time {
	v := f.text(name)
	if v == "" {
		return otherwise
	}
	t, err := parseTime(v)
	if err != nil {
		f.fail(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t
}

func (f *form) duration(name string) time.Duration {
	v := f.text(name)
	if v == "" {
		return 0
	}
	d, err := parseDuration(v)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not positive", v)
	}
	if err != nil {
		f.fail(name, err)
	}
	return d
}

// selectors reads match[].
func (f *form) selectors(engine *tidepromql.Engine) [][]*labels.Matcher {
	var sets [][]*labels.Matcher
	list := f.r.Form["match[]"]
	if len(list) > maxSelectors {
		f.fail("match[]", fmt.Errorf("%d selectors, expected at most %d", len(list), maxSelectors))
		return nil
	}
	for _, text := range list {
		matchers, err := engine.ParseSelector(text)
		if err != nil {
			f.fail("match[]", err)
			return nil
		}
		sets = append(sets, matchers)
	}
	return sets
}

// maxSelectors bounds match[]; Grafana sends one or two.
const maxSelectors = 100

// maxSeconds bounds times to what nanoseconds can hold (years 1678 to 2262).
const maxSeconds = 9_223_372_036

// parseTime reads Unix seconds or RFC 3339.
func parseTime(s string) (time.Time, error) {
	if t, err := strconv.ParseFloat(s, 64); err == nil {
		if !(t >= -maxSeconds && t <= maxSeconds) { // also catches NaN
			return time.Time{}, fmt.Errorf("%q is not between %d and %d", s, -maxSeconds, maxSeconds)
		}
		// Milliseconds are all that PromQL has; rounding to them hides that a float cannot hold most of them.
		return time.UnixMilli(int64(roundHalfAway(t * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
	}
	if t.Unix() < -maxSeconds {
		return time.Unix(-maxSeconds, 0).UTC(), nil
	}
	if t.Unix() > maxSeconds {
		return time.Unix(maxSeconds, 0).UTC(), nil
	}
	return t, nil
}

func roundHalfAway(v float64) float64 {
	if v < 0 {
		return float64(int64(v - 0.5))
	}
	return float64(int64(v + 0.5))
}

// parseDuration reads seconds or Prometheus' form (5m, 1h30m).
func parseDuration(s string) (time.Duration, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		if !(v > -maxSeconds && v < maxSeconds) {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", s)
		}
		return time.Duration(v * float64(time.Second)), nil
	}
	d, err := commonmodel.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", s)
	}
	return time.Duration(d), nil
}

func (a *API) buildInfo(w http.ResponseWriter, _ *http.Request) {
	succeed(w, map[string]string{
		// The release of Prometheus whose engine answers; clients choose by it what they may ask.
		"version": "3.16.0", "revision": "tidemark " + a.options.Version, "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": strings.TrimPrefix(runtime.Version(), "go"),
	})
}
