package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// keptOutputBytes is how much is kept of what a command prints; of a cut one the last character or line breaks may be missing too.
const keptOutputBytes = 512<<10 - 4

func runCommand(r *remote) *cobra.Command {
	on := "agent"
	c := &cobra.Command{
		Use: "run HOST COMMAND", Short: "Run a command on the agent of a host, or on its proxy",
		Long: "Run a command line on the agent of a host and print what it printed. The agent must allow it (AllowKey=system.run[*]) and be asked by\n" +
			"passive checks; a host with a proxy is reached through it. With --on proxy the proxy runs the command itself, if its settings permit it.\n" +
			"Only administrators may do this; the audit log keeps the command.",
		Example: "  tidemark host run db1 'systemctl restart postgresql'\n  tidemark host run db1 'ip route' --on proxy",
		Args:    someArgs(2, 2, "a host and a command"),
		RunE: func(c *cobra.Command, args []string) error {
			var answer struct{ Output, Error string }
			text, err := r.call(c.Context(), http.MethodPost, "/api/commands", map[string]string{"host": args[0], "command": args[1], "on": on}, &answer)
			if err != nil {
				return err
			}
			if r.asJSON {
				_, err = c.OutOrStdout().Write(text)
			} else if answer.Output != "" {
				_, err = fmt.Fprintln(c.OutOrStdout(), strings.TrimRight(answer.Output, "\r\n"))
			}
			if len(answer.Output) >= keptOutputBytes {
				fmt.Fprintln(c.ErrOrStderr(), "the output is cut at 512 KiB")
			}
			if answer.Error != "" {
				err = errors.Join(err, errors.New(answer.Error))
			}
			return err
		},
	}
	c.Flags().StringVar(&on, "on", "agent", "where it runs: agent, or proxy")
	return c
}
