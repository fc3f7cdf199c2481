package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
)

func storeRepairCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "repair DIR",
		Short: "Make a stopped store whole; what is replaced goes to its quarantine, nothing is deleted",
		Args:  someArgs(1, 1, "a data folder or its engine folder"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := engineFolder(args[0])
			if err != nil {
				return err
			}
			logger := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			done, err := dbengine.Repair(c.Context(), vfs.OS{}, dir, logger)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(done)
			}
			for _, name := range done.Rewritten {
				fmt.Fprintf(c.OutOrStdout(), "%s: written anew without its damage\n", name)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d datafiles repaired, %d pages with %d values and %d extents lost, %d files set aside in quarantine/\n",
				dir, len(done.Rewritten), done.LostPages, done.LostValues, done.LostExtents, done.Quarantined)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func storePlanCommand() *cobra.Command {
	d := dbengine.Demand{}
	var interval, retention, cache string
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Say what disk space, memory and descriptors a number of metrics will take",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, f := range []struct {
				name, text string
				to         *time.Duration
			}{{"interval", interval, &d.Interval}, {"retention", retention, &d.Retention}} {
				var err error
				if *f.to, err = config.ParseDuration(f.text); err != nil {
					return usagef("%s: %w", f.name, err)
				}
			}
			var err error
			if d.PageCacheBytes, err = config.ParseSize(cache); err != nil {
				return usagef("cache: %w", err)
			}
			p, err := dbengine.PlanFor(d)
			if err != nil {
				return usagef("%w", err)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(p)
			}
			const mib = 1 << 20
			_, err = fmt.Fprintf(c.OutOrStdout(), "%.0f values a second, %d in all\n"+
				"disk space   %d MiB: values %d, minutes %d, hourly rows %d, log %d; %.3f bytes a value\n"+
				"memory       %d MiB, of which %s page cache\n"+
				"files        %d pairs, %d descriptors\n",
				p.ValuesPerSecond, p.Samples, (p.DiskBytes+mib-1)/mib, p.ValueBytes/mib, p.MinuteBytes/mib, p.HourlyBytes/mib, p.LogBytes/mib, p.BytesPerSample,
				(p.MemoryBytes+mib-1)/mib, config.FormatSize(d.PageCacheBytes), p.Pairs, p.OpenFiles)
			return err
		},
	}
	f := c.Flags()
	f.Int64Var(&d.Metrics, "metrics", 4096, "number of metrics")
	f.StringVar(&interval, "interval", "1s", "time between two values of a metric")
	f.StringVar(&retention, "retention", "30d", "how long values are kept")
	d.Varying = 0.11
	floatFlag(f, &d.Varying, "varying", 0, 1, "share of the metrics that vary, 0 to 1")
	f.StringVar(&cache, "cache", "128MiB", "page cache size; the default is the server's")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
