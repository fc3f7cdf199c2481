package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/bench"
)

func storeBenchCommand() *cobra.Command {
	var o bench.Options
	var workload, cache, dir, direct string
	seconds := 10.0
	var keep, asJSON bool
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the store: writes and reads of many metrics on an accelerated time axis",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if workload != "dbengine" {
				return usagef("workload: %q, expected dbengine", workload)
			}
			var err error
			if o.CacheBytes, err = config.ParseSize(cache); err != nil {
				return usagef("cache: %w", err)
			}
			if o.DirectIO, err = dbengine.ParseDirectIO(direct); err != nil {
				return usagef("%w", err)
			}
			o.Duration = time.Duration(seconds * float64(time.Second))
			var remove func() error
			if o.Dir, remove, err = benchFolder(dir, keep); err != nil {
				return err
			}
			r, err := bench.Run(c.Context(), o)
			if removed := remove(); err == nil {
				err = removed
			}
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			return printBench(c.OutOrStdout(), r)
		},
	}
	f := c.Flags()
	f.StringVar(&workload, "workload", "dbengine", "what to do: dbengine")
	f.IntVar(&o.Metrics, "metrics", 4096, "number of metrics, 128 to a chart")
	f.IntVar(&o.Writers, "writers", 2, "goroutines that write; 0 fills two hours first and measures reads only")
	f.IntVar(&o.Readers, "readers", 2, "goroutines that read")
	f.StringVar(&cache, "cache", "1GiB", "page cache size")
	floatFlag(f, &seconds, "seconds", 0, mostSeconds, "how long to measure")
	f.StringVar(&o.Values, "values", "gauge", "kind of values: "+strings.Join(bench.Kinds, ", "))
	f.StringVar(&o.Trace, "trace", "", "file of recorded values, one line a second")
	f.StringVar(&direct, "direct-io", "auto", "what goes past the system's cache: off; auto (writes, and reads of file pairs as a whole); all (also what queries read)")
	f.DurationVar(&o.Fill, "fill", 2*time.Hour, "how much of every metric is written before a run without writers")
	f.StringVar(&dir, "dir", "", "new folder that becomes the engine folder (default: a temporary one)")
	f.BoolVar(&keep, "keep", false, "keep the folder")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// benchFolder returns the folder to measure in and what removes it.
func benchFolder(dir string, keep bool) (string, func() error, error) {
	remove := func() error { return os.RemoveAll(dir) }
	if dir == "" {
		if keep {
			return "", nil, usagef("--keep needs --dir")
		}
		made, err := os.MkdirTemp("", "tidemark-bench-")
		if err != nil {
			return "", nil, err
		}
		remove = func() error { return os.RemoveAll(made) }
		return filepath.Join(made, "engine"), remove, nil
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", nil, usagef("%s is not empty; expected a new folder", dir)
	}
	if keep {
		remove = func() error { return nil }
	}
	return dir, remove, nil
}

func printBench(w io.Writer, r *bench.Result) error {
	_, err := fmt.Fprintf(w, "%s values, %d metrics, %d writers, %d readers, cache %s, %.1f s\n"+
		"written %.2f M/s, read %.2f M/s with %.2f cores: %.2f M/s per core\n"+
		"99 %% of queries within %.3f ms, 99.9 %% of appends within %.3f ms\n"+
		"%d samples in %s, %.4f bytes a sample; %s of memory\n",
		r.Values, r.Metrics, r.Writers, r.Readers, config.FormatSize(r.CacheBytes), r.Seconds,
		r.WritesPerSecond/1e6, r.ReadsPerSecond/1e6, r.CPUCores, r.PointsPerCore/1e6,
		r.QueryP99, r.AppendP999, r.Samples, sizeText(r.DatasetBytes), r.BytesPerSample, sizeText(r.RSSBytes))
	return err
}
