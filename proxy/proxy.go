// Package proxy stands between agents and a server: it gets from the server what to ask of which hosts, takes their values by all protocols,
// preprocesses them, keeps them on disk while the server is away, and sends them on. It speaks the protocol of Zabbix 6.0, so that the server
// may be Zabbix's own.
//
// docs/design/0037-proxies.md has the reasons.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/collect/trapper"
	"tidemark/collect/zbxagent"
	"tidemark/collectors"
	"tidemark/confcache"
	"tidemark/discovery/network"
	"tidemark/histcache"
	"tidemark/internal/tlsdial"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/preproc"
	"tidemark/preproc/script"
	"tidemark/proxy/queue"
)

// Options of a Proxy.
type Options struct {
	// Data is the data folder; it is created if need be.
	Data string
	// Server is the address of the server's agent protocol, "host:port"; Name is what the server knows this proxy by.
	Server, Name string
	// Passive has the proxy wait for the server to ask, at Trapper. Server are the addresses, networks and names from which it may then, with
	// commas between, and TLS is what it must show.
	Passive bool
	// TLS says how the proxy connects to the server.
	TLS tlsdial.Settings
	// Trapper is the listener of agents and senders, HTTP that of metrics and state, Traps the UDP socket for SNMP traps, nil for none. The
	// proxy closes them.
	Trapper, HTTP net.Listener
	Traps         net.PacketConn
	// Certificates, if not nil, holds the proxy's own certificate for agents and, as RootCAs, the authorities that sign theirs.
	Certificates *tls.Config
	// Refresh is how often the configuration is asked for; zero is a minute.
	Refresh time.Duration
	// BufferBytes bounds what waits on disk for the server, BufferAge how old it becomes; zero is 4 GiB, and no limit.
	BufferBytes int64
	BufferAge   time.Duration
	// CacheBytes bounds the values that wait to be written; zero is 64 MiB.
	CacheBytes int
	// Allowed, Denied, SSLFolder, ExternalScripts, JavaGateway and ScriptWorker are those of collectors.Options.
	Allowed, Denied []netip.Prefix
	SSLFolder       string
	ExternalScripts string
	JavaGateway     string
	ScriptWorker    []string
	// RemoteCommands permits commands on this machine, which people run by the server.
	RemoteCommands bool
	// Page, if not nil, shows what passes.
	Page Page
	// Version is that of the program.
	Version string
	// Logger may be nil.
	Logger *slog.Logger
}

// Page keeps and shows what passes a proxy.
type Page interface {
	// Follow makes hosts and items known. It is called by one goroutine, and not before Run.
	Follow(ctx context.Context, s *confcache.Snapshot) error
	// Show takes copies of values; it must not wait, and the batch must not change.
	Show(b *model.Batch)
}

// The defaults of Options.
const (
	defaultRefresh     = time.Minute
	defaultBufferBytes = 4 << 30
	// firstRefresh is the pause between questions while there is no configuration.
	firstRefresh = 5 * time.Second
)

// ErrInUse says that another process works in the data folder.
var ErrInUse = errors.New("the data folder is in use by another tidemark; stop it, or choose another folder with --data")

// Proxy is an open proxy.
type Proxy struct {
	o       Options
	logger  *slog.Logger
	metrics *metrics.Set
	started time.Time

	configuration *configuration
	lock          io.Closer
	cache         *confcache.Cache
	queue         *queue.Queue
	histcache     *histcache.Cache
	preproc       *preproc.Processor
	scripts       *script.Runner
	trapper       *trapper.Server
	traps         *collectors.Traps
	collectors    *collectors.Set
	poller        *poller.Poller
	facts         *facts
	scanner       *network.Scanner
	sender        *sender
	asker         *peer
	passive       *passive

	closeOnce sync.Once
	closeErr  error
}

