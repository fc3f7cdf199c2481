package discovery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tidemark/model"
)

// holding is a store whose Discover waits until it is let go or its caller gives up.
type holding struct {
	Store
	entered, release chan struct{}
}

func (h *holding) Discover(ctx context.Context, x *model.Discovery) (*model.Discovered, error) {
	h.entered <- struct{}{}
	select {
	case <-h.release:
		return h.Store.Discover(ctx, x)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acknowledged takes a value and returns the completion of its batch.
func (b *bench) acknowledged(e *Engine, item *model.Item, text string) *model.Completion {
	done := model.NewCompletion()
	e.Take(item, []byte(text), "", []*model.Completion{done})
	done.Finish(nil)
	return done
}

// waitFor waits for a channel for at most a minute.
func (b *bench) waitFor(what string, c <-chan struct{}) {
	b.t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		b.t.Fatalf("waited a minute in vain for %s", what)
	}
}

// running runs an engine and returns what ends it.
func (b *bench) running(e *Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := e.Run(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	return func() {
		b.t.Helper()
		cancel()
		b.waitFor("the end of the engine", ended)
	}
}

// again returns an engine over the same database, as after a start.
func (b *bench) again() *Engine {
	return New(Options{Rules: func() Rules { return b.cache.Snapshot() }, Store: b.db, Now: func() time.Time { return b.now }})
}

// kept returns the texts that the database keeps.
func (b *bench) kept() (texts []string) {
	b.t.Helper()
	if _, err := b.db.KeptRuleValues(b.t.Context(), func(v model.RuleValue) { texts = append(texts, string(v.Text)) }); err != nil {
		b.t.Fatal(err)
	}
	return texts
}

// exists tells whether the item of an interface was made.
func (b *bench) exists(name string) bool {
	b.refresh()
	_, ok := b.cache.Snapshot().ItemByKey(b.host("h"), "in["+name+"]")
	return ok
}

// TestTake_kept acknowledges values that nobody has worked on yet only when they are kept, and works on them after a crash.
func TestTake_kept(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	store := &holding{Store: b.db, entered: make(chan struct{}, 10), release: make(chan struct{})}
	b.engine.o.Store = store
	stop := b.running(b.engine)
	first := b.acknowledged(b.engine, item, `[{"{#IF}":"eth0"}]`)
	b.waitFor("the store", store.entered)
	second := b.acknowledged(b.engine, item, `[{"{#IF}":"eth1"}]`)
	b.waitFor("the acknowledgement of the value that is worked on", first.Done())
	b.waitFor("the acknowledgement of the value behind it", second.Done())
	if got := b.kept(); len(got) != 1 || got[0] != `[{"{#IF}":"eth1"}]` {
		t.Errorf("kept are %q", got)
	}

	// The crash: another engine knows what is in the database only.
	next := b.again()
	end := b.running(next)
	b.wait(func() bool { return b.exists("eth1") })
	end()
	if got := b.kept(); len(got) != 0 {
		t.Errorf("after the work %q are kept", got)
	}
	stop()
	if got := b.kept(); len(got) != 0 {
		t.Errorf("a value that is older than what was worked on is kept: %q", got)
	}
}

// TestRun_end keeps what is cut off and what waits, and refuses what comes later.
func TestRun_end(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	store := &holding{Store: b.db, entered: make(chan struct{}, 10), release: make(chan struct{})}
	b.engine.o.Store = store
	stop := b.running(b.engine)
	b.engine.Take(item, []byte(`[{"{#IF}":"eth0"}]`), "", nil)
	b.waitFor("the store", store.entered)
	stop()
	if got := b.kept(); len(got) != 1 || got[0] != `[{"{#IF}":"eth0"}]` {
		t.Errorf("kept are %q", got)
	}
	late := b.acknowledged(b.engine, item, `[{"{#IF}":"eth1"}]`)
	b.waitFor("an answer after the end", late.Done())
	if err := late.Err(); !errors.Is(err, errClosed) {
		t.Errorf("a value after the end: %v", err)
	}
	end := b.running(b.again())
	b.wait(func() bool { return b.exists("eth0") })
	end()
}

// TestTake_soon writes nothing for a value that is worked on at once.
func TestTake_soon(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	store := &keeping{Store: b.db}
	b.engine.o.Store = store
	done := b.acknowledged(b.engine, item, `[{"{#IF}":"eth0"}]`)
	b.acknowledged(b.engine, item, `[{"{#IF}":"eth2"}]`)
	select {
	case <-done.Done(): // A newer one took its place.
	default:
		t.Error("a value waits that a newer one replaced")
	}
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan struct{})
	go func() { b.engine.work(ctx); close(worked) }()
	b.wait(func() bool { return len(b.engine.waiting) == 0 && len(b.engine.busy) == 0 })
	b.engine.keepWaiting(ctx, true)
	if store.values != 0 || !b.exists("eth2") {
		t.Errorf("%d values were kept", store.values)
	}
	b.engine.mu.Lock()
	b.engine.closed = true
	b.engine.room.Broadcast()
	b.engine.mu.Unlock()
	stop()
	b.waitFor("the worker", worked)
}

// keeping counts values that are kept, and may fail.
type keeping struct {
	Store
	values int
	fail   error
}

func (k *keeping) KeepRuleValues(ctx context.Context, values []model.RuleValue) error {
	if k.values += len(values); k.fail != nil {
		return k.fail
	}
	return k.Store.KeepRuleValues(ctx, values)
}

// TestTake_withoutStore acknowledges also when nothing can be kept: the value stays in memory.
func TestTake_withoutStore(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	b.engine.o.Store = &keeping{Store: b.db, fail: errors.New("disk full")}
	done := b.acknowledged(b.engine, item, `[{"{#IF}":"eth0"}]`)
	b.engine.keepWaiting(t.Context(), false)
	b.waitFor("the acknowledgement", done.Done())
	if done.Err() != nil || len(b.engine.waiting) != 1 {
		t.Errorf("%v, %d waiting", done.Err(), len(b.engine.waiting))
	}
}

// TestTake_clock dates what is found by the clock of now, even when an earlier value came while the clock was years ahead.
func TestTake_clock(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	right := b.now
	b.now = right.AddDate(50, 0, 0)
	ahead := b.again()
	end := b.running(ahead)
	ahead.Take(item, []byte(`[{"{#IF}":"eth0"}]`), "", nil)
	b.wait(func() bool { return b.exists("eth0") })
	end()

	b.now = right
	store := &dated{Store: b.db, found: make(chan *model.Discovery, 1)}
	next := b.again()
	next.o.Store = store
	end = b.running(next)
	next.Take(item, []byte(`[{"{#IF}":"eth1"}]`), "", nil)
	select {
	case x := <-store.found:
		if !x.At.Equal(right) || x.Order <= right.AddDate(49, 0, 0).UnixNano() {
			t.Errorf("found at %v with the order %d, want %v behind those of before", x.At, x.Order, right)
		}
	case <-time.After(time.Minute):
		t.Error("waited a minute in vain for the store")
	}
	end()
}

// dated is a store that shows what it is given.
type dated struct {
	Store
	found chan *model.Discovery
}

func (d *dated) Discover(ctx context.Context, x *model.Discovery) (*model.Discovered, error) {
	d.found <- x
	return d.Store.Discover(ctx, x)
}

// cutOff is a store whose first KeepRuleValues ends with its context.
type cutOff struct {
	holding
	keeping chan struct{}
	once    sync.Once
}

func (c *cutOff) KeepRuleValues(ctx context.Context, values []model.RuleValue) (err error) {
	c.once.Do(func() {
		close(c.keeping)
		<-ctx.Done()
		err = ctx.Err()
	})
	if err != nil {
		return err
	}
	return c.Store.KeepRuleValues(ctx, values)
}

// TestRun_keeping keeps at the end what was being kept when the end came.
func TestRun_keeping(t *testing.T) {
	b := newBench(t, template)
	item, _ := b.cache.Snapshot().Item(b.rule("h", "ifs").ItemID)
	store := &cutOff{holding: holding{Store: b.db, entered: make(chan struct{}, 10), release: make(chan struct{})}, keeping: make(chan struct{})}
	b.engine.o.Store = store
	stop := b.running(b.engine)
	done := b.acknowledged(b.engine, item, `[{"{#IF}":"eth0"}]`)
	b.waitFor("the value to be kept", store.keeping)
	stop()
	b.waitFor("the acknowledgement", done.Done())
	if got := b.kept(); done.Err() != nil || len(got) != 1 {
		t.Errorf("%v, and kept are %q", done.Err(), got)
	}
}
