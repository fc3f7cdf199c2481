package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// maxUpdated bounds the problems of one update, maxMessageBytes its message.
const (
	maxUpdated      = 1000
	maxMessageBytes = 4096
)

// problemUpdateRoutes are the routes that change problems.
func (a *API) problemUpdateRoutes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodPost, Pattern: "/api/problem-updates", Permission: api.Operate, PerHost: true, Handler: a.handle((*API).updateProblems), Doc: &api.Doc{
				Summary: "Acknowledges, comments, suppresses, closes problems or changes their severity: all of them or none.", Body: ProblemsUpdate{}, Answer: ProblemsUpdated{},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/problems/{id}/acknowledge", Permission: api.Operate, PerHost: true, Handler: a.handle((*API).acknowledge), Doc: &api.Doc{
				Summary: "Marks a problem as seen, with a message, and tells those whom an action's update operations name.",
				Params:  []api.Param{{Name: "id", Type: "string", About: "The id of the problem's event, decimal.", Required: true}},
				Body:    acknowledgement{}, Answer: struct{}{},
			},
		},
	}
}

// acknowledgement is the body of the shorter route.
type acknowledgement struct {
	Message string `json:"message,omitempty"`
	// Author is who says it, for callers that are no user.
	Author string `json:"author,omitempty"`
}

func (a *API) acknowledge(r *http.Request) (any, error) {
	id, err := parseID("id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var body acknowledgement
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	if len(body.Author) > maxTextBytes {
		return nil, api.BadRequest(fmt.Sprintf("author is too long, expected at most %d bytes", maxTextBytes))
	}
	yes := true
	u, err := updateOf(&ProblemsUpdate{Acknowledge: &yes, Message: body.Message}, 0)
	if err != nil {
		return nil, err
	}
	u.Author = body.Author
	access.Changed(r.Context(), "problem "+formatID(id), nil, map[string]string{"message": body.Message, "author": a.author(r.Context(), &u)})
	_, err = a.updateAll(r.Context(), []model.EventID{model.EventID(id)}, u)
	return struct{}{}, err
}

func (a *API) updateProblems(r *http.Request) (any, error) {
	var body ProblemsUpdate
	if err := decodeBody(r, &body); err != nil {
		return nil, err
	}
	if n := len(body.EventIDs); n == 0 || n > maxUpdated {
		return nil, api.BadRequest(fmt.Sprintf("event_ids has %d problems, expected 1 to %d", n, maxUpdated))
	}
	ids := make([]model.EventID, 0, len(body.EventIDs))
	for _, text := range body.EventIDs {
		id, err := parseID("event_ids", text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, model.EventID(id))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	u, err := updateOf(&body, a.options.Now().UnixNano())
	if err != nil {
		return nil, err
	}
	a.author(r.Context(), &u)
	said := body
	said.EventIDs = nil
	access.Changed(r.Context(), "problems "+strings.Join(body.EventIDs[:min(len(body.EventIDs), maxNamed)], ", "), nil, struct {
		ProblemsUpdate
		Problems []string `json:"problems"`
	}{said, body.EventIDs})
	changed, err := a.updateAll(r.Context(), ids, u)
	out := ProblemsUpdated{EventIDs: []string{}}
	for _, id := range changed {
		out.EventIDs = append(out.EventIDs, formatID(id))
	}
	return out, err
}

// maxNamed bounds the problems in the name of what the audit log says was changed; its details have all of them.
const maxNamed = 20

// author sets who does it and returns the name. Nobody speaks for somebody else; who is no user may give a name.
func (a *API) author(ctx context.Context, u *model.ProblemUpdate) string {
	if who := access.From(ctx); who != nil && who.User != 0 {
		u.User, u.Author = who.User, who.Name
	}
	return u.Author
}

// updateAll looks whether the caller may, and changes the problems.
func (a *API) updateAll(ctx context.Context, ids []model.EventID, u model.ProblemUpdate) ([]model.EventID, error) {
	if a.visible != nil {
		for _, id := range ids {
			if err := a.mayOnProblem(ctx, id, model.Operator); err != nil {
				return nil, err
			}
		}
	}
	return a.options.Alerting.UpdateProblems(ctx, ids, u)
}

// update checks what is asked for. now is in Unix nanoseconds.
func updateOf(b *ProblemsUpdate, now int64) (model.ProblemUpdate, error) {
	u := model.ProblemUpdate{Message: strings.TrimSpace(b.Message)}
	switch {
	case len(b.Message) > maxMessageBytes:
		return u, api.BadRequest(fmt.Sprintf("message has %d bytes, expected at most %d", len(b.Message), maxMessageBytes))
	case b.SuppressUntil != 0 && (b.Suppress == nil || !*b.Suppress):
		return u, api.BadRequest("suppress_until is set, expected suppress true with it")
	case b.SuppressUntil != 0 && (b.SuppressUntil <= now/1e6 || b.SuppressUntil > model.Forever/1_000_000):
		return u, api.BadRequest("suppress_until is not in the future, expected Unix milliseconds after now, or nothing for no end")
	}
	set := func(on *bool, yes, no model.ProblemActions) {
		switch {
		case on == nil:
		case *on:
			u.Actions |= yes
		default:
			u.Actions |= no
		}
	}
	set(b.Acknowledge, model.ActionAcknowledge, model.ActionUnacknowledge)
	set(b.Suppress, model.ActionSuppress, model.ActionUnsuppress)
	if b.SuppressUntil != 0 {
		u.SuppressedUntil = b.SuppressUntil * 1e6
	} else if u.Actions.Has(model.ActionSuppress) {
		u.SuppressedUntil = model.Forever
	}
	if b.Close {
		u.Actions |= model.ActionClose
	}
	if u.Message != "" {
		u.Actions |= model.ActionMessage
	}
	if b.Severity != nil {
		severity, ok := parseSeverity(*b.Severity)
		if !ok {
			return u, api.BadRequest(fmt.Sprintf("severity is %.40q, expected not classified, information, warning, average, high or disaster", *b.Severity))
		}
		u.Severity = severity
		u.Actions |= model.ActionSeverity
	}
	if u.Actions == 0 {
		return u, api.BadRequest("nothing is to be done, expected acknowledge, message, severity, suppress or close")
	}
	return u, nil
}
