// Package preproc turns what collectors received into values of their items' types: it runs the preprocessing steps of
// each item in order, applies the rule for times in the future, and hands the batch on.
//
// Put works in the caller's goroutine and rewrites the batch in place, so that back-pressure reaches the collector and a
// value is not copied. Steps that remember an earlier value keep that state per item, under the item's lock. The value of a master item
// is given on to the items that depend on it, whose values join the same batch.
package preproc

import (
	"context"
	"errors"
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
	// Dependents returns the enabled items whose master is id; it is asked for items that have some. The list must not change.
	Dependents(id model.ItemID) []*model.Item
}

// Rules takes the values of discovery rules after their steps. Take must not keep text or done and must not wait. reason, if not empty, says why
// there is no value. Take adds to those of done that must wait until the value is durable, and finishes them then.
type Rules interface {
	Take(item *model.Item, text []byte, reason string, done []*model.Completion)
}

// FutureLimit is how far ahead of its arrival a value may be dated.
const FutureLimit = 10 * time.Minute

// ClockKey is the key of the item that tells by how many seconds a host's values were dated ahead; 0 when they are not.
const ClockKey = "tidemark.clock.ahead"

// Options of a Processor.
type Options struct {
	Items Items
	Sink  Sink
	// NoData, if not nil, gives the hosts from which no values are wanted now, and since when, Unix nanoseconds: values dated from then on are dropped.
	// It is called for each batch; the map must not change.
	NoData func() map[model.HostID]int64
	// Rules takes the values of discovery rules, which are not stored; nil: they are dropped.
	Rules Rules
	// Scripts runs JavaScript; nil: items with such a step are not supported.
	Scripts Scripts
	// Metrics and Logger may be nil.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Processor is the preprocessing stage.
type Processor struct {
	items   Items
	sink    Sink
	scripts Scripts
	rules   Rules
	noData  func() map[model.HostID]int64
	logger  *slog.Logger
	shards  [shardCount]shard

	lanes lanes

	clockMu sync.Mutex
	clocks  map[model.HostID]hostClock

	values, dependents, discarded, unsupported, unknown, future, unwanted *metrics.Counter
	busy                                                                  *metrics.FloatCounter
}

// shardCount spreads the table of items with state over locks.
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
		items: o.Items, sink: o.Sink, scripts: o.Scripts, rules: o.Rules, noData: o.NoData, logger: o.Logger,
		clocks:      map[model.HostID]hostClock{},
		values:      set.NewCounter("tidemark_preproc_values_total"),
		dependents:  set.NewCounter("tidemark_preproc_dependent_values_total"),
		discarded:   set.NewCounter("tidemark_preproc_discarded_values_total"),
		unsupported: set.NewCounter("tidemark_preproc_unsupported_values_total"),
		unknown:     set.NewCounter("tidemark_preproc_unknown_item_values_total"),
		future:      set.NewCounter("tidemark_preproc_future_values_total"),
		unwanted:    set.NewCounter("tidemark_preproc_maintenance_values_total"),
		busy:        set.NewFloatCounter("tidemark_preproc_busy_seconds_total"),
	}
	p.lanes.items = map[model.ItemID]*lane{}
	p.lanes.room.L = &p.lanes.mu
	set.NewGauge("tidemark_preproc_waiting_values", func() float64 {
		p.lanes.mu.Lock()
		defer p.lanes.mu.Unlock()
		return float64(p.lanes.waiting)
	})
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
	start := time.Now()
	p.process(b)
	p.busy.Add(time.Since(start).Seconds())
	return p.sink.Put(ctx, b)
}

// process rewrites the rows of b and drops those that yield no value.
func (p *Processor) process(b *model.Batch) {
	n := b.Len()
	limit := b.ArrivedAt + int64(FutureLimit)
	kept := 0
	var last *model.Item
	var quiet map[model.HostID]int64
	if p.noData != nil {
		quiet = p.noData()
	}
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
		if len(quiet) > 0 {
			if since, ok := quiet[item.HostID]; ok && b.At[i] >= since {
				p.unwanted.Inc()
				continue
			}
		}
		if b.ArrivedAt != 0 && b.At[i] > limit {
			p.clockAhead(item.HostID, b.At[i]-b.ArrivedAt, b.ArrivedAt)
			b.At[i] = b.ArrivedAt
			b.Flags[i] |= model.FromFuture
			p.future.Inc()
		}
		if gone, left := p.row(b, i, item); gone {
			if !left {
				p.discarded.Inc()
			}
			continue
		}
		if kept != i {
			b.CopyRow(kept, i)
		}
		kept++
	}
	// Behind the rows that came are those of dependent items.
	for i := n; i < b.Len(); i++ {
		b.CopyRow(kept, i)
		kept++
	}
	p.values.Add(n)
	p.dependents.Add(b.Len() - n)
	b.Truncate(kept)
	p.reportClocks(b, last)
}

