package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tidemark/config"
	"tidemark/internal/tlsdial"
	"tidemark/proxy"
	"tidemark/server"
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
	page, address, err := openProxyPage(c.Context(), conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return errors.Join(err, closeListeners(&options))
	}
	if page != nil {
		options.Page = page
		fmt.Fprintf(c.OutOrStdout(), "The page is at %s\n", address)
	}
	p, err := proxy.Open(c.Context(), options)
	if err != nil {
		if page != nil {
			err = errors.Join(err, page.Close())
		}
		return errors.Join(err, closeListeners(&options))
	}
	toServer := "sends to " + options.Server
	if options.Passive {
		toServer = "waits for questions from " + options.Server
	}
	fmt.Fprintf(c.OutOrStdout(), "The proxy %s %s; agents and senders: %s, state: %s/api/state\n", options.Name, toServer, options.Trapper.Addr(), pageURL(conf, options.HTTP))
	if page == nil {
		return errors.Join(p.Run(c.Context()), p.Close())
	}
	return runWithPage(c.Context(), p, page)
}

// runWithPage runs a proxy with its page until ctx ends. The proxy stops first, while the page can still take what passes.
func runWithPage(ctx context.Context, p *proxy.Proxy, page *server.Server) error {
	g, running := errgroup.WithContext(ctx)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	g.Go(func() error {
		defer stopServing()
		return errors.Join(p.Run(running), p.Close())
	})
	g.Go(func() error { return page.Run(serving) })
	err := g.Wait()
	return errors.Join(err, page.Close())
}

// pageDiskSpace bounds what a proxy keeps to show when storage.disk_space says nothing.
const pageDiskSpace = 1 << 30

// openProxyPage opens the page of a proxy, in a folder of its own; nil when there is to be none.
func openProxyPage(ctx context.Context, c *config.Config, logger *slog.Logger) (*server.Server, string, error) {
	if c.Proxy.Keep == 0 {
		return nil, "", nil
	}
	own := *c
	own.HTTP.Listen, own.Data = c.Proxy.Page, filepath.Join(c.Data, "page")
	if !loopback(own.HTTP.Listen) && own.HTTP.TokenFile == "" {
		return nil, "", usagef("proxy.page %q is no loopback address: give http.token_file, a file with the token that clients send, or use 127.0.0.1 and a tunnel such as ssh -L 8420:127.0.0.1:8420", own.HTTP.Listen)
	}
	token, err := readToken(&own)
	if err != nil {
		return nil, "", err
	}
	web, err := listenHTTP(&own)
	if err != nil {
		return nil, "", err
	}
	size := own.Storage.DiskSpaceBytes
	if size == 0 {
		size = pageDiskSpace
	}
	page, err := server.Open(ctx, server.Options{
		Data: own.Data, HTTP: web, Token: token, Mirror: true, OverrideHistory: c.Proxy.Keep, OverrideTrends: c.Proxy.Keep, DiskSpaceBytes: size,
		PageCacheBytes: own.Storage.PageCacheBytes, MinuteShare: tierShare(own.Storage.MinuteShare), HourShare: tierShare(own.Storage.HourShare), Relaxed: true,
		Version: Version, Logger: logger.With("part", "page"),
	})
	if err != nil {
		return nil, "", errors.Join(err, web.Close())
	}
	return page, pageURL(&own, web), nil
}

// proxyOptions opens the listeners and turns the settings into those of the proxy.
func proxyOptions(c *config.Config, logger *slog.Logger) (proxy.Options, error) {
	collect, err := collectOptions(c)
	o := proxy.Options{
		Data: c.Data, Server: c.Proxy.Server, Passive: c.Proxy.Passive, Name: c.Proxy.Name, TLS: tlsdial.Settings(c.Proxy.TLS), Traps: collect.Traps, Refresh: c.Proxy.Refresh,
		RemoteCommands: c.Proxy.RemoteCommands,
		BufferBytes:    c.Proxy.BufferBytes, BufferAge: c.Proxy.BufferAge, Allowed: collect.Allowed, Denied: collect.Denied, SSLFolder: collect.SSLFolder, ExternalScripts: collect.ExternalScripts,
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
