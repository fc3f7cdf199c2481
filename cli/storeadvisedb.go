package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/storage/postgres"
)

// adviseDatabase says what to change in a PostgreSQL database.
func adviseDatabase(c *cobra.Command, d database, asJSON bool) error {
	dsn, err := d.resolve()
	if err != nil {
		return err
	}
	list, err := postgres.Advise(c.Context(), dsn)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	change := 0
	for _, a := range list {
		state := "well"
		if !a.Fine {
			state = "change"
			change++
		}
		fmt.Fprintf(c.OutOrStdout(), "%-6s %s: %s\n", state, a.Subject, a.Found)
		if !a.Fine {
			fmt.Fprintf(c.OutOrStdout(), "       do:    %s\n       gives: %s\n", a.Change, a.Gives)
		}
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d of %d things to change\n", change, len(list))
	return err
}
