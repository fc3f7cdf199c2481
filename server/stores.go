package server

import (
	"context"
	"fmt"
	"path/filepath"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine"
)

// openStores opens what is on disk: engine, configuration, catalog.
func (s *Server) openStores(ctx context.Context, fsys vfs.FS) error {
	if err := s.openEngine(ctx, fsys); err != nil {
		return err
	}
	if err := s.openObjects(ctx, fsys); err != nil {
		return err
	}
	if s.snapshots != nil {
		s.snapshots.db, s.snapshots.catalog = s.db, s.catalog
	}
	if err := s.readyConfiguration(ctx); err != nil {
		return err
	}
	s.cache = confcache.New(s.db, confcache.Options{Logger: s.logger, Metrics: s.metrics})
	s.definitions = newDefinitions(s.cache, s.catalog)
	s.names = &namedItems{definitions: s.definitions}
	return nil
}

// openObjects opens the configuration and the catalog, or takes those over with which this process followed a moment ago.
func (s *Server) openObjects(ctx context.Context, fsys vfs.FS) (err error) {
	if k := s.o.kept; k != nil && k.db != nil && k.catalog != nil {
		s.db, s.catalog = k.db, k.catalog
		return s.takeObjectsOver(ctx)
	}
	if s.o.Configuration.DSN == "" && !confdb.Exists(s.o.Data) && s.maxItemID() > 0 {
		s.logger.Warn("the store holds values, but the configuration database is missing: an empty one is begun; to have hosts and triggers again stop the server and put the file back from a backup",
			"file", filepath.Join(s.o.Data, confdb.FileName))
	}
	set := s.metrics
	if s.o.kept != nil {
		set = s.o.kept.metrics
	}
	ids := &itemIDs{}
	if err := s.openConfiguration(ctx, ids, set); err != nil {
		return fmt.Errorf("open the configuration: %w", err)
	}
	if s.o.kept != nil {
		s.o.kept.db = s.db
	}
	if err := s.applyOverride(ctx); err != nil {
		return fmt.Errorf("override the retention: %w", err)
	}
	s.catalog, err = openCatalog(ctx, fsys, s.db, s.maxItemID(), catalog.Options{Log: s.catalogLog(), Logger: s.logger, Metrics: set}, s.o.Data)
	if err != nil {
		return err
	}
	ids.catalog = s.catalog
	if s.o.kept != nil {
		s.o.kept.catalog = s.catalog
	}
	return nil
}

// takeObjectsOver readies the configuration and the catalog of a standby for a primary.
func (s *Server) takeObjectsOver(ctx context.Context) error {
	if err := s.db.TakeOver(ctx); err != nil {
		return fmt.Errorf("take the configuration over: %w", err)
	}
	if err := s.applyOverride(ctx); err != nil {
		return fmt.Errorf("override the retention: %w", err)
	}
	configured, err := s.db.MaxItemID(ctx)
	if err != nil {
		return err
	}
	s.catalog.PassID(max(configured, s.maxItemID()))
	return nil
}

// readyConfiguration brings in what every configuration has; that of a standby is its primary's.
func (s *Server) readyConfiguration(ctx context.Context) error {
	if s.following() {
		return s.db.ReadOnly(ctx, true)
	}
	if s.o.kept != nil && s.o.kept.promoted {
		return nil // a primary of this version has done it
	}
	if err := s.db.EnsureRules(ctx); err != nil {
		return err
	}
	return importTemplates(ctx, s.db, s.logger)
}

// itemIDs lets the configuration be opened before the catalog that gives its ids.
type itemIDs struct{ catalog *catalog.Catalog }

// NextItemID implements confdb.IDs.
func (i *itemIDs) NextItemID() (model.ItemID, error) { return i.catalog.NextItemID() }

// openCatalog opens the catalog so that it gives no id again that the configuration or the engine knows, even if its own log
// is lost.
func openCatalog(ctx context.Context, fsys vfs.FS, db *confdb.DB, stored model.ItemID, o catalog.Options, data string) (*catalog.Catalog, error) {
	configured, err := db.MaxItemID(ctx)
	if err != nil {
		return nil, err
	}
	o.MinItemID = max(configured, stored) + 1
	c, err := catalog.Open(ctx, fsys, filepath.Join(data, "catalog"), o)
	if err != nil {
		return nil, fmt.Errorf("open the catalog: %w", err)
	}
	return c, nil
}

// diskSpace returns the quota of the store.
func diskSpace(fsys vfs.FS, dir string, wanted int64) (int64, error) {
	if wanted > 0 {
		return wanted, nil
	}
	free, _, err := fsys.Free(dir)
	if err != nil {
		return 0, fmt.Errorf("look for free space in %s: %w", dir, err)
	}
	return max(dbengine.MinDiskSpaceBytes, min(4<<30, free/10)), nil
}
