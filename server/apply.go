package server

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/server/templates"
	"tidemark/storage"
	"tidemark/trigger"
)

// applyConfiguration brings a change of the configuration to the parts that keep something of it, before the new snapshot is in force.
func (s *Server) applyConfiguration(ctx context.Context, c *confcache.Changes) error {
	if !s.adopting {
		if err := s.applyItems(ctx, c); err != nil {
			return err
		}
	}
	if s.agents != nil {
		if err := s.agents.refresh(ctx); err != nil {
			return err
		}
	}
	if s.proxies != nil {
		if err := s.proxies.refresh(ctx); err != nil {
			return err
		}
	}
	if s.discovery != nil {
		s.discovery.Forget(c.DeletedItems)
	}
	if s.preproc != nil {
		s.preproc.Forget(c.DeletedItems)
	}
	if s.polling != nil {
		s.polling.apply(c)
	}
	s.traps.Changed()
	if s.following() { // its primary evaluates
		return nil
	}
	return s.applyTriggers(ctx, c)
}

// applyItems brings changed hosts and items to the catalog and the engine.
func (s *Server) applyItems(ctx context.Context, c *confcache.Changes) error {
	change := catalog.Change{DeletedHosts: c.DeletedHosts, Deletes: c.DeletedItems, Upserts: make([]model.Item, 0, len(c.Items))}
	for _, id := range c.Hosts {
		if h, ok := c.Snapshot.HostByID(id); ok {
			change.Hosts = append(change.Hosts, catalog.HostName{ID: h.ID, Name: h.Host})
		}
	}
	defs := make([]storage.ItemDefinition, 0, len(c.Items))
	for _, item := range c.Items {
		if item.RuleID != 0 {
			continue // its values are not stored
		}
		change.Upserts = append(change.Upserts, *item)
		defs = append(defs, definition(s.classes, item))
	}
	if err := s.catalog.Apply(ctx, change); err != nil {
		return fmt.Errorf("apply the configuration to the catalog: %w", err)
	}
	if err := s.engine.Define(ctx, defs); err != nil {
		return fmt.Errorf("apply the configuration to the engine: %w", err)
	}
	return nil
}

// applyTriggers brings changed triggers, and items that triggers name, to the evaluator.
func (s *Server) applyTriggers(ctx context.Context, c *confcache.Changes) error {
	changes := trigger.Changes{Deletes: c.DeletedTriggers, Upserts: make([]model.Trigger, 0, len(c.Triggers))}
	for _, t := range c.Triggers {
		if t.Enabled {
			changes.Upserts = append(changes.Upserts, *t)
		} else {
			changes.Deletes = append(changes.Deletes, t.ID)
		}
	}
	if err := s.evaluator.Apply(ctx, changes); err != nil {
		s.unrecorded(ctx, err)
	}
	if err := s.events.Forget(ctx, changes.Deletes); err != nil {
		return fmt.Errorf("forget deleted triggers: %w", err)
	}
	if len(c.DeletedTriggers) > 0 {
		if err := s.db.ForgetTriggers(ctx, c.DeletedTriggers); err != nil {
			return fmt.Errorf("forget deleted triggers: %w", err)
		}
	}
	for _, id := range c.Hosts {
		if h, ok := c.Snapshot.HostByID(id); ok {
			if err := s.evaluator.ItemsChanged(ctx, h.Host); err != nil {
				s.unrecorded(ctx, err)
			}
		}
	}
	return nil
}

// unrecorded reports what the evaluator could not record. It has taken the change over all the same, and the event log
// keeps what it was told and writes it later; at a stop, which ends ctx, when it is closed.
func (s *Server) unrecorded(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.logger.Error("states of triggers could not be recorded; they are kept and recorded later", "error", err)
}

// itemsChanged resolves triggers again after items of a host were declared.
func (s *Server) itemsChanged(ctx context.Context, host string) {
	if err := s.evaluator.ItemsChanged(ctx, host); err != nil && ctx.Err() == nil {
		s.logger.Error("triggers could not be resolved after items were declared", "host", host, "error", err)
	}
}

// defineDeclared tells the engine of all declared items, which it does not keep over a restart.
func (s *Server) defineDeclared(ctx context.Context) error {
	for ids := range slices.Chunk(s.catalog.Declared(), 10_000) {
		defs := make([]storage.ItemDefinition, 0, len(ids))
		for _, id := range ids {
			if item, ok := s.definitions.Item(id); ok && item.Kind == model.Declared {
				defs = append(defs, definition(s.classes, item))
			}
		}
		if err := s.engine.Define(ctx, defs); err != nil {
			return fmt.Errorf("define declared items: %w", err)
		}
	}
	return nil
}

// ExpireItems implements housekeeper.Items.
func (s *Server) ExpireItems(ctx context.Context, now int64) (int, error) {
	ids, err := s.catalog.Expire(ctx, now, s.latest.LastAt)
	s.definitions.forget(ids)
	s.latest.Sweep(func(id model.ItemID) bool { _, ok := s.catalog.Item(id); return ok })
	if err == nil {
		err = s.expireSeries(ctx)
	}
	return len(ids), err
}

// collectedTypes are the item types that have a collector; an import says which items have none.
func collectedTypes() []model.ItemType {
	return []model.ItemType{
		model.PassiveAgent, model.Trapper, model.Internal, model.ActiveAgent, model.Calculated, model.Dependent, model.HTTPAgent, model.SimpleCheck,
		model.SNMPAgent, model.SNMPTrap, model.Script, model.SSH, model.Database, model.JMX, model.IPMI, model.WebTest, model.External,
	}
}

// importTemplates brings the templates that come with the product up to date.
func importTemplates(ctx context.Context, db *confdb.DB, logger *slog.Logger) error {
	files := templates.Files()
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return fmt.Errorf("list the built-in templates: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read the built-in template: %w", err)
		}
		report, err := db.Import(ctx, name, text, confdb.ImportOptions{DeleteMissing: true, Builtin: true, Collected: collectedTypes()})
		if err != nil {
			return fmt.Errorf("import the built-in template %s: %w", name, err)
		}
		for _, r := range report.Remarks {
			logger.Warn("built-in template", "file", name, "path", r.Path, "line", r.Line, "reason", r.Reason)
		}
		for _, kept := range report.Kept {
			logger.Info("built-in template left alone", "file", name, "reason", kept, "to have it back", "delete the one that is here, then start the server again")
		}
		if report.Changed() {
			logger.Info("built-in template imported", "file", name)
		}
	}
	return nil
}
