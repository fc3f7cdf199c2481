package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tidemark/sniff"
)

func mongoExportCommand() *cobra.Command {
	source := &mongoSource{}
	var listen string
	var top int
	c := &cobra.Command{
		Use:   "export --listen ADDRESS -i INTERFACE [--port N]…",
		Short: "Serve MongoDB request statistics to Prometheus",
		Long: "Watch MongoDB requests on a network interface and serve them at http://ADDRESS/metrics. The shapes with the most time have series of\n" +
			"their own; the rest are summed up, so that their number stays within --top.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if source.device == "" {
				return usagef("-i INTERFACE is missing: name a network interface, or any")
			}
			if top < 1 {
				return usagef("--top %d: expected at least 1", top)
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			w, err := source.open(false, c.ErrOrStderr())
			if err != nil {
				l.Close()
				return err
			}
			defer w.source.Close()
			fmt.Fprintf(c.OutOrStdout(), "watching %s; metrics are at http://%s/metrics\n", w.name, l.Addr())
			return runExport(c.Context(), w, l, top)
		},
	}
	source.add(c, false)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9216", "address of the metrics")
	c.Flags().IntVar(&top, "top", 200, "how many shapes have series of their own")
	return c
}

// runExport sniffs and serves until the context ends.
func runExport(ctx context.Context, w *watch, l net.Listener, top int) error {
	live := sniff.NewTotals()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = live.WriteMetrics(rw, top)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return w.run(ctx, func(from, to int64) { live.Take(w.sniffer, from, to) })
	})
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return srv.Close()
	})
	return g.Wait()
}
