package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
)

// silentAfter is how long after the last sign of life a host counts as silent: three heartbeats of an agent.
const silentAfter = 3 * time.Minute

// hostProblems is what is open on one host.
type hostProblems struct {
	count int
	worst model.Severity
}

// openByHost counts the open problems.
func (a *API) openByHost() map[model.HostID]hostProblems {
	open := make(map[model.HostID]hostProblems)
	for _, p := range a.options.Problems.Open() {
		h := open[p.HostID]
		h.count++
		h.worst = max(h.worst, p.Severity)
		open[p.HostID] = h
	}
	return open
}

// hostState says what is known of a host's connection, since when, and by what: its agent, or the values that others bring of it.
func (a *API) hostState(h *model.Host, now int64) (state string, seen int64, by string) {
	seen = a.options.Seen(h.ID)
	silent := now-seen > int64(silentAfter)
	switch {
	case seen != 0 && silent && h.Proxy != 0 && a.options.ValueSeen != nil: // a proxy brings nothing but values, which may come every hour
	case seen != 0 && silent:
		return "silent", seen, "agent"
	case seen != 0:
		return "ok", seen, "agent"
	case a.options.ValueSeen == nil:
		return "unknown", 0, ""
	}
	at, fresh := a.options.ValueSeen(h.ID)
	at = max(at, seen)
	switch {
	case at == 0:
		return "unknown", 0, ""
	case fresh:
		return "ok", at, "values"
	}
	return "silent", at, "values"
}

func (a *API) formatHost(h *model.Host, open map[model.HostID]hostProblems, now int64) Host {
	state, seen, by := a.hostState(h, now)
	items, _ := a.options.Catalog.HostItemCount(h.ID)
	out := Host{
		ID: formatID(h.ID), Host: h.Host, Name: visibleName(h), Enabled: h.Enabled,
		Groups: append([]string{}, h.Groups...), Templates: []string{}, Tags: formatTags(h.Tags),
		Items: items, LastSeen: optionalMillis(seen), State: state, SeenBy: by, DiscoveredBy: optionalID(h.DiscoveredBy),
	}
	if h.Proxy != 0 && a.options.Proxy != nil {
		out.Proxy = a.options.Proxy(h.Proxy)
	}
	for _, id := range h.Templates {
		if name := a.options.Template(id); name != "" {
			out.Templates = append(out.Templates, name)
		}
	}
	if p := open[h.ID]; p.count > 0 {
		out.Problems, out.Worst = p.count, p.worst.String()
	}
	return out
}

func visibleName(h *model.Host) string {
	if h.Name == "" {
		return h.Host
	}
	return h.Name
}

// contains compares in any case of letters; text is in lower case already.
func contains(s, text string) bool { return strings.Contains(strings.ToLower(s), text) }

// mayEdit reports whether whoever sends a request may change a host that is visible.
func (a *API) mayEdit(ctx context.Context, id model.HostID) bool {
	if a.visible == nil {
		return access.From(ctx).MostRole() >= model.Editor
	}
	return a.visible[id] >= model.Editor
}

func (a *API) listHosts(r *http.Request) (any, error) {
	p := readParams(r)
	search, group, limit, after := strings.ToLower(p.text("search")), p.text("group"), p.limit(), p.cursor("host", 2)
	editable := p.flag("editable")
	if p.err != nil {
		return nil, p.err
	}
	var hosts []*model.Host
	for h := range a.options.Configuration().Hosts() {
		if search != "" && !contains(h.Host, search) && !contains(h.Name, search) {
			continue
		}
		if group != "" && !slices.Contains(h.Groups, group) {
			continue
		}
		if editable && !a.mayEdit(r.Context(), h.ID) {
			continue
		}
		hosts = append(hosts, h)
	}
	order := func(h *model.Host) (string, string) { return strings.ToLower(visibleName(h)), h.Host }
	compare := func(name, host, otherName, otherHost string) int {
		return cmp.Or(strings.Compare(name, otherName), strings.Compare(host, otherHost))
	}
	slices.SortFunc(hosts, func(x, y *model.Host) int {
		xn, xh := order(x)
		yn, yh := order(y)
		return compare(xn, xh, yn, yh)
	})
	list := HostList{Hosts: []Host{}, Total: len(hosts)}
	open, now := a.openByHost(), a.options.Now().UnixNano()
	for _, h := range hosts {
		name, host := order(h)
		if after != nil && compare(name, host, after[0], after[1]) <= 0 {
			continue
		}
		if len(list.Hosts) == limit {
			last := list.Hosts[limit-1]
			list.Next = encodeCursor("host", strings.ToLower(last.Name), last.Host)
			break
		}
		list.Hosts = append(list.Hosts, a.formatHost(h, open, now))
	}
	return list, nil
}

func (a *API) getHost(r *http.Request) (any, error) {
	id, err := parseID("the host's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	h, ok := a.options.Configuration().HostByID(model.HostID(id))
	if !ok {
		return nil, api.NotFound(fmt.Sprintf("there is no host with id %d", id))
	}
	out := a.formatHost(h, a.openByHost(), a.options.Now().UnixNano())
	out.Metadata = &h.Metadata
	if out.Inventory, err = a.inventory(r.Context(), h); err != nil {
		return nil, err
	}
	for _, m := range h.Macros {
		if !m.Secret {
			out.Macros = append(out.Macros, Macro{Macro: m.Name, Value: m.Value})
		}
	}
	return out, nil
}
