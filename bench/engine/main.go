// Command engine measures the engine of this project and its peers with one workload, one after the other on one machine, and prints a table with
// the ratios between them. The peers are Prometheus' tsdb and VictoriaMetrics' lib/storage as libraries, and Netdata's own stress test.
//
//	engine ─▶ for each peer and column: engine measure … (a process of its own, in a memory cgroup where asked) ─▶ table
//
// It is a module of its own, so that the program does not get the peers' dependencies.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"tidemark/storage/dbengine/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "measure" {
		return measure(ctx, args[1:])
	}
	var p plan
	var values, engines string
	f := flag.NewFlagSet("engine", flag.ContinueOnError)
	f.StringVar(&values, "values", "netdata,gauge", "kinds of values, divided by commas: "+strings.Join(bench.Kinds, ", "))
	f.StringVar(&engines, "engines", strings.Join(engineNames, ","), "what to measure, divided by commas")
	f.DurationVar(&p.duration, "duration", 10*time.Second, "how long each measurement takes")
	f.IntVar(&p.runs, "runs", 1, "how often everything is measured; the table has the medians")
	f.Int64Var(&p.memoryMiB, "memory", 384, "limit of the memory cgroup for the columns with a cache of 64 MiB, in MiB")
	f.StringVar(&p.netdata, "netdata", "netdata/run", "script that runs Netdata's stress test")
	f.StringVar(&p.dir, "dir", "", "folder to write to (default: a temporary one)")
	f.BoolVar(&p.restOnly, "rest", false, "measure nothing but the bytes a value at rest")
	f.BoolVar(&p.asJSON, "json", false, "print JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	p.kinds, p.engines = strings.Split(values, ","), strings.Split(engines, ",")
	for _, kind := range p.kinds {
		if !slices.Contains(bench.Kinds, kind) {
			return fmt.Errorf("values: %q, expected some of %s", kind, strings.Join(bench.Kinds, ", "))
		}
	}
	for _, name := range p.engines {
		if !slices.Contains(engineNames, name) {
			return fmt.Errorf("engines: %q, expected some of %s", name, strings.Join(engineNames, ", "))
		}
	}
	if p.runs < 1 || p.duration < time.Second || p.memoryMiB < 128 {
		return errors.New("expected at least one run, a duration of 1s and 128 MiB of memory")
	}
	return p.print(ctx)
}

// measure is one measurement, in this process.
func measure(ctx context.Context, args []string) error {
	var o bench.Options
	var name string
	f := flag.NewFlagSet("measure", flag.ContinueOnError)
	f.StringVar(&name, "engine", "", "")
	f.StringVar(&o.Values, "values", "", "")
	f.IntVar(&o.Writers, "writers", 0, "")
	f.IntVar(&o.Readers, "readers", 0, "")
	f.Int64Var(&o.CacheBytes, "cache", 0, "")
	f.DurationVar(&o.Duration, "duration", 0, "")
	f.DurationVar(&o.Fill, "fill", 0, "")
	f.StringVar(&o.Dir, "dir", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	o.Metrics, o.DiskSpaceBytes = metricCount, 32<<30
	switch name {
	case tidemark:
	case recompressed:
		o.Open = openRecompressed
	case prometheusName:
		o.Open = openPrometheus
	case victoriaName:
		o.Open = openVictoria
	default:
		return fmt.Errorf("no engine %q", name)
	}
	r, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
