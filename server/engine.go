package server

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tidemark/catalog"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/storage/postgres"
	"tidemark/trendcache"
	"tidemark/wire/sketch"
)

// engine is what the server needs of a store; both engines have it all.
type engine interface {
	storage.Engine
	storage.Definer
	storage.Replayer
	storage.Marker
	storage.Statter
}

// retentionClass is how long values and trends are kept; zero is as long as there is room.
type retentionClass struct{ History, Trends time.Duration }

// spoolFolder is where values wait for PostgreSQL, in the data folder.
const spoolFolder = "postgres-spool"

// openEngine opens the store that the options name.
func (s *Server) openEngine(ctx context.Context, fsys vfs.FS) error {
	if s.o.DSN != "" {
		return s.openPostgres(ctx, fsys)
	}
	if k := s.o.kept; k != nil && k.engine != nil {
		s.engine = k.engine
		return s.keepSnapshots(k.shelf, k.engine)
	}
	space, err := diskSpace(fsys, s.o.Data, s.o.DiskSpaceBytes)
	if err != nil {
		return err
	}
	durability := dbengine.Group
	if s.o.Relaxed {
		durability = dbengine.Relaxed
	}
	cacheBytes := s.o.PageCacheBytes
	if cacheBytes == 0 {
		cacheBytes = 128 << 20
	}
	classes := make([]dbengine.Class, len(s.classes))
	for i, c := range overrideRetention(s.classes, s.o.OverrideHistory, s.o.OverrideTrends) {
		classes[i] = dbengine.Class{History: c.History, Trends: c.Trends, MinimumAge: s.o.minimumAge(c.History)}
	}
	direct := dbengine.DirectAuto
	if s.o.Buffered {
		direct = dbengine.DirectOff
	}
	hot, err := hotCodec(s.o.HotCodec)
	if err != nil {
		return err
	}
	shelf, err := s.openShelf()
	if err != nil {
		return err
	}
	set := s.metrics
	if s.o.kept != nil {
		set = s.o.kept.metrics
	}
	db, err := dbengine.Open(ctx, fsys, filepath.Join(s.o.Data, "engine"), dbengine.Options{
		DiskSpaceBytes: space, PageCacheBytes: cacheBytes, Durability: durability, Classes: classes, Metrics: set, Logger: s.logger,
		Snapshots: shelf, HotCodec: hot, DirectIO: direct, Merge: sketch.AppendMerged,
		MinimumAge: s.o.MinimumAge, MinuteShare: s.o.MinuteShare, HourShare: s.o.HourShare, ShareFactor: s.o.HostFactor,
	})
	if err != nil {
		return fmt.Errorf("open the engine: %w", err)
	}
	s.engine = db
	if s.o.kept != nil {
		s.o.kept.engine, s.o.kept.shelf = db, shelf
	}
	if err := pinSnapshots(shelf, db); err != nil {
		return err
	}
	return s.keepSnapshots(shelf, db)
}

// hotCodec reads storage.hot_codec; empty is none.
func hotCodec(text string) (dbengine.Codec, error) {
	if text == "" {
		return dbengine.Codec{}, nil
	}
	codec, err := dbengine.ParseCodec(text)
	if err != nil {
		return codec, fmt.Errorf("storage.hot_codec: %w", err)
	}
	return codec, nil
}

// openPostgres opens PostgreSQL as the store, with the trends cache that it needs.
func (s *Server) openPostgres(ctx context.Context, fsys vfs.FS) error {
	durability := postgres.Group
	if s.o.Relaxed {
		durability = postgres.Relaxed
	}
	classes := make([]postgres.Class, len(s.classes))
	for i, c := range overrideRetention(s.classes, s.o.OverrideHistory, s.o.OverrideTrends) {
		classes[i] = postgres.Class(c)
	}
	db, err := postgres.Open(ctx, s.o.DSN, postgres.Options{
		FS: fsys, SpoolDir: filepath.Join(s.o.Data, spoolFolder), Mode: postgres.Mode(s.o.Mode), Durability: durability, Classes: classes, SizeBytes: s.o.DiskSpaceBytes,
		RoomBytes: s.o.DatabaseSpaceBytes, EarlyDropPercent: s.o.EarlyDrop, MinimumAge: s.o.MinimumAge,
		Term: s.o.term, Metrics: s.metrics, Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("open PostgreSQL: %w", err)
	}
	s.measureLease()
	s.engine = db
	s.trends = trendcache.New(trendcache.Options{Engine: db, Metrics: s.metrics, Logger: s.logger})
	return nil
}

// catalogLog is where declared items are kept if not in the data folder.
func (s *Server) catalogLog() catalog.Log {
	if db, ok := s.engine.(*postgres.DB); ok {
		if log := db.CatalogLog(); log != nil {
			return log
		}
	}
	return nil
}

// maxItemID returns the highest item id that the store knows; zero when it keeps none.
func (s *Server) maxItemID() model.ItemID {
	if e, ok := s.engine.(interface{ MaxItemID() model.ItemID }); ok {
		return e.MaxItemID()
	}
	return 0
}
