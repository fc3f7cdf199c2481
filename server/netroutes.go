package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/discovery/network"
	"tidemark/model"
)

// netStatus says how the work on the rules goes.
type netStatus struct {
	Rules []network.Status `json:"rules"`
}

// netHosts are what a rule found.
type netHosts struct {
	Hosts []netHost `json:"hosts"`
	// More are those beyond the limit.
	More int `json:"more,omitempty"`
}

type netHost struct {
	Ident string `json:"ident"`
	// HostID and Host are the host that was made of it; empty for none.
	HostID string `json:"host_id,omitempty"`
	Host   string `json:"host,omitempty"`
	Up     bool   `json:"up"`
	// ChangedAt is when it came up or went down, Unix seconds; so for the services.
	ChangedAt int64              `json:"changed_at"`
	Services  []model.NetService `json:"services"`
}

// scanRequest has a rule look at once.
type scanRequest struct {
	Rule string `json:"rule"`
}

// maxNetHosts bounds a list of found hosts.
const maxNetHosts = 10_000

func (n *netDiscovery) routes() []api.Route {
	rule := api.Param{Name: "rule", Type: "string", About: "Name of the rule.", Required: true}
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/network-discovery", Permission: api.Edit, Handler: api.JSON(n.show),
			Doc: &api.Doc{Summary: "Rules of network discovery, and actions on what they find and on agents that register themselves; secrets are hidden.", Answer: network.Config{}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/network-discovery", Permission: api.Administer, Handler: api.JSON(n.put), MaxBodyBytes: network.MaxConfigBytes,
			Doc: &api.Doc{
				Summary: "Puts rules and actions over those of the same name.", Body: network.Config{}, BodyTypes: []string{"application/yaml"}, Answer: network.Config{},
				Params: []api.Param{{Name: "replace", Type: "boolean", About: "true deletes everything that is not in the body."}},
			},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/network-discovery/{kind}/{name}", Permission: api.Administer, Handler: api.JSON(n.remove),
			Doc: &api.Doc{Summary: "Deletes one rule or action.", Answer: struct{}{}, Params: []api.Param{
				{Name: "kind", Type: "string", About: "rule or action.", Required: true}, {Name: "name", Type: "string", About: "Its name.", Required: true},
			}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/network-discovery/status", Permission: api.View, Handler: api.JSON(n.status),
			Doc: &api.Doc{Summary: "How the work on each rule goes.", Answer: netStatus{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/network-discovery/hosts", Permission: api.View, Handler: api.JSON(n.found),
			Doc: &api.Doc{Summary: "What a rule found, up or down.", Answer: netHosts{}, Params: []api.Param{rule}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/network-discovery/scan", Permission: api.Edit, Handler: api.JSON(n.scanNow), MaxBodyBytes: maxCheckBytes,
			Doc: &api.Doc{Summary: "Has a rule look at once.", Body: scanRequest{}, Answer: struct{}{}},
		},
	}
}

func (n *netDiscovery) show(*http.Request) (any, error) {
	c, _ := n.current()
	return c.Hidden(), nil
}

func (n *netDiscovery) put(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	before, _ := n.current()
	c, err := network.Parse(text)
	if err == nil {
		replace, _ := strconv.ParseBool(r.URL.Query().Get("replace")) // anything else is no
		err = n.applied(r.Context(), c, replace)
	} else {
		err = refusedDiscovery(err)
	}
	if err != nil {
		return nil, err
	}
	after, _ := n.current()
	access.Changed(r.Context(), "network discovery", before.Hidden(), after.Hidden())
	return after.Hidden(), nil
}

func (n *netDiscovery) applied(ctx context.Context, c *network.Config, replace bool) error {
	err := n.Apply(ctx, c, replace)
	var stored *confdb.UnreadableError
	if err == nil || errors.As(err, &stored) {
		return err
	}
	return refusedDiscovery(err)
}

func refusedDiscovery(err error) error {
	return &api.Error{Status: http.StatusUnprocessableEntity, Code: "discovery", Message: err.Error()}
}

func (n *netDiscovery) remove(r *http.Request) (any, error) {
	before, _ := n.current()
	err := n.Delete(r.Context(), r.PathValue("kind"), r.PathValue("name"))
	if errors.Is(err, confdb.ErrNotFound) {
		return nil, api.NotFound(err.Error())
	}
	if err != nil {
		return nil, err
	}
	after, _ := n.current()
	access.Changed(r.Context(), "network discovery: "+r.PathValue("kind")+" "+r.PathValue("name"), before.Hidden(), after.Hidden())
	return map[string]any{}, nil
}

func (n *netDiscovery) status(*http.Request) (any, error) {
	return netStatus{Rules: n.scanner.Status()}, nil
}

func (n *netDiscovery) found(r *http.Request) (any, error) {
	rule := r.URL.Query().Get("rule")
	list, _, err := n.db.NetHosts(r.Context(), rule)
	if err != nil {
		return nil, err
	}
	out := netHosts{Hosts: []netHost{}, More: max(0, len(list)-maxNetHosts)}
	s := n.cache.Snapshot()
	for i := range list[:len(list)-out.More] {
		h := &list[i]
		shown := netHost{Ident: h.Ident, Up: h.Up, ChangedAt: h.ChangedAt, Services: h.Services}
		if made, ok := s.HostByID(h.HostID); ok {
			shown.HostID, shown.Host = strconv.FormatUint(uint64(h.HostID), 10), made.Host
		}
		out.Hosts = append(out.Hosts, shown)
	}
	return out, nil
}

func (n *netDiscovery) scanNow(r *http.Request) (any, error) {
	var in scanRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	switch err := n.scanner.ScanNow(in.Rule); {
	case errors.Is(err, network.ErrNoRule):
		return nil, api.NotFound(err.Error() + " " + strconv.Quote(in.Rule))
	case err != nil:
		return nil, &api.Error{Status: http.StatusConflict, Code: "by_proxy", Message: "rule " + in.Rule + ": " + err.Error()}
	}
	return map[string]any{}, nil
}
