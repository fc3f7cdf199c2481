package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/collect/poller"
	"tidemark/collect/trapper"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/model"
)

type interfaceList struct {
	Interfaces []interfaceState `json:"interfaces"`
}

const (
	// maxQueueItems bounds the late items that are listed.
	maxQueueItems = 1000
	// maxCheckBytes bounds a request to check now.
	maxCheckBytes = 64 << 10
	// maxSources bounds how many master items are looked at above an item; Zabbix has 3.
	maxSources = 8
	// maxNotAskedKeys bounds the keys that are named of items that cannot be asked for.
	maxNotAskedKeys = 10
)

// pollRoutes are those of what is asked for.
func (p *polling) routes() []api.Route {
	id := api.Param{Name: "id", Type: "string", About: "Id of the host.", Required: true}
	return append(p.webRoutes(), []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/hosts/{id}/interfaces", Permission: api.View, PerHost: true, Handler: api.JSON(p.showInterfaces),
			Doc: &api.Doc{Summary: "Interfaces of a host and whether they answer.", Answer: interfaceList{}, Params: []api.Param{id}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/queue", Permission: api.View, PerHost: true, Handler: api.JSON(p.showQueue),
			Doc: &api.Doc{Summary: "Items that should have been asked for and were not yet, and how busy each kind of checks is.", Answer: queueAnswer{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/check-now", Permission: api.Edit, PerHost: true, Handler: api.JSON(p.checkNow), MaxBodyBytes: maxCheckBytes,
			Doc: &api.Doc{Summary: "Asks for an item of a host, or for all of them, at once.", Body: checkRequest{}, Answer: checkAnswer{}},
		},
	}...)
}

var interfaceTypes = map[model.InterfaceType]string{
	model.AgentInterface: "agent", model.SNMPInterface: "snmp", model.IPMIInterface: "ipmi", model.JMXInterface: "jmx",
}

func (p *polling) showInterfaces(r *http.Request) (any, error) {
	id, err := hostOf(r)
	if err != nil {
		return nil, err
	}
	snapshot := p.o.names.cache.Snapshot()
	h, ok := snapshot.HostByID(id)
	if !ok || !visibleHosts(r, snapshot).Has(id) {
		return nil, api.NotFound("no host has this id")
	}
	list := interfaceList{Interfaces: []interfaceState{}}
	for i, s := range p.states(h) {
		at := &h.Interfaces[i]
		list.Interfaces = append(list.Interfaces, interfaceState{
			Type: interfaceTypes[at.Type], Main: at.Main, Address: at.Address, Port: at.Port,
			State: [...]string{"unknown", "available", "unavailable"}[s.Available], Error: s.Error, FailingSince: s.FailingSince / int64(time.Millisecond),
		})
	}
	return list, nil
}

// states says of each interface of a host whether it answers the server or the host's proxy.
func (p *polling) states(h *model.Host) []poller.InterfaceState {
	known := p.poller.Interfaces(h.ID)
	list := make([]poller.InterfaceState, len(h.Interfaces))
	for i := range h.Interfaces {
		at := &h.Interfaces[i]
		for n := range known {
			if s := &known[n]; s.Kind == interfaceTypes[at.Type] && s.Address == collectors.Address(at) {
				list[i] = *s
			}
		}
		if said, ok := p.proxied(h, i); ok {
			list[i].Available, list[i].Error = said.Available, said.Error
		}
	}
	return list
}

// proxied returns what the proxy of a host says of an interface.
func (p *polling) proxied(h *model.Host, index int) (trapper.ProxyInterface, bool) {
	if h.Proxy == 0 || p.o.proxied == nil {
		return trapper.ProxyInterface{}, false
	}
	return p.o.proxied(h, index)
}

// visibleHosts returns the hosts that who sends a request may see.
func visibleHosts(r *http.Request, s *confcache.Snapshot) api.Visible {
	return api.VisibleHosts(access.From(r.Context()), s.Hosts())
}

// showQueue shows late items of hosts that the caller may see, and how busy the server is with those of all.
func (p *polling) showQueue(r *http.Request) (any, error) {
	s := p.o.names.cache.Snapshot()
	seen := visibleHosts(r, s)
	out := queueAnswer{Types: []queueType{}, Items: []queueItem{}, Kinds: []queueKind{}}
	for t, delays := range p.poller.QueueByType(seen.Has) {
		out.Types = append(out.Types, queueType{Type: typeName(t), Delays: delays})
		for _, n := range delays {
			out.Late += n
		}
	}
	if seen == nil {
		out.Late = p.poller.Queue(0, 0) // as Zabbix counts: from 6 s on
	}
	slices.SortFunc(out.Types, func(a, b queueType) int { return cmp.Compare(a.Type, b.Type) })
	late := p.poller.QueueDetails(maxQueueItems, seen.Has)
	slices.SortFunc(late, func(a, b poller.Late) int { return cmp.Compare(a.Due, b.Due) })
	for _, l := range late {
		item := queueItem{ID: strconv.FormatUint(uint64(l.Item), 10), DueAt: l.Due / int64(time.Millisecond)}
		if i, ok := s.Item(l.Item); ok {
			item.Key = i.Key
		}
		if h, ok := s.HostByID(l.Host); ok {
			item.Host = h.Host
		}
		out.Items = append(out.Items, item)
	}
	for _, b := range p.poller.Busy() {
		out.Kinds = append(out.Kinds, queueKind{Kind: b.Kind, InFlight: b.InFlight, Limit: b.Limit, Busy: b.Percent, Waiting: b.Due})
	}
	return out, nil
}

// typeName names an item type for people.
func typeName(t model.ItemType) string {
	names := map[model.ItemType]string{
		model.PassiveAgent: "Zabbix agent", model.SimpleCheck: "simple check", model.Internal: "internal", model.External: "external check",
		model.Database: "database monitor", model.IPMI: "IPMI agent", model.SSH: "SSH agent", model.Telnet: "TELNET agent", model.Calculated: "calculated",
		model.JMX: "JMX agent", model.HTTPAgent: "HTTP agent", model.WebTest: "web scenario", model.SNMPAgent: "SNMP agent", model.Script: "script",
	}
	if name := names[t]; name != "" {
		return name
	}
	return "type " + strconv.Itoa(int(t))
}

func (p *polling) checkNow(r *http.Request) (any, error) {
	var in checkRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	s := p.o.names.cache.Snapshot()
	h, ok := s.Host(in.Host)
	if who := access.From(r.Context()); ok && who.OnHost(h.Groups) < model.Editor {
		return nil, api.NotFound("there is no host of this name that you may change")
	}
	if !ok {
		return nil, api.NotFound("no host has the name " + strconv.Quote(in.Host))
	}
	answer, err := p.askFor(s, h, in.Key)
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), "host "+in.Host, nil, map[string]any{"asked_for": cmp.Or(in.Key, "all items"), "items": answer.Items})
	return answer, nil
}

