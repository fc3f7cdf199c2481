package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/storage/postgres"
)

// database says which PostgreSQL a command works on: --dsn, or storage.dsn of --config.
type database struct{ dsn, file string }

func (d *database) add(c *cobra.Command) {
	c.Flags().StringVar(&d.dsn, "dsn", "", "connection string of the database, such as postgres://tidemark@db.example/tidemark")
	c.Flags().StringVar(&d.file, "config", "", "configuration file whose storage.dsn is used")
}

func (d *database) resolve() (string, error) {
	if d.dsn != "" {
		return d.dsn, nil
	}
	if d.file == "" {
		return "", usagef("no database; give --dsn, or --config with storage.dsn")
	}
	c, err := config.Load(d.file)
	if err != nil {
		return "", usageError{err}
	}
	if c.Storage.DSN == "" {
		return "", usagef("%s has no storage.dsn; give --dsn", d.file)
	}
	return c.Storage.DSN, nil
}

func storeMigrateCommand() *cobra.Command {
	var d database
	var o postgres.MigrateOptions
	var from, to, since, until string
	var asJSON bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Move plain tables of PostgreSQL into partitions or hypertables while the server runs",
		Long: "Changes how the tables of values are kept, while the server runs. All new values go to new tables at once; old rows follow in steps, newest\n" +
			"first, each compared by count and checksum. Stopped in the middle, it goes on where it was. Old tables stay until --drop-old.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dsn, err := d.resolve()
			if err != nil {
				return err
			}
			o.From, o.To = postgres.Mode(from), postgres.Mode(to)
			if o.Since, err = parseInstant("since", since); err != nil {
				return err
			}
			if o.Until, err = parseInstant("until", until); err != nil {
				return err
			}
			o.Progress = migrateProgress(c.ErrOrStderr())
			report, err := postgres.Migrate(c.Context(), dsn, o)
			if err != nil {
				return err
			}
			return printMigration(c.OutOrStdout(), report, asJSON)
		},
	}
	d.add(c)
	f := c.Flags()
	f.StringVar(&from, "from", "plain", "how the tables are kept")
	f.StringVar(&to, "to", "", "how they shall be kept: partitions or timescale")
	f.StringSliceVar(&o.Skip, "skip-table", nil, "leave the old rows of this table behind, such as history_text; they stay readable until their retention ends")
	f.StringVar(&since, "since", "", "leave rows before this time behind, such as 2026-01-31 or 2026-01-31T15:04:05Z")
	f.StringVar(&until, "until", "", "leave rows from this time on behind")
	int64Flag(f, &o.RowsPerSecond, "rate", 0, mostRate, "rows a second at most (default no limit)")
	int64Flag(f, &o.StepRows, "step", 0, mostRate, "rows of one transaction (default 50000)")
	f.BoolVar(&o.DropOld, "drop-old", false, "drop the old tables once all that moved was compared, with the rows that --since and --until left")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// parseInstant reads a day or a time; nothing is the zero time.
func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--%s %q: expected a day such as 2026-01-31 or a time such as 2026-01-31T15:04:05Z", flag, text)
}

// migrateProgress tells what happens, at most once a second.
func migrateProgress(w io.Writer) func(postgres.MigrateProgress) {
	var said time.Time
	var last string
	return func(p postgres.MigrateProgress) {
		now := p.Table + p.Doing
		if now == last && time.Since(said) < time.Second {
			return
		}
		said, last = time.Now(), now
		switch {
		case p.Doing == "waiting":
			fmt.Fprintln(w, "waiting for another migration of this database to end")
		case p.TotalRows == 0:
			fmt.Fprintf(w, "%-10s %s\n", p.Doing, p.Table)
		default:
			fmt.Fprintf(w, "%-10s %s: %d of %d rows, %.1f %%, about %v left\n", p.Doing, p.Table, p.DoneRows, p.TotalRows,
				100*float64(p.DoneRows)/float64(p.TotalRows), p.Left.Round(time.Second))
		}
	}
}

func printMigration(w io.Writer, report []postgres.MigratedTable, asJSON bool) error {
	if asJSON {
		if report == nil {
			report = []postgres.MigratedTable{}
		}
		return json.NewEncoder(w).Encode(report)
	}
	if len(report) == 0 {
		_, err := fmt.Fprintln(w, "nothing to do: no table is kept plain, and no old table is left")
		return err
	}
	fmt.Fprintf(w, "%-22s %-9s %14s %14s %24s %12s\n", "table", "state", "moved rows", "left behind", "checksum", "freed")
	keep := false
	for _, r := range report {
		keep = keep || r.State == "checked"
		fmt.Fprintf(w, "%-22s %-9s %14d %14d %24s %12s\n", r.Name, r.State, r.Rows, r.Behind, r.Checksum, sizeText(r.FreedBytes))
	}
	if keep {
		_, err := fmt.Fprintln(w, "the old tables are kept; run the same command with --drop-old to drop them")
		return err
	}
	return nil
}
