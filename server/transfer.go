package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/transfer"
)

// TransferOptions say between which stores values are copied. One is the embedded engine of a data folder whose server is stopped, the other a
// PostgreSQL database.
type TransferOptions struct {
	// Data is the data folder, which also has the configuration, the names of items, and what waits for PostgreSQL.
	Data, DSN string
	// ToPostgres says in which direction.
	ToPostgres bool
	// Mode is how new tables are kept; see Options.
	Mode string
	// DiskSpaceBytes bounds the embedded engine when it is the target; see Options.
	DiskSpaceBytes int64
	// Since leaves older values behind; zero takes all.
	Since           time.Time
	ValuesPerSecond int64
	Progress        func(transfer.Progress)
	Logger          *slog.Logger
}

// transferFile is where an unfinished transfer is written down, in the data folder.
const transferFile = "transfer.json"

// transferState is its content.
type transferState struct {
	ToPostgres bool           `json:"to_postgres"`
	Since      int64          `json:"since"`
	State      transfer.State `json:"state"`
}

// Transfer copies values, trends and marks from one store to the other and compares them. It goes on where an earlier one ended. Afterwards
// triggers go on with what comes next: nothing that was copied is evaluated again.
func Transfer(ctx context.Context, o TransferOptions) (_ transfer.State, err error) {
	var none transfer.State
	if !confdb.Exists(o.Data) {
		return none, fmt.Errorf("%s is no data folder of a server: %w", o.Data, fs.ErrNotExist)
	}
	lock, err := lockFolder(vfs.OS{}, o.Data)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	embedded := transferSide(o, "")
	stored := transferSide(o, o.DSN)
	source, target := embedded, stored
	if !o.ToPostgres {
		source, target = stored, embedded
	}
	defer func() { err = errors.Join(err, source.Close(), target.Close()) }()
	if o.ToPostgres || o.DiskSpaceBytes == 0 {
		used, err := folderBytes(filepath.Join(o.Data, "engine"))
		if err != nil {
			return none, err
		}
		// A source must not make room by dropping what is to be copied.
		embedded.o.DiskSpaceBytes = max(2*used+1<<30, o.DiskSpaceBytes)
	}
	if err := source.openStores(ctx, vfs.OS{}); err != nil {
		return none, err
	}
	if err := target.openEngine(ctx, vfs.OS{}); err != nil {
		return none, err
	}
	defs, err := source.definitionsOfAll(ctx)
	if err != nil {
		return none, err
	}
	for _, s := range []*Server{source, target} {
		if err := s.engine.Define(ctx, defs); err != nil {
			return none, err
		}
	}
	return runTransfer(ctx, o, source, target)
}

func transferSide(o TransferOptions, dsn string) *Server {
	s := &Server{
		o:      Options{Data: o.Data, DSN: dsn, Mode: o.Mode, DiskSpaceBytes: o.DiskSpaceBytes},
		logger: o.Logger, metrics: metrics.NewSet(), started: time.Now(), presence: &presence{}, classes: retentionClasses(),
	}
	if dsn != "" {
		s.o.DiskSpaceBytes = 0
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.o.Logger = s.logger
	return s
}

func runTransfer(ctx context.Context, o TransferOptions, source, target *Server) (transfer.State, error) {
	name := filepath.Join(o.Data, transferFile)
	since := int64(0)
	if !o.Since.IsZero() {
		since = o.Since.UnixNano()
	}
	saved := transferState{ToPostgres: o.ToPostgres, Since: since}
	if text, err := os.ReadFile(name); err == nil {
		var earlier transferState
		if err := json.Unmarshal(text, &earlier); err != nil {
			return saved.State, fmt.Errorf("%s: %w; remove it to begin anew", name, err)
		}
		if earlier.ToPostgres == saved.ToPostgres && earlier.Since == saved.Since && !earlier.State.Done {
			saved.State = earlier.State
		}
	}
	stats := source.engine.Stats()
	options := transfer.Options{
		Source: source.engine, Target: target.engine, From: max(stats.From, since), To: stats.To + 1, ValuesPerSecond: o.ValuesPerSecond,
		State: saved.State, Progress: o.Progress,
		Save: func(s transfer.State) error {
			saved.State = s
			return saveTransfer(name, saved)
		},
	}
	for id := model.ItemID(1); id <= source.maxItemID(); id++ {
		options.Items = append(options.Items, id)
	}
	state, err := transfer.Run(ctx, options)
	if err != nil {
		return state, err
	}
	// Positions of the other log mean nothing from now on.
	if err := source.db.ResetEvaluated(ctx, target.engine.LastLSN()); err != nil {
		return state, err
	}
	return state, os.Remove(name)
}

// saveTransfer replaces the file.
func saveTransfer(name string, s transferState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceFile(name, text)
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(name string, text []byte) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// definitionsOfAll are those of all items, configured and declared.
func (s *Server) definitionsOfAll(ctx context.Context) ([]storage.ItemDefinition, error) {
	var defs []storage.ItemDefinition
	s.cache.Subscribe(func(_ context.Context, c *confcache.Changes) error {
		for _, item := range c.Items {
			if item.RuleID == 0 {
				defs = append(defs, definition(s.classes, item))
			}
		}
		return nil
	})
	if _, err := s.cache.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	for after := model.ItemID(0); ; {
		entries, _ := s.catalog.Search(catalog.Filter{After: after, Limit: 10_000})
		if len(entries) == 0 {
			return defs, nil
		}
		for _, e := range entries {
			after = e.ID
			if item, ok := s.definitions.Item(e.ID); ok && item.Kind == model.Declared {
				defs = append(defs, definition(s.classes, item))
			}
		}
	}
}

// folderBytes is what the files of a folder take; a folder that is missing takes nothing.
func folderBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return total, err
}
