package server

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"

	"tidemark/api"
	"tidemark/model"
	"tidemark/storage/dbengine"
)

// maxHostShares is how many hosts GET /api/storage/hosts names: those that have most.
const maxHostShares = 100

// hostSharesRoute is what each host has of the embedded engine.
func (s *Server) hostSharesRoute(engine *dbengine.DB) api.Route {
	return api.Route{
		Method: http.MethodGet, Pattern: "/api/storage/hosts", Permission: api.View, PerHost: true,
		Handler: api.JSON(func(r *http.Request) (any, error) { return s.hostShares(r, engine), nil }),
		Doc:     &api.Doc{Summary: "What the values and summaries of each host take in closed file pairs, at most 100 hosts, and what a host may have before its oldest values go first.", Answer: hostShares{}},
	}
}

func (s *Server) hostShares(r *http.Request, engine *dbengine.DB) hostShares {
	list, _ := engine.Shares(math.MaxInt)
	snapshot := s.cache.Snapshot()
	seen := visibleHosts(r, snapshot)
	out := hostShares{Hosts: []hostShare{}, Factor: engine.ShareFactor()}
	total, gone := int64(0), hostShare{}
	for _, u := range list {
		total += u.Bytes + u.TierBytes
		at := hostShare{Bytes: u.Bytes, SummaryBytes: u.TierBytes, LimitBytes: u.LimitBytes, Over: u.Over}
		switch h, known := snapshot.HostByID(model.HostID(u.Share)); {
		case known && seen.Has(h.ID):
			at.HostID, at.Host = strconv.FormatUint(u.Share, 10), h.Host
			out.Hosts = append(out.Hosts, at)
		case !known: // the engine bounds each of them by itself, so there is no limit for all
			gone.Bytes, gone.SummaryBytes, gone.Over = gone.Bytes+at.Bytes, gone.SummaryBytes+at.SummaryBytes, gone.Over || at.Over
		}
	}
	if seen == nil && gone.Bytes+gone.SummaryBytes > 0 {
		out.Hosts = append(out.Hosts, gone)
		slices.SortStableFunc(out.Hosts, func(a, b hostShare) int { return cmp.Compare(b.Bytes+b.SummaryBytes, a.Bytes+a.SummaryBytes) })
	}
	out.Count = len(out.Hosts)
	out.Hosts = out.Hosts[:min(out.Count, maxHostShares)]
	for i := range out.Hosts {
		h := &out.Hosts[i]
		h.Percent = 100 * float64(h.Bytes+h.SummaryBytes) / float64(max(total, 1))
	}
	return out
}
