package cli

import (
	"os"

	"github.com/spf13/cobra"

	"tidemark/preproc/script"
)

// scriptVerb is the verb of the process that runs JavaScript steps; the server starts it.
const scriptVerb = "script-worker"

func scriptWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    scriptVerb,
		Short:  "Run JavaScript steps for a server (started by it)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return script.Serve(c.InOrStdin(), c.OutOrStdout())
		},
	}
}

// scriptWorker is the command by which the server starts the process, or nil when the binary cannot be found.
func scriptWorker() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, scriptVerb}
}
