package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/snapshot"
	"tidemark/standby"
	"tidemark/storage/dbengine"
	"tidemark/wire/sketch"
)

// SnapshotsFolder is where the server keeps its snapshots, in the data folder: links need the same file system.
const SnapshotsFolder = "snapshots"

// SnapshotOptions say which snapshots a server keeps by itself.
type SnapshotOptions struct {
	// Every is the time between two snapshots; zero for none.
	Every time.Duration
	// Keep is how many are kept, those made by hand included; zero means 7.
	Keep int
	// Refuse refuses new values at the quota while snapshots hold the oldest files; otherwise the oldest snapshot goes.
	Refuse bool
}

// snapshots makes and keeps snapshots of everything in the data folder.
type snapshots struct {
	data    string
	version string
	options SnapshotOptions
	shelf   *snapshot.Shelf
	engine  *dbengine.DB
	db      *confdb.DB
	catalog *catalog.Catalog
	logger  *slog.Logger
	failed  *metrics.Counter

	// making lets one be made at a time.
	making sync.Mutex
}

// openShelf reads what is kept; the engine is opened after it.
func (s *Server) openShelf() (*snapshot.Shelf, error) {
	shelf, err := snapshot.OpenShelf(filepath.Join(s.o.Data, SnapshotsFolder), !s.o.Snapshots.Refuse)
	if err != nil {
		return nil, err
	}
	for _, name := range shelf.Damaged() {
		s.logger.Error("a folder among the snapshots is none; remove it", "folder", filepath.Join(shelf.Dir(), name))
	}
	return shelf, nil
}

