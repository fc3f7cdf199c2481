package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/collect"
	"tidemark/housekeeper"
)

// stopTime is how long a stop may take before connections are cut.
const stopTime = 1500 * time.Millisecond

// drainTime is how long values that were taken may need to be stored at a stop. What needs longer, as on a full disk, is not
// acknowledged, so that its senders keep it.
const drainTime = time.Second

// errStopping ends requests whose values the server could not store before it stopped.
var errStopping = fmt.Errorf("%w; the values were not stored", collect.ErrStopping)

// Run serves until ctx ends, then stops: first the listeners, then the pipeline along the way of a value. Values that were taken are
// stored and answered. It returns nil when ctx ended it.
func (s *Server) Run(ctx context.Context) error {
	if s.o.kept != nil && s.following() {
		return s.runStandby(ctx)
	}
	var handler http.Handler
	if s.o.HTTP != nil { // else it is served by who runs this server
		var err error
		if handler, err = s.handler(); err != nil {
			return err
		}
	}
	// The pipeline outlives ctx: it ends when its input does.
	pipeline, endPipeline := context.WithCancel(context.WithoutCancel(ctx))
	defer endPipeline()
	var syncing errgroup.Group
	syncer := s.syncer()
	syncing.Go(func() error {
		err := syncer.Run(pipeline)
		s.refuseWaiting()
		return err
	})

	g, running := errgroup.WithContext(ctx)
	web := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	stopRates := make(chan struct{})
	keeper := housekeeper.New(housekeeper.Options{Pruner: s.engine, Events: s.db, Items: s, Metrics: s.metrics, Logger: s.logger})
	if s.o.HTTP != nil {
		g.Go(func() error { return s.serveHTTP(web) })
	}
	if s.replica != nil {
		g.Go(func() error { return s.replica.run(running) })
	}
	if s.o.Trapper != nil {
		g.Go(func() error { return s.trapper.Serve(running, s.o.Trapper) })
	}
	g.Go(func() error { return s.access.Run(running) })
	g.Go(func() error { return s.cache.Run(running, s.db.Changed()) })
	g.Go(func() error { return s.collect(running, s.polling.Run) })
	if s.traps != nil {
		g.Go(func() error { return s.collect(running, s.traps.Run) })
	}
	g.Go(func() error { return s.collect(running, s.scraper.Run) })
	g.Go(func() error { return s.discovery.Run(running) })
	g.Go(func() error { return s.collect(running, s.network.scanner.Run) })
	g.Go(func() error { return s.collect(running, s.passive.Run) })
	g.Go(func() error { return s.watchNoData(running) })
	g.Go(func() error { return s.evaluator.Run(running) })
	g.Go(func() error { return s.events.Run(running) })
	g.Go(func() error { return keeper.Run(running) })
	g.Go(func() error { return s.alerter.Run(running) })
	if s.snapshots != nil {
		g.Go(func() error { return s.snapshots.run(running) })
		g.Go(func() error { return s.recompressor.run(running) })
		g.Go(func() error { return s.headroom.run(running) })
	}
	if s.queryLog != nil {
		g.Go(func() error { return s.queryLog.Run(running) })
	}
	if s.trends != nil {
		g.Go(func() error { return s.trends.Run(running) })
	}
	g.Go(func() error { s.rates.sample(stopRates); return nil })
	g.Go(func() error { s.sampleHour(stopRates); return nil })
	g.Go(func() error { return s.tellProblems(running) })
	g.Go(func() error {
		<-running.Done()
		close(stopRates)
		// The time of the pipeline begins when no request holds the configuration's database any more, which events are recorded in.
		defer time.AfterFunc(drainTime, endPipeline)
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if err := web.Shutdown(stopping); err != nil {
			return web.Close()
		}
		return nil
	})
	err := g.Wait()
	_ = s.preproc.Close() // values in scripts still need the stages behind
	_ = s.histcache.Close()
	if syncErr := syncing.Wait(); err == nil {
		err = syncErr
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// refuseWaiting ends the requests whose values are still in the history cache when nobody takes them any more.
func (s *Server) refuseWaiting() {
	_ = s.histcache.Close()
	for {
		b, size, err := s.histcache.Take(context.Background())
		if err != nil {
			return
		}
		b.Finish(errStopping)
		b.Free()
		s.histcache.Done(size)
	}
}

func (s *Server) serveHTTP(web *http.Server) error {
	if err := web.Serve(s.o.HTTP); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// tellProblems tells live pages when problems changed.
func (s *Server) tellProblems(ctx context.Context) error {
	changed, cancel := s.events.Subscribe()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			s.hub.ProblemsChanged()
		}
	}
}

// stores are what is open on disk.
func (s *Server) stores() []io.Closer {
	var open []io.Closer
	if s.engine != nil {
		open = append(open, s.engine)
	}
	if s.db != nil {
		open = append(open, s.db)
	}
	if s.catalog != nil {
		open = append(open, s.catalog)
	}
	return open
}

// Close makes everything durable and releases the data folder. Run must have returned. A second call does nothing.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		closers := []io.Closer{}
		if s.trapper != nil {
			closers = append(closers, s.trapper)
		}
		if s.checks != nil {
			closers = append(closers, s.checks)
		}
		if s.alertScripts != nil {
			closers = append(closers, s.alertScripts)
		}
		if s.scripts != nil {
			closers = append(closers, s.scripts)
		}
		if s.events != nil {
			closers = append(closers, s.events)
		}
		if s.o.kept == nil { // else they outlive this server
			closers = append(closers, s.stores()...)
		}
		if s.lock != nil {
			closers = append(closers, s.lock)
		}
		var all []error
		for _, c := range closers {
			all = append(all, c.Close())
		}
		s.closeErr = errors.Join(all...)
	})
	return s.closeErr
}
