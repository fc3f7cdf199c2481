package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"

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
	s.addStandby(c.Flags())
	return c
}

func runServer(c *cobra.Command, s *settings) error {
	conf, err := s.load()
	if err != nil {
		return err
	}
	if conf.Standby.Of != "" {
		return runStandby(c, s, conf)
	}
	if conf.Storage.Shared {
		return runShared(c, s, conf)
	}
	srv, options, err := openServer(c, conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	sayAddresses(c, srv, conf, options, "")
	return errors.Join(srv.Run(c.Context()), srv.Close())
}

// ownAddress is how other servers of the cluster and people find this one.
func ownAddress(conf *config.Config, listener net.Listener) string {
	return cmp.Or(conf.Standby.Advertise, pageURL(conf, listener))
}

// startGarbagePercent lets the heap grow while the configuration is read: nearly all that is made then stays.
const startGarbagePercent = 400

// openServer opens the listeners and the server; when the server does not open, the listeners are closed again.
func openServer(c *cobra.Command, conf *config.Config, logger *slog.Logger) (*server.Server, server.Options, error) {
	options, err := serverOptions(conf, logger)
	if err != nil {
		return nil, options, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(startGarbagePercent))
	srv, err := server.Open(c.Context(), options)
	if err != nil {
		_ = options.HTTP.Close()
		_ = options.Trapper.Close()
		if options.Collect.Traps != nil {
			_ = options.Collect.Traps.Close()
		}
		return nil, options, err
	}
	if err := checkReach(conf, options.Token, srv); err != nil {
		_ = options.HTTP.Close()
		_ = options.Trapper.Close()
		return nil, options, errors.Join(err, srv.Close())
	}
	return srv, options, nil
}

// checkReach refuses a page that others can reach as long as nobody can sign in there.
func checkReach(conf *config.Config, token string, srv *server.Server) error {
	if token != "" || loopback(conf.HTTP.Listen) || srv.HasAdministrator() {
		return nil
	}
	return noAdministrator(conf)
}

// noAdministrator says that a page that others can reach needs somebody who can sign in.
func noAdministrator(conf *config.Config) error {
	return usagef("http.listen %q is no loopback address, and there is no administrator: make one with tidemark user add NAME --role administrator --data %s, give http.token_file, a file with the token that clients send, or use 127.0.0.1 and a tunnel such as ssh -L 8420:127.0.0.1:8420", conf.HTTP.Listen, conf.Data)
}

// sayAddresses prints the line that a start prints, and where the first administrator is made if there is none; remark stands behind the
// page's address.
func sayAddresses(c *cobra.Command, srv *server.Server, conf *config.Config, options server.Options, remark string) {
	fmt.Fprintf(c.OutOrStdout(), "Tidemark is at %s%s; agents and senders: %s\n", pageURL(conf, options.HTTP), remark, options.Trapper.Addr())
	sayFirstLink(c, srv.FirstKey(), pageURL(conf, options.HTTP), conf)
}
