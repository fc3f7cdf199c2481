package poller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect"
	"tidemark/model"
)

const (
	// batchRows and batchArenaBytes end a batch before its time.
	batchRows       = 4096
	batchArenaBytes = 2 << 20
	// maxRows and maxArenaBytes stop new checks while the stages behind do not keep up. What is under way still finds room.
	maxRows       = 4 * batchRows
	maxArenaBytes = 4 * batchArenaBytes
)

// output gathers values into batches.
type output struct {
	sink    collect.Sink
	log     *slog.Logger
	values  *metrics.Counter
	dropped *metrics.Counter
	wake    chan struct{}

	mu    sync.Mutex
	batch *model.Batch
	// since is when the first value of the batch came.
	since int64
}

func newOutput(sink collect.Sink, log *slog.Logger, set *metrics.Set) *output {
	return &output{
		sink: sink, log: log, wake: make(chan struct{}, 1), batch: model.NewBatch(),
		values:  set.GetOrCreateCounter("tidemark_poller_values_total"),
		dropped: set.GetOrCreateCounter("tidemark_poller_dropped_values_total"),
	}
}

// full reports whether no new checks should be made.
func (o *output) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.batch.Len() >= maxRows || len(o.batch.Arena) >= maxArenaBytes
}

// put adds what calls brought.
func (o *output) put(calls []*Call, now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch.Len() == 0 {
		o.since = now
	}
	for _, c := range calls {
		o.add(c, now)
	}
	if o.batch.Len() >= batchRows || len(o.batch.Arena) >= batchArenaBytes {
		o.hand()
	}
}

func (o *output) add(c *Call, now int64) {
	for i := range c.Results {
		r := &c.Results[i]
		switch r.Outcome {
		case Value:
			o.batch.AppendBytes(c.Tasks[i].Item.ID, now, model.Raw, r.Text)
		case NotSupported:
			o.batch.AppendString(c.Tasks[i].Item.ID, now, model.Unsupported, clip(r.Text))
		case Nothing, Unreachable:
		}
	}
}

// due has what is gathered handed over, if it has waited for long enough. The ticks of the poller call it: a timer of its own would wake a thread
// for nothing when there is nothing.
func (o *output) due(now int64, every time.Duration) {
	o.mu.Lock()
	waited := o.batch.Len() > 0 && now-o.since >= int64(every-tickInterval/2)
	o.mu.Unlock()
	if waited {
		o.hand()
	}
}

// hand has what is gathered handed over.
func (o *output) hand() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run hands batches over until stop is closed, and what is left then.
func (o *output) run(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-o.wake:
		case <-stop:
			o.flush(ctx)
			return
		}
		o.flush(ctx)
	}
}

func (o *output) flush(ctx context.Context) {
	o.mu.Lock()
	b := o.batch
	if b.Len() == 0 {
		o.mu.Unlock()
		return
	}
	o.batch = model.NewBatch()
	o.mu.Unlock()
	b.ArrivedAt = time.Now().UnixNano()
	n := b.Len()
	if err := o.sink.Put(ctx, b); err != nil {
		o.dropped.Add(n)
		o.log.Error("poller: values could not be handed over", "values", n, "error", err)
		b.Finish(err)
		b.Free()
		return
	}
	o.values.Add(n)
}
