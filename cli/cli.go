// Package cli is the command line: one file per verb. Flags are read here and nowhere else.
package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit code: 0 for success, 1 for a failure, 2 for a wrong call.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "Monitoring in one binary: server, agent, MongoDB request monitor, store",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(versionCommand())
	if err := root.Execute(); err != nil {
		return fail(stderr, err)
	}
	return 0
}
