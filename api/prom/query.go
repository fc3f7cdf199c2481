package prom

import (
	"net/http"

	"github.com/prometheus/prometheus/promql"

	tidepromql "tidemark/query/promql"
)

func (a *API) query(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	request := tidepromql.Request{
		Text: f.text("query"), At: f.time("time", a.options.Now()), Timeout: f.duration("timeout"), Lookback: f.duration("lookback_delta"),
	}
	a.evaluate(w, r, f, request)
}

func (a *API) queryRange(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	for _, name := range []string{"start", "end", "step"} {
		if f.text(name) == "" {
			badData("invalid parameter %q: it is missing", name).write(w)
			return
		}
	}
	now := a.options.Now()
	request := tidepromql.Request{
		Text: f.text("query"), From: f.time("start", now), To: f.time("end", now), Timeout: f.duration("timeout"), Lookback: f.duration("lookback_delta"),
	}
	step, err := parseDuration(f.text("step"))
	switch {
	case err != nil:
		f.fail("step", err)
	case step <= 0:
		f.err = badData("invalid parameter %q: zero or negative query resolution step widths are not accepted. Try a positive integer", "step")
	}
	request.Step = step
	a.evaluate(w, r, f, request)
}

// evaluate answers with the result of a request, or with the first mistake in its parameters.
func (a *API) evaluate(w http.ResponseWriter, r *http.Request, f *form, request tidepromql.Request) {
	limit := f.limit("limit")
	if f.err != nil {
		f.err.write(w)
		return
	}
	err := a.options.Engine.Query(r.Context(), request, func(result *promql.Result) error {
		if result.Err != nil {
			return result.Err
		}
		warnings, infos := result.Warnings.AsStrings(request.Text, 10, 10)
		if limit > 0 && truncate(result, limit) {
			warnings = append(warnings, truncated)
		}
		writeResult(w, result.Value, warnings, infos)
		return nil
	})
	if err != nil {
		classify(err).write(w)
	}
}

// truncate cuts a result to so many series and reports whether it had more.
func truncate(result *promql.Result, limit int) bool {
	switch v := result.Value.(type) {
	case promql.Matrix:
		if len(v) > limit {
			result.Value = v[:limit]
			return true
		}
	case promql.Vector:
		if len(v) > limit {
			result.Value = v[:limit]
			return true
		}
	}
	return false
}

func (a *API) formatQuery(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	expr, err := a.options.Engine.ParseExpr(f.text("query"))
	if err != nil {
		classify(err).write(w)
		return
	}
	succeed(w, expr.Pretty(0))
}

func (a *API) exemplars(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err == nil {
		f.time("start", a.options.Now())
		f.time("end", a.options.Now())
		if _, err := a.options.Engine.ParseExpr(f.text("query")); err != nil {
			f.fail("query", err)
		}
	}
	if f.err != nil {
		f.err.write(w)
		return
	}
	succeed(w, []struct{}{})
}
