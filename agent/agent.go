// Package agent measures this machine and sends the values to a server, second by second.
//
// It speaks the Zabbix active agent protocol (package wire/zbx). To a Tidemark server it declares its items itself;
// from any other server it takes the list of items that it is asked for. One goroutine collects, one sends, one keeps
// the list, a few run slow checks. Values wait in a buffer until the server has taken them; docs/design/0015-agent.md
// says what a kill, an outage or a full disk costs.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/agent/key"
	"tidemark/agent/mongodb"
	"tidemark/internal/tlsdial"
	"tidemark/internal/vfs"
)

// Options say what an agent is and whom it serves. The zero value of every field but Server is usable.
type Options struct {
	// Server is the address of the server's agent port, "host:port".
	Server string
	// Host is the name that the machine has at the server; empty means the machine's host name.
	Host string
	// Interval is how often declared items are measured, 10 ms at least; zero means 1 s.
	Interval time.Duration
	// Refresh is how often the agent asks for its list of items once it has been up for some minutes; zero means 60 s.
	Refresh time.Duration
	// BufferBytes bounds what waits on disk; zero means 64 MiB, less than 1 MiB counts as 1 MiB.
	BufferBytes int64
	// BufferSync makes every value durable before it is sent, at one fdatasync per tick.
	BufferSync bool
	// TLS protects the connections to the server; its zero value is unencrypted.
	TLS tlsdial.Settings
	// Mongo watches MongoDB: its traffic, its own counters, or both; its zero value watches none.
	Mongo Mongo
	// Metadata is what auto-registration sees besides the host name, at most 2,034 bytes.
	Metadata string
	// Version is the value of agent.version.
	Version string
	// Proc and Sys are the mount points of procfs and sysfs; empty means /proc and /sys.
	Proc, Sys string
	// FS is the file system of the buffer; nil means the operating system's.
	FS vfs.FS
	// Logger gets the agent's messages; nil discards them.
	Logger *slog.Logger
	// Metrics gets the agent's metrics; nil for none.
	Metrics *metrics.Set
}

// The defaults and bounds of Options.
const (
	defaultInterval    = time.Second
	minInterval        = 10 * time.Millisecond
	defaultRefresh     = time.Minute
	defaultBufferBytes = 64 << 20
	minBufferBytes     = 1 << 20
	maxMetadataBytes   = 2034 // 255 characters of Zabbix's database field and more; servers refuse longer ones.
)

// Validate fills in defaults and reports the first field that cannot be used.
func (o *Options) Validate() error {
	if o.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("agent host: the machine's host name cannot be read, and none is given: %w", err)
		}
		o.Host = name
	}
	if len(o.Host) > 255 {
		return fmt.Errorf("agent host: %d bytes; at most 255 are allowed", len(o.Host))
	}
	if _, _, err := net.SplitHostPort(o.Server); err != nil {
		return fmt.Errorf("agent server %q: expected host:port: %w", o.Server, err)
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Interval < minInterval || o.Interval > time.Second && o.Interval%time.Second != 0 {
		return fmt.Errorf("agent interval %s: expected %s or more, and whole seconds above one", o.Interval, minInterval)
	}
	if o.Refresh == 0 {
		o.Refresh = defaultRefresh
	}
	if o.BufferBytes == 0 {
		o.BufferBytes = defaultBufferBytes
	}
	o.BufferBytes = max(o.BufferBytes, minBufferBytes)
	if len(o.Metadata) > maxMetadataBytes {
		return fmt.Errorf("agent metadata: %d bytes; at most %d are allowed", len(o.Metadata), maxMetadataBytes)
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Agent collects and sends. Open makes one.
type Agent struct {
	options Options
	dir     string
	log     *slog.Logger
	state   *state
	buffer  *buffer
	machine *key.Machine
	peer    *peer
	sender  *sender
	mongo   *mongodb.Monitor // nil when no MongoDB server is asked
	plans   mongoPlans
	// mongoFlows is how many connections to MongoDB the wire shows, or notWatched.
	mongoFlows atomic.Int64
	// profiled are the requests that MongoDB's profiler tells of; nil when it is not read.
	profiled *sampledRequests
	stats    stats

	lists chan list     // from the refresher to the collector
	slow  chan *job     // from the collector to the workers
	put   chan struct{} // holds one token while the sender has something to do
	ask   chan struct{} // holds one token while the refresher has
	// ready is set while the server knows this agent: it answered a request for the list, and no request since failed.
	ready atomic.Bool

	closeOnce sync.Once
	closeErr  error
}

// stats are what the agent says of itself. All fields may be read at any time.
type stats struct {
	sent, failed, dropped, missed atomic.Uint64
	collectNanos                  atomic.Int64 // the last tick
	items                         atomic.Int64
	connected                     atomic.Bool
}

// Open opens the agent's folder, where its session and the buffer live, and takes its lock. Nothing is measured or sent
// before Run.
func Open(ctx context.Context, dir string, o Options) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	dial, err := o.TLS.Dialer("agent.tls")
	if err != nil {
		return nil, err
	}
	if err := o.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("open agent folder: %w", err)
	}
	a := &Agent{
		options: o, dir: dir, log: o.Logger,
		lists: make(chan list, 1), slow: make(chan *job, maxSlowJobs), put: make(chan struct{}, 1), ask: make(chan struct{}, 1),
	}
	a.machine = key.NewMachine(key.Options{Proc: o.Proc, Sys: o.Sys, Hostname: o.Host, Version: o.Version})
	lock, err := o.FS.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open agent folder: %w", err), a.machine.Close())
	}
	if a.state, err = openState(o.FS, dir, lock, a.log); err == nil {
		a.buffer, err = openBuffer(dir, a.state, bufferOptions{
			fs: o.FS, log: a.log, limitBytes: o.BufferBytes, sync: o.BufferSync, dropped: &a.stats.dropped,
		})
	}
	if err == nil && o.Mongo.URI != "" {
		if err = a.openMongo(); err != nil {
			err = errors.Join(err, a.buffer.close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), a.machine.Close())
	}
	a.mongoFlows.Store(notWatched)
	a.peer = newPeer(o.Server, dial)
	a.sender = newSender(a)
	a.register(o.Metrics)
	return a, nil
}

