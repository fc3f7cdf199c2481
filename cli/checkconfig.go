package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/config"
)

func checkConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check-config FILE",
		Short: "Check a configuration file without opening anything",
		Long:  "Read a configuration file and say for each mistake where it is and what was expected. No port and no file of the data folder is opened.",
		Args:  someArgs(1, 1, "one file"),
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := config.Load(args[0])
			if err == nil {
				err = conf.Validate()
			}
			if err != nil {
				fmt.Fprintln(c.ErrOrStderr(), err)
				return errSilent
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: no mistakes\n", args[0])
			return err
		},
	}
}
