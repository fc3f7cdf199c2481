package server

import (
	"context"

	"tidemark/api/rest"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/discovery"
	"tidemark/model"
)

// newDiscovery makes the engine of low-level discovery over the configuration.
func (s *Server) newDiscovery() *discovery.Engine {
	return discovery.New(discovery.Options{
		Rules: func() discovery.Rules { return s.cache.Snapshot() }, Store: s.db, Metrics: s.metrics, Logger: s.logger,
	})
}

// discovered is what the API shows of discovery.
type discovered struct {
	cache *confcache.Cache
	db    *confdb.DB
}

// Rules implements rest.Discovery. A rule that is not in force yet is left out.
func (d discovered) Rules(ctx context.Context, host model.HostID) ([]rest.RuleState, error) {
	list, err := d.db.DiscoveryRules(ctx, host)
	if err != nil {
		return nil, err
	}
	s := d.cache.Snapshot()
	out := make([]rest.RuleState, 0, len(list))
	for _, r := range list {
		item, ok := s.Item(r.ItemID)
		if !ok {
			continue
		}
		h, ok := s.HostByID(item.HostID)
		if !ok {
			continue
		}
		out = append(out, rest.RuleState{
			Item: item, Host: h, Error: r.Error, At: r.At, Items: r.Items, Triggers: r.Triggers, Hosts: r.Hosts, Lost: r.Lost,
		})
	}
	return out, nil
}

// Made implements rest.Discovery.
func (d discovered) Made(ctx context.Context, rule model.ItemID, limit int) ([]rest.MadeObject, error) {
	lost, err := d.db.LostObjects(ctx, rule, limit)
	if err != nil {
		return nil, err
	}
	type key struct {
		kind string
		id   uint64
	}
	fates := make(map[key]confdb.LostObject, len(lost))
	for _, l := range lost {
		fates[key{l.Kind, l.ID}] = l
	}
	var out []rest.MadeObject
	add := func(o rest.MadeObject) {
		l := fates[key{o.Kind, o.ID}]
		o.LostAt, o.DisableAt, o.DeleteAt = l.LostAt, l.DisableAt, l.DeleteAt
		out = append(out, o)
	}
	s := d.cache.Snapshot()
	item, ok := s.Item(rule)
	if !ok {
		return nil, nil
	}
	n := 0
	for _, i := range s.Items(item.HostID) {
		if i.DiscoveredBy == rule && n < limit {
			n++
			add(rest.MadeObject{Kind: "item", ID: uint64(i.ID), Key: i.Key, Name: i.Name, Enabled: i.Enabled})
		}
	}
	n = 0
	for _, t := range s.TriggersOf(item.HostID) {
		if t.DiscoveredBy == rule && n < limit {
			n++
			add(rest.MadeObject{Kind: "trigger", ID: uint64(t.ID), Name: t.Name, Enabled: t.Enabled})
		}
	}
	n = 0
	for h := range s.Hosts() {
		if h.DiscoveredBy == rule && n < limit {
			n++
			add(rest.MadeObject{Kind: "host", ID: uint64(h.ID), Key: h.Host, Name: h.Name, Enabled: h.Enabled})
		}
	}
	return out, nil
}
