package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/load"
)

// loadFlags are the flags of load.
type loadFlags struct {
	options            load.Options
	protocol, interval string
	provision, asJSON  bool
}

func loadCommand() *cobra.Command {
	f := &loadFlags{}
	c := &cobra.Command{
		Use:   "load --server ADDR --hosts N --items M (--nvps R | --interval 4s-7s) --seconds S",
		Short: "Feed a server as many senders or active agents would, and measure it",
		Long: "Send values for hosts load-0001, load-0002, … with the items load.item[1], load.item[2], … each, and report what the server took and how\n" +
			"long its answers took. --provision first creates the hosts, items and triggers over HTTP; doing it again changes nothing. A server\n" +
			"with an administrator needs an editor's token for that.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runLoad(c, f) },
	}
	o, flags := &f.options, c.Flags()
	flags.StringVar(&o.Server, "server", "127.0.0.1:10051", "the server's address for agents and senders")
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:8420", "the server's HTTP address, for --provision")
	flags.IntVar(&o.Hosts, "hosts", 10, "number of hosts")
	flags.IntVar(&o.Items, "items", 100, "items of each host")
	o.Seconds = 30
	floatFlag(flags, &o.NVPS, "nvps", 0, 1e8, "values per second of all hosts together")
	floatFlag(flags, &o.Strings, "strings", 0, 1, "share of the items that are texts, 0 to 1, one of ten states each")
	flags.StringVar(&f.interval, "interval", "", "range of the items' own intervals, such as 4s-7s, instead of --nvps")
	floatFlag(flags, &o.Seconds, "seconds", 0, mostSeconds, "how long values are made")
	flags.StringVar(&f.protocol, "protocol", string(load.Sender), "sender or agent")
	floatFlag(flags, &o.Triggers, "triggers", 0, 1, "triggers per item that --provision creates, 0 to 1")
	intFlag(flags, &o.Connections, "connections", 0, 100_000, "connections open at once (default 128)")
	flags.BoolVar(&f.provision, "provision", false, "create hosts, items and triggers first")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	return c
}

func runLoad(c *cobra.Command, f *loadFlags) error {
	f.options.Protocol = load.Protocol(f.protocol)
	if f.interval != "" {
		if err := f.parseInterval(); err != nil {
			return err
		}
	}
	o, err := f.options.Check()
	if err != nil {
		return usageError{err}
	}
	if f.provision {
		o.Token, _ = c.Context().Value(tokenKey{}).(string)
		if err := load.Provision(c.Context(), o, c.ErrOrStderr()); err != nil {
			return err
		}
	}
	r, err := load.Run(c.Context(), o, c.ErrOrStderr())
	if err != nil && !errors.Is(err, load.ErrUnfinished) {
		return err
	}
	if f.asJSON {
		return errors.Join(err, json.NewEncoder(c.OutOrStdout()).Encode(r))
	}
	_, printErr := fmt.Fprintf(c.OutOrStdout(), "sent %d values in %.1f s (%.0f/s): %d processed, %d failed; answers p50 %.1f ms, p99 %.1f ms, max %.1f ms; own CPU %.1f s\n",
		r.Sent, r.Seconds, r.NVPS, r.Processed, r.Failed, r.LatencyMS.P50, r.LatencyMS.P99, r.LatencyMS.Max, r.CPUSeconds)
	return errors.Join(err, printErr)
}

// parseInterval reads "4s-7s" or "5s".
func (f *loadFlags) parseInterval() error {
	if f.options.NVPS != 0 {
		return usagef("give --nvps or --interval, not both")
	}
	low, high, ranged := strings.Cut(f.interval, "-")
	if !ranged {
		high = low
	}
	for _, p := range []struct {
		text string
		to   *time.Duration
	}{{low, &f.options.IntervalMin}, {high, &f.options.IntervalMax}} {
		d, err := config.ParseDuration(p.text)
		if err != nil {
			return usagef("--interval %q: %w; expected a range such as 4s-7s", f.interval, err)
		}
		*p.to = d
	}
	return nil
}
