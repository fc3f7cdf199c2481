package poller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

// sink keeps what it is given.
type sink struct {
	mu   sync.Mutex
	rows []row
	err  error
}

type row struct {
	item model.ItemID
	at   time.Time
	text string
}

func (s *sink) Put(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for i := range b.Len() {
		s.rows = append(s.rows, row{b.Items[i], time.Unix(0, b.At[i]), string(b.Bytes(i))})
	}
	b.Finish(nil)
	b.Free()
	return nil
}

func (s *sink) taken() []row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]row(nil), s.rows...)
}

// checker answers what it is told, after a time.
type checker struct {
	mu sync.Mutex
	// took is how long a check takes; down says that hosts do not answer.
	took  time.Duration
	down  map[string]bool
	calls []call
	// flying and most are the calls under way, all and by address.
	flying, most map[string]int
}

type call struct {
	at    time.Time
	items []model.ItemID
}

func (c *checker) Check(ctx context.Context, tasks []*Task, results []Result) {
	c.mu.Lock()
	took := c.took
	if c.flying == nil {
		c.flying, c.most = map[string]int{}, map[string]int{}
	}
	for _, key := range []string{"", tasks[0].Address} {
		c.flying[key]++
		c.most[key] = max(c.most[key], c.flying[key])
	}
	made := call{at: time.Now()}
	for _, t := range tasks {
		made.items = append(made.items, t.Item.ID)
	}
	c.calls = append(c.calls, made)
	c.mu.Unlock()
	if took > 0 {
		wait, cancel := context.WithTimeout(ctx, took)
		<-wait.Done()
		cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range []string{"", tasks[0].Address} {
		c.flying[key]--
	}
	for i, t := range tasks {
		results[i] = Result{Value, fmt.Appendf(nil, "value of %s", t.Item.Key)}
		switch {
		case ctx.Err() != nil:
			results[i] = Result{Unreachable, []byte("timed out")}
		case c.down[t.Address]:
			results[i] = Result{Unreachable, []byte("refused")}
		case t.Item.Key == "bad":
			results[i] = Result{NotSupported, []byte("no such key")}
		case t.Item.Key == "none":
			results[i] = Result{Outcome: Nothing}
		}
	}
}

func (c *checker) set(took time.Duration, down ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took, c.down = took, map[string]bool{}
	for _, d := range down {
		c.down[d] = true
	}
}

func (c *checker) made() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]call(nil), c.calls...)
}

// harness is a running poller in a bubble of time.
type harness struct {
	*Poller
	checker *checker
	sink    *sink
	stop    func() error

	statesMu sync.Mutex
	states   []InterfaceState
}

func (h *harness) Changed(s InterfaceState) {
	h.statesMu.Lock()
	defer h.statesMu.Unlock()
	h.states = append(h.states, s)
}

func (h *harness) changes() []InterfaceState {
	h.statesMu.Lock()
	defer h.statesMu.Unlock()
	return append([]InterfaceState(nil), h.states...)
}

func start(o Options, k Kind) *harness {
	h := &harness{checker: &checker{}, sink: &sink{}}
	k.Name, k.Types, k.Checker = "agent", []model.ItemType{model.PassiveAgent}, h.checker
	o.Sink, o.Kinds, o.Availability = h.sink, []Kind{k}, h
	h.Poller = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	synctest.Wait()
	h.stop = func() error {
		cancel()
		return <-done
	}
	return h
}

func task(id model.ItemID, key, delay, address string) Task {
	return Task{Item: &model.Item{ID: id, Type: model.PassiveAgent, Key: key, Delay: delay}, Address: address}
}

func TestPoller_schedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{})
		if err := h.Apply(1, []Task{task(1, "a", "10s", "x"), task(2, "bad", "1m", "x"), task(3, "none", "1m", "x"), task(4, "at", "0;m/2s30", "x")}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.Sleep(10*time.Minute + time.Second)
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		count := map[model.ItemID]int{}
		var last time.Time
		for _, r := range h.sink.taken() {
			count[r.item]++
			switch r.item {
			case 1:
				if r.text != "value of a" {
					t.Errorf("value %q", r.text)
				}
				if step := r.at.Sub(last); !last.IsZero() && r.at.Sub(begin) > time.Minute && (step < 9*time.Second || step > 11*time.Second) {
					t.Errorf("%s after the one before, want 10 s", step)
				}
				last = r.at
			case 2:
				if r.text != "no such key" {
					t.Errorf("reason %q", r.text)
				}
			case 4:
				if r.at.Second() != 30 || r.at.Minute()%2 != 0 {
					t.Errorf("at %s, want second 30 of every other minute", r.at)
				}
			}
		}
		if count[1] < 60 || count[1] > 62 || count[2] < 10 || count[2] > 12 || count[3] != 0 || count[4] != 5 {
			t.Errorf("values of each item: %v", count)
		}
	})
}

