package bench

import (
	"context"
	"errors"
	"fmt"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
)

// Store is an engine that is measured.
type Store interface {
	// Define announces the metrics, once, before anything is written.
	Define(ctx context.Context, defs []storage.ItemDefinition) error
	// Append stores a batch, which the caller uses again afterwards.
	Append(ctx context.Context, b *model.Batch) error
	// NewReader returns what one goroutine reads with: it decodes the values of a metric in a range and returns how many there are.
	NewReader() func(ctx context.Context, id model.ItemID, r model.TimeRange) (points int, err error)
	// Flush brings what is in memory to where it is at rest.
	Flush(ctx context.Context) error
	Close() error
	// AtRest returns, after Close, the values in files and what these take without logs.
	AtRest() (samples uint64, bytes int64, err error)
}

// Summaries is kept by a Store that has summaries beside its values, which AtRest does not count.
type Summaries interface {
	// SummaryBytes returns, after Close, what they take.
	SummaryBytes() (int64, error)
}

// engine is the engine of this project as a Store.
type engine struct {
	*dbengine.DB
	o *Options
}

func openEngine(ctx context.Context, o *Options) (Store, error) {
	db, err := dbengine.Open(ctx, vfs.OS{}, o.Dir, dbengine.Options{
		DiskSpaceBytes: o.DiskSpaceBytes, PageCacheBytes: o.CacheBytes, Durability: dbengine.Group, DirectIO: o.DirectIO,
	})
	if err != nil {
		return nil, err
	}
	return &engine{DB: db, o: o}, nil
}

func (e *engine) Append(ctx context.Context, b *model.Batch) error {
	_, err := e.DB.Append(ctx, b)
	if errors.Is(err, storage.ErrFull) {
		err = fmt.Errorf("the disk space of %d bytes is used up: %w", e.o.DiskSpaceBytes, err)
	}
	return err
}

func (e *engine) NewReader() func(context.Context, model.ItemID, model.TimeRange) (int, error) {
	items, points := make([]model.ItemID, 1), 0
	count := func(c *model.Columns) error {
		points += len(c.Bits)
		return nil
	}
	return func(ctx context.Context, id model.ItemID, r model.TimeRange) (int, error) {
		items[0], points = id, 0
		err := e.Read(ctx, storage.Query{Items: items, Range: r}, count)
		return points, err
	}
}

func (e *engine) AtRest() (uint64, int64, error) {
	info, err := dbengine.Info(vfs.OS{}, e.o.Dir, nil)
	if err != nil {
		return 0, 0, err
	}
	return info.Samples, info.Bytes - info.LogBytes, nil
}
