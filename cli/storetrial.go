package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/query/querylog"
	"tidemark/server"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/trial"
)

// trialFlags are the flags of store trial.
type trialFlags struct {
	codecs, extents, queries, sample, scratch, space string
	rounds                                           int
	asJSON                                           bool
	client                                           serverClient
}

func storeTrialCommand() *cobra.Command {
	f := &trialFlags{}
	c := &cobra.Command{
		Use:   "trial (DIR | --http ADDR)",
		Short: "Try codecs on a sample of a store, of a stopped or running server, and say which one fits",
		Long: "Write a sample of the closed file pairs anew with each codec, in a scratch folder, replay the queries that were asked lately, and say what each codec would bring.\n" +
			"The store is only read, at low priority, and may be in use. The scratch folder is removed afterwards; the result stays in trial.json of the data folder, for the\n" +
			"page Storage.",
		Args: someArgs(0, 1, "a data folder or its engine folder, or --http of a server on this machine"),
		RunE: func(c *cobra.Command, args []string) error {
			lowerPriority()
			return runTrial(c, f, args)
		},
	}
	f.client.addTo(c.Flags())
	flags := c.Flags()
	flags.StringVar(&f.codecs, "codecs", "none,lz4,zstd:1,zstd:3,zstd:9", "codecs to try")
	flags.StringVar(&f.extents, "extent", "64KiB", "sizes of what is compressed, and read, together: 4KiB to 4MiB, such as 64KiB,256KiB")
	flags.StringVar(&f.queries, "queries", "", "log of queries to replay (default: the one of the server in the data folder, else queries are made up)")
	flags.StringVar(&f.sample, "sample", "5%", "part of the file pairs that each round takes, at least one pair and at most 1GiB")
	flags.IntVar(&f.rounds, "rounds", 5, "how often everything is measured, 5 to 100")
	flags.StringVar(&f.scratch, "scratch", "", "where to write (default: the data folder)")
	flags.StringVar(&f.space, "disk-space", "", "disk space for the projected retention (default: what the store takes now)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *trialFlags) options() (o trial.Options, err error) {
	for text := range strings.SplitSeq(f.codecs, ",") {
		c, err := dbengine.ParseCodec(strings.TrimSpace(text))
		if err != nil {
			return o, usagef("--codecs: %w", err)
		}
		o.Codecs = append(o.Codecs, c)
	}
	for text := range strings.SplitSeq(f.extents, ",") {
		n, err := config.ParseSize(strings.TrimSpace(text))
		if err != nil {
			return o, usagef("--extent: %w", err)
		}
		if n < dbengine.MinExtentBytes || n > dbengine.MaxExtentBytes {
			return o, usagef("--extent: found %s; expected 4KiB to 4MiB", text)
		}
		o.Extents = append(o.Extents, int(n))
	}
	percent, found := strings.CutSuffix(f.sample, "%")
	part, err := strconv.ParseFloat(percent, 64)
	if err != nil || !found || !(part > 0 && part <= 100) {
		return o, usagef("--sample: found %.40q; expected more than 0%% and at most 100%%, such as 5%%", f.sample)
	}
	o.Sample = part / 100
	if f.rounds < 5 || f.rounds > 100 {
		return o, usagef("--rounds: found %d; expected 5 to 100", f.rounds)
	}
	o.Rounds, o.Scratch = f.rounds, f.scratch
	if f.space != "" {
		if o.QuotaBytes, err = config.ParseSize(f.space); err != nil || o.QuotaBytes <= 0 {
			return o, usagef("--disk-space: found %.40q; expected a size such as 40GiB", f.space)
		}
	}
	return o, nil
}

// folder returns the engine's folder, which a running server names. The trial reads files: the server must be on this machine.
func (f *trialFlags) folder(c *cobra.Command, args []string) (string, error) {
	if (f.client.address == "") != (len(args) == 1) {
		return "", usagef("store trial expects DIR, or --http ADDR of a server on this machine")
	}
	if len(args) == 1 {
		return engineFolder(args[0])
	}
	dir, err := f.client.storageFolder(c.Context())
	if errors.Is(err, errElsewhere) {
		return "", fmt.Errorf("%w; run tidemark store trial DIR where its files are", err)
	}
	return dir, err
}

// errElsewhere says that a server's files cannot be seen.
var errElsewhere = errors.New("not on this machine or not to be seen from here")

// storageFolder is the engine's folder of a running server, if that is on this machine; else errElsewhere.
func (c *serverClient) storageFolder(ctx context.Context) (string, error) {
	var there server.StorageFolder
	if err := c.call(ctx, http.MethodGet, "/api/storage/folder", nil, &there); err != nil {
		return "", err
	}
	here, err := server.FindStorageFolder(there.Folder)
	if err != nil || here.Device != there.Device || here.Inode != there.Inode {
		return "", fmt.Errorf("the store of the server at %s, %s, is %w", c.address, there.Folder, errElsewhere)
	}
	return there.Folder, nil
}

func runTrial(c *cobra.Command, f *trialFlags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Dir, err = f.folder(c, args); err != nil {
		return err
	}
	data := filepath.Dir(filepath.Clean(o.Dir))
	if o.Scratch == "" {
		o.Scratch = data
	}
	if o.Queries, err = f.read(data); err != nil {
		return err
	}
	line := newProgressLine(c.ErrOrStderr())
	o.Progress = line.say
	report, err := trial.Run(c.Context(), o)
	if err != nil {
		return err
	}
	if err := report.Save(data, time.Now()); err != nil { // the result is printed all the same
		fmt.Fprintf(c.ErrOrStderr(), "the page Storage will not show this trial: %v\n", err)
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	where := "--http " + f.client.address
	if f.client.address == "" {
		where = args[0]
	}
	return printTrial(c.OutOrStdout(), report, where)
}

// read reads the log of queries that the flags name, else that of the server if there is one.
func (f *trialFlags) read(data string) ([]trial.Query, error) {
	name := f.queries
	if name == "" {
		name = filepath.Join(data, querylog.FileName)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	entries, err := querylog.Read(name)
	if err != nil {
		return nil, err
	}
	queries := make([]trial.Query, len(entries))
	for i := range entries {
		queries[i] = trial.Query{Items: entries[i].Items, Range: entries[i].Range, Newest: entries[i].Newest}
	}
	return queries, nil
}

// printTrial prints the result; where names the store as recompress takes it.
func printTrial(w io.Writer, r *trial.Report, where string) error {
	queries := fmt.Sprintf("%d logged queries", r.Queries)
	if r.QueriesMade {
		queries = fmt.Sprintf("%d made-up queries, since none are logged", r.Queries)
	}
	fmt.Fprintf(w, "%d rounds over %d of %d closed file pairs, %s of %s; %s\n\n", r.Rounds, r.SamplePairs, r.Pairs, sizeText(r.SampleBytes), sizeText(r.Bytes), queries)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "codec\textent\tratio\tbytes/sample\tCPU ms/million\tms/million\tp50 ms\tp99 ms\tcold p50\tcold p99\tdays\t")
	row := func(c *trial.Candidate) {
		codec, size, cpu, wall := c.Codec, config.FormatSize(int64(c.ExtentBytes)), withSpread(c.WriteCPU, c.Spread.WriteCPU, 0), withSpread(c.WriteWall, c.Spread.WriteWall, 0)
		if codec == "" {
			codec, size, cpu, wall = "as it is", "", "", ""
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3f\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t\n", codec, size, withSpread(c.Ratio, c.Spread.Ratio, 1), c.BytesPerSample, cpu, wall,
			withSpread(c.QueryP50, c.Spread.QueryP50, 2), withSpread(c.QueryP99, c.Spread.QueryP99, 2),
			withSpread(c.QueryColdP50, c.Spread.QueryColdP50, 2), withSpread(c.QueryColdP99, c.Spread.QueryColdP99, 2), c.ProjectedRetentionDays)
	}
	row(&r.Current)
	for i := range r.Candidates {
		row(&r.Candidates[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Recommended.Text)
	if err == nil && r.Recommended.Codec != "" {
		_, err = fmt.Fprintf(w, "To do it: tidemark store recompress %s --codec %s --extent %s --again\n", where, r.Recommended.Codec, config.FormatSize(int64(r.Recommended.ExtentBytes)))
	}
	return err
}

// withSpread is a figure with the least and greatest of the rounds.
func withSpread(v float64, s trial.Range, digits int) string {
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, v, digits, s.Least, digits, s.Greatest)
}