// Open opens the data folder with the configuration and the values of the last run. Nothing is served before Run.
func Open(ctx context.Context, o Options) (*Proxy, error) {
	p := &Proxy{o: o, logger: o.Logger, metrics: metrics.NewSet(), started: time.Now()}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	if p.o.Refresh == 0 {
		p.o.Refresh = defaultRefresh
	}
	if p.o.BufferBytes == 0 {
		p.o.BufferBytes = defaultBufferBytes
	}
	if p.o.SSLFolder == "" {
		p.o.SSLFolder = filepath.Join(o.Data, "ssl")
	}
	if p.o.ExternalScripts == "" {
		p.o.ExternalScripts = filepath.Join(o.Data, "externalscripts")
	}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Proxy) open(ctx context.Context) error {
	dial, err := p.dialer()
	if err != nil {
		return err
	}
	fsys := vfs.OS{}
	folder := filepath.Join(p.o.Data, "proxy")
	if err := fsys.MkdirAll(folder); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	p.lock, err = fsys.Lock(filepath.Join(p.o.Data, "LOCK"))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("%s: %w", p.o.Data, ErrInUse)
	case err != nil:
		return fmt.Errorf("the data folder %s cannot be used: %w", p.o.Data, err)
	}
	if p.configuration, err = openConfiguration(fsys, filepath.Join(folder, "configuration"), p.logger); err != nil {
		return err
	}
	p.queue, err = queue.Open(ctx, queue.Options{
		Folder: folder, FS: fsys, LimitBytes: p.o.BufferBytes, MaxAge: p.o.BufferAge, IsRule: p.configuration.isRule, Logger: p.logger, Metrics: p.metrics,
	})
	if err != nil {
		return err
	}
	p.cache = confcache.New(p.configuration, confcache.Options{Logger: p.logger, Metrics: p.metrics})
	if err := p.openPipeline(); err != nil {
		return err
	}
	p.sender = &sender{
		name: p.o.Name, peer: newPeer(p.o.Server, dial, maxAnswerBytes), queue: p.queue, interfaces: &interfaces{idsOf: p.interfaceIDs}, newcomers: &newcomers{}, finds: &finds{}, logger: p.logger,
	}
	p.sender.measure(p.metrics)
	p.asker = newPeer(p.o.Server, dial, maxConfigurationBytes)
	p.openCollectors()
	p.cache.Subscribe(p.apply)
	_, err = p.cache.Refresh(ctx)
	p.look(p.cache.Snapshot())
	return err
}

// dialer is how the proxy connects to the server; nil for a passive one.
func (p *Proxy) dialer() (tlsdial.Dial, error) {
	if p.o.Passive {
		var err error
		p.passive, err = newPassive(p)
		return nil, err
	}
	if _, _, err := net.SplitHostPort(p.o.Server); err != nil {
		return nil, fmt.Errorf("server %q: expected host:port: %w", p.o.Server, err)
	}
	return p.o.TLS.Dialer("proxy.tls")
}

// openPipeline makes the stages that a value passes, from the queue backwards.
func (p *Proxy) openPipeline() error {
	p.histcache = histcache.New(histcache.Options{LimitBytes: p.o.CacheBytes, TakeValues: batchRows / 2, Metrics: p.metrics})
	stage := preproc.Options{Items: items{p.cache}, Sink: p.histcache, Metrics: p.metrics, Logger: p.logger}
	table := p.collectorOptions()
	if len(p.o.ScriptWorker) > 0 {
		p.scripts = script.New(script.Options{Command: p.o.ScriptWorker, Metrics: p.metrics, Rules: table.Rules()})
		stage.Scripts = p.scripts
	}
	p.preproc = preproc.New(stage)
	var err error
	p.collectors, err = collectors.Open(table)
	return err
}

func (p *Proxy) collectorOptions() collectors.Options {
	o := collectors.Options{
		Allowed: p.o.Allowed, Denied: p.o.Denied, SSLFolder: p.o.SSLFolder, ExternalScripts: p.o.ExternalScripts, JavaGateway: p.o.JavaGateway, ScriptWorker: p.o.ScriptWorker, Version: p.o.Version, Metrics: p.metrics,
	}
	if p.o.HTTP != nil {
		if at, ok := p.o.HTTP.Addr().(*net.TCPAddr); ok {
			o.OwnPorts = []uint16{uint16(at.Port)}
		}
	}
	return o
}

// openCollectors makes what takes and asks for values.
func (p *Proxy) openCollectors() {
	keys := p.configuration.keys
	secured := &trapper.TLS{Keys: keys}
	if p.o.Certificates != nil {
		c := p.o.Certificates.Clone()
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, c.RootCAs, true
		secured.Certificates = c
	}
	o := trapper.Options{
		Access: keys, TLS: secured, Capped: p.histcache.Capped, Sink: p.preproc, Items: trapperItems{p.cache, p.configuration.isRule}, Marks: p.queue,
		Registrar: p.sender.newcomers, Regexp: func(name string) (model.GlobalRegexp, bool) { return p.cache.Snapshot().Regexp(name) }, Log: p.logger, Metrics: p.metrics,
	}
	if p.passive != nil {
		o.Passive = p.passive
		p.configuration.askedBy(p.passive.tls)
	}
	p.trapper = trapper.New(o)
	if p.o.Traps != nil {
		p.traps = collectors.NewTraps(collectors.TrapOptions{Socket: p.o.Traps, Sink: p.preproc, Cache: p.cache, Log: p.logger, Metrics: p.metrics})
	}
	p.facts = &facts{cache: p.cache, unsupported: map[model.ItemID]struct{}{}}
	agents := zbxagent.New(zbxagent.Options{Access: keys, Certificates: p.o.Certificates})
	kinds := append([]poller.Kind{agents.Kind(), p.internals()}, p.collectors.Kinds...)
	p.poller = poller.New(poller.Options{Sink: p.preproc, Kinds: kinds, Availability: availability{p.sender.interfaces}, Ticks: poller.SystemTicks, Log: p.logger, Metrics: p.metrics})
	p.facts.poller = p.poller
	p.sender.tasks = newTasks(p, agents)
	table := p.collectorOptions()
	p.scanner = network.New(network.Options{Prober: p.collectors.Prober(&table, p.cache), Reporter: p.sender.finds, Metrics: p.metrics, Logger: p.logger})
}

