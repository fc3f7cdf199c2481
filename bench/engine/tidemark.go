package main

import (
	"context"
	"errors"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/bench"
)

// atRest is the engine with its pair closed, summed up and written anew when it is flushed: what values take after re-compression, and their summaries.
type atRest struct {
	*dbengine.DB
	dir string
}

func openRecompressed(ctx context.Context, o *bench.Options) (bench.Store, error) {
	db, err := dbengine.Open(ctx, vfs.OS{}, o.Dir, dbengine.Options{
		DiskSpaceBytes: o.DiskSpaceBytes, PageCacheBytes: o.CacheBytes,
	})
	if err != nil {
		return nil, err
	}
	return &atRest{DB: db, dir: o.Dir}, nil
}

func (a *atRest) Append(ctx context.Context, b *model.Batch) error {
	_, err := a.DB.Append(ctx, b)
	return err
}

func (a *atRest) NewReader() func(context.Context, model.ItemID, model.TimeRange) (int, error) {
	return func(context.Context, model.ItemID, model.TimeRange) (int, error) { return 0, nil }
}

func (a *atRest) Flush(ctx context.Context) error {
	if err := errors.Join(a.ClosePair(ctx), a.WaitSummedUp(ctx)); err != nil {
		return err
	}
	_, err := a.Recompress(ctx, dbengine.Recompress{})
	return err
}

// SummaryBytes counts the tiers of minutes and hours: all but the pairs of values and the log.
func (a *atRest) SummaryBytes() (int64, error) {
	info, err := dbengine.Info(vfs.OS{}, a.dir, nil)
	if err != nil {
		return 0, err
	}
	_, values, err := a.AtRest()
	return info.Bytes - info.LogBytes - values, err
}

// AtRest counts the pairs that were closed, and so written anew; the growing one is left out.
func (a *atRest) AtRest() (samples uint64, bytes int64, err error) {
	pairs, err := dbengine.ClosedPairs(vfs.OS{}, a.dir)
	for _, p := range pairs {
		samples, bytes = samples+p.Values, bytes+p.Bytes
	}
	return samples, bytes, err
}
