package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
	"tidemark/transfer"
)

func migrateCommand() *cobra.Command {
	var from, to, since, space, mode string
	var asJSON bool
	o := server.TransferOptions{}
	c := &cobra.Command{
		Use:   "migrate --from DIR|DSN --to DIR|DSN",
		Short: "Copy all values between the embedded engine and PostgreSQL, and compare them",
		Long: "Copies values, trends and marks between the embedded engine of a data folder and a PostgreSQL database. DIR is the data folder of a stopped server,\n" +
			"DSN a connection string. Each day is compared by count and checksum once it is there. Stopped in the middle, it goes on where it was. The source is\n" +
			"left as it is. Afterwards change storage.engine and start the server with the same data folder.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch fromDSN, toDSN := isDSN(from), isDSN(to); {
			case from == "" || to == "":
				return usagef("expected --from and --to, one a data folder and the other a connection string of PostgreSQL")
			case fromDSN == toDSN:
				return usagef("expected a data folder and a connection string of PostgreSQL, got two of one kind; between folders use 'tidemark store snapshot', between databases pg_dump")
			case toDSN:
				o.Data, o.DSN, o.ToPostgres = from, to, true
			default:
				o.Data, o.DSN = to, from
			}
			var err error
			if o.Since, err = parseInstant("since", since); err != nil {
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
			o.Logger = (&settings{}).logger(c.ErrOrStderr())
			said := time.Time{}
			o.Progress = func(p transfer.Progress) {
				if time.Since(said) >= time.Second {
					said = time.Now()
					fmt.Fprintf(c.ErrOrStderr(), "%5.1f %%: %d values up to %s are there and compared, about %v left\n", 100*p.Share, p.Values,
						time.Unix(0, p.Through).Format(time.DateTime), p.Left.Round(time.Second))
				}
			}
			state, err := server.Transfer(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(state)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d values (checksum %016x), %d hours of trends and %d marks are in %s and compared\n", state.Values, state.Checksum, state.Hours, state.Marks, shownPlace(to))
			if err == nil && state.Expired+state.HoursBehind > 0 {
				_, err = fmt.Fprintf(c.OutOrStdout(), "left behind: %d values past their retention, %d hours of trends whose values are gone\n", state.Expired, state.HoursBehind)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "data folder or connection string that has the values")
	f.StringVar(&to, "to", "", "connection string or data folder that gets them")
	f.StringVar(&since, "since", "", "leave values before this time behind, such as 2026-01-31")
	f.StringVar(&space, "disk-space", "", "room for the embedded engine, such as 20GiB, when it gets the values")
	f.StringVar(&mode, "mode", "auto", "how new tables of PostgreSQL are kept: auto, plain, partitions or timescale")
	int64Flag(f, &o.ValuesPerSecond, "rate", 0, mostRate, "values a second at most (default no limit)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// isDSN tells a connection string from a folder.
func isDSN(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") || strings.Contains(s, "=")
}

// shownPlace names where something was copied to. A connection string may hold a password.
func shownPlace(to string) string {
	if isDSN(to) {
		return "PostgreSQL"
	}
	return to
}
