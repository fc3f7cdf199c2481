// Package preproc turns what collectors received into values of their items' types: it runs the preprocessing steps of
// each item in order, applies the rule for times in the future, and hands the batch on.
//
// Put works in the caller's goroutine and rewrites the batch in place, so that back-pressure reaches the collector and a
// value is not copied. Steps that remember an earlier value keep that state per item, under a lock of the item's shard.
package preproc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// Sink takes the finished batch. Put blocks while there is no room; after an error the batch is still the caller's.
type Sink interface {
	Put(ctx context.Context, b *model.Batch) error
}

// Items knows the definitions of items. Item must be fast and safe for concurrent use; the item must not change.
type Items interface {
	Item(id model.ItemID) (*model.Item, bool)
	ItemByKey(host model.HostID, key string) (*model.Item, bool)
}

// FutureLimit is how far ahead of its arrival a value may be dated.
const FutureLimit = 10 * time.Minute

// ClockKey is the key of the item that tells by how many seconds a host's values were dated ahead; 0 when they are not.
const ClockKey = "tidemark.clock.ahead"

// Options of a Processor.
type Options struct {
	Items Items
	Sink  Sink
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Processor is the preprocessing stage.
type Processor struct {
	items  Items
	sink   Sink
	logger *slog.Logger
	shards [shardCount]shard

	clockMu sync.Mutex
	clocks  map[model.HostID]hostClock

	values, discarded, unsupported, unknown, future *metrics.Counter
}

// shardCount spreads items with state over locks.
const shardCount = 64

type shard struct {
	mu    sync.Mutex
	items map[model.ItemID]*itemState
}

// New returns a Processor that is ready for Put.
func New(o Options) *Processor {
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	p := &Processor{
		items: o.Items, sink: o.Sink, logger: o.Logger,
		clocks:      map[model.HostID]hostClock{},
		values:      set.NewCounter("tidemark_preproc_values_total"),
		discarded:   set.NewCounter("tidemark_preproc_discarded_values_total"),
		unsupported: set.NewCounter("tidemark_preproc_unsupported_values_total"),
		unknown:     set.NewCounter("tidemark_preproc_unknown_item_values_total"),
		future:      set.NewCounter("tidemark_preproc_future_values_total"),
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	for i := range p.shards {
		p.shards[i].items = map[model.ItemID]*itemState{}
	}
	return p
}

// Put preprocesses the batch and puts it into the sink. Rows of unknown items are dropped and counted. After an error
// the batch still belongs to the caller, already preprocessed: it must not be Put again.
func (p *Processor) Put(ctx context.Context, b *model.Batch) error {
	p.process(b)
	return p.sink.Put(ctx, b)
}

// process rewrites the rows of b and drops those that yield no value.
func (p *Processor) process(b *model.Batch) {
	n := b.Len()
	limit := b.ArrivedAt + int64(FutureLimit)
	kept := 0
	var last *model.Item
	for i := range n {
		item := last
		if item == nil || item.ID != b.Items[i] {
			found, ok := p.items.Item(b.Items[i])
			if !ok {
				p.unknown.Inc()
				continue
			}
			item, last = found, found
		}
		if b.ArrivedAt != 0 && b.At[i] > limit {
			p.clockAhead(item.HostID, b.At[i]-b.ArrivedAt, b.ArrivedAt)
			b.At[i] = b.ArrivedAt
			b.Flags[i] |= model.FromFuture
			p.future.Inc()
		}
		if !p.row(b, i, item) {
			p.discarded.Inc()
			continue
		}
		if kept != i {
			b.CopyRow(kept, i)
		}
		kept++
	}
	p.values.Add(n)
	b.Truncate(kept)
	p.reportClocks(b, last)
}

// row preprocesses one row in place and reports whether it yields a value.
func (p *Processor) row(b *model.Batch, i int, item *model.Item) bool {
	if len(item.Steps) == 0 {
		if b.Types[i] != item.ValueType && b.Types[i] != model.Unsupported {
			convertRow(b, i, item.ValueType)
		}
		if b.Types[i] == model.Unsupported {
			p.unsupported.Inc()
		}
		return true
	}
	s := &p.shards[uint64(item.ID)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.items[item.ID]
	if state == nil || !state.program.serves(item) {
		state = newItemState(item)
		s.items[item.ID] = state
	}
	keep := state.run(b, i, item)
	if keep && b.Types[i] == model.Unsupported {
		p.unsupported.Inc()
	}
	return keep
}

// Forget drops the state of items that are gone.
func (p *Processor) Forget(ids []model.ItemID) {
	for _, id := range ids {
		s := &p.shards[uint64(id)%shardCount]
		s.mu.Lock()
		delete(s.items, id)
		s.mu.Unlock()
	}
}
