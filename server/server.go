// Package server puts the parts of the server together: it opens them from the sink backwards, lets them run, and stops them along the
// way of a value, so that nothing that was accepted is lost.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/catalog"
	"tidemark/collect/otlp"
	"tidemark/collect/poller"
	"tidemark/collect/remotewrite"
	"tidemark/collect/scrape"
	"tidemark/collect/series"
	"tidemark/collect/trapper"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/confdb"
	"tidemark/config"
	"tidemark/discovery"
	"tidemark/event"
	"tidemark/histcache"
	"tidemark/histsync"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/preproc"
	"tidemark/preproc/script"
	"tidemark/query"
	"tidemark/query/querylog"
	"tidemark/storage/lease"
	"tidemark/trendcache"
	"tidemark/trigger"
	"tidemark/valuecache"
)

// Options of a Server.
type Options struct {
	// Data is the data folder; it is created if need be.
	Data string
	// HTTP is the listener of the page and the APIs, Trapper that of agents and senders. The server closes them.
	HTTP, Trapper net.Listener
	// Token, if not empty, lets whoever sends it in as administrator, and loopback alone is not enough any more. Without one, and as long as
	// there is no administrator, loopback is administrator; so HTTP must be a loopback listener then.
	Token string
	// Certificates, if not nil, holds the server's own certificate for agents and, as RootCAs, the authorities that sign theirs; nil takes
	// and makes connections in the clear and with pre-shared keys only.
	Certificates *tls.Config
	// Autoregistration makes a host of each unknown agent that asks for its list.
	Autoregistration bool
	// Relaxed answers senders before their values are synced; see docs/user/configuration.md.
	Relaxed bool
	// DSN, if not empty, is the connection string of a PostgreSQL database that keeps the values instead of the embedded engine.
	DSN string
	// Configuration says where hosts, templates, users, problems and events are.
	Configuration ConfigurationPlace
	// Mode is how tables of values are kept there: plain, partitions or timescale; empty takes what is there or fits best.
	Mode string
	// OverrideHistory and OverrideTrends, if not zero, are how long values and trends of all items are kept, whatever the items say.
	OverrideHistory, OverrideTrends time.Duration
	// DatabaseSpaceBytes is the room of PostgreSQL where it is, zero for that of its disk when it is here; EarlyDrop the percentage of its use from which
	// the oldest values go before their time, zero for never.
	DatabaseSpaceBytes int64
	EarlyDrop          int
	// DiskSpaceBytes bounds the store; 0 means 4 GiB or 10 % of the free space, whichever is less.
	DiskSpaceBytes int64
	// PageCacheBytes bounds the memory for sealed pages; 0 means 128 MiB.
	PageCacheBytes int64
	// MinimumAge is how long values shall be kept in any case, else there is a warning; 0 for none.
	MinimumAge time.Duration
	// MinimumAges are those of items whose history is kept long, in place of MinimumAge.
	MinimumAges []config.MinimumAge
	// MinuteShare and HourShare are the parts of the disk space for summaries, in percent: 0 means 15 and 5, a negative number none.
	MinuteShare, HourShare int
	// HostFactor is how many times what other hosts have on average a host may have of the disk before its oldest values go first: 0 means 2, a negative
	// number that there is no such bound.
	HostFactor int
	// HistoryCacheBytes bounds the values that wait to be stored; 0 means 64 MiB.
	HistoryCacheBytes int
	// Collect are the settings of checks.
	Collect CollectOptions
	// ScriptWorker is the command of a process that runs JavaScript steps (script.Serve); without one items with such steps are not
	// supported.
	ScriptWorker []string
	// Scrape are the jobs of targets that are asked for metrics.
	Scrape []*config.ScrapeJob
	// Snapshots are those that the server makes by itself.
	Snapshots SnapshotOptions
	// HotCodec is none, lz4 or zstd:LEVEL, for values as they are first written; empty means none. The embedded engine only.
	HotCodec string
	// Buffered leaves all reads and writes to the system's cache; else file pairs are written, and read as a whole, past it. The embedded engine only.
	Buffered bool
	// Headroom says what happens when the file system fills up. The embedded engine only.
	Headroom HeadroomOptions
	// Recompress is the policy for old values.
	Recompress RecompressOptions
	// QueryLogBytes bounds the log of queries, which says what was asked for and no values; 0 for none. The embedded engine only.
	QueryLogBytes int64
	// Synchronous acknowledges nothing that no standby has; without one for Alone (zero means 10 s) values are refused. The embedded engine only.
	Synchronous bool
	Alone       time.Duration
	// Peer is how other servers of the cluster are called.
	Peer Peer
	// AlertsPaused sends no alerts until somebody resumes them.
	AlertsPaused bool
	// Mirror makes the server show hosts and values of another process (Follow, Show) and nothing of its own; who is let in may look and change
	// nothing. Trapper may be nil then.
	Mirror bool
	// Version is shown on the page.
	Version string
	// Logger may be nil.
	Logger *slog.Logger

	// rebuilt is set when the configuration database was damaged and has been made anew, which is done once.
	rebuilt bool
	// kept, if not nil, is what outlives this server in the process; promote is called when a standby shall take over.
	kept    *kept
	promote func(ctx context.Context, address string) (Promoted, error)
	// term is this server's right to work on a database that it shares, nil when it has all for itself. handOver is told when it shall be given away.
	term     *lease.Term
	handOver chan<- struct{}
}

