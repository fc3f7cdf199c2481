// Package bench measures the engine with the workload of Netdata's evaluation of its own one: charts of 128 metrics
// at one value a second on a time axis that runs as fast as the engine takes it, written and read at the same time.
//
//	writer: its charts, one instant after the other ─▶ Append
//	reader: a random metric, a random start, 1 s to 1 h  ─▶ Read
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
)

const (
	// ChartMetrics is the number of metrics that come together.
	ChartMetrics = 128
	// MaxMetrics bounds Options.Metrics.
	MaxMetrics = 10_000_000
	// MaxGoroutines bounds Options.Writers and Options.Readers.
	MaxGoroutines = 1024
	// batchValues is the most that one Append gets.
	batchValues = 1024
	// maxFill bounds Options.Fill.
	maxFill = 30 * 24 * time.Hour
	// start is the first instant, Unix seconds: 2026-01-01.
	start  = 1_767_225_600
	second = int64(time.Second)
)

// Options say what to run.
type Options struct {
	Metrics, Writers, Readers int
	CacheBytes                int64
	// DiskSpaceBytes is the quota; zero means 16 GiB.
	DiskSpaceBytes int64
	Duration       time.Duration
	// Values is one of Kinds. Trace, if set, is a file with one line of columns a second and replaces it.
	Values, Trace string
	// DirectIO says what goes past the system's cache.
	DirectIO dbengine.DirectIO
	// Dir becomes the engine's folder.
	Dir string
	// Fill is how much of every metric is written before a run that only reads; zero means two hours.
	Fill time.Duration
	// Open opens what is measured; nil means the engine of this project.
	Open func(context.Context, *Options) (Store, error)
}

// Result is what was measured. Rates are points per second of wall clock, counted where the engine is called.
type Result struct {
	Values          string  `json:"values"`
	DirectIO        string  `json:"direct_io"`
	Metrics         int     `json:"metrics"`
	Writers         int     `json:"writers"`
	Readers         int     `json:"readers"`
	CacheBytes      int64   `json:"cache_bytes"`
	Seconds         float64 `json:"seconds"`
	WritesPerSecond float64 `json:"writes_per_s"`
	ReadsPerSecond  float64 `json:"reads_per_s"`
	// CPUCores is the CPU time of the process divided by the wall clock.
	CPUCores      float64 `json:"cpu_cores"`
	PointsPerCore float64 `json:"points_per_s_per_core"`
	Queries       uint64  `json:"queries"`
	// QueryP99 and AppendP999 are times of calls in milliseconds.
	QueryP99   float64 `json:"query_p99_ms"`
	AppendP999 float64 `json:"append_p999_ms"`
	// Samples and DatasetBytes are what is in file pairs after everything was flushed and the engine closed.
	Samples        uint64  `json:"samples"`
	DatasetBytes   int64   `json:"dataset_bytes"`
	BytesPerSample float64 `json:"bytes_per_sample"`
	// SummaryBytes is what summaries take beside the data set, of engines that have them apart.
	SummaryBytes int64 `json:"summary_bytes,omitempty"`
	RSSBytes     int64 `json:"rss_bytes"`
}

// run is one measurement.
type run struct {
	o      Options
	db     Store
	source source
	// latest is the last instant that every chart of a writer has, Unix seconds.
	latest []atomic.Int64

	written, read, queries atomic.Uint64
	mu                     sync.Mutex
	appends, reads         []time.Duration
}

// Run opens an engine in o.Dir, which must not exist or be empty, runs the workload and closes the engine.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	source, err := newSource(&o)
	if err != nil {
		return nil, err
	}
	db, err := o.Open(ctx, &o)
	if err != nil {
		return nil, err
	}
	r := &run{o: o, db: db, source: source, latest: make([]atomic.Int64, max(o.Writers, 1))}
	result, err := r.measure(ctx)
	if err == nil {
		err = db.Flush(ctx)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	if result.Samples, result.DatasetBytes, err = db.AtRest(); err != nil {
		return nil, err
	}
	if s, ok := db.(Summaries); ok {
		if result.SummaryBytes, err = s.SummaryBytes(); err != nil {
			return nil, err
		}
	}
	if result.Samples > 0 {
		result.BytesPerSample = float64(result.DatasetBytes) / float64(result.Samples)
	}
	return result, nil
}

func (o *Options) check() error {
	if o.DiskSpaceBytes == 0 {
		o.DiskSpaceBytes = 16 << 30
	}
	if o.Fill == 0 {
		o.Fill = 2 * time.Hour
	}
	if o.Open == nil {
		o.Open = openEngine
	}
	switch {
	case o.Metrics < 1 || o.Metrics > MaxMetrics:
		return fmt.Errorf("metrics: %d, expected 1 to %d", o.Metrics, MaxMetrics)
	case o.Writers < 0 || o.Writers > MaxGoroutines || o.Readers < 0 || o.Readers > MaxGoroutines || o.Writers+o.Readers == 0:
		return fmt.Errorf("%d writers and %d readers, expected 0 to %d each and at least one", o.Writers, o.Readers, MaxGoroutines)
	case o.Fill < time.Second || o.Fill > maxFill:
		return fmt.Errorf("fill: %v, expected 1s to %v", o.Fill, maxFill)
	case o.Duration <= 0:
		return fmt.Errorf("duration: %v, expected more than 0", o.Duration)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty, expected a new folder", o.Dir)
	}
	return nil
}

