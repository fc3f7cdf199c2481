package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/confdb"
	"tidemark/server"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Move the configuration between the data folder and PostgreSQL", Args: noArgs}
	c.AddCommand(configMigrateCommand())
	return c
}

func configMigrateCommand() *cobra.Command {
	var from, to string
	var asJSON bool
	var o confdb.MoveOptions
	c := &cobra.Command{
		Use:   "migrate --from DIR|DSN --to DSN|DIR",
		Short: "Move hosts, templates, users, problems, events and alerts between the data folder and PostgreSQL, and compare them",
		Long: "Moves the configuration of a stopped server. DIR is its data folder, DSN a connection string of PostgreSQL. Each table is read again in its new place\n" +
			"and compared by count and checksum; only then the data folder says where the configuration is. What was there before stays: config.db under another name,\n" +
			"or the tables in PostgreSQL. Secrets stay sealed with secret.key, which remains in the data folder.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fromDSN, toDSN := isDSN(from), isDSN(to)
			if from == "" || to == "" || fromDSN == toDSN {
				return usagef("expected --from and --to, one a data folder and the other a connection string of PostgreSQL")
			}
			dir := from
			if o.DSN, o.ToPostgres = to, true; fromDSN {
				dir, o.DSN, o.ToPostgres = to, from, false
			}
			o.Options.Logger = (&settings{}).logger(c.ErrOrStderr())
			moved, err := server.MoveConfiguration(c.Context(), dir, o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(moved)
			}
			rows := int64(0)
			for _, t := range moved.Tables {
				rows += t.Rows
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%-24s %9d rows, checksum %016x\n", t.Table, t.Rows, t.Sum); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d rows of %d tables are in %s and compared\n", rows, len(moved.Tables), shownPlace(to))
			if err == nil && moved.Aside != "" {
				_, err = fmt.Fprintf(c.OutOrStdout(), "what was there before is kept as %s\n", moved.Aside)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "data folder or connection string that has the configuration")
	f.StringVar(&to, "to", "", "connection string or data folder that gets it")
	f.StringVar(&o.Schema, "schema", confdb.DefaultSchema, "schema of the tables in PostgreSQL")
	f.BoolVar(&o.Replace, "replace", false, "put it in the place of another configuration")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
