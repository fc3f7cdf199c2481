package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

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
	options, err := serverOptions(conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	srv, err := server.Open(c.Context(), options)
	if err != nil {
		_ = options.HTTP.Close()
		_ = options.Trapper.Close()
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Tidemark is at %s; agents and senders: %s\n", pageURL(conf, options.HTTP), options.Trapper.Addr())
	return errors.Join(srv.Run(c.Context()), srv.Close())
}
