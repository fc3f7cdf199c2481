// Package cli is the command line: one file per verb. Flags are read here and nowhere else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see '%s --help'", err, c.CommandPath())
	})
	token := root.PersistentFlags().String("token", "", "token for verbs that call a server; better in "+tokenVariable+", because others can read arguments")
	tokenFile := root.PersistentFlags().String("token-file", "", "file with the token for verbs that call a server")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return withToken(c, *token, *tokenFile) }
	root.AddCommand(auditCommand(), tokenCommand(), userCommand(), alertCommand(), upCommand(), serverCommand(), agentCommand(), checkConfigCommand(), configCommand(), importCommand(), exportCommand(), loadCommand(), storeCommand(), mongoCommand(), scriptWorkerCommand(), versionCommand(), hostCommand(), queueCommand(), checkCommand())
	root.AddCommand(migrateCommand(), getCommand(), dashboardCommand())
	root.AddCommand(proxiesCommand(), proxyCommand(), shadowCommand(), discoveryCommand())
	refuseUnknown(root)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		return fail(stderr, interrupted(ctx, err))
	}
	return 0
}

// refuseUnknown gives each command that only has commands below it help without arguments, and an error for a word that is none of them.
func refuseUnknown(c *cobra.Command) {
	for _, below := range c.Commands() {
		refuseUnknown(below)
		if below.Runnable() || !below.HasSubCommands() {
			continue
		}
		below.Args = noArgs
		below.DisableFlagsInUseLine = true
		below.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
}

// noArgs refuses arguments with an error that exits as a wrong call.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 && c.HasSubCommands() {
		return usagef("%s has no command %q; see '%s --help'", c.CommandPath(), args[0], c.CommandPath())
	}
	if len(args) > 0 {
		return usagef("%s takes no arguments, got %q", c.CommandPath(), args[0])
	}
	return nil
}

// someArgs asks for between low and high arguments; high below zero is no limit.
func someArgs(low, high int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < low || high >= 0 && len(args) > high {
			got := fmt.Sprintf("%d arguments", len(args))
			switch len(args) {
			case 0:
				got = "none"
			case 1:
				got = fmt.Sprintf("only %.60q", args[0])
			}
			return usagef("%s expects %s, got %s; see '%s --help'", c.CommandPath(), what, got, c.CommandPath())
		}
		return nil
	}
}

// errSilent ends with code 1 without another message: the command has said what is wrong.
var errSilent = errors.New("failed")
