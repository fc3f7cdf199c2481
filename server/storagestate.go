package server

import (
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/header"
)

// storageContent is what is stored, a part of the answer to GET /api/storage. Times are Unix milliseconds, zero for none.
type storageContent struct {
	// Engine is dbengine or postgres.
	Engine string `json:"engine"`
	Values uint64 `json:"values"`
	Items  uint64 `json:"items"`
	// LogBytes of LogLimitBytes are the log of the embedded engine.
	LogBytes      int64 `json:"log_bytes"`
	LogLimitBytes int64 `json:"log_limit_bytes"`
	// Direct says what of the embedded engine goes past the system's cache; nil with PostgreSQL.
	Direct *dbengine.DirectState `json:"direct_io,omitempty"`
	Tiers  []storageTier         `json:"tiers"`
	Pairs  []storagePair         `json:"pairs"`
}

// maxListedPairs bounds how many pairs of a tier are listed; beyond that neighbours are shown as one.
const maxListedPairs = 500

// tierNames are the tiers in the words of the page.
var tierNames = [header.TierCount]string{header.Raw: "values", header.Minute: "minutes", header.Hour: "hours"}

// content says what is stored.
func (s *Server) content(stats storage.Stats) storageContent {
	out := storageContent{Engine: "postgres", Values: stats.Values, Items: stats.Items, Tiers: []storageTier{}, Pairs: []storagePair{}}
	db, ok := s.engine.(*dbengine.DB)
	if !ok {
		return out
	}
	out.Engine = "dbengine"
	out.LogBytes, out.LogLimitBytes = db.LogBytes()
	direct := db.Direct()
	out.Direct = &direct
	pairs := db.Pairs()
	for tier, name := range tierNames {
		of := pairsOf(pairs, header.Tier(tier))
		out.Tiers = append(out.Tiers, sumTier(name, db.TierLimitBytes(header.Tier(tier)), of))
		out.Pairs = append(out.Pairs, listPairs(name, of, maxListedPairs)...)
	}
	return out
}

func pairsOf(pairs []dbengine.PairInfo, tier header.Tier) []dbengine.PairInfo {
	var of []dbengine.PairInfo
	for _, p := range pairs {
		if p.Tier == tier {
			of = append(of, p)
		}
	}
	return of
}

func sumTier(name string, limit int64, pairs []dbengine.PairInfo) storageTier {
	t := storageTier{Tier: name, Pairs: len(pairs), LimitBytes: limit}
	for _, p := range pairs {
		t.Bytes += p.Bytes
		t.Values += p.Values
		t.Pages += p.Pages
		t.From, t.To = widen(t.From, t.To, p)
	}
	return t
}

// widen makes a span in milliseconds hold the times of a pair too.
func widen(from, to int64, p dbengine.PairInfo) (int64, int64) {
	if p.To == 0 {
		return from, to
	}
	if at := millis(p.From); from == 0 || at < from {
		from = at
	}
	return from, max(to, millis(p.To))
}

// listPairs lists at most limit pairs, each for as many neighbours as that takes.
func listPairs(tier string, pairs []dbengine.PairInfo, limit int) []storagePair {
	each := max((len(pairs)+limit-1)/limit, 1)
	var out []storagePair
	for i, p := range pairs {
		if i%each == 0 {
			out = append(out, storagePair{Name: p.Name, Tier: tier})
		}
		last := &out[len(out)-1]
		last.Count++
		last.Growing = last.Growing || p.Open
		last.Bytes += p.Bytes
		last.Values += p.Values
		last.From, last.To = widen(last.From, last.To, p)
	}
	return out
}
