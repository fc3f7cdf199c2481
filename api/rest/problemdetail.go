package rest

import (
	"context"
	"fmt"
	"net/http"

	"tidemark/api"
	"tidemark/model"
)

const (
	// maxEarlier bounds the earlier problems that are shown, earlierScanned how many of the host's are looked through for them.
	maxEarlier     = 10
	earlierScanned = 500
)

func (a *API) getProblem(r *http.Request) (any, error) {
	id, err := parseID("id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	found, _, err := a.options.Problems.Find(r.Context(), ProblemFilter{Before: model.EventID(id) + 1, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("find the problem: %w", err)
	}
	if len(found) == 0 || found[0].ID != model.EventID(id) {
		return nil, api.NotFound(fmt.Sprintf("there is no problem with id %d", id))
	}
	formatted, err := a.formatProblems(r.Context(), found)
	if err != nil {
		return nil, err
	}
	p := &found[0]
	out := &ProblemDetail{Problem: formatted[0]}
	if t, ok := a.options.Configuration().Trigger(p.TriggerID); ok {
		out.Expression, out.RecoveryExpression = t.Shown()
	}
	if out.Items, err = a.itemsOfTrigger(r.Context(), p.TriggerID); err != nil {
		return nil, err
	}
	marks, err := a.options.Problems.Marks(r.Context(), p.ID)
	if err != nil {
		return nil, err
	}
	out.Marks = append([]ProblemMark{}, marks...)
	out.Earlier, err = a.earlier(r.Context(), p)
	return out, err
}

// itemsOfTrigger are the items in its expression, each once.
func (a *API) itemsOfTrigger(ctx context.Context, id model.TriggerID) ([]Item, error) {
	var entries []model.Entry
	seen := make(map[model.ItemID]bool)
	for _, item := range a.options.Problems.Items(id) {
		if e, ok := a.options.Catalog.Item(item); ok && !seen[item] {
			seen[item] = true
			entries = append(entries, e)
		}
	}
	items, err := a.formatItems(ctx, entries)
	return append([]Item{}, items...), err
}

// earlier are the newest problems of the same trigger before p, among the host's last ones.
func (a *API) earlier(ctx context.Context, p *model.Problem) ([]EarlierProblem, error) {
	list := []EarlierProblem{}
	before, _, err := a.options.Problems.Find(ctx, ProblemFilter{Host: p.HostID, Before: p.ID, Limit: earlierScanned})
	for i := range before {
		if before[i].TriggerID == p.TriggerID && len(list) < maxEarlier {
			list = append(list, EarlierProblem{EventID: formatID(before[i].ID), At: floorMillis(before[i].At), RecoveredAt: optionalMillis(before[i].RecoveredAt)})
		}
	}
	return list, err
}
