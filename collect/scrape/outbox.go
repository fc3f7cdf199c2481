package scrape

import (
	"context"
	"sync"
	"time"

	"tidemark/collect"
	"tidemark/internal/reactor"
	"tidemark/model"
)

const (
	// gatherFor is how long samples wait for those of other targets, so that one write to the disk is for all of them.
	gatherFor = 100 * time.Millisecond
	// gatherRows hands them over before.
	gatherRows = 16 << 10
)

// outbox is a sink that gathers the samples of several scrapes. Who Puts a batch hears of it by its completions only.
type outbox struct {
	sink  collect.Sink
	alarm *reactor.Alarm

	mu    sync.Mutex
	batch *model.Batch
	// closed says that nobody hands over what is gathered: it goes on at once.
	closed bool
	// handing is held while a batch is handed over, so that they keep their order.
	handing sync.Mutex
}

func newOutbox(sink collect.Sink) *outbox { return &outbox{sink: sink, closed: true} }

// Put implements collect.Sink.
func (o *outbox) Put(ctx context.Context, b *model.Batch) error {
	o.mu.Lock()
	switch {
	case o.batch != nil:
		o.batch.Add(b)
		b.Free()
	case o.closed:
		o.batch = b
	default:
		o.batch = b
		o.alarm.Set(gatherFor)
	}
	full := o.closed || o.batch.Len() >= gatherRows
	o.mu.Unlock()
	if full {
		o.hand(ctx)
	}
	return nil
}

// hand hands over what is gathered.
func (o *outbox) hand(ctx context.Context) {
	o.handing.Lock()
	defer o.handing.Unlock()
	o.mu.Lock()
	b := o.batch
	o.batch = nil
	o.mu.Unlock()
	if b == nil {
		return
	}
	if err := o.sink.Put(ctx, b); err != nil {
		b.Finish(err)
		b.Free()
	}
}

// run hands over what is gathered while fn runs, and what is left then.
func (o *outbox) run(ctx context.Context, fn func() error) error {
	ctx = context.WithoutCancel(ctx) // What was asked for is stored.
	o.alarm = reactor.NewAlarm()
	o.mu.Lock()
	o.closed = false
	o.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for o.alarm.Wait() {
			o.hand(ctx)
		}
	}()
	err := fn()
	o.mu.Lock()
	o.closed = true
	o.alarm.Close()
	o.mu.Unlock()
	<-over
	o.hand(ctx)
	return err
}
