// Package promql answers PromQL queries with Prometheus' own engine over the product's history, trends and catalog.
//
// How an item becomes a series, how the look-back follows the item's interval, and when trends are read is told in
// docs/design/0016-catalog-and-query.md.
package promql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	commonmodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"tidemark/query"
)

const (
	// MinLookback is how far an instant selector looks back for a value of an item without a known interval.
	MinLookback = 5 * time.Minute
	// MaxLookback bounds the look-back of slow items: twice the longest interval of 24 hours.
	MaxLookback = 48 * time.Hour
	// MaxPoints is how many steps a range query may have, as in Prometheus.
	MaxPoints = 11_000
	// maxQueryBytes bounds the text of a query.
	maxQueryBytes = 64 << 10
)

// Options adjust an engine.
type Options struct {
	// MaxSamples is how many samples a query may hold while it is evaluated; zero means 20 million (320 MB).
	MaxSamples int
	// Timeout ends a query; zero means 60 s.
	Timeout time.Duration
	// Logger gets what the engine says; nil discards.
	Logger *slog.Logger
}

// Engine evaluates queries. It is safe for use by several goroutines.
type Engine struct {
	querier *query.Querier
	engine  *promql.Engine
	parser  parser.Parser
	timeout time.Duration
}

// New returns an engine that reads through a querier.
func New(querier *query.Querier, options Options) *Engine {
	if options.MaxSamples == 0 {
		options.MaxSamples = 20_000_000
	}
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	p := parser.NewParser(parser.Options{})
	return &Engine{
		querier: querier,
		parser:  p,
		timeout: options.Timeout,
		engine:  newEngine(countParser{p}, options),
	}
}

// WithCatalog returns an engine that sees another catalog, such as one in which some items are left out.
func (e *Engine) WithCatalog(catalog query.Catalog) *Engine {
	other := *e
	other.querier = e.querier.WithCatalog(catalog)
	return &other
}

// newEngine sets the engine up as Prometheus does, but for the look-back.
func newEngine(p parser.Parser, options Options) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   options.Logger,
		MaxSamples:               options.MaxSamples,
		Timeout:                  options.Timeout,
		LookbackDelta:            MaxLookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		EnableDelayedNameRemoval: true,
		Parser:                   p,
	})
}

// InputError says what is wrong with a query; Prometheus calls it bad_data.
type InputError struct{ Err error }

// Error is the text of the mistake.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Request is one query.
type Request struct {
	Text string
	// At is the time of an instant query. From, To and Step are set instead for a range query; both ends are included.
	At, From, To time.Time
	Step         time.Duration
	// Lookback, if not zero, takes the place of every item's own look-back.
	Lookback time.Duration
	// Timeout, if not zero, shortens the engine's.
	Timeout time.Duration
}

// Query evaluates a request and hands the result to fn, which must not keep it. Errors in the request are *InputError.
func (e *Engine) Query(ctx context.Context, r Request, fn func(*promql.Result) error) error {
	if r.Timeout > 0 && r.Timeout < e.timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	ctx, end, err := e.querier.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	q, err := e.prepare(ctx, r)
	if err != nil {
		return err
	}
	defer q.Close()
	result := q.Exec(ctx)
	e.dropCounterHints(result)
	return fn(result)
}

// dropCounterHints removes the engine's doubt whether a metric without the suffix _total is a counter, where the items
// say that they are: their names come from item keys, which have no such suffix.
func (e *Engine) dropCounterHints(result *promql.Result) {
	for key, err := range result.Warnings {
		if !errors.Is(err, annotations.PossibleNonCounterInfo) {
			continue
		}
		_, quoted, _ := strings.Cut(key, annotations.PossibleNonCounterInfo.Error()+" ")
		name, err := strconv.Unquote(quoted)
		if err != nil {
			continue
		}
		matchers := []*labels.Matcher{
			labels.MustNewMatcher(labels.MatchEqual, commonmodel.MetricNameLabel, name),
			labels.MustNewMatcher(labels.MatchEqual, "type", "counter"),
		}
		if len(e.querier.Catalog().Match(matchers...)) > 0 {
			delete(result.Warnings, key)
		}
	}
}

func (e *Engine) prepare(ctx context.Context, r Request) (promql.Query, error) {
	if r.Lookback < 0 || r.Lookback > MaxLookback {
		return nil, &InputError{fmt.Errorf("the look-back of %v is not between 0 and %v", r.Lookback, MaxLookback)}
	}
	expr, err := e.ParseExpr(r.Text)
	if err != nil {
		return nil, err
	}
	if r.Step != 0 {
		if err := checkSteps(r); err != nil {
			return nil, err
		}
	}
	if err := checkBounds(expr, r.To.Sub(r.From)); err != nil {
		return nil, err
	}
	source := &Queryable{querier: e.querier, lookback: r.Lookback, plain: plain(expr)}
	options := promql.NewPrometheusQueryOpts(false, MaxLookback, nil)
	var q promql.Query
	if r.Step == 0 {
		q, err = e.engine.NewInstantQuery(ctx, source, options, r.Text, r.At)
	} else {
		q, err = e.engine.NewRangeQuery(ctx, source, options, r.Text, r.From, r.To, r.Step)
	}
	if err != nil {
		return nil, &InputError{err}
	}
	return q, nil
}

func checkSteps(r Request) error {
	switch {
	case r.Step < time.Millisecond:
		return &InputError{errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer")}
	case r.To.Before(r.From):
		return &InputError{errors.New("end timestamp must not be before start time")}
	case r.To.Sub(r.From)/r.Step > MaxPoints:
		return &InputError{fmt.Errorf("exceeded maximum resolution of %d points per timeseries. Try decreasing the query resolution (?step=XX)", MaxPoints)}
	}
	return nil
}

// ParseSelector reads a series selector such as up{job="x"}. Errors are *InputError.
func (e *Engine) ParseSelector(text string) ([]*labels.Matcher, error) {
	if len(text) > maxQueryBytes {
		return nil, &InputError{fmt.Errorf("the selector has %d bytes, expected at most %d", len(text), maxQueryBytes)}
	}
	matchers, err := e.parser.ParseMetricSelector(text)
	if err != nil {
		return nil, &InputError{err}
	}
	for _, m := range matchers {
		if !m.Matches("") {
			return matchers, nil
		}
	}
	return nil, &InputError{errors.New("match[] must contain at least one non-empty matcher")}
}

// ParseExpr checks a query and returns it as the parser prints it.
func (e *Engine) ParseExpr(text string) (parser.Expr, error) {
	if len(text) > maxQueryBytes {
		return nil, &InputError{fmt.Errorf("the query has %d bytes, expected at most %d", len(text), maxQueryBytes)}
	}
	expr, err := e.parser.ParseExpr(text)
	if err != nil {
		return nil, &InputError{err}
	}
	return expr, nil
}

// Queryable returns the storage that the engine reads, for use with another engine that has the look-back MaxLookback.
func (e *Engine) Queryable() storage.Queryable { return &Queryable{querier: e.querier} }

// Querier returns what the engine reads through.
func (e *Engine) Querier() *query.Querier { return e.querier }