// Run collects and sends until ctx ends. Then it sends what is left, for half a second at most, and makes durable what
// the server has not taken. It returns nil when ctx ended it.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A request under way when ctx ends is not cut off: its rows would go a second time.
	grace, endGrace := context.WithCancel(context.WithoutCancel(ctx))
	defer endGrace()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTimeout, endGrace) })
	defer stop()
	var others sync.WaitGroup
	others.Go(func() { a.sender.run(ctx, grace) })
	others.Go(func() { newRefresher(a).run(ctx) })
	for range slowWorkers {
		others.Go(func() { a.work(ctx) })
	}
	if a.options.Mongo.Interface != "" {
		others.Go(func() { a.watchMongo(ctx) })
	}
	if a.mongo != nil {
		others.Go(func() { a.askMongo(ctx) })
		if a.options.Mongo.Plans > 0 {
			others.Go(func() { a.askPlans(ctx) })
		}
	}
	if a.options.Mongo.Log != "" {
		others.Go(func() { a.followMongo(ctx) })
	}
	newCollector(a).run(ctx)
	cancel()
	a.machine.Stop()
	others.Wait()
	a.sender.finish(grace)
	return a.buffer.spill()
}

// Close writes what is left to the folder and lets go of it. Run must have returned.
func (a *Agent) Close() error {
	a.closeOnce.Do(func() {
		a.closeErr = errors.Join(a.buffer.close(), a.state.close(), a.machine.Close())
		if a.mongo != nil {
			a.closeErr = errors.Join(a.closeErr, a.mongo.Close())
		}
	})
	return a.closeErr
}

// wake tells the sender that there are rows.
func (a *Agent) wake() {
	select {
	case a.put <- struct{}{}:
	default:
	}
}

// unready stops the sending until the server has answered a request for the list again: an emptied server, which does
// not know this host, would take the values and drop them.
func (a *Agent) unready() {
	a.ready.Store(false)
	select {
	case a.ask <- struct{}{}:
	default:
	}
}

// Test measures one key on this machine, by itself and without a server. A key that compares two moments takes about a
// second. The check says the value's type and units.
func Test(text string) (*key.Check, key.Value, error) {
	return key.MeasureOnce(key.Options{}, text)
}

func (a *Agent) register(set *metrics.Set) {
	if set == nil {
		return
	}
	counter := func(name string, v *atomic.Uint64) {
		set.NewGauge("tidemark_agent_"+name, func() float64 { return float64(v.Load()) })
	}
	counter("values_sent_total", &a.stats.sent)
	counter("values_failed_total", &a.stats.failed)
	counter("values_dropped_total", &a.stats.dropped)
	counter("ticks_missed_total", &a.stats.missed)
	set.NewGauge("tidemark_agent_buffer_bytes", func() float64 { return float64(a.buffer.stats().diskBytes) })
	set.NewGauge("tidemark_agent_buffer_limit_bytes", func() float64 { return float64(a.options.BufferBytes) })
	set.NewGauge("tidemark_agent_buffer_rows", func() float64 { return float64(a.buffer.stats().rows) })
	set.NewGauge("tidemark_agent_collect_seconds", func() float64 { return float64(a.stats.collectNanos.Load()) / 1e9 })
	set.NewGauge("tidemark_agent_items", func() float64 { return float64(a.stats.items.Load()) })
	set.NewGauge("tidemark_agent_connected", func() float64 {
		if a.stats.connected.Load() {
			return 1
		}
		return 0
	})
}
