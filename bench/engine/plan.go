package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidemark/storage/dbengine/bench"
)

// The engines. recompressed is ours with everything written anew.
const (
	tidemark       = "tidemark"
	recompressed   = "tidemark-recompressed"
	prometheusName = "prometheus"
	victoriaName   = "victoriametrics"
	netdataName    = "netdata"
)

var engineNames = []string{tidemark, prometheusName, victoriaName, netdataName}

const (
	// metricCount is what Netdata's test has.
	metricCount = 32 * bench.ChartMetrics
	// goroutines write, and as many read, in the engines that are libraries.
	goroutines     = 2
	bigCacheBytes  = 1 << 30
	tinyCacheBytes = 64 << 20
	// tinyFill makes the values that are read with a cache of 64 MiB larger than that; restFill makes several closed pairs.
	bigFill  = 2 * time.Hour
	tinyFill = 16 * time.Hour
	restFill = 4 * time.Hour
)

// column is a column of the table; phase is what Netdata's test calls it.
type column struct {
	title, phase     string
	writers, readers int
	cacheBytes       int64
	fill             time.Duration
	// limited means in the memory cgroup.
	limited bool
}

var columns = []column{
	{title: "writes only", phase: "write", writers: goroutines, cacheBytes: bigCacheBytes},
	{title: "cached reads only", phase: "read", readers: goroutines, cacheBytes: bigCacheBytes, fill: bigFill},
	{title: "mixed, big cache", phase: "mixed", writers: goroutines, readers: goroutines, cacheBytes: bigCacheBytes},
	{title: "reads only, 64 MiB", phase: "read", readers: goroutines, cacheBytes: tinyCacheBytes, fill: tinyFill, limited: true},
	{title: "mixed, 64 MiB", phase: "mixed", writers: goroutines, readers: goroutines, cacheBytes: tinyCacheBytes, limited: true},
}

// figures are a measurement: points per second in all, CPU cores used.
type figures struct {
	Writes         float64 `json:"writes_per_s"`
	Reads          float64 `json:"reads_per_s"`
	Cores          float64 `json:"cpu_cores"`
	RSSBytes       int64   `json:"rss_bytes"`
	BytesPerSample float64 `json:"bytes_per_sample,omitempty"`
	// SummariesPerSample is what summaries take beside the values.
	SummariesPerSample float64 `json:"summaries_per_sample,omitempty"`
	QueryP99           float64 `json:"query_p99_ms,omitempty"`
	AppendP999         float64 `json:"append_p999_ms,omitempty"`
}

func (f figures) perCore() float64 {
	if f.Cores == 0 {
		return 0
	}
	return (f.Writes + f.Reads) / f.Cores
}

// cell names a measurement.
type cell struct{ kind, engine, column string }

// plan is what to measure, and what was.
type plan struct {
	kinds, engines []string
	duration       time.Duration
	runs           int
	memoryMiB      int64
	netdata, dir   string
	asJSON         bool
	// restOnly leaves out all but the bytes at rest.
	restOnly bool

	all    map[cell][]figures
	notes  []string
	cgroup bool
}

// atRestColumn is the column of bytes a value at rest.
const atRestColumn = "bytes a value at rest"

func (p *plan) measureAll(ctx context.Context) (err error) {
	if p.dir, err = os.MkdirTemp(p.dir, "tidemark-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	if g, err := newCgroup(p.memoryMiB << 20); err == nil {
		p.cgroup = true
		if err := g.remove(); err != nil {
			return err
		}
	} else {
		p.notes = append(p.notes, fmt.Sprintf("The columns with a cache of 64 MiB ran without a limit for memory: %v.", err))
	}
	p.all = map[cell][]figures{}
	for run := range p.runs {
		for _, kind := range p.kinds {
			for _, engine := range p.engines {
				fmt.Fprintf(os.Stderr, "run %d of %d: %s values, %s …\n", run+1, p.runs, kind, engine)
				if err := p.measureEngine(ctx, kind, engine); err != nil {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					p.notes = append(p.notes, fmt.Sprintf("%s with %s values: %v", engine, kind, err))
				}
			}
		}
	}
	return nil
}

