package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	promstorage "github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/bench"
)

const millisecond = 1_000_000

// prometheus is Prometheus' tsdb as it runs in Prometheus: its log on, two-hour blocks. It has no setting for a cache; it leaves that to the kernel.
type prometheus struct {
	db   *tsdb.DB
	dir  string
	refs []promstorage.SeriesRef // by ItemID
	rest uint64
}

func openPrometheus(_ context.Context, o *bench.Options) (bench.Store, error) {
	options := tsdb.DefaultOptions()
	options.RetentionDuration = 0
	db, err := tsdb.Open(o.Dir, slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		return nil, err
	}
	return &prometheus{db: db, dir: o.Dir}, nil
}

func metricName(id model.ItemID) string { return "metric_" + strconv.FormatUint(uint64(id), 10) }

func (p *prometheus) Define(_ context.Context, defs []storage.ItemDefinition) error {
	p.refs = make([]promstorage.SeriesRef, len(defs)+1)
	return nil
}

// number is a value as the peers keep them, a float.
func number(b *model.Batch, i int) float64 {
	if b.Types[i] == model.Uint {
		return float64(b.Bits[i])
	}
	return math.Float64frombits(b.Bits[i])
}

// Append stores a batch with one commit. The series' references are kept, so that labels are looked up once.
func (p *prometheus) Append(ctx context.Context, b *model.Batch) error {
	app := p.db.Appender(ctx)
	for i, id := range b.Items {
		var set labels.Labels
		if p.refs[id] == 0 {
			set = labels.FromStrings(labels.MetricName, metricName(id))
		}
		ref, err := app.Append(p.refs[id], set, b.At[i]/millisecond, number(b, i))
		if err != nil {
			return err
		}
		if p.refs[id] != ref {
			p.refs[id] = ref
		}
	}
	return app.Commit()
}

func (p *prometheus) NewReader() func(context.Context, model.ItemID, model.TimeRange) (int, error) {
	var values []float64
	var it chunkenc.Iterator
	return func(ctx context.Context, id model.ItemID, r model.TimeRange) (int, error) {
		q, err := p.db.Querier(r.From/millisecond, r.To/millisecond-1)
		if err != nil {
			return 0, err
		}
		defer q.Close()
		values = values[:0]
		set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, metricName(id)))
		for set.Next() {
			it = set.At().Iterator(it)
			for it.Next() == chunkenc.ValFloat {
				_, v := it.At()
				values = append(values, v)
			}
			if err := it.Err(); err != nil {
				return 0, err
			}
		}
		return len(values), set.Err()
	}
}

// Flush makes blocks of everything.
func (p *prometheus) Flush(ctx context.Context) error {
	head := p.db.Head()
	if head.NumSeries() == 0 || head.MinTime() > head.MaxTime() {
		return nil
	}
	if err := p.db.Compact(ctx); err != nil {
		return err
	}
	if err := p.db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())); err != nil {
		return err
	}
	p.rest = 0
	for _, b := range p.db.Blocks() {
		p.rest += b.Meta().Stats.NumSamples
	}
	return nil
}

func (p *prometheus) Close() error { return p.db.Close() }

// AtRest counts the blocks.
func (p *prometheus) AtRest() (uint64, int64, error) {
	bytes, err := folderBytes(p.dir, func(name string) bool { return name == "wal" || name == "wbl" || name == "chunks_head" })
	return p.rest, bytes, err
}

// folderBytes adds the sizes of the files below a folder, without those of folders that are left out.
func folderBytes(dir string, leaveOut func(name string) bool) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && leaveOut(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(d.Name(), ".lock"):
			return nil
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
