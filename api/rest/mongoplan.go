package rest

import (
	"tidemark/client"
	"tidemark/query/requests"
)

func formatPlan(p *requests.Plan) *MongoPlan {
	if p == nil {
		return nil
	}
	out := &MongoPlan{
		At: floorMillis(p.At), ChangedAt: floorMillis(p.ChangedAt), Before: p.Before, Summary: p.Summary, Stages: listOf(p.Stages), Scans: p.Scans, Sorts: p.Sorts, Used: listOf(p.Used),
		Rejected: p.Rejected, Indexes: make([]MongoIndex, len(p.Indexes)), IndexesKnown: p.IndexesKnown,
		Hints: make([]MongoHint, len(p.Hints)), Notes: listOf(p.Notes),
	}
	for i, index := range p.Indexes {
		out.Indexes[i] = MongoIndex(index)
	}
	for i, hint := range p.Hints {
		out.Hints[i] = MongoHint(hint)
	}
	if t := p.Trial; t != nil {
		out.Trial = &MongoTrial{MongoIndexTrial: client.MongoIndexTrial(*t)}
		if t.Returned > 0 {
			each := float64(t.Documents) / float64(t.Returned)
			out.Trial.ExaminedPerReturned = &each
		}
	}
	return out
}

// listOf makes an empty list of none, so that an answer never has null there.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
