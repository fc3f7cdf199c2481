// Package scrape asks targets for metrics in Prometheus' text formats: it finds the targets, asks each at its interval, and stores the
// samples as series.
//
// Names of settings, meta labels and the series about a scrape are Prometheus', so that a configuration can be taken over.
package scrape

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sync/errgroup"

	"tidemark/collect/series"
	"tidemark/config"
	"tidemark/internal/guard"
)

const (
	// maxTargets bounds the targets of all jobs, maxJobTargets those of one before relabelling.
	maxTargets    = 10_000
	maxJobTargets = 50_000
	// maxAtOnce bounds the scrapes whose answers are in memory.
	maxAtOnce = 32
	// maxStoring bounds those whose samples are on their way to the disk.
	maxStoring = 256
)

// Options of a Scraper.
type Options struct {
	Jobs  []*config.ScrapeJob
	Table *series.Table
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
	// Agent is what requests say of themselves.
	Agent string
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics *metrics.Set
}

// Scraper asks the targets of all jobs.
type Scraper struct {
	o      Options
	jobs   []*job
	clock  clock
	outbox *outbox
	// slots and storing are places for scrapes whose answers are in memory, and whose samples are.
	slots, storing chan struct{}

	mu      sync.Mutex
	targets int

	scrapes, failed, samples, stale *metrics.Counter
	histograms                      *metrics.Counter
}

// New returns a scraper; it reads the files of certificates.
func New(o Options) (*Scraper, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	s := &Scraper{
		o: o, outbox: newOutbox(o.Table.Sink()), slots: make(chan struct{}, maxAtOnce), storing: make(chan struct{}, maxStoring),
		scrapes: set.NewCounter("tidemark_scrape_scrapes_total"), failed: set.NewCounter("tidemark_scrape_failed_scrapes_total"),
		samples: set.NewCounter("tidemark_scrape_samples_total"), stale: set.NewCounter("tidemark_scrape_stale_markers_total"),
		histograms: set.NewCounter("tidemark_scrape_dropped_histograms_total"),
	}
	set.NewGauge("tidemark_scrape_targets", func() float64 { s.mu.Lock(); defer s.mu.Unlock(); return float64(s.targets) })
	set.NewGauge("tidemark_scrape_targets_limit", func() float64 { return maxTargets })
	for _, c := range o.Jobs {
		client, err := newClient(&c.ScrapeHTTP, o.Rules)
		if err != nil {
			return nil, err
		}
		j := &job{s: s, config: c, client: client, found: map[string][]config.ScrapeGroup{}, active: map[string]*target{}, broken: map[string]string{}}
		for i := range c.HTTPSDConfigs {
			sd, err := newClient(&c.HTTPSDConfigs[i].ScrapeHTTP, o.Rules)
			if err != nil {
				return nil, err
			}
			j.discovery = append(j.discovery, sd)
		}
		s.jobs = append(s.jobs, j)
	}
	return s, nil
}

// Run asks until ctx ends.
func (s *Scraper) Run(ctx context.Context) error {
	return s.outbox.run(ctx, func() error { return s.clock.run(func() error { return s.runJobs(ctx) }) })
}

func (s *Scraper) runJobs(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, j := range s.jobs {
		g.Go(func() error { return j.run(ctx) })
	}
	return g.Wait()
}

// write begins a scrape's samples.
func (s *Scraper) write() *series.Write { return s.o.Table.WriteWhole(s.outbox) }

// take reserves places for targets.
func (s *Scraper) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.targets >= maxTargets {
		return false
	}
	s.targets++
	return true
}

func (s *Scraper) release() {
	s.mu.Lock()
	s.targets--
	s.mu.Unlock()
}

// job is one entry of scrape_configs.
type job struct {
	s         *Scraper
	config    *config.ScrapeJob
	client    *client
	discovery []*client

	mu sync.Mutex
	// found are the groups of each source of discovery, broken why one could not be read.
	found  map[string][]config.ScrapeGroup
	broken map[string]string
	active map[string]*target
	// dropped and over count targets that relabelling dropped, and that are over a limit; invalid is why the first wrong one is.
	dropped, over int
	invalid       string
	running       sync.WaitGroup
}

