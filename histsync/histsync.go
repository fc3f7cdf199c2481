// Package histsync is the history syncer: it takes values from the history cache, appends them to the engine, and has
// triggers and trends evaluated.
//
// Two goroutines work in line, so that a batch is evaluated while the next one is appended. The engine finishes the
// completions of a batch when it is durable; the syncer does not wait for that.
package histsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sync/errgroup"

	"tidemark/model"
)

// Source gives batches of collected values in arrival order.
type Source interface {
	Take(ctx context.Context) (b *model.Batch, sizeBytes int, err error)
	Done(sizeBytes int)
}

// History stores values; any engine does. See storage.Engine for what Append promises.
type History interface {
	Append(ctx context.Context, b *model.Batch) (model.LSN, error)
}

// Trends takes values into the running hour, for engines without tiers.
type Trends interface {
	Add(b *model.Batch)
}

// Evaluator evaluates the triggers that the values touch and records what changed, together with lsn. After an error it has
// evaluated the batch all the same, keeps what could not be recorded, and records it with the next batch.
type Evaluator interface {
	Evaluate(ctx context.Context, lsn model.LSN, b *model.Batch) error
}

// Observer sees every stored batch after its evaluation, for live views. It must not keep or change it, nor block.
type Observer interface {
	Observe(b *model.Batch)
}

// Options of a Syncer. Source, History and Evaluator are needed.
type Options struct {
	Source    Source
	History   History
	Evaluator Evaluator
	// Trends may be nil: the engine has tiers.
	Trends Trends
	// Observers may be empty.
	Observers []Observer
	// EndOfInput is the error by which Source says that there will be no more values.
	EndOfInput error
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Syncer moves values from the cache to the engine and the triggers.
type Syncer struct {
	o      Options
	logger *slog.Logger

	values, batches, refused, unrecorded *metrics.Counter
	appendBusy, evaluateBusy             *metrics.FloatCounter
	typed                                map[model.ValueType]*metrics.Counter

	// refusal is used by the appending goroutine only, evaluation by the evaluating one.
	refusal, evaluation repeated
}

// reportEvery spaces the reports of an error that comes with every batch.
const reportEvery = 10 * time.Second

// repeated is an error that comes again and again while its cause lasts, such as a full disk.
type repeated struct {
	last   time.Time
	times  int
	values int
}

// report logs the error unless it did so a moment ago; what came since is in the next line.
func (r *repeated) report(l *slog.Logger, level slog.Level, message string, values int, err error) {
	r.times++
	r.values += values
	if now := time.Now(); now.Sub(r.last) >= reportEvery {
		l.Log(context.Background(), level, message, "batches", r.times, "values", r.values, "error", err)
		*r = repeated{last: now}
	}
}

// New returns a Syncer that works as soon as Run is called.
func New(o Options) *Syncer {
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	s := &Syncer{
		o: o, logger: o.Logger,
		values:       set.NewCounter("tidemark_histsync_values_total"),
		batches:      set.NewCounter("tidemark_histsync_batches_total"),
		refused:      set.NewCounter("tidemark_histsync_refused_values_total"),
		unrecorded:   set.NewCounter("tidemark_histsync_unrecorded_batches_total"),
		typed:        make(map[model.ValueType]*metrics.Counter),
		appendBusy:   set.NewFloatCounter("tidemark_histsync_append_busy_seconds_total"),
		evaluateBusy: set.NewFloatCounter("tidemark_histsync_evaluate_busy_seconds_total"),
	}
	for _, t := range []model.ValueType{
		model.Float, model.Character, model.LogEntry, model.Uint, model.Text, model.Binary, model.Unsupported,
	} {
		s.typed[t] = set.NewCounter(fmt.Sprintf("tidemark_histsync_typed_values_total{type=%q}", t))
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// countTypes counts values by their type, as zabbix[wcache,values,type] shows them.
func (s *Syncer) countTypes(b *model.Batch) {
	var counts [256]int
	for _, t := range b.Types {
		counts[t]++
	}
	for t, c := range s.typed {
		c.Add(counts[t])
	}
}

// stored is a batch that the engine has, on its way to the evaluator.
type stored struct {
	batch     *model.Batch
	sizeBytes int
	lsn       model.LSN
}

// Run works until the source ends or ctx does. Values that were taken are evaluated before it returns.
func (s *Syncer) Run(ctx context.Context) error {
	// One batch may wait between the two: more would only hide back-pressure.
	line := make(chan stored, 1)
	var g errgroup.Group
	g.Go(func() error {
		defer close(line)
		return s.appendAll(ctx, line)
	})
	g.Go(func() error {
		for st := range line {
			s.evaluate(ctx, st)
		}
		return nil
	})
	return g.Wait()
}

func (s *Syncer) appendAll(ctx context.Context, line chan<- stored) error {
	for {
		b, size, err := s.o.Source.Take(ctx)
		if err != nil {
			if errors.Is(err, s.o.EndOfInput) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.syncBatch(ctx, b, size, line)
	}
}

// syncBatch is the life of a batch from the cache to the engine; evaluate is the rest of it.
func (s *Syncer) syncBatch(ctx context.Context, b *model.Batch, size int, line chan<- stored) {
	start := time.Now()
	lsn, err := s.o.History.Append(ctx, b)
	s.appendBusy.Add(time.Since(start).Seconds())
	if err != nil {
		// The senders are told, keep their values and send them again: nothing that was acknowledged is lost.
		s.refused.Add(b.Len())
		s.refusal.report(s.logger, slog.LevelWarn, "values refused by the engine", b.Len(), err)
		b.Finish(err)
		b.Free()
		s.o.Source.Done(size)
		return
	}
	s.values.Add(b.Len())
	s.countTypes(b)
	s.batches.Inc()
	line <- stored{batch: b, sizeBytes: size, lsn: lsn}
}

func (s *Syncer) evaluate(ctx context.Context, st stored) {
	start := time.Now()
	if s.o.Trends != nil {
		s.o.Trends.Add(st.batch)
	}
	// Not a second time after an error: triggers would count the same values twice.
	if err := s.o.Evaluator.Evaluate(ctx, st.lsn, st.batch); err != nil {
		s.unrecorded.Inc()
		if ctx.Err() == nil { // else a stop cut it off, which closes the event log next: that writes what waits or says why it cannot
			s.evaluation.report(s.logger, slog.LevelError, "events could not be recorded; they are kept and recorded later", 0, err)
		}
	}
	for _, o := range s.o.Observers {
		o.Observe(st.batch)
	}
	s.evaluateBusy.Add(time.Since(start).Seconds())
	st.batch.Free()
	s.o.Source.Done(st.sizeBytes)
}
