package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
)

// runShared runs a server that shares its database with others. When it gives its work up, the program is begun anew in the same process, so that nothing
// that it knew is left; a supervisor sees one process all the time.
func runShared(c *cobra.Command, s *settings, conf *config.Config) error {
	options, err := serverOptions(conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Tidemark is at %s, and works when no other server on its database does; agents and senders: %s\n", pageURL(conf, options.HTTP), options.Trapper.Addr())
	err = server.Share(c.Context(), options, server.SharedOptions{
		Address: ownAddress(conf, options.HTTP), TTL: conf.Storage.Lease,
		Opened: func(srv *server.Server) error {
			if err := checkReach(conf, options.Token, srv); err != nil {
				return err
			}
			sayFirstLink(c, srv.FirstKey(), pageURL(conf, options.HTTP), conf)
			return nil
		},
	})
	_ = options.HTTP.Close()
	_ = options.Trapper.Close()
	if errors.Is(err, server.ErrSteppedDown) && c.Context().Err() == nil {
		return beginAnew()
	}
	return err
}

// beginAnew puts the program in the place of itself. It returns only when that fails.
func beginAnew() error {
	path, err := os.Executable()
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("begin anew: %w", err)
}

// leaseReport is what GET /api/lease answers.
type leaseReport struct {
	Shared      bool    `json:"shared"`
	Role        string  `json:"role"`
	Epoch       int64   `json:"epoch"`
	Holder      string  `json:"holder"`
	Address     string  `json:"address"`
	LeftSeconds float64 `json:"left_seconds"`
	Problem     string  `json:"problem,omitempty"`
}

// handOverTime is how long a handover may take until another server works.
const handOverTime = time.Minute

func storeHandOverCommand() *cobra.Command {
	var client serverClient
	var asJSON bool
	c := &cobra.Command{
		Use:   "handover --http ADDR",
		Short: "Give the work to the other server on the same database",
		Long: "Have the server at ADDR, which shares its PostgreSQL database with another one (storage.shared), store what it has, stop and give the lease to the one that waits.\n" +
			"The command ends when that one works. Without one that waits the server takes its lease again after a moment.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if client.address == "" {
				return usagef("store handover expects --http ADDR, the server that works")
			}
			began := time.Now()
			var before leaseReport
			if err := client.call(c.Context(), http.MethodPost, "/api/lease/handover", nil, &before); err != nil {
				return err
			}
			after, err := awaitHandOver(c.Context(), &client, before.Epoch)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(after)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s (%s) works with epoch %d, %.1f s after the request\n", after.Holder, after.Address, after.Epoch, time.Since(began).Seconds())
			return err
		},
	}
	client.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// awaitHandOver asks the server that gave its work away until it knows of another epoch.
func awaitHandOver(ctx context.Context, client *serverClient, epoch int64) (leaseReport, error) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	for {
		var now leaseReport
		err := client.call(ctx, http.MethodGet, "/api/lease", nil, &now)
		if err == nil && now.Epoch > epoch {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, errors.Join(fmt.Errorf("nobody took over within %v; the last answer was %+v", handOverTime, now), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
