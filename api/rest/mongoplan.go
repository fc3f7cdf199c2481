package rest

import (
	"tidemark/query/requests"
	"tidemark/wire/queryplan"
)

// MongoPlan is how the server said it answers a shape. It holds no value of a field.
type MongoPlan struct {
	// At is when the server said it; ChangedAt is when the summary changed from Before, 0 if it did not within the last day.
	At        int64  `json:"at"`
	ChangedAt int64  `json:"changed_at,omitempty"`
	Before    string `json:"before,omitempty"`
	// Summary is in the server's words, such as COLLSCAN or "IXSCAN {status: 1}"; empty where it did not say.
	Summary string   `json:"summary"`
	Stages  []string `json:"stages"`
	// Scans says that the whole collection is read, Sorts that documents are sorted in memory.
	Scans    bool     `json:"scans"`
	Sorts    bool     `json:"sorts"`
	Used     []string `json:"used"`
	Rejected int      `json:"rejected"`
	// Trial is what was measured when the server chose the plan that it keeps, null where it does not tell.
	Trial *MongoTrial `json:"trial"`
	// Indexes are those of the collection; IndexesKnown is false where the server did not tell them.
	Indexes      []queryplan.Index `json:"indexes"`
	IndexesKnown bool              `json:"indexes_known"`
	// Hints are indexes that would serve the shape and are missing.
	Hints []queryplan.Hint `json:"hints"`
	// Notes say what the server could not be asked for, and why.
	Notes []string `json:"notes"`
}

// MongoTrial is what a plan did when it was chosen. ExaminedPerReturned is null when nothing was returned.
type MongoTrial struct {
	queryplan.Trial
	ExaminedPerReturned *float64 `json:"examined_per_returned"`
}

func formatPlan(p *requests.Plan) *MongoPlan {
	if p == nil {
		return nil
	}
	out := &MongoPlan{
		At: floorMillis(p.At), ChangedAt: floorMillis(p.ChangedAt), Before: p.Before, Summary: p.Summary, Stages: listOf(p.Stages), Scans: p.Scans, Sorts: p.Sorts, Used: listOf(p.Used),
		Rejected: p.Rejected, Indexes: listOf(p.Indexes), IndexesKnown: p.IndexesKnown, Hints: listOf(p.Hints), Notes: listOf(p.Notes),
	}
	if t := p.Trial; t != nil {
		out.Trial = &MongoTrial{Trial: *t}
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