// measure runs writers and readers for the duration.
func (r *run) measure(ctx context.Context) (*Result, error) {
	r.define(ctx)
	for i := range r.latest {
		r.latest[i].Store(start - 1)
	}
	if r.o.Writers == 0 {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, r.o.Duration)
	defer cancel()
	began, cpu := time.Now(), cpuTime()
	var group sync.WaitGroup
	errs := make([]error, r.o.Writers+r.o.Readers)
	for w := range r.o.Writers {
		group.Go(func() { errs[w] = r.write(limited, w, r.o.Writers) })
	}
	for k := range r.o.Readers {
		group.Go(func() { errs[r.o.Writers+k] = r.readRandom(limited, uint64(k)) })
	}
	group.Wait()
	wall := time.Since(began).Seconds()
	result := &Result{
		Values: r.o.Values, DirectIO: r.o.DirectIO.String(), Metrics: r.o.Metrics, Writers: r.o.Writers, Readers: r.o.Readers, CacheBytes: r.o.CacheBytes,
		Seconds: wall, WritesPerSecond: float64(r.written.Load()) / wall, ReadsPerSecond: float64(r.read.Load()) / wall,
		CPUCores: (cpuTime() - cpu).Seconds() / wall, Queries: r.queries.Load(), RSSBytes: residentBytes(),
		QueryP99: quantile(r.reads, 0.99), AppendP999: quantile(r.appends, 0.999),
	}
	result.PointsPerCore = (result.WritesPerSecond + result.ReadsPerSecond) / result.CPUCores
	return result, errors.Join(append(errs, ctx.Err())...)
}

func (r *run) define(ctx context.Context) {
	defs := make([]storage.ItemDefinition, r.o.Metrics)
	for i := range defs {
		defs[i] = storage.ItemDefinition{ID: model.ItemID(i + 1), Type: r.source.valueType(i), Group: uint64(i/ChartMetrics + 1)}
	}
	if err := r.db.Define(ctx, defs); err != nil {
		panic(fmt.Sprintf("bench: definitions of class 0: %v", err))
	}
}

// fill writes what the readers read.
func (r *run) fill(ctx context.Context) error {
	w := r.newWriter(0, 1)
	for range int(r.o.Fill / time.Second) {
		if err := w.instant(ctx); err != nil {
			return err
		}
	}
	r.written.Store(0)
	r.appends = nil
	err := r.db.Flush(ctx)
	runtime.GC() // what filling left is not counted
	return err
}

// writer writes the charts first, first+step, … of all.
type writer struct {
	*run
	number int
	batch  *model.Batch
	values values
	charts []int
	at     int64
	took   []time.Duration
}

func (r *run) newWriter(number, writers int) *writer {
	w := &writer{run: r, number: number, batch: model.NewBatch(), values: r.source.open(uint64(number)), at: start}
	charts := (r.o.Metrics + ChartMetrics - 1) / ChartMetrics
	for c := number * charts / writers; c < (number+1)*charts/writers; c++ {
		w.charts = append(w.charts, c)
	}
	return w
}

func (r *run) write(ctx context.Context, number, writers int) error {
	w := r.newWriter(number, writers)
	defer func() {
		r.mu.Lock()
		r.appends = append(r.appends, w.took...)
		r.mu.Unlock()
	}()
	for ctx.Err() == nil && len(w.charts) > 0 {
		if err := w.instant(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// instant writes one value of each metric of the writer's charts.
func (w *writer) instant(ctx context.Context) error {
	w.batch.Reset()
	for _, chart := range w.charts {
		if w.batch.Len()+ChartMetrics > batchValues {
			if err := w.send(ctx); err != nil {
				return err
			}
		}
		first := chart * ChartMetrics
		w.values.add(w.batch, first, min(first+ChartMetrics, w.o.Metrics), w.at)
	}
	err := w.send(ctx)
	w.latest[w.number].Store(w.at)
	w.at++
	return err
}

func (w *writer) send(ctx context.Context) error {
	n := w.batch.Len()
	w.batch.ArrivedAt = w.at * second
	began := time.Now()
	if err := w.db.Append(ctx, w.batch); err != nil {
		return err
	}
	if len(w.took) < 1<<20 {
		w.took = append(w.took, time.Since(began))
	}
	w.written.Add(uint64(n))
	w.batch.Reset()
	return nil
}

// readRandom reads until ctx ends.
func (r *run) readRandom(ctx context.Context, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 7))
	var took []time.Duration
	defer func() {
		r.mu.Lock()
		r.reads = append(r.reads, took...)
		r.mu.Unlock()
	}()
	charts := (r.o.Metrics + ChartMetrics - 1) / ChartMetrics
	read := r.db.NewReader()
	for ctx.Err() == nil {
		metric := random.IntN(r.o.Metrics)
		latest := r.latest[r.writerOf(metric/ChartMetrics, charts)].Load()
		if latest < start {
			time.Sleep(time.Millisecond)
			continue
		}
		from := start + random.Int64N(latest-start+1)
		span := model.TimeRange{From: from * second, To: (from + 1 + random.Int64N(3600)) * second}
		began := time.Now()
		points, err := read(ctx, model.ItemID(metric+1), span)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if len(took) < 1<<20 {
			took = append(took, time.Since(began))
		}
		r.read.Add(uint64(points))
		r.queries.Add(1)
	}
	return nil
}

// writerOf returns who writes a chart.
func (r *run) writerOf(chart, charts int) int {
	n := len(r.latest)
	w := min(chart*n/charts, n-1)
	for w+1 < n && chart >= (w+1)*charts/n {
		w++
	}
	for w > 0 && chart < w*charts/n {
		w--
	}
	return w
}

// quantile returns a quantile in milliseconds.
func quantile(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)-1))]) / 1e6
}
