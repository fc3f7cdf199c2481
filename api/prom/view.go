package prom

import (
	"iter"
	"net/http"
	"slices"

	commonmodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"tidemark/access"
	"tidemark/api"
	"tidemark/catalog"
	"tidemark/model"
)

// view returns the interface as whoever sent a request may see it: for somebody who sees only some hosts other hosts do not exist, in
// selectors as in lists.
func (a *API) view(r *http.Request) *API {
	who := access.From(r.Context())
	if who.SeesAllHosts() {
		return a
	}
	o := a.options
	configuration := o.Configuration()
	v := api.VisibleHosts(who, configuration.Hosts())
	limited := limitedCatalog{api.LimitedCatalog{Catalog: o.Catalog, Visible: v}, o.Catalog}
	o.Catalog = limited
	o.Engine = o.Engine.WithCatalog(limited)
	o.Configuration = func() Configuration { return limitedConfiguration{configuration, v} }
	o.Problems = limitedProblems{o.Problems, v}
	return &API{options: o}
}

// limitedCatalog is a catalog of the items of visible hosts only.
type limitedCatalog struct {
	api.LimitedCatalog
	whole Catalog
}

// Metadata implements Catalog. The help may be that of a hidden host, so it is left out.
func (c limitedCatalog) Metadata(metric string, limit int) []catalog.Metadata {
	var seen []string
	if metric != "" {
		seen = c.LabelValues(commonmodel.MetricNameLabel, labels.MustNewMatcher(labels.MatchEqual, commonmodel.MetricNameLabel, metric))
	} else {
		seen = c.LabelValues(commonmodel.MetricNameLabel)
	}
	var found []catalog.Metadata
	for _, m := range c.whole.Metadata(metric, 0) {
		if _, ok := slices.BinarySearch(seen, m.Metric); ok && (limit == 0 || len(found) < limit) {
			m.Help = ""
			found = append(found, m)
		}
	}
	return found
}

// limitedConfiguration is a configuration of visible hosts only.
type limitedConfiguration struct {
	Configuration
	visible api.Visible
}

// HostByID implements Configuration.
func (c limitedConfiguration) HostByID(id model.HostID) (*model.Host, bool) {
	if !c.visible.Has(id) {
		return nil, false
	}
	return c.Configuration.HostByID(id)
}

// Triggers implements Configuration.
func (c limitedConfiguration) Triggers() iter.Seq[*model.Trigger] {
	return func(yield func(*model.Trigger) bool) {
		for t := range c.Configuration.Triggers() {
			if c.visible.Has(t.HostID) && !yield(t) {
				return
			}
		}
	}
}

// limitedProblems is the problems of visible hosts only.
type limitedProblems struct {
	Problems
	visible api.Visible
}

// Open implements Problems.
func (p limitedProblems) Open() []model.Problem {
	var open []model.Problem
	for _, problem := range p.Problems.Open() {
		if p.visible.Has(problem.HostID) {
			open = append(open, problem)
		}
	}
	return open
}