// 10,000 items of one minute come evenly over it, and none twice or never.
func TestPoller_spread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{})
		const hosts, items = 100, 100
		for host := range hosts {
			var tasks []Task
			for i := range items {
				tasks = append(tasks, task(model.ItemID(1+host*items+i), "k", "1m", fmt.Sprint(host)))
			}
			if err := h.Apply(model.HostID(1+host), tasks); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Minute)
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		perSecond := map[int64]int{}
		perItem := map[model.ItemID]int{}
		for _, r := range h.sink.taken() {
			perSecond[r.at.Unix()]++
			perItem[r.item]++
		}
		for second, n := range perSecond {
			if n > 2*hosts*items/60 {
				t.Errorf("%d values in second %d, want about %d", n, second, hosts*items/60)
			}
		}
		for id := model.ItemID(1); id <= hosts*items; id++ {
			if n := perItem[id]; n < 2 || n > 4 {
				t.Errorf("item %d has %d values in three minutes", id, n)
			}
		}
	})
}

func TestPoller_unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{})
		var tasks []Task
		for i := range 20 {
			tasks = append(tasks, task(model.ItemID(i+1), "k", "10s", "x"))
		}
		if err := h.Apply(1, append(tasks, task(99, "k", "10s", "y"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.checker.set(0, "x")
		from := time.Now()
		time.Sleep(5 * time.Minute)
		var failing []time.Duration
		good := 0
		for _, c := range h.checker.made() {
			switch {
			case c.at.Before(from):
			case c.items[0] == 99:
				good++
			default:
				failing = append(failing, c.at.Sub(from).Round(time.Second))
			}
		}
		if good < 29 {
			t.Errorf("%d checks of the other interface in 5 minutes, want 30", good)
		}
		// At 0, then every 15 s until 45 s have passed, then every minute; each within a second or two of jitter.
		if n := len(failing); n < 7 || n > 10 {
			t.Errorf("checks of an interface that fails after %v", failing)
		}
		if states := h.changes(); len(states) != 3 || states[2].Available != Unavailable || states[2].Address != "x" || states[2].Error != "refused" {
			t.Errorf("states: %+v", states)
		}
		if n := h.Queue(0, 0); n != 0 {
			t.Errorf("%d items in the queue; those of an unavailable interface do not count", n)
		}
		h.checker.set(0)
		from = time.Now()
		time.Sleep(2 * time.Minute)
		if s := h.Interfaces(1); len(s) != 2 || s[0].Available != Available || s[0].FailingSince != 0 {
			t.Errorf("interfaces after the end of the outage: %+v", s)
		}
		back := map[model.ItemID]int{}
		for _, c := range h.checker.made() {
			if c.at.After(from) {
				back[c.items[0]]++
			}
		}
		for id := model.ItemID(1); id <= 20; id++ {
			if back[id] < 5 {
				t.Errorf("item %d was asked for %d times in the two minutes after the outage", id, back[id])
			}
		}
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A host with slow checks holds its own only; the limits hold.
func TestPoller_fairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{MaxInFlight: 8, MaxPerHost: 2, Timeout: time.Minute})
		h.checker.set(500 * time.Millisecond)
		var many []Task
		for i := range 1000 {
			many = append(many, task(model.ItemID(i+1), "k", "1s", "greedy"))
		}
		for host, tasks := range [][]Task{many, {task(2001, "k", "1s", "a")}, {task(2002, "k", "1s", "b")}} {
			if err := h.Apply(model.HostID(host+1), tasks); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if n := h.Queue(0, 0); n < 900 {
			t.Errorf("%d items in the queue, want nearly all of the greedy host", n)
		}
		delays := h.QueueByType(nil)[model.PassiveAgent]
		if sum := delays[0] + delays[1] + delays[2] + delays[3]; sum < 900 || delays[5] != 0 {
			t.Errorf("delays %v", delays)
		}
		if list := h.QueueDetails(10, func(model.HostID) bool { return false }); len(list) != 0 {
			t.Errorf("late items of no host: %v", list)
		}
		if list := h.QueueDetails(10, nil); len(list) != 10 || list[0].Host != 1 {
			t.Errorf("details %v", list)
		}
		if b := h.Busy()[0]; b.InFlight < 2 || b.Limit != 8 || b.Percent < 20 || b.Percent > 60 {
			t.Errorf("busy %+v, want 2 to 4 of 8", b)
		}
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if h.checker.most["greedy"] != 2 || h.checker.most[""] > 8 {
			t.Errorf("most checks at once %v", h.checker.most)
		}
		count := map[model.ItemID]int{}
		for _, r := range h.sink.taken() {
			count[r.item]++
		}
		if count[2001] < 60 || count[2002] < 60 {
			t.Errorf("the small hosts have %d and %d values", count[2001], count[2002])
		}
	})
}

