package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
	"tidemark/storage/dbengine"
)

// recompressFlags are the flags of store recompress.
type recompressFlags struct {
	client                         serverClient
	codec, extent, olderThan, rate string
	merge                          string
	again, now, asJSON             bool
}

func storeRecompressCommand() *cobra.Command {
	f := &recompressFlags{}
	c := &cobra.Command{
		Use:   "recompress (DIR | --http ADDR)",
		Short: "Write old file pairs anew, smaller, of a stopped store or a running server",
		Long: "Write closed file pairs anew: columns in their dense form, small pages joined to large ones, late values where they belong, and the codec on top. Each pair is replaced\n" +
			"when the new one is on disk; it may be stopped and killed at any time. It takes the room of one pair for a while. With --merge neighbours whose pages are small become one\n" +
			"pair, so that the pages of slow series become full; that takes the room of all of them for a while, and at the quota such a pair is deleted as one.",
		Args: someArgs(0, 1, "a data folder or its engine folder, or --http"),
		RunE: func(c *cobra.Command, args []string) error { return runRecompress(c, f, args) },
	}
	f.client.addTo(c.Flags())
	flags := c.Flags()
	flags.StringVar(&f.codec, "codec", "none", "codec on top of the dense columns: none, lz4, zstd:1 to zstd:22")
	flags.StringVar(&f.extent, "extent", "64KiB", "how much is compressed, and read, together: 4KiB to 4MiB")
	flags.StringVar(&f.olderThan, "older-than", "1d", "leave pairs alone that hold younger values; with 0 the pair that grows is closed and all is written anew")
	flags.StringVar(&f.rate, "rate", "", "bound for reading and writing together, a second, such as 20MiB (default none)")
	flags.StringVar(&f.merge, "merge", "off", "make one pair of neighbours with small pages, as long as their files together take no more: off, auto (an eighth of the disk space), or a size")
	flags.Lookup("merge").NoOptDefVal = "auto"
	flags.BoolVar(&f.again, "again", false, "take pairs too that were written anew before")
	flags.BoolVar(&f.now, "now", false, "with --http: do not wait while the machine is busy")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *recompressFlags) options() (o dbengine.Recompress, err error) {
	if o.Codec, err = dbengine.ParseCodec(f.codec); err != nil {
		return o, usagef("--codec: %w", err)
	}
	size, err := config.ParseSize(f.extent)
	if err != nil {
		return o, usagef("--extent: %w", err)
	}
	if size < dbengine.MinExtentBytes || size > dbengine.MaxExtentBytes {
		return o, usagef("--extent: found %s; expected 4KiB to 4MiB", f.extent)
	}
	o.ExtentBytes = int(size)
	if o.OlderThan, err = config.ParseDuration(f.olderThan); err != nil {
		return o, usagef("--older-than: %w", err)
	}
	if f.rate != "" {
		if o.BytesPerSecond, err = config.ParseSize(f.rate); err != nil {
			return o, usagef("--rate: %w", err)
		}
	}
	if o.MergeBytes, err = config.ParseMerge(f.merge); err != nil {
		return o, usagef("--merge: %w", err)
	}
	o.Again = f.again
	return o, nil
}

func runRecompress(c *cobra.Command, f *recompressFlags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if (f.client.address == "") != (len(args) == 1) {
		return usagef("store recompress expects DIR of a stopped server, or --http ADDR of a running one")
	}
	var p dbengine.RecompressProgress
	if f.client.address != "" {
		p, err = f.remote(c, o)
	} else {
		var dir string
		if dir, err = engineFolder(args[0]); err != nil {
			return err
		}
		line := newProgressLine(c.ErrOrStderr())
		o.Progress = func(p dbengine.RecompressProgress) { sayRecompress(line, &p) }
		p, err = server.RecompressOffline(c.Context(), dir, o)
	}
	if errors.Is(err, server.ErrInUse) {
		return fmt.Errorf("%w; of a running server do it with --http", err)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(p)
	}
	return printRecompress(c.OutOrStdout(), &p)
}

func sayRecompress(line *progressLine, p *dbengine.RecompressProgress) {
	what := p.File
	if p.Paused {
		what += ", waiting: the machine is busy"
	}
	line.say(p.DoneBytes, p.Bytes, what)
}

func printRecompress(w io.Writer, p *dbengine.RecompressProgress) error {
	smaller := ""
	if p.BeforeBytes > 0 {
		smaller = fmt.Sprintf(", %.1f %% less", 100*(1-float64(p.AfterBytes)/float64(p.BeforeBytes)))
	}
	_, err := fmt.Fprintf(w, "%d of %d pairs written anew: %s became %s%s; %d would not become smaller, %d skipped; %d late values put in their places\n",
		p.WrittenPairs, p.Pairs, sizeText(p.BeforeBytes), sizeText(p.AfterBytes), smaller, p.KeptPairs, p.SkippedPairs, p.FoldedValues)
	if err == nil && p.MergedPairs > 0 {
		_, err = fmt.Fprintf(w, "%d pairs became %d, %d pages became %d\n", p.MergedPairs, p.JoinedPairs, p.BeforePages, p.AfterPages)
	}
	if err == nil && p.Skipped != "" {
		_, err = fmt.Fprintf(w, "skipped last: %s\n", p.Skipped)
	}
	return err
}

// recompressPoll is how often a running server is asked how far it is.
const recompressPoll = 500 * time.Millisecond

// remote has a server do it, and watches.
func (f *recompressFlags) remote(c *cobra.Command, o dbengine.Recompress) (dbengine.RecompressProgress, error) {
	const path = "/api/storage/recompress"
	var state struct {
		Running  bool                        `json:"running"`
		Progress dbengine.RecompressProgress `json:"progress"`
		Error    string                      `json:"error"`
		EndedAt  int64                       `json:"ended_at"`
	}
	body := map[string]any{
		"codec": f.codec, "extent_bytes": o.ExtentBytes, "older_than_seconds": o.OlderThan.Seconds(), "bytes_per_second": o.BytesPerSecond,
		"merge_bytes": o.MergeBytes, "again": o.Again, "now": f.now, "close": o.OlderThan == 0,
	}
	if err := f.client.call(c.Context(), http.MethodPost, path, body, nil); err != nil {
		return state.Progress, err
	}
	line := newProgressLine(c.ErrOrStderr())
	for {
		select {
		case <-c.Context().Done(): // who interrupts the command wants it to stop
			stopping, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
			defer cancel()
			return state.Progress, errors.Join(c.Context().Err(), f.client.call(stopping, http.MethodDelete, path, nil, nil))
		case <-time.After(recompressPoll):
		}
		if err := f.client.call(c.Context(), http.MethodGet, path, nil, &state); err != nil {
			return state.Progress, err
		}
		sayRecompress(line, &state.Progress)
		if state.Running || state.EndedAt == 0 {
			continue
		}
		if state.Error != "" {
			return state.Progress, errors.New(state.Error)
		}
		return state.Progress, nil
	}
}

// recompressPolicy is the policy of the settings.
func recompressPolicy(c *config.Config) server.RecompressOptions {
	p := c.Storage.Recompress
	if p.Codec == config.RecompressOff {
		return server.RecompressOptions{}
	}
	return server.RecompressOptions{Codec: p.Codec, OlderThan: p.OlderThan, BytesPerSecond: p.RateBytes, MergeBytes: p.MergeBytes}
}