// availability hears of interfaces that come and go.
type availability struct{ interfaces *interfaces }

// Changed implements poller.Availability.
func (a availability) Changed(s poller.InterfaceState) {
	a.interfaces.set(s.Host, s.Kind, s.Address, s.Available, s.Error)
}

// kindOf names the checks that use interfaces of a type.
var kindOf = map[model.InterfaceType]string{
	model.AgentInterface: "agent", model.SNMPInterface: "snmp", model.IPMIInterface: "ipmi", model.JMXInterface: "jmx",
}

// interfaceIDs are the ids by which the server knows the interfaces at an address.
func (p *Proxy) interfaceIDs(host model.HostID, kind, address string) []uint64 {
	h, ok := p.cache.Snapshot().HostByID(host)
	if !ok {
		return nil
	}
	var list []uint64
	ids := p.configuration.interfaceIDs(host)
	for i := range h.Interfaces {
		if at := &h.Interfaces[i]; i < len(ids) && kindOf[at.Type] == kind && collectors.Address(at) == address {
			list = append(list, ids[i])
		}
	}
	return list
}

// apply brings a change of the configuration to the collectors.
func (p *Proxy) apply(_ context.Context, c *confcache.Changes) error {
	for _, id := range append(c.DeletedHosts, c.Hosts...) {
		p.applyHost(c.Snapshot, id)
	}
	p.preproc.Forget(c.DeletedItems)
	p.facts.forget(c.DeletedItems)
	p.traps.Changed()
	for item, at := range p.configuration.logs() {
		p.trapper.SeedLog(item, at.Size, at.MTime)
	}
	ids := map[uint64]bool{}
	for h := range c.Snapshot.Hosts() {
		for _, id := range p.configuration.interfaceIDs(h.ID) {
			ids[id] = true
		}
	}
	p.sender.interfaces.keepOnly(ids)
	return nil
}

// look brings the rules of network discovery into force.
func (p *Proxy) look(s *confcache.Snapshot) {
	if err := p.scanner.Apply(networkRules(p.configuration.discovery(), s.ExpandGlobal, p.logger)); err != nil {
		p.logger.Warn("network discovery goes on with the rules of before", "error", err)
	}
}

// applyHost replaces what one host is asked for; one that is gone is asked for nothing.
func (p *Proxy) applyHost(s *confcache.Snapshot, id model.HostID) {
	var tasks []poller.Task
	if h, ok := s.HostByID(id); ok {
		list := s.Items(id)
		for i := range list {
			item := &list[i]
			if !item.Enabled || !p.poller.Takes(item.Type) {
				continue
			}
			if item.Type == model.Internal {
				tasks = append(tasks, poller.Task{Item: item})
			} else if t, ok := collectors.Task(h, item); ok {
				tasks = append(tasks, t)
			}
		}
	}
	if err := p.poller.Apply(id, tasks); err != nil {
		p.logger.Warn("items are not asked for", "host_id", uint64(id), "error", err)
	}
}

// Close makes everything durable and releases the data folder. Run must have returned. A second call does nothing.
func (p *Proxy) Close() error {
	p.closeOnce.Do(func() {
		var errs []error
		if p.trapper != nil {
			errs = append(errs, p.trapper.Close())
		}
		if p.collectors != nil {
			errs = append(errs, p.collectors.Close())
		}
		if p.scripts != nil {
			errs = append(errs, p.scripts.Close())
		}
		if p.queue != nil {
			errs = append(errs, p.queue.Close())
		}
		if p.lock != nil {
			errs = append(errs, p.lock.Close())
		}
		p.closeErr = errors.Join(errs...)
	})
	return p.closeErr
}
