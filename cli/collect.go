package cli

import (
	"errors"
	"fmt"
	"net"

	"tidemark/config"
	"tidemark/server"
)

// collectOptions turns the settings of checks into those of the server, and opens the socket for traps.
func collectOptions(c *config.Config) (server.CollectOptions, error) {
	allowed, err := config.ParseNetworks(c.Collect.AllowedNetworks)
	denied, deniedErr := config.ParseNetworks(c.Collect.DeniedNetworks)
	o := server.CollectOptions{Allowed: allowed, Denied: denied, SSLFolder: c.Collect.SSLFolder, ExternalScripts: c.Collect.ExternalScripts, JavaGateway: c.Collect.JavaGateway}
	if err := errors.Join(err, deniedErr); err != nil || c.Collect.TrapListen == "" {
		return o, err
	}
	if o.Traps, err = net.ListenPacket("udp", c.Collect.TrapListen); err != nil {
		return o, fmt.Errorf("listen for SNMP traps (collect.trap_listen): %w", err)
	}
	return o, nil
}
