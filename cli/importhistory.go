package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
	"tidemark/zabbixdb"
)

func importHistoryCommand() *cobra.Command {
	from := &zabbixFlags{}
	o := server.HistoryOptions{}
	var since, until, space, mode string
	c := &cobra.Command{
		Use:   "history --dsn postgres://…|mysql://… --data DIR [--to postgres://…]",
		Short: "Import values and trends of a Zabbix server out of its database",
		Long: "Copies values and trends of all items that are here by host and key, from the database of Zabbix 6.0 to 7.0 into the store of a stopped server, day by day;\n" +
			"each day is compared by count and checksum once it is there. The database is only read. Stopped in the middle it goes on where it was; run again it takes\n" +
			"what came since. Where agents send to both servers already, Zabbix's values are taken up to the first own one. Import the configuration first.",
		Example: "  tidemark import zabbix history --dsn-file dsn.txt --data /var/lib/tidemark --since 2026-01-01 --rate 100000",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Zabbix, err = from.address(); err != nil {
				return err
			}
			if o.Data == "" {
				return usagef("give --data, the data folder of the stopped server that has the configuration")
			}
			if o.Since, err = parseInstant("since", since); err == nil {
				o.Until, err = parseInstant("until", until)
			}
			if err != nil {
				return err
			}
			if space != "" {
				if o.DiskSpaceBytes, err = config.ParseSize(space); err != nil {
					return usagef("--disk-space: %w", err)
				}
			}
			if o.Mode = mode; mode == string(config.ModeAuto) {
				o.Mode = ""
			}
			return runImportHistory(c, &o, from.asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&from.dsn, "dsn", "", "address of Zabbix's database: postgres://user:password@host:port/database or mysql://user:password@host:port/database")
	f.StringVar(&from.dsnFile, "dsn-file", "", "file whose first line is the address, so that the password is not seen in the list of processes")
	f.StringVar(&o.Data, "data", "", "data folder of a stopped server")
	f.StringVar(&o.DSN, "to", "", "connection string of the PostgreSQL database that keeps the server's values, if it is not the embedded engine")
	f.StringVar(&mode, "mode", "auto", "how new tables of PostgreSQL are kept: auto, plain, partitions or timescale")
	f.StringVar(&space, "disk-space", "", "room for the embedded engine, such as 20GiB; give what the server's configuration has")
	f.StringVar(&since, "since", "", "leave values and trends before this time behind, such as 2026-01-31")
	f.StringVar(&until, "until", "", "take values before this time only (default five minutes ago)")
	f.StringSliceVar(&o.SkipTables, "skip-table", nil, "table to leave behind, such as history_text; may be given several times: "+strings.Join(zabbixdb.Tables(), ", "))
	int64Flag(f, &o.ValuesPerSecond, "rate", 0, mostRate, "values a second at most (default no limit)")
	f.BoolVar(&from.asJSON, "json", false, "print the report as JSON")
	return c
}

func runImportHistory(c *cobra.Command, o *server.HistoryOptions, asJSON bool) error {
	o.Logger = (&settings{}).logger(c.ErrOrStderr())
	said := time.Time{}
	o.Progress = func(p server.HistoryProgress) {
		if time.Since(said) < time.Second {
			return
		}
		said = time.Now()
		if p.Phase == "trends" {
			fmt.Fprintf(c.ErrOrStderr(), "%5.1f %%: %d hours of trends are there and compared, about %v left\n", 100*p.Share, p.Hours, p.Left.Round(time.Second))
			return
		}
		fmt.Fprintf(c.ErrOrStderr(), "%5.1f %%: %d values up to %s are there and compared, about %v left\n", 100*p.Share, p.Values, p.Through.Format(time.DateTime), p.Left.Round(time.Second))
	}
	report, err := server.ImportHistory(c.Context(), *o)
	if err != nil {
		return fmt.Errorf("import zabbix history: %w", err)
	}
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	return printHistory(c.OutOrStdout(), report)
}

func printHistory(w io.Writer, r *server.HistoryReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d values (checksum %s) and %d hours of trends are there and compared; %d items that Zabbix and this server have were asked for\n", r.Values, r.Checksum, r.Hours, r.Items)
	fmt.Fprintln(&b, "  hours of trends whose values are here are made of these, and not counted")
	if r.From != "" {
		fmt.Fprintf(&b, "  from %s to %s\n", r.From, r.Through)
	}
	for _, left := range []struct {
		n    uint64
		what string
	}{
		{uint64(r.Missing), "items are not here; those that discovery makes come with the next values of their rules, then import again"},
		{uint64(r.Other), "items have another type of value here; their values are left behind"},
		{r.Expired, "values are older than their item keeps history here; their trends are taken"},
		{r.Repeated, "values were there twice"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&b, "  %d %s\n", left.n, left.what)
		}
	}
	for _, name := range r.Examples {
		fmt.Fprintf(&b, "  not here: %s\n", plainCell(name))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