// run discovers targets and asks them until ctx ends.
func (j *job) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	defer j.running.Wait()
	j.update(ctx, "static", j.config.StaticConfigs, nil)
	for i := range j.config.FileSDConfigs {
		g.Go(func() error { return j.watchFiles(ctx, &j.config.FileSDConfigs[i]) })
	}
	for i := range j.config.HTTPSDConfigs {
		g.Go(func() error { return j.watchHTTP(ctx, &j.config.HTTPSDConfigs[i], j.discovery[i]) })
	}
	g.Go(func() error { <-ctx.Done(); return nil })
	return g.Wait()
}

// update brings what one source found into force. After an error what it found before stays.
func (j *job) update(ctx context.Context, source string, groups []config.ScrapeGroup, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		if j.broken[source] != err.Error() {
			j.s.o.Logger.Warn("targets could not be read; those that were found before stay", "job", j.config.JobName, "source", source, "error", err)
		}
		j.broken[source] = err.Error()
		return
	}
	delete(j.broken, source)
	j.found[source] = groups
	j.sync(ctx)
}

// sync starts and stops targets. The caller holds mu.
func (j *job) sync(ctx context.Context) {
	wanted := map[string]*target{}
	j.dropped, j.over, j.invalid = 0, 0, ""
	number := 0
	for _, source := range slices.Sorted(keys(j.found)) {
		for _, g := range j.found[source] {
			for _, address := range g.Targets {
				if number++; number > maxJobTargets {
					j.over++
					continue
				}
				t, err := j.newTarget(source, address, g.Labels)
				switch {
				case err != nil:
					j.invalid = cmp.Or(j.invalid, err.Error())
				case t == nil:
					j.dropped++
				case wanted[t.id] != nil:
				case j.config.TargetLimit > 0 && len(wanted) >= j.config.TargetLimit:
					j.over++
				default:
					wanted[t.id] = t
				}
			}
		}
	}
	for id, t := range j.active {
		if wanted[id] == nil {
			t.stop()
			delete(j.active, id)
		}
	}
	for id, t := range wanted {
		if j.active[id] != nil {
			continue
		}
		if !j.s.take() {
			j.over++
			continue
		}
		running, stop := context.WithCancel(ctx)
		t.stop = stop
		j.active[id] = t
		j.running.Add(1)
		go func() {
			defer j.running.Done()
			defer j.s.release()
			t.run(running, ctx)
		}()
	}
	if j.over > 0 {
		j.s.o.Logger.Warn("targets are over a limit and are not asked", "job", j.config.JobName, "targets", j.over, "target_limit", j.config.TargetLimit, "all", maxTargets)
	}
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Status is how a job and its targets are doing.
type Status struct {
	Job     string   `json:"job"`
	Targets []Target `json:"targets"`
	// Dropped counts targets that relabelling dropped, OverLimit those over target_limit or the limit of all targets.
	Dropped   int `json:"dropped"`
	OverLimit int `json:"over_limit"`
	// Errors are why targets could not be read or are wrong.
	Errors []string `json:"errors,omitempty"`
}

// Target is how a target is doing.
type Target struct {
	URL    string            `json:"url"`
	Labels map[string]string `json:"labels"`
	// Health is unknown before the first scrape, then up or down.
	Health    string `json:"health"`
	LastError string `json:"last_error,omitempty"`
	// LastScrape is Unix milliseconds, zero before the first.
	LastScrape   int64         `json:"last_scrape"`
	LastDuration float64       `json:"last_duration_seconds"`
	Interval     time.Duration `json:"-"`
	IntervalS    float64       `json:"interval_seconds"`
	Samples      int           `json:"samples"`
	// Refused are samples of the last scrape that are not kept.
	Refused string `json:"refused,omitempty"`
}

// Status returns all jobs with their targets, in order.
func (s *Scraper) Status() []Status {
	out := []Status{}
	for _, j := range s.jobs {
		j.mu.Lock()
		st := Status{Job: j.config.JobName, Targets: []Target{}, Dropped: j.dropped, OverLimit: j.over}
		for _, source := range slices.Sorted(keys(j.broken)) {
			st.Errors = append(st.Errors, source+": "+j.broken[source])
		}
		if j.invalid != "" {
			st.Errors = append(st.Errors, j.invalid)
		}
		for _, id := range slices.Sorted(keys(j.active)) {
			st.Targets = append(st.Targets, j.active[id].status())
		}
		j.mu.Unlock()
		out = append(out, st)
	}
	return out
}

var _ http.RoundTripper = (*client)(nil)