// Server is an open server.
type Server struct {
	o       Options
	logger  *slog.Logger
	metrics *metrics.Set
	started time.Time
	lock    io.Closer

	catalog     *catalog.Catalog
	engine      engine
	trends      *trendcache.Cache // only for engines without tiers
	classes     []retentionClass
	db          *confdb.DB
	access      *access.Control
	cache       *confcache.Cache
	definitions *definitions
	names       *namedItems
	values      *valuecache.Cache
	events      *event.Log
	alertSink   alertSink
	alerter     *alert.Alerter
	evaluator   *trigger.Evaluator
	histcache   *histcache.Cache
	hours       *hourTrends
	preproc     *preproc.Processor
	trapper     *trapper.Server
	agents      *agentAccess
	proxies     *proxies
	passive     *passiveProxies
	mirror      *mirror
	polling     *polling
	// agentChecker asks agents; commands has a token for each command whose end somebody waits for.
	agentChecker poller.Checker
	commands     chan struct{}
	checks       *collectors.Set
	traps        *collectors.Traps
	scripts      *script.Runner
	// alertScripts runs webhooks in JavaScript; nil when scripts are switched off.
	alertScripts *script.Runner
	presence     *presence
	discovery    *discovery.Engine
	network      *netDiscovery
	noData       noData
	series       *series.Table
	seriesItems  *seriesItems
	scraper      *scrape.Scraper
	remoteWrite  *remotewrite.Handler
	otlp         *otlp.Handler

	querier *query.Querier
	// queryLog is nil for none.
	queryLog *querylog.Log
	latest   *query.Latest
	hub      *query.Hub
	rates    *rates
	hour     pastHour

	configurator *configurator

	// snapshots is nil when values are in PostgreSQL.
	snapshots    *snapshots
	replica      *replica
	recompressor *recompressor
	headroom     *headroom

	retention forecast
	templates templatePointer

	// adopting says that the configuration comes from a standby's memory, whose catalog and engine have its items already.
	adopting bool

	// updating is held by one update of problems at a time, retaining by one change of the retention: each is written to the database and then brought
	// into memory, and the later one must be the later one in both.
	updating, retaining sync.Mutex

	closeOnce sync.Once
	closeErr  error
}

// makeAbsolute gives the data folder the path by which answers know it: of that they leave the folders out (api.Shown).
func (o *Options) makeAbsolute() (err error) {
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	return nil
}

// lockFile is what keeps two processes out of one data folder.
const lockFile = "LOCK"

// ErrInUse says that another process works in the data folder.
var ErrInUse = errors.New("the data folder is in use by another tidemark; stop it, or choose another folder with --data")

// Open opens everything in the data folder and evaluates again what a crash left unevaluated. Nothing is served before Run.
func Open(ctx context.Context, o Options) (*Server, error) {
	if err := o.makeAbsolute(); err != nil {
		return nil, err
	}
	s := &Server{o: o, logger: o.Logger, metrics: metrics.NewSet(), started: time.Now(), presence: &presence{}, classes: retentionClasses(), commands: make(chan struct{}, commandsAtOnce)}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	err := s.open(ctx)
	if err == nil {
		return s, nil
	}
	_ = s.Close()
	if !errors.Is(err, confdb.ErrDamaged) || o.rebuilt {
		return nil, err
	}
	if rebuildErr := s.rebuild(ctx); rebuildErr != nil {
		return nil, errors.Join(err, rebuildErr)
	}
	o.rebuilt = true
	return Open(ctx, o)
}

