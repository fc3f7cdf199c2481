package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tidemark/agent"
	"tidemark/server"
)

func upCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run server and agent on this machine in one process",
		Long: "Run the server and an agent that measures this machine, in one process. Without flags it keeps its data in ./data, shows the page\n" +
			"on http://127.0.0.1:8420 and takes values from Zabbix agents and senders on 127.0.0.1:10051.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runUp(c, s) },
	}
	s.addServer(c.Flags())
	s.addAgent(c.Flags())
	return c
}

func runUp(c *cobra.Command, s *settings) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	if conf.Standby.Of != "" {
		return usagef("tidemark up does not follow another server: standby.of is %s; for a standby run tidemark server --standby-of %s", conf.Standby.Of, conf.Standby.Of)
	}
	if conf.Storage.Shared {
		return usagef("tidemark up does not share its database with another server: run tidemark server with storage.shared, and tidemark agent beside it")
	}
	if !conf.IsSet("autoregistration") && !s.flags.Changed("autoregistration") {
		conf.Autoregistration = true
	}
	logger := s.logger(c.ErrOrStderr())
	first := emptyFolder(conf.Data)
	localOptions, err := agentOptions(conf, logger)
	if err != nil {
		return err
	}
	srv, options, err := openServer(c, conf, logger)
	if err != nil {
		return err
	}
	localOptions.Server = options.Trapper.Addr().String()
	local, err := agent.Open(c.Context(), spool(conf.Data), localOptions)
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	remark := ""
	if first {
		remark = fmt.Sprintf(" (new data folder %s)", conf.Data)
	}
	sayAddresses(c, srv, conf, options, remark)
	return runBoth(c.Context(), srv, local)
}

// runBoth runs server and agent until ctx ends. The agent stops first, while the server can still take what it has.
func runBoth(ctx context.Context, srv *server.Server, local *agent.Agent) error {
	g, running := errgroup.WithContext(ctx)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	g.Go(func() error {
		defer stopServing()
		return errors.Join(local.Run(running), local.Close())
	})
	g.Go(func() error { return srv.Run(serving) })
	err := g.Wait()
	return errors.Join(err, srv.Close())
}
