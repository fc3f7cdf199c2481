package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/model"
)

// maxProxyBody bounds requests about proxies.
const maxProxyBody = 128 << 10

func (s *Server) openProxies(ctx context.Context) error {
	s.proxies = &proxies{
		actions: s.network,
		db:      s.db, cache: s.cache, keys: s.agents.keys, used: s.histcache.Used, newer: s.o.Autoregistration, logger: s.logger, start: s.started.UnixNano(),
	}
	s.proxies.tasks = newProxyTasks(s.metrics, time.Now)
	s.network.proxyID = func(name string) (model.ProxyID, bool) { return s.proxies.Proxy([]byte(name)) }
	s.proxies.measure(s.metrics)
	return s.proxies.refresh(ctx)
}

// absence tells the trigger evaluator how late the values of an item may be.
func (s *Server) absence(item model.ItemID, now int64) (since int64, lag time.Duration) {
	if s.proxies == nil {
		return 0, 0
	}
	snapshot := s.cache.Snapshot()
	i, ok := snapshot.Item(item)
	if !ok || !i.Remote {
		return 0, 0
	}
	h, ok := snapshot.HostByID(i.HostID)
	if !ok {
		return 0, 0
	}
	return s.proxies.absence(h.Proxy, now)
}

func (s *Server) proxyRoutes() []api.Route {
	name := api.Param{Name: "name", Type: "string", About: "Name of the proxy.", Required: true}
	id := api.Param{Name: "id", Type: "string", About: "Id of the host.", Required: true}
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/proxies", Permission: api.Administer, Handler: api.JSON(s.listProxies),
			Doc: &api.Doc{Summary: "Proxies, and how they are doing.", Answer: proxyList{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/proxies", Permission: api.Administer, Handler: api.JSON(s.addProxy), MaxBodyBytes: maxProxyBody,
			Doc: &api.Doc{Summary: "Makes a proxy known, or changes its description and TLS settings.", Body: newProxy{}, Answer: proxyInfo{}},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/proxies/{name}", Permission: api.Administer, Handler: api.JSON(s.removeProxy),
			Doc: &api.Doc{Summary: "Removes a proxy; the server asks its hosts itself.", Answer: struct{}{}, Params: []api.Param{name}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/hosts/{id}/proxy", Permission: api.Edit, Handler: api.JSON(s.assignProxy), MaxBodyBytes: maxProxyBody,
			Doc: &api.Doc{Summary: "Assigns a host to a proxy, or with an empty name to the server.", Body: hostProxy{}, Answer: hostProxy{}, Params: []api.Param{id}},
		},
	}
}

func (s *Server) listProxies(*http.Request) (any, error) {
	list := proxyList{Proxies: []proxyInfo{}}
	for _, p := range s.proxies.list() {
		list.Proxies = append(list.Proxies, s.proxyInfo(&p))
	}
	return list, nil
}

func (s *Server) proxyInfo(p *proxyState) proxyInfo {
	hosts := 0
	for h := range s.cache.Snapshot().Hosts() {
		if h.Proxy == p.ID {
			hosts++
		}
	}
	const milli = int64(time.Millisecond)
	also := ""
	if p.twice.is(time.Now().UnixNano()) {
		if also = p.twice.beforePeer; p.contact.Peer == also {
			also = p.twice.peer
		}
	}
	return proxyInfo{
		AskAt: p.Proxy.Address, Failure: p.failure, FailingSince: p.failingSince / milli,
		AlsoAt: also, ID: strconv.FormatUint(uint64(p.ID), 10), Name: p.Name, Description: p.Description, Hosts: hosts, Version: p.contact.Version, Address: p.contact.Peer,
		SeenAt: p.seenAt / milli, StoredAt: p.storedAt / milli, ConfiguredAt: p.configuredAt / milli, Values: p.values, Backlog: p.backlog,
		ClockAhead: p.contact.AheadNanos / milli, TLS: s.agents.show(p.ID.Peer()),
	}
}

func (s *Server) addProxy(r *http.Request) (any, error) {
	var in newProxy
	if err := decodeStrict(r, &in); err != nil {
		return nil, err
	}
	var tls model.HostTLS
	var keep time.Duration
	if in.TLS != nil {
		var err error
		if tls, keep, err = decodeTLS(in.TLS); err != nil {
			return nil, api.BadRequest(err.Error())
		}
	}
	add := model.Proxy{Name: in.Name, Description: in.Description}
	if id, known := s.proxies.Proxy([]byte(in.Name)); known {
		add.Address = s.proxies.address(id)
	}
	if in.AskAt != nil {
		add.Address = *in.AskAt
	}
	id, err := s.db.AddProxy(r.Context(), add)
	if errors.Is(err, confdb.ErrInvalid) {
		return nil, api.BadRequest(err.Error())
	}
	if err == nil && in.TLS != nil {
		tls.HostID = id.Peer()
		err = s.agents.set(r.Context(), tls, keep)
	}
	if err == nil {
		err = s.proxies.refresh(r.Context())
	}
	if err != nil {
		return nil, err
	}
	for _, p := range s.proxies.list() {
		if p.ID == id {
			out := s.proxyInfo(&p)
			access.Changed(r.Context(), "proxy "+in.Name, nil, out)
			return out, nil
		}
	}
	return nil, api.NotFound("the proxy " + strconv.Quote(in.Name) + " is gone already")
}

func decodeStrict(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return api.BodyError(err)
	}
	return nil
}

func (s *Server) removeProxy(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if err := s.proxyInUse(name); err != nil {
		return nil, err
	}
	err := s.db.RemoveProxy(r.Context(), name)
	if errors.Is(err, confdb.ErrNotFound) {
		return nil, api.NotFound("no proxy has the name " + strconv.Quote(name))
	}
	if err == nil {
		_, err = s.cache.Refresh(r.Context())
	}
	if err == nil {
		err = errors.Join(s.agents.refresh(r.Context()), s.proxies.refresh(r.Context()))
	}
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "proxy "+name, name, nil)
	return struct{}{}, nil
}

// proxyInUse says why a proxy must not be removed.
func (s *Server) proxyInUse(name string) error {
	rules := s.network.rulesOf(name)
	if len(rules) == 0 {
		return nil
	}
	return &api.Error{
		Status: http.StatusConflict, Code: "proxy_in_use",
		Message: "the proxy works off rules of network discovery (" + strings.Join(rules, ", ") + "); give them to another one or delete them first",
	}
}

func (s *Server) assignProxy(r *http.Request) (any, error) {
	id, err := hostOf(r)
	if err != nil {
		return nil, err
	}
	var in hostProxy
	if err := decodeStrict(r, &in); err != nil {
		return nil, err
	}
	name, before := "host "+strconv.FormatUint(uint64(id), 10), hostProxy{}
	if h, ok := s.cache.Snapshot().HostByID(id); ok {
		name = "host " + h.Host
		if h.Proxy != 0 {
			before.Proxy = s.proxies.name(h.Proxy)
		}
	}
	err = s.db.SetHostProxy(r.Context(), id, in.Proxy)
	if errors.Is(err, confdb.ErrNotFound) {
		return nil, api.NotFound(err.Error())
	}
	if err == nil {
		_, err = s.cache.Refresh(r.Context())
	}
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "proxy of "+name, before, in)
	return in, nil
}