func (p *plan) add(kind, engine, column string, f figures) {
	k := cell{kind, engine, column}
	p.all[k] = append(p.all[k], f)
}

func (p *plan) measureEngine(ctx context.Context, kind, engine string) error {
	if engine == netdataName {
		return p.measureNetdata(ctx, kind)
	}
	var errs []error
	for _, c := range p.columns() {
		f, err := p.child(ctx, kind, engine, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.title, err))
			continue
		}
		p.add(kind, engine, c.title, f)
	}
	rest := column{readers: 1, cacheBytes: bigCacheBytes, fill: restFill}
	name := engine
	if engine == tidemark {
		name = recompressed
	}
	f, err := p.child(ctx, kind, name, rest)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("%s: %w", atRestColumn, err))...)
	}
	p.add(kind, engine, atRestColumn, f)
	return errors.Join(errs...)
}

func (p *plan) measureNetdata(ctx context.Context, kind string) error {
	for _, limited := range []bool{false, true} {
		if p.restOnly {
			break
		}
		cache, err := int64(4*bigCacheBytes), error(nil) // as in its own evaluation
		var g *cgroup
		if limited {
			cache = tinyCacheBytes
			if g, err = p.group(); err != nil {
				return err
			}
		}
		phases, err := p.runNetdata(ctx, kind, cache, g, 0)
		if err = errors.Join(err, g.remove()); err != nil {
			return err
		}
		for _, c := range columns {
			if c.limited == limited && !(limited && c.phase == "write") {
				p.add(kind, netdataName, c.title, phases[c.phase])
			}
		}
	}
	phases, err := p.runNetdata(ctx, kind, tinyCacheBytes, nil, int(restFill/time.Second))
	if err != nil {
		return err
	}
	p.add(kind, netdataName, atRestColumn, phases["read"]) // what is in its files by then; the newest values are not
	return nil
}

// columns are those that are measured.
func (p *plan) columns() []column {
	if p.restOnly {
		return nil
	}
	return columns
}

func (p *plan) group() (*cgroup, error) {
	if !p.cgroup {
		return nil, nil
	}
	return newCgroup(p.memoryMiB << 20)
}

// child measures in a process of its own.
func (p *plan) child(ctx context.Context, kind, engine string, c column) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	dir := filepath.Join(p.dir, "data")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	duration := p.duration
	if c.title == "" {
		duration = time.Second
	}
	args := []string{
		self, "measure", "-engine", engine, "-values", kind, "-writers", fmt.Sprint(c.writers), "-readers", fmt.Sprint(c.readers),
		"-cache", fmt.Sprint(c.cacheBytes), "-duration", duration.String(), "-fill", c.fill.String(), "-dir", dir,
	}
	env := os.Environ()
	if c.limited {
		g, err := p.group()
		if err != nil {
			return f, err
		}
		defer func() { err = errors.Join(err, g.remove()) }()
		args = g.command(args)
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%dMiB", p.memoryMiB/2)) // the rest is for what Go does not count and the kernel's cache of files
	}
	var errs bytes.Buffer
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env, command.Stderr = env, &errs
	out, err := command.Output()
	if err != nil {
		text := strings.TrimSpace(errs.String())
		return f, fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	var r bench.Result
	if err := json.Unmarshal(out, &r); err != nil {
		return f, err
	}
	f = figures{
		Writes: r.WritesPerSecond, Reads: r.ReadsPerSecond, Cores: r.CPUCores, RSSBytes: r.RSSBytes, BytesPerSample: r.BytesPerSample,
		QueryP99: r.QueryP99, AppendP999: r.AppendP999,
	}
	if r.Samples > 0 {
		f.SummariesPerSample = float64(r.SummaryBytes) / float64(r.Samples)
	}
	return f, nil
}

// median returns the run with the median of points per core.
func (p *plan) median(kind, engine, column string) (figures, bool) {
	runs := slices.Clone(p.all[cell{kind, engine, column}])
	if len(runs) == 0 {
		return figures{}, false
	}
	slices.SortFunc(runs, func(a, b figures) int { return cmp.Compare(a.perCore(), b.perCore()) })
	return runs[len(runs)/2], true
}
