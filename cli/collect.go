package cli

import (
	"errors"

	"tidemark/config"
	"tidemark/server"
)

// collectOptions turns the settings of checks into those of the server.
func collectOptions(c *config.Config) (server.CollectOptions, error) {
	allowed, err := config.ParseNetworks(c.Collect.AllowedNetworks)
	denied, deniedErr := config.ParseNetworks(c.Collect.DeniedNetworks)
	return server.CollectOptions{Allowed: allowed, Denied: denied, SSLFolder: c.Collect.SSLFolder}, errors.Join(err, deniedErr)
}