// rebuild makes a new configuration database of what can be read in a damaged one. Nothing in the folder is open.
func (s *Server) rebuild(ctx context.Context) (err error) {
	lock, err := lockFolder(vfs.OS{}, s.o.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return confdb.Rebuild(ctx, s.o.Data, confdb.Options{Logger: s.logger})
}

func (s *Server) open(ctx context.Context) error {
	fsys := vfs.OS{}
	if err := fsys.MkdirAll(s.o.Data); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	if s.o.kept == nil {
		lock, err := lockFolder(fsys, s.o.Data)
		if err != nil {
			return err
		}
		s.lock = lock
	}
	steps := []func(context.Context, vfs.FS) error{s.openNode, s.openStores, s.openReplica, s.openAccess, s.openEvaluation, s.openPipeline, s.openQueries, s.openAlerts}
	for _, step := range steps {
		if err := step(ctx, fsys); err != nil {
			return err
		}
	}
	return nil
}

// openEvaluation opens triggers and events, brings the configuration into force, and evaluates what came behind the evaluated LSN.
func (s *Server) openEvaluation(ctx context.Context, _ vfs.FS) error {
	s.values = valuecache.New(valuecache.Options{History: s.engine, Metrics: s.metrics, Logger: s.logger})
	var err error
	expressions := &expressions{}
	s.events, err = event.Open(ctx, event.Options{
		Store: eventStore{s.db, s.engine, s.following(), s.release}, Objects: eventObjects{s.names}, Values: s.values, Past: begunValues{s.engine}, Expressions: expressions,
		Sink: &s.alertSink, Metrics: s.metrics, Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("open the events: %w", err)
	}
	s.hours = (&hourTrends{engine: s.engine}).countIn(s.metrics)
	s.evaluator = trigger.New(trigger.Options{
		Values: s.values, Events: s.events, Items: s.names, Trends: s.hours, Absence: s.absence, States: s.events.States(), Evaluated: s.events.Evaluated(), Metrics: s.metrics, Logger: s.logger,
	})
	expressions.evaluator = s.evaluator
	s.cache.Subscribe(s.applyConfiguration)
	if err := s.readConfiguration(ctx); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if err := s.defineDeclared(ctx); err != nil {
		return err
	}
	if err := s.values.Warm(ctx, time.Now().UnixNano()); err != nil {
		return fmt.Errorf("fill the value cache: %w", err)
	}
	if s.following() {
		return nil
	}
	return s.replay(ctx)
}

// readConfiguration brings the configuration into force: what a standby had in memory before its promotion, and what changed since, or all of it.
func (s *Server) readConfiguration(ctx context.Context) error {
	if k := s.o.kept; k != nil && k.configuration != nil {
		known := k.configuration
		k.configuration = nil
		s.adopting = true
		if err := s.cache.Adopt(ctx, known); err != nil {
			return err
		}
		s.adopting = false
	}
	_, err := s.cache.Refresh(ctx)
	return err
}

// replay evaluates the values that were stored but not evaluated when the process ended.
func (s *Server) replay(ctx context.Context) error {
	from := s.events.Evaluated()
	values := 0
	var unrecorded error
	err := s.engine.Replay(ctx, from, func(lsn model.LSN, b *model.Batch) error {
		values += b.Len()
		if err := s.evaluator.Evaluate(ctx, lsn, b); err != nil {
			unrecorded = err
		}
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("evaluate the values since the last stop: %w", err)
	}
	if values == 0 {
		return nil
	}
	s.logger.Info("values evaluated that came before the last stop", "values", values)
	if s.o.kept != nil && s.o.kept.promoted {
		return ctx.Err() // who waits for a promotion does not wait for that too: the event log writes it within a second
	}
	// Written at once, so that one crash after another does not make each start longer. On a full disk it waits in memory.
	if err := s.events.Flush(ctx); err != nil {
		s.logger.Error("the evaluation of earlier values could not be recorded; it is tried again", "error", err, "earlier_error", unrecorded)
	}
	return ctx.Err()
}

// openPipeline makes the stages that hold values in memory only.
func (s *Server) openPipeline(ctx context.Context, _ vfs.FS) error {
	s.histcache = histcache.New(histcache.Options{LimitBytes: s.o.HistoryCacheBytes, Metrics: s.metrics})
	s.discovery = s.newDiscovery()
	stage := preproc.Options{Items: s.definitions, Sink: s.histcache, Rules: s.discovery, NoData: s.noData.Hosts, Metrics: s.metrics, Logger: s.logger}
	if len(s.o.ScriptWorker) > 0 {
		s.scripts = script.New(script.Options{Command: s.o.ScriptWorker, Metrics: s.metrics, Rules: s.rules()})
		stage.Scripts = s.scripts
	}
	s.preproc = preproc.New(stage)
	var err error
	if s.agents, err = openAgentAccess(ctx, s.db, s.o.Certificates, s.logger); err != nil {
		return err
	}
	if err := s.openNetDiscovery(ctx); err != nil {
		return err
	}
	if err := s.openProxies(ctx); err != nil {
		return err
	}
	options := trapper.Options{
		Access: s.agents.keys, TLS: s.agents.trapperTLS(), Capped: s.histcache.Capped,
		MaxConnections: connectionLimit(),
		Sink:           s.preproc, Items: trapperItems{s.definitions}, Regexp: func(name string) (model.GlobalRegexp, bool) { return s.cache.Snapshot().Regexp(name) }, Presence: s.presence, Marks: s.engine, Log: s.logger, Metrics: s.metrics,
		Proxies: s.proxies, Refusal: s.refusal,
		Declarer: &declarer{
			definitions: s.definitions, engine: s.engine, classes: s.classes, db: s.db, changed: s.itemsChanged, logger: s.logger,
		},
	}
	if s.o.Autoregistration {
		options.Registrar = &registrar{db: s.db, cache: s.cache, own: s.ownTemplate(), actions: s.network, logger: s.logger}
	}
	s.trapper = trapper.New(options)
	s.passive = s.newPassiveProxies()
	if s.o.Mirror {
		s.mirror = newMirror(s.metrics)
	}
	s.traps = s.openTraps()
	if err := s.openSeries(); err != nil {
		return err
	}
	if s.checks, err = collectors.Open(s.collectorOptions()); err != nil {
		return fmt.Errorf("open the collectors: %w", err)
	}
	table := s.collectorOptions()
	s.network.scanner.Use(s.checks.Prober(&table, s.cache))
	agents := s.agents.kinds()
	s.agentChecker = agents[0].Checker
	s.polling = newPolling(pollingOptions{
		sink: s.preproc, names: s.names, values: s.values, trends: s.hours, version: s.o.Version, started: s.started,
		kinds: append(agents, s.checks.Kinds...), tasks: collectors.Task, ticks: poller.SystemTicks, quiet: s.noData.has, proxied: s.proxies.interfaceOf, proxyName: s.proxies.name, askProxy: s.proxies.checkNow, metrics: s.metrics, logger: s.logger,
	})
	return nil
}

// openQueries makes the read side.
func (s *Server) openQueries(context.Context, vfs.FS) error {
	options := query.Options{Metrics: s.metrics}
	if s.o.QueryLogBytes > 0 && s.o.DSN == "" {
		s.queryLog = querylog.New(s.o.Data, s.o.QueryLogBytes, s.metrics, s.logger)
		options.Log = s.queryLog.Put
	}
	s.querier = query.New(s.engine, s.catalog, options)
	s.latest = query.NewLatest(s.querier)
	s.hub = query.NewHub(s.metrics)
	s.rates = &rates{}
	s.configurator = s.newConfigurator()
	return nil
}

// syncer makes the history syncer over everything that is open.
func (s *Server) syncer() *histsync.Syncer {
	options := histsync.Options{
		Source: s.histcache, History: s.engine, Evaluator: s.evaluator, EndOfInput: histcache.ErrClosed,
		Observers: []histsync.Observer{s.latest, observerFunc(s.hub.Publish), s.rates, s.polling}, Metrics: s.metrics, Logger: s.logger,
	}
	if s.trends != nil {
		options.Trends = s.trends
	}
	return histsync.New(options)
}

// observerFunc lets a function be an observer.
type observerFunc func(*model.Batch)

// Observe implements histsync.Observer.
func (f observerFunc) Observe(b *model.Batch) { f(b) }