// pinSnapshots counts what the kept snapshots hold.
func pinSnapshots(shelf *snapshot.Shelf, db *dbengine.DB) error {
	for _, f := range shelf.List() {
		for _, file := range f.Manifest().Files {
			if name, err := filepath.Rel("engine", filepath.FromSlash(file.Path)); err == nil && filepath.Base(name) == name && name != ".." {
				if err := db.PinSnapshot(name, file.Bytes); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keepSnapshots readies the making of new ones.
func (s *Server) keepSnapshots(shelf *snapshot.Shelf, db *dbengine.DB) error {
	s.snapshots = &snapshots{
		data: s.o.Data, version: s.o.Version, options: s.o.Snapshots, shelf: shelf, engine: db, logger: s.logger,
		failed: s.metrics.NewCounter("tidemark_snapshot_failures_total"),
	}
	s.headroom = newHeadroom(s.o.Data, db.Stats, &hold{o: s.o.Headroom, engine: db, logger: s.logger}, s.metrics, s.logger)
	s.recompressor = newRecompressor(db, s.o.Recompress, s.metrics, s.logger)
	s.metrics.NewGauge("tidemark_snapshot_count", func() float64 { return float64(len(shelf.List())) })
	s.metrics.NewGauge("tidemark_snapshot_dropped_total", func() float64 { return float64(shelf.Dropped()) })
	s.metrics.NewGauge("tidemark_snapshot_held_bytes", func() float64 { return float64(db.PinnedBytes()) })
	s.metrics.NewGauge("tidemark_snapshot_newest_timestamp_seconds", func() float64 {
		list := shelf.List()
		if len(list) == 0 {
			return 0
		}
		return float64(list[len(list)-1].Manifest().CreatedAt.Unix())
	})
	return nil
}

// Made is a snapshot that was made.
type Made struct {
	*snapshot.Folder
	// Took is how long the files of the engine were held.
	Took time.Duration
}

// make makes a snapshot on the shelf.
func (s *snapshots) make(ctx context.Context, name string) (*Made, error) {
	s.making.Lock()
	defer s.making.Unlock()
	w, err := s.shelf.Begin(name)
	if err != nil {
		return nil, err
	}
	made, err := s.fill(ctx, w, s.shelf.Put)
	if err != nil {
		s.failed.Inc()
		return nil, errors.Join(err, w.Abort())
	}
	s.logger.Info("snapshot made", "name", name, "files", len(made.Manifest().Files), "bytes", made.Manifest().Bytes(), "took", made.Took)
	return made, nil
}

// fill takes everything. The configuration comes first and the catalog last: the values in between are known to the catalog, and what the
// configuration says was evaluated is in the log, which is kept from before.
func (s *snapshots) fill(ctx context.Context, w *snapshot.Writer, put func(*snapshot.Folder)) (*Made, error) {
	release := s.engine.KeepLog()
	defer release()
	if err := s.addConfiguration(ctx, w); err != nil {
		return nil, err
	}
	engine := filepath.Join(s.data, "engine")
	made := &Made{}
	began := time.Now()
	take := func(f dbengine.Frozen) error {
		return w.Link(ctx, filepath.Join(engine, f.Name), "engine/"+f.Name, f.Bytes)
	}
	_, err := s.engine.Freeze(ctx, take, func(lsn model.LSN) error {
		made.Took = time.Since(began)
		if err := s.addCatalog(ctx, w); err != nil {
			return err
		}
		folder, err := w.Commit(s.version, uint64(lsn), began)
		if err != nil {
			return err
		}
		made.Folder = folder
		if put != nil {
			put(folder)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", err)
	}
	return made, nil
}

// addConfiguration copies the configuration database and its key.
func (s *snapshots) addConfiguration(ctx context.Context, w *snapshot.Writer) error {
	name, err := w.Place(confdb.FileName)
	if err != nil {
		return err
	}
	if s.db != nil {
		err = s.db.Backup(ctx, name)
	} else {
		err = confdb.BackupFile(ctx, s.data, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = w.Placed(ctx, confdb.FileName)
	}
	if err != nil {
		return err
	}
	err = w.AddFile(ctx, filepath.Join(s.data, confdb.SecretFileName), confdb.SecretFileName)
	// A folder that is restored is known again as one of this cluster.
	return errors.Join(err, w.AddFile(ctx, filepath.Join(s.data, standby.FileName), standby.FileName))
}

// addCatalog copies the catalog while nothing is written to it.
func (s *snapshots) addCatalog(ctx context.Context, w *snapshot.Writer) error {
	dir := filepath.Join(s.data, "catalog")
	add := func() error {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && e.Name() != lockFile {
				if err := w.AddFile(ctx, filepath.Join(dir, e.Name()), "catalog/"+e.Name()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if s.catalog == nil {
		return add()
	}
	return s.catalog.Still(add)
}

// remove removes a kept snapshot and gives its room back.
func (s *snapshots) remove(name string) error {
	if err := s.shelf.Remove(name); err != nil {
		return err
	}
	s.engine.SnapshotsChanged()
	return nil
}

// run makes snapshots from time to time and removes those that are too many.
func (s *snapshots) run(ctx context.Context) error {
	if s.options.Every <= 0 {
		return nil
	}
	for {
		wait := s.options.Every
		if list := s.shelf.List(); len(list) > 0 {
			wait = min(max(time.Until(list[len(list)-1].Manifest().CreatedAt.Add(s.options.Every)), time.Second), s.options.Every)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if _, err := s.make(ctx, snapshot.AutomaticName(time.Now())); err != nil && ctx.Err() == nil {
			s.logger.Error("no snapshot was made; it is tried again", "error", err)
			continue
		}
		s.expire()
	}
}

// expire removes the oldest snapshots that are too many.
func (s *snapshots) expire() {
	keep := s.options.Keep
	if keep <= 0 {
		keep = 7
	}
	for _, name := range s.shelf.Expire(keep) {
		if err := s.remove(name); err != nil {
			s.logger.Error("remove an old snapshot", "name", name, "error", err)
		}
	}
}

// SnapshotOffline makes a snapshot of the data folder of a server that does not run, in a new folder. A folder in use is ErrInUse.
func SnapshotOffline(ctx context.Context, data, to, since, version string) (made *Made, err error) {
	fsys := vfs.OS{}
	if _, err := fsys.Stat(filepath.Join(data, "engine")); err != nil {
		return nil, fmt.Errorf("the data folder %s: %w; expected one with an engine folder", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	var base *snapshot.Folder
	if since != "" {
		if base, err = snapshot.OpenFolder(since); err != nil {
			return nil, err
		}
	}
	db, err := dbengine.Open(ctx, fsys, filepath.Join(data, "engine"), dbengine.Options{DiskSpaceBytes: 1 << 50, Merge: sketch.AppendMerged})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := snapshot.Create(to, base)
	if err != nil {
		return nil, err
	}
	s := &snapshots{data: data, version: version, engine: db}
	if made, err = s.fill(ctx, w, nil); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return made, nil
}
