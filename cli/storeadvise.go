package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/server"
)

func storeAdviseCommand() *cobra.Command {
	var asJSON bool
	var d database
	c := &cobra.Command{
		Use:   "advise DIR | --dsn DSN",
		Short: "Look at the file system of a store, or at a PostgreSQL database, and say what should be different",
		Args:  someArgs(0, 1, "a data folder or its engine folder, or --dsn"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return adviseDatabase(c, d, asJSON)
			}
			dir, err := engineFolder(args[0])
			if err != nil {
				return err
			}
			room, err := server.MeasureHeadroom(dir)
			if err != nil {
				return err
			}
			advice := server.AdviceFor(room, 0)
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(struct {
					Disk   server.Headroom `json:"disk"`
					Advice []string        `json:"advice"`
				}{room, advice})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s of %s free, %.1f %% full\n", dir, room.FileSystem, sizeText(room.FreeBytes), sizeText(room.TotalBytes), room.UsedPercent)
			for _, text := range advice {
				if _, err := fmt.Fprintln(c.OutOrStdout(), "- "+text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	d.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