func TestPoller_batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{MaxBatch: 10, MaxPerHost: 1})
		h.checker.set(2 * time.Second)
		var tasks []Task
		for i := range 100 {
			tasks = append(tasks, task(model.ItemID(i+1), "k", "10s", fmt.Sprint(i%2)))
		}
		if err := h.Apply(1, tasks); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		full := 0
		for _, c := range h.checker.made() {
			if len(c.items) == 10 {
				full++
			}
			for _, id := range c.items {
				if (id-c.items[0])%2 != 0 {
					t.Fatalf("items %v of two addresses in one call", c.items)
				}
			}
		}
		if full < 20 {
			t.Errorf("%d full batches", full)
		}
	})
}

// What one call can ask for is due at one moment, whatever the items' numbers are: a device gets one request, not one for each.
func TestPoller_batchesAreDueTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(Options{}, Kind{MaxBatch: 128, MaxPerHost: 1})
		var tasks []Task
		for i := range 100 {
			tasks = append(tasks, task(model.ItemID(7*i+1), "k", "1m", "x"))
		}
		if err := h.Apply(1, tasks); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		made := h.checker.made()
		if len(made) < 9 || len(made) > 12 {
			t.Errorf("%d calls in ten minutes", len(made))
		}
		for _, c := range made {
			if len(c.items) != 100 {
				t.Errorf("a call for %d of 100 items", len(c.items))
			}
		}
	})
}

func TestPoller_applyAndCheckNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metrics.NewSet()
		h := start(Options{Metrics: set}, Kind{})
		if err := h.Apply(1, []Task{task(1, "a", "1h", "x"), task(2, "b", "1h", "x")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second) // Both had their first turn.
		have := len(h.sink.taken())
		if have < 2 {
			t.Errorf("%d values after the first minute, want both", have)
		}
		if err := h.CheckNow(1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if got := h.sink.taken(); len(got) != have+1 || got[have].item != 1 {
			t.Errorf("after CheckNow: %v", got[have:])
		}
		if err := h.CheckNow(7); !errors.Is(err, ErrNotPolled) {
			t.Errorf("CheckNow of another item: %v", err)
		}
		bad := task(3, "c", "soon", "x")
		trapper := Task{Item: &model.Item{ID: 4, Type: model.Trapper, Key: "t"}}
		if err := h.Apply(1, []Task{task(1, "a", "10s", "x"), bad, trapper}); err == nil || !errors.Is(err, ErrNotPolled) {
			t.Errorf("Apply with tasks that cannot be: %v", err)
		}
		if h.ItemCount() != 1 {
			t.Errorf("%d items, want 1", h.ItemCount())
		}
		have = len(h.sink.taken())
		time.Sleep(time.Minute)
		if got := len(h.sink.taken()) - have; got < 5 || got > 7 {
			t.Errorf("%d values in a minute by the new interval, want 6", got)
		}
		if err := h.Apply(1, nil); err != nil || h.ItemCount() != 0 {
			t.Errorf("%d items after all were removed: %v", h.ItemCount(), err)
		}
		have = len(h.sink.taken())
		time.Sleep(time.Minute)
		if got := len(h.sink.taken()); got != have {
			t.Errorf("%d values after all items were removed", got-have)
		}
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// While the stages behind do not take values, no new checks are made without limit, and values are counted as lost only
// when they are refused for good.
func TestPoller_sinkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metrics.NewSet()
		h := start(Options{Metrics: set}, Kind{})
		h.sink.err = errors.New("closed")
		if err := h.Apply(1, []Task{task(1, "a", "1s", "x")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		if err := h.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := set.GetOrCreateCounter("tidemark_poller_dropped_values_total").Get(); n < 30 {
			t.Errorf("%d values counted as dropped", n)
		}
	})
}

// What comes due between Apply and Run does not wait for a turn of the wheel.
func TestPoller_dueBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, taken := &checker{}, &sink{}
		p := New(Options{Sink: taken, Kinds: []Kind{{Name: "agent", Types: []model.ItemType{model.PassiveAgent}, Checker: c}}})
		var tasks []Task
		for id := range model.ItemID(50) {
			tasks = append(tasks, task(id+1, "k", "1s", "x"))
		}
		if err := p.Apply(1, tasks); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		items := map[model.ItemID]bool{}
		for _, r := range taken.taken() {
			items[r.item] = true
		}
		if len(items) != len(tasks) {
			t.Errorf("%d of %d items had a value within 5 s", len(items), len(tasks))
		}
	})
}

