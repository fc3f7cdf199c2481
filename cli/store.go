package cli

import (
	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Look into the store: info, check, dump",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	return c
}
