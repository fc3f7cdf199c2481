package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidemark/api"
	"tidemark/model"
)

// Discovery knows the low-level discovery rules.
type Discovery interface {
	// Rules lists the rules of a host, or of all hosts for 0, in order of their ids.
	Rules(ctx context.Context, host model.HostID) ([]RuleState, error)
	// Made lists what a rule made, at most limit of each kind; ErrNotFound of package api for an unknown rule is the caller's to give.
	Made(ctx context.Context, rule model.ItemID, limit int) ([]MadeObject, error)
}

// RuleState is a discovery rule of a host and what came of it.
type RuleState struct {
	Item *model.Item
	Host *model.Host
	// Error is what the last value met; empty for nothing.
	Error string
	// At is when a value was last applied; zero for never.
	At time.Time
	// Items, Triggers and Hosts count what the rule made, Lost what of it is no longer found.
	Items, Triggers, Hosts, Lost int
}

// MadeObject is something that a rule made.
type MadeObject struct {
	// Kind is item, trigger or host.
	Kind string
	ID   uint64
	// Key is an item's key or a host's technical name; empty for a trigger.
	Key, Name string
	Enabled   bool
	// LostAt, DisableAt and DeleteAt are zero while the object is found, and where nothing is due.
	LostAt, DisableAt, DeleteAt time.Time
}

// maxMade bounds what is listed of one rule, of each kind.
const maxMade = 10_000

// discoveryRoutes are there when the server discovers.
func (a *API) discoveryRoutes() []api.Route {
	if a.options.Discovery == nil {
		return nil
	}
	view := func(pattern string, fn func(*API, *http.Request) (any, error), doc api.Doc) api.Route {
		return api.Route{Method: http.MethodGet, Pattern: pattern, Permission: api.View, PerHost: true, Handler: a.handle(fn), Doc: &doc}
	}
	host := api.Param{Name: "host", Type: "string", About: "Id of the only host to list."}
	failing := api.Param{Name: "failing", Type: "boolean", About: "true for rules with an error only."}
	return []api.Route{
		view("/api/discovery", (*API).listRules, api.Doc{
			Summary: "Low-level discovery rules with their last error and what they made, by id.", Answer: DiscoveryRuleList{},
			Params: []api.Param{host, failing, paramSearch, paramLimit, paramCursor},
		}),
		view("/api/discovery/{id}", (*API).getRule, api.Doc{
			Summary: "One discovery rule with the items, triggers and hosts that it made.", Answer: DiscoveryRule{},
			Params: []api.Param{{Name: "id", Type: "string", About: "The id, decimal.", Required: true}},
		}),
	}
}

func (a *API) listRules(r *http.Request) (any, error) {
	p := readParams(r)
	host, failing, search, limit, after := p.host(), p.flag("failing"), strings.ToLower(p.text("search")), p.limit(), p.cursorID("rule")
	if p.err != nil {
		return nil, p.err
	}
	rules, err := a.options.Discovery.Rules(r.Context(), host)
	if err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(rules, func(s RuleState) bool {
		return !a.visible.Has(s.Host.ID) || failing && s.Error == "" || search != "" && !contains(s.Item.Key, search) && !contains(s.Item.Name, search) && !contains(s.Host.Host, search)
	})
	slices.SortFunc(rules, func(x, y RuleState) int { return cmp.Compare(x.Item.ID, y.Item.ID) })
	list := DiscoveryRuleList{Rules: []DiscoveryRule{}, Total: len(rules)}
	for i := range rules {
		if uint64(rules[i].Item.ID) <= after {
			continue
		}
		if len(list.Rules) == limit {
			list.Next = encodeCursor("rule", list.Rules[limit-1].ID)
			break
		}
		list.Rules = append(list.Rules, formatRule(&rules[i]))
	}
	return list, nil
}

func formatRule(s *RuleState) DiscoveryRule {
	out := DiscoveryRule{
		ID: formatID(s.Item.ID), HostID: formatID(s.Host.ID), Host: s.Host.Host, Key: s.Item.Key, Name: s.Item.Name, Type: int(s.Item.Type),
		Delay: s.Item.Delay, Enabled: s.Item.Enabled, State: "unknown", Error: s.Error, DiscoveredAt: timeMillis(s.At),
		Items: s.Items, Triggers: s.Triggers, Hosts: s.Hosts, Lost: s.Lost,
	}
	switch {
	case s.Error != "":
		out.State = "error"
	case !s.At.IsZero():
		out.State = "ok"
	}
	return out
}

// timeMillis is nil for the zero time.
func timeMillis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func (a *API) getRule(r *http.Request) (any, error) {
	id, err := parseID("the rule's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	rules, err := a.options.Discovery.Rules(r.Context(), 0)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rules, func(s RuleState) bool { return uint64(s.Item.ID) == id && a.visible.Has(s.Host.ID) })
	if i < 0 {
		return nil, api.NotFound(fmt.Sprintf("there is no discovery rule with id %d", id))
	}
	out := formatRule(&rules[i])
	made, err := a.options.Discovery.Made(r.Context(), model.ItemID(id), maxMade)
	if err != nil {
		return nil, err
	}
	for _, m := range made {
		if m.Kind == "host" && !a.visible.Has(model.HostID(m.ID)) {
			continue // a rule may put hosts into groups that its own host is not in
		}
		out.Objects = append(out.Objects, DiscoveredObject{
			Kind: m.Kind, ID: formatID(m.ID), Key: m.Key, Name: m.Name, Enabled: m.Enabled, Lost: !m.LostAt.IsZero(),
			LostAt: timeMillis(m.LostAt), DisableAt: timeMillis(m.DisableAt), DeleteAt: timeMillis(m.DeleteAt),
		})
	}
	return out, nil
}

// optionalID is empty for zero.
func optionalID(id model.ItemID) string {
	if id == 0 {
		return ""
	}
	return formatID(id)
}