func TestWheel_longPause(t *testing.T) {
	var w wheel
	w.start(0)
	checks := make([]check, 100)
	for i := range checks {
		checks[i].due = int64(i) * int64(10*time.Second)
		w.add(&checks[i])
	}
	var got []*check
	w.advance(int64(500*time.Second), func(c *check) { got = append(got, c) })
	if len(got) != 50 || w.count != 50 {
		t.Errorf("%d came out and %d stayed, want those of 500 s", len(got), w.count)
	}
	for _, c := range got {
		if c.due >= int64(500*time.Second) {
			t.Errorf("due at %d came out before", c.due)
		}
	}
	w.remove(&checks[60])
	w.advance(int64(2000*time.Second), func(*check) {})
	if w.count != 0 || checks[60].inWheel {
		t.Errorf("%d stayed", w.count)
	}
	if !w.clockBack(0) || w.clockBack(int64(1999*time.Second)) {
		t.Error("the clock's setting back is not seen, or seen where there is none")
	}
}

// BenchmarkSchedule moves half a million checks of a minute through the wheel: the time is that of one check.
func BenchmarkSchedule(b *testing.B) {
	p := New(Options{Kinds: []Kind{{Name: "agent", Types: []model.ItemType{model.PassiveAgent}}}, Sink: &sink{}})
	const hosts, items = 5000, 100
	for host := range hosts {
		var tasks []Task
		for i := range items {
			tasks = append(tasks, task(model.ItemID(1+host*items+i), "k", "1m", "x"))
		}
		if err := p.Apply(model.HostID(1+host), tasks); err != nil {
			b.Fatal(err)
		}
	}
	now := time.Now().UnixNano()
	p.wheel.start(now)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		now += 1 << tickShift
		p.wheel.advance(now, func(c *check) {
			n++
			c.due = c.following(now)
			p.wheel.add(c)
		})
	}
}

// nothing answers at once.
type nothing struct{}

func (nothing) Check(_ context.Context, _ []*Task, results []Result) {
	for i := range results {
		results[i] = Result{Value, []byte("1")}
	}
}

// BenchmarkDispatch makes checks that cost nothing: the time is what the poller itself costs a check.
func BenchmarkDispatch(b *testing.B) {
	p := New(Options{Kinds: []Kind{{Name: "agent", Types: []model.ItemType{model.PassiveAgent}, Checker: nothing{}}}, Sink: &sink{}})
	for i := range 1000 {
		if err := p.Apply(model.HostID(i+1), []Task{task(model.ItemID(i+1), "k", "1m", "x")}); err != nil {
			b.Fatal(err)
		}
	}
	p.running, p.ctx = true, context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += 1000 {
		for id := range model.ItemID(1000) {
			if err := p.CheckNow(id + 1); err != nil {
				b.Fatal(err)
			}
		}
		p.flights.Wait()
		p.out.flush(context.Background())
	}
}