// row preprocesses one row in place; what a proxy preprocessed is only converted. It reports whether the row is gone, because it yields no value, or left for the lane of its item or
// for its discovery rule.
func (p *Processor) row(b *model.Batch, i int, item *model.Item) (gone, left bool) {
	if item.Remote && item.RuleID != 0 {
		v, failure := rowValue(b, i)
		p.discover(b.Done, item, input{v, failure, 0})
		return true, true
	}
	if item.Remote || len(item.Steps) == 0 && !item.HasDependents && item.RuleID == 0 {
		if b.Types[i] != item.ValueType && b.Types[i] != model.Unsupported {
			convertRow(b, i, item.ValueType)
		}
		if b.Types[i] == model.Unsupported {
			p.refuse(b, i, item)
		}
		return false, false
	}
	v, failure := rowValue(b, i)
	in := input{v, failure, 0}
	if p.isSlow(item) && p.leave(b, i, item, in) {
		return true, true
	}
	return !p.apply(b, i, item, in), item.RuleID != 0
}

// isSlow reports whether an item runs scripts.
func (p *Processor) isSlow(item *model.Item) bool {
	if p.scripts == nil {
		return false
	}
	for i := range item.Steps {
		if item.Steps[i].Type == model.StepJavaScript {
			return true
		}
	}
	return false
}

// input is what an item is given.
type input struct {
	value value
	// failure is why there is no value.
	failure error
	// level is how many masters are above the item.
	level int
}

// apply takes an input through the steps of an item, hands the result on to the items that depend on it, and stores it in row i.
func (p *Processor) apply(b *model.Batch, i int, item *model.Item, in input) bool {
	var state *itemState
	if len(item.Steps) > 0 {
		state = p.state(item)
		state.mu.Lock()
		in.value, in.failure = state.run(in.value, in.failure, b.At[i])
		if in.failure != nil && !errors.Is(in.failure, errDiscard) {
			state.forget()
		}
		state.mu.Unlock()
	}
	if errors.Is(in.failure, errDiscard) {
		return false
	}
	if item.RuleID != 0 {
		p.discover(b.Done, item, in)
		return false
	}
	if item.HasDependents {
		p.fanOut(b, i, item, in)
	}
	store(b, i, item, in.value, in.failure)
	if b.Types[i] == model.Unsupported {
		p.refuse(b, i, item)
		if state != nil && in.failure == nil {
			state.mu.Lock()
			state.forget()
			state.mu.Unlock()
		}
	}
	return true
}

// refuse counts a row without value. Its reason, which people see, gets the item's secret macros in the place of their values: here all reasons come by,
// of checks, of agents and proxies, and of steps.
func (p *Processor) refuse(b *model.Batch, i int, item *model.Item) {
	p.unsupported.Inc()
	reason := string(b.Bytes(i))
	if shown := item.Conceal(reason); shown != reason {
		b.Bits[i] = b.Store([]byte(shown))
	}
}

// discover hands the value of a discovery rule on, with the completions of its batch.
func (p *Processor) discover(done []*model.Completion, item *model.Item, in input) {
	switch {
	case p.rules == nil:
	case in.failure != nil:
		p.rules.Take(item, nil, item.Conceal(in.failure.Error()), done)
	default:
		p.rules.Take(item, in.value.bytes(), "", done)
	}
}

const (
	// maxLevels is how many levels of dependent items there may be below a master item, as in Zabbix.
	maxLevels = 3
	// maxFanBytes bounds the arena of a batch to which values of dependent items are added.
	maxFanBytes = 256 << 20
)

// fanOut appends the values of the items that depend on the item of row i. They are given the value before it is converted to the
// item's type, which would cut it, and share what their first steps parse.
func (p *Processor) fanOut(b *model.Batch, i int, item *model.Item, in input) {
	if in.level++; in.level > maxLevels {
		return
	}
	switch {
	case in.failure != nil:
		in.failure = errVerbatim(item.Conceal(in.failure.Error())) // those below do not know the secrets of their master
	case in.value.form == textForm && in.value.parsed == nil:
		in.value.parsed = &parsed{}
	}
	at, flags := b.At[i], b.Flags[i]
	for _, d := range p.items.Dependents(item.ID) {
		if len(b.Arena) > maxFanBytes {
			in.value, in.failure = value{}, errVerbatim("the values of the items that depend on "+item.Key+" are too large together")
		}
		k := b.Len()
		if p.isSlow(d) {
			b.Append(d.ID, at, model.Raw, 0)
			b.Flags[k] = flags
			left := p.leave(b, k, d, in)
			b.Truncate(k)
			if left {
				continue
			}
		}
		b.Append(d.ID, at, model.Raw, 0)
		b.Flags[k] = flags
		if !p.apply(b, k, d, in) {
			b.Truncate(k)
			if d.RuleID == 0 {
				p.discarded.Inc()
			}
		}
	}
}

// state returns the compiled steps of an item and what they remember.
func (p *Processor) state(item *model.Item) *itemState {
	s := &p.shards[uint64(item.ID)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.items[item.ID]
	if state == nil || !state.program.serves(item) {
		state = newItemState(item, p.scripts)
		s.items[item.ID] = state
	}
	return state
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