// askFor has the items of a host asked for at once, or the one that has a key.
func (p *polling) askFor(s *confcache.Snapshot, h *model.Host, key string) (checkAnswer, error) {
	items := s.Items(h.ID)
	answer := checkAnswer{}
	found, seen := false, map[model.ItemID]bool{}
	for i := range items {
		if key != "" && items[i].Key != key {
			continue
		}
		found = true
		item := sourceOf(s, &items[i])
		if seen[item.ID] {
			continue
		}
		seen[item.ID] = true
		switch err := p.askOne(h, item, &answer); {
		case err == nil:
			answer.Items++
		case !errors.Is(err, poller.ErrNotPolled):
			return answer, err
		case key != "":
			return answer, api.BadRequest("item " + key + " is not asked for by the server" + p.orProxy(h) + ": its type, its state or its host's state forbid it")
		default:
			answer.NotAsked++
			if len(answer.NotAskedKeys) < maxNotAskedKeys {
				answer.NotAskedKeys = append(answer.NotAskedKeys, item.Key)
			}
		}
	}
	if !found && key != "" {
		return answer, api.NotFound("host " + h.Host + " has no item with the key " + key)
	}
	return answer, nil
}

// askOne has an item asked for by who asks for it; the error is poller.ErrNotPolled if nobody does.
func (p *polling) askOne(h *model.Host, item *model.Item, answer *checkAnswer) error {
	if !p.askedByProxy(h, item) {
		err := p.poller.CheckNow(item.ID)
		if err == nil && h.Proxy != 0 {
			answer.ByServer++
		}
		return err
	}
	if err := p.o.askProxy(h.Proxy, item.ID); err != nil {
		return api.BadRequest(err.Error())
	}
	answer.Proxy = p.o.proxyName(h.Proxy)
	return nil
}

// orProxy goes on with " or by proxy NAME" for a host that has one.
func (p *polling) orProxy(h *model.Host) string {
	if h.Proxy == 0 || p.o.proxyName == nil {
		return ""
	}
	return " or by proxy " + p.o.proxyName(h.Proxy)
}

// sourceOf returns what an item is asked for by: a dependent item is made of its master's value.
func sourceOf(s *confcache.Snapshot, item *model.Item) *model.Item {
	for range maxSources {
		master, ok := s.Item(item.MasterID)
		if item.Type != model.Dependent || !ok {
			break
		}
		item = master
	}
	return item
}

// askedByProxy reports whether the proxy of a host can be told to ask for an item. Values of other items come by themselves; web scenarios run by
// their intervals alone, because a proxy knows them by other ids.
func (p *polling) askedByProxy(h *model.Host, item *model.Item) bool {
	if h.Proxy == 0 || p.o.askProxy == nil || !item.Remote || !item.Enabled || !h.Enabled {
		return false
	}
	switch item.Type {
	case model.Trapper, model.ActiveAgent, model.SNMPTrap, model.Dependent, model.WebTest:
		return false
	}
	return true
}
