package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"tidemark/catalog"
	"tidemark/collect/trapper"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/storage"
)

// registrar makes hosts of agents that nobody configured.
type registrar struct {
	db    *confdb.DB
	cache *confcache.Cache
	// own is the template for an agent of ours on the server's machine; empty for none.
	own string
	// actions say what is done with new agents and with those that say something new of themselves.
	actions *netDiscovery
	logger  *slog.Logger
}

// Register implements trapper.Registrar.
func (r *registrar) Register(ctx context.Context, hello trapper.AgentHello) (bool, error) {
	metadata := hello.Metadata
	if hello.Tidemark && !strings.Contains(strings.ToLower(metadata), "tidemark") {
		metadata = strings.TrimSpace(metadata + " tidemark")
	}
	ip := hello.IP
	if ip == "" {
		ip = hello.Peer
	}
	peer := hello.Peer
	if at, err := netip.ParseAddrPort(peer); err == nil {
		peer = at.Addr().Unmap().String()
	}
	id, made, err := r.actions.register(ctx, confdb.Registration{Host: hello.Host, Metadata: metadata, Interfaces: []confdb.Interface{{IP: ip, Port: hello.Port}}}, peer)
	if err != nil {
		return false, fmt.Errorf("register host %q: %w", hello.Host, err)
	}
	if made && hello.Tidemark && r.own != "" && isLoopback(hello.Peer) {
		if err := r.db.LinkTemplate(ctx, id, r.own); err != nil {
			r.logger.Warn("the template of the server is not linked to the host of its own machine", "host", hello.Host, "error", err)
		}
	}
	if _, err := r.cache.Refresh(ctx); err != nil {
		return false, fmt.Errorf("register host %q: %w", hello.Host, err)
	}
	if made {
		r.logger.Info("a new agent registered itself", "host", hello.Host, "address", hello.Peer, "metadata", metadata)
	}
	return true, nil
}

// ownTemplate is the template for the host of the server's own machine: the room for its values, which may be elsewhere with PostgreSQL.
func (s *Server) ownTemplate() string {
	if s.o.DSN != "" {
		return confdb.DatabaseTemplate
	}
	if s.headroom == nil {
		return ""
	}
	return confdb.ServerTemplate
}

// isLoopback reports whether an address, with or without a port, is on this machine.
func isLoopback(peer string) bool {
	if at, err := netip.ParseAddrPort(peer); err == nil {
		return at.Addr().Unmap().IsLoopback()
	}
	at, err := netip.ParseAddr(peer)
	return err == nil && at.Unmap().IsLoopback()
}

// declarer makes the items that our own agent declares, and the triggers that the host's templates have for them.
type declarer struct {
	definitions *definitions
	engine      storage.Engine
	classes     []retentionClass
	db          *confdb.DB
	// changed is told which host has new declared items, after they can be found.
	changed func(ctx context.Context, host string)
	logger  *slog.Logger
}

// Declare implements trapper.Declarer.
func (d *declarer) Declare(ctx context.Context, host model.HostID, declarations []trapper.Declaration) ([]model.ItemID, error) {
	h, ok := d.definitions.cache.Snapshot().HostByID(host)
	if !ok {
		return nil, fmt.Errorf("declare items: host %d is not there any more", host)
	}
	decls := make([]catalog.Declaration, len(declarations))
	for i, in := range declarations {
		key := in.Key
		if catalog.IsSeries(key) {
			key = "" // an agent must not pass for the target of a scrape; the catalog refuses an empty key
		}
		decls[i] = catalog.Declaration{
			Key: key, Name: in.Name, Units: in.Units, ValueType: in.Type, Labels: in.Labels, Interval: in.Interval,
		}
	}
	entries, created, err := d.definitions.catalog.Declare(ctx, host, h.Host, decls)
	if err != nil {
		if refused, ok := err.(*catalog.RefusedError); ok {
			d.logger.Warn("declared items refused", "host", h.Host, "error", refused)
		} else {
			return nil, err
		}
	}
	ids := make([]model.ItemID, len(entries))
	var defs []storage.ItemDefinition
	for i, e := range entries {
		ids[i] = e.ID
		if e.ID == 0 || e.Kind != model.Declared {
			continue
		}
		d.definitions.forget(ids[i : i+1])
		if item, ok := d.definitions.Item(e.ID); ok {
			defs = append(defs, definition(d.classes, item))
		}
	}
	if definer, ok := d.engine.(storage.Definer); ok {
		if err := definer.Define(ctx, defs); err != nil {
			return nil, err
		}
	}
	if created > 0 {
		d.logger.Info("an agent declared new items", "host", h.Host, "items", created)
	}
	return ids, d.instantiate(ctx, h)
}

// instantiate makes the triggers that the host's templates have for its declared items.
func (d *declarer) instantiate(ctx context.Context, h *model.Host) error {
	var items []model.Item
	for _, id := range d.definitions.catalog.HostItems(h.ID) {
		if item, ok := d.definitions.Item(id); ok && item.Kind == model.Declared {
			items = append(items, *item)
		}
	}
	if err := d.db.Declared(ctx, h.ID, items); err != nil {
		return fmt.Errorf("declare items of %s: %w", h.Host, err)
	}
	d.changed(ctx, h.Host)
	return nil
}
