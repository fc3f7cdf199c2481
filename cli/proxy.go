package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/internal/tlsdial"
	"tidemark/proxy"
)

func proxyCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "proxy --server ADDR [--name NAME]",
		Short: "Stand between agents and a server: ask hosts, keep their values while the server is away",
		Long: "Stand between agents and a Tidemark server, or a Zabbix server 6.0: ask the hosts that are assigned to the proxy, take what their agents and\n" +
			"senders bring, preprocess it, and send it on. What cannot be sent is kept on disk. The server must know the proxy by its name\n" +
			"(tidemark proxies add NAME).",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runProxy(c, s) },
	}
	s.addProxy(c.Flags())
	return c
}

func runProxy(c *cobra.Command, s *settings) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	if !conf.IsSet("http.listen") && !s.flags.Changed("http") {
		conf.HTTP.Listen = config.DefaultProxyListen
	}
	options, err := proxyOptions(conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	p, err := proxy.Open(c.Context(), options)
	if err != nil {
		return errors.Join(err, closeListeners(&options))
	}
	fmt.Fprintf(c.OutOrStdout(), "The proxy %s sends to %s; agents and senders: %s, state: %s/api/state\n", options.Name, options.Server, options.Trapper.Addr(), pageURL(conf, options.HTTP))
	return errors.Join(p.Run(c.Context()), p.Close())
}

// proxyOptions opens the listeners and turns the settings into those of the proxy.
func proxyOptions(c *config.Config, logger *slog.Logger) (proxy.Options, error) {
	collect, err := collectOptions(c)
	o := proxy.Options{
		Data: c.Data, Server: c.Proxy.Server, Name: c.Proxy.Name, TLS: tlsdial.Settings(c.Proxy.TLS), Traps: collect.Traps, Refresh: c.Proxy.Refresh,
		BufferBytes: c.Proxy.BufferBytes, BufferAge: c.Proxy.BufferAge, Allowed: collect.Allowed, Denied: collect.Denied, SSLFolder: collect.SSLFolder,
		JavaGateway: collect.JavaGateway, ScriptWorker: scriptWorker(), Version: Version, Logger: logger,
	}
	if err != nil {
		return o, err
	}
	if o.Certificates, err = agentCertificates(c); err != nil {
		return o, errors.Join(err, closeListeners(&o))
	}
	if o.Name == "" {
		if o.Name, err = os.Hostname(); err != nil {
			return o, errors.Join(fmt.Errorf("the machine's host name cannot be read; give --name: %w", err), closeListeners(&o))
		}
	}
	if o.HTTP, err = listenHTTP(c); err != nil {
		return o, errors.Join(err, closeListeners(&o))
	}
	if o.Trapper, err = listen(c.Trapper.Listen, "agents and senders (--trapper)"); err != nil {
		return o, errors.Join(err, closeListeners(&o))
	}
	return o, nil
}

// closeListeners closes what a proxy that does not open leaves open.
func closeListeners(o *proxy.Options) error {
	var errs []error
	if o.HTTP != nil {
		errs = append(errs, o.HTTP.Close())
	}
	if o.Trapper != nil {
		errs = append(errs, o.Trapper.Close())
	}
	if o.Traps != nil {
		errs = append(errs, o.Traps.Close())
	}
	return errors.Join(errs...)
}
