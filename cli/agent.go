package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tidemark/agent"
)

func agentCommand() *cobra.Command {
	s := &settings{}
	var test string
	c := &cobra.Command{
		Use:   "agent --server ADDR [--host NAME]",
		Short: "Measure this machine and send the values to a server",
		Long: "Measure this machine and send the values to a Tidemark or Zabbix server (active agent protocol). What cannot be sent is kept on disk.\n" +
			"With --test KEY it measures one item key, prints the value and ends.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if test != "" {
				return testKey(c, test)
			}
			return runAgent(c, s)
		},
	}
	s.addCommon(c.Flags())
	s.addAgent(c.Flags())
	c.Flags().StringVar(&s.agentServer, "server", "", "the server's address for agents, host:port (default 127.0.0.1:10051)")
	c.Flags().StringVar(&test, "test", "", "measure one item key and end")
	c.AddCommand(agentGetCommand())
	return c
}

func runAgent(c *cobra.Command, s *settings) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	options, err := agentOptions(conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	options.Mongo.DropPrivileges = true
	if options.Mongo.Interface != "" {
		debug.SetGCPercent(agentGarbagePercent)
		dropUnusedPages()
	}
	a, err := agent.Open(c.Context(), spool(conf.Data), options)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "The agent sends to %s\n", conf.Agent.Server)
	g, ctx := errgroup.WithContext(c.Context())
	g.Go(func() error { return a.Run(ctx) })
	if options.Mongo.Interface != "" {
		g.Go(func() error {
			keepSmall(ctx)
			return nil
		})
	}
	return errors.Join(g.Wait(), a.Close())
}

// testKey measures one key.
func testKey(c *cobra.Command, text string) error {
	check, value, err := agent.Test(text)
	if err != nil {
		return err
	}
	out := struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Units string `json:"units"`
		Value string `json:"value"`
	}{text, check.Type.String(), check.Units, value.String()}
	return json.NewEncoder(c.OutOrStdout()).Encode(out)
}
