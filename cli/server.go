package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
)

func serverCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "server --config FILE",
		Short: "Run the server alone",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return runServer(c, s) },
	}
	s.addServer(c.Flags())
	return c
}

func runServer(c *cobra.Command, s *settings) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	srv, options, err := openServer(c, conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	sayAddresses(c, conf, options, "")
	return errors.Join(srv.Run(c.Context()), srv.Close())
}

// openServer opens the listeners and the server; when the server does not open, the listeners are closed again.
func openServer(c *cobra.Command, conf *config.Config, logger *slog.Logger) (*server.Server, server.Options, error) {
	options, err := serverOptions(conf, logger)
	if err != nil {
		return nil, options, err
	}
	srv, err := server.Open(c.Context(), options)
	if err != nil {
		_ = options.HTTP.Close()
		_ = options.Trapper.Close()
		return nil, options, err
	}
	return srv, options, nil
}

// sayAddresses prints the one line that a start prints; remark stands behind the page's address.
func sayAddresses(c *cobra.Command, conf *config.Config, options server.Options, remark string) {
	fmt.Fprintf(c.OutOrStdout(), "Tidemark is at %s%s; agents and senders: %s\n", pageURL(conf, options.HTTP), remark, options.Trapper.Addr())
}
