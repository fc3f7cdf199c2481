package prom

import (
	"context"
	"net/http"
	"slices"
	"strings"

	commonmodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"tidemark/model"
)

// selection reads what the calls about labels and series have in common.
func (a *API) selection(r *http.Request) (f *form, sets [][]*labels.Matcher, limit int) {
	f = readForm(r)
	if f.err != nil {
		return f, nil, 0
	}
	now := a.options.Now()
	from, to := f.time("start", now), f.time("end", now)
	if f.text("start") != "" && f.text("end") != "" && to.Before(from) && f.err == nil {
		f.err = badData("invalid parameter %q: end timestamp must not be before start time", "end")
	}
	return f, f.selectors(a.options.Engine), f.limit("limit")
}

// union merges the sorted answers to each selector, or the answer to none.
func union(sets [][]*labels.Matcher, one func(...*labels.Matcher) []string) []string {
	if len(sets) == 0 {
		return one()
	}
	var all []string
	for _, set := range sets {
		all = append(all, one(set...)...)
	}
	if len(sets) > 1 {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return all
}

func (a *API) labelNames(w http.ResponseWriter, r *http.Request) {
	f, sets, limit := a.selection(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	writeTexts(w, union(sets, a.options.Catalog.LabelNames), limit)
}

func (a *API) labelValues(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	// Names with characters that an address cannot hold come escaped: U__ and then _2e_ for a dot.
	if strings.HasPrefix(name, "U__") {
		name = commonmodel.UnescapeName(name, commonmodel.ValueEncodingEscaping)
	}
	if !commonmodel.UTF8Validation.IsValidLabelName(name) {
		badData("invalid label name: %q", name).write(w)
		return
	}
	f, sets, limit := a.selection(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	writeTexts(w, union(sets, func(matchers ...*labels.Matcher) []string {
		return a.options.Catalog.LabelValues(name, matchers...)
	}), limit)
}

func writeTexts(w http.ResponseWriter, texts []string, limit int) {
	if texts == nil {
		texts = []string{}
	}
	if limit > 0 && len(texts) > limit {
		succeed(w, texts[:limit], truncated)
		return
	}
	succeed(w, texts)
}

// maxSeries bounds the answer to series: more cannot be shown by anybody.
const maxSeries = 100_000

func (a *API) series(w http.ResponseWriter, r *http.Request) {
	f, sets, limit := a.selection(r)
	if f.err == nil && len(sets) == 0 {
		f.err = badData("no match[] parameter provided")
	}
	if f.err != nil {
		f.err.write(w)
		return
	}
	ids := a.match(r.Context(), sets)
	if limit == 0 || limit > maxSeries {
		limit = maxSeries
	}
	var warnings []string
	if len(ids) > limit {
		ids, warnings = ids[:limit], []string{truncated}
	}
	found := make([]map[string]string, 0, len(ids))
	for _, id := range ids {
		ls := a.options.Catalog.Labels(id)
		if len(ls) == 0 {
			continue // forgotten meanwhile
		}
		series := make(map[string]string, len(ls))
		for _, l := range ls {
			series[l.Name] = l.Value
		}
		found = append(found, series)
	}
	succeed(w, found, warnings...)
}

// match returns the items that fit at least one selector, by id.
func (a *API) match(ctx context.Context, sets [][]*labels.Matcher) []model.ItemID {
	var ids []model.ItemID
	for _, set := range sets {
		if ctx.Err() != nil {
			return nil
		}
		ids = append(ids, a.options.Catalog.Match(set...)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// metric is one entry of the answer to metadata.
type metric struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

func (a *API) metadata(w http.ResponseWriter, r *http.Request) {
	f := readForm(r)
	if f.err != nil {
		f.err.write(w)
		return
	}
	limit := f.limit("limit")
	f.limit("limit_per_metric") // there is one entry per name
	if f.err != nil {
		f.err.write(w)
		return
	}
	found := make(map[string][]metric)
	for _, m := range a.options.Catalog.Metadata(f.text("metric"), limit) {
		found[m.Metric] = []metric{{m.Type, m.Help, m.Unit}}
	}
	succeed(w, found)
}
