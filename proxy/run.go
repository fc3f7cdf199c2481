package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/histcache"
	"tidemark/model"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

const (
	// stopTime is how long a stop may take before connections are cut, drainTime how long values that were taken may need to be written.
	stopTime  = 1500 * time.Millisecond
	drainTime = time.Second
	// againPause is that between tries to write on a full or failing disk.
	againPause = time.Second
	// ageEvery is how often old values are looked for.
	ageEvery = time.Minute
)

// errStopping ends requests whose values could not be written before the proxy stopped.
var errStopping = errors.New("the proxy is stopping; the values were not kept")

// Run serves until ctx ends, then stops: first what brings values, then the pipeline along their way. Values that were taken are kept and
// answered. It returns nil when ctx ended it.
func (p *Proxy) Run(ctx context.Context) error {
	// The pipeline outlives ctx: it ends when its input does.
	pipeline, endPipeline := context.WithCancel(context.WithoutCancel(ctx))
	defer endPipeline()
	var keeping errgroup.Group
	keeping.Go(func() error { return p.keep(pipeline) })

	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return p.trapper.Serve(running, p.o.Trapper) })
	g.Go(func() error { return p.poller.Run(running) })
	if p.traps != nil {
		g.Go(func() error { return p.traps.Run(running) })
	}
	if p.passive != nil {
		p.passive.begin(ctx)
	} else {
		g.Go(func() error { return p.ask(running) })
		g.Go(func() error { return p.sender.Run(running) })
	}
	g.Go(func() error { return p.scanner.Run(running) })
	g.Go(func() error { return p.sender.tasks.Run(running) })
	g.Go(func() error { return p.age(running) })
	if p.o.HTTP != nil {
		g.Go(func() error { return p.serveHTTP(running) })
	}
	g.Go(func() error {
		<-running.Done()
		time.AfterFunc(drainTime, endPipeline)
		return nil
	})
	err := g.Wait()
	_ = p.preproc.Close() // values in scripts still need the stages behind
	_ = p.histcache.Close()
	if keepErr := keeping.Wait(); err == nil {
		err = keepErr
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// keep moves values from the history cache to the queue and answers those who wait for it, until the cache is closed and empty. What cannot be
// written is tried again; meanwhile the cache fills, and whoever brings values waits.
func (p *Proxy) keep(ctx context.Context) error {
	for {
		b, size, err := p.histcache.Take(ctx)
		if errors.Is(err, histcache.ErrClosed) {
			return nil
		}
		if err != nil {
			p.refuseWaiting()
			return err
		}
		p.facts.observe(b)
		dropOwn(b)
		if p.o.Page != nil {
			p.o.Page.Show(b)
		}
		err = p.queue.Append(b)
		for failed := false; err != nil && ctx.Err() == nil; err = p.queue.Append(b) {
			if !failed {
				p.logger.Error("values cannot be kept; agents wait until they can", "error", err)
				failed = true
			}
			wait(ctx, againPause)
		}
		b.Finish(err)
		b.Free()
		p.histcache.Done(size)
	}
}

// dropOwn takes out the rows of items that the proxy made by itself: of web scenarios the server knows only what other items take out of them.
func dropOwn(b *model.Batch) {
	kept := 0
	for i, id := range b.Items {
		if proxyconfig.IsOwn(id) {
			continue
		}
		if kept != i {
			b.CopyRow(kept, i)
		}
		kept++
	}
	b.Truncate(kept)
}

// refuseWaiting ends the requests whose values are still in the history cache when nobody takes them any more.
func (p *Proxy) refuseWaiting() {
	_ = p.histcache.Close()
	for {
		b, size, err := p.histcache.Take(context.Background())
		if err != nil {
			return
		}
		b.Finish(errStopping)
		b.Free()
		p.histcache.Done(size)
	}
}

// age drops values that are too old.
func (p *Proxy) age(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.queue.Age(time.Now().UnixNano()); err != nil {
			p.logger.Error("old values are not dropped", "error", err)
		}
		wait(ctx, ageEvery)
	}
	return nil
}

// ask gets the configuration, again and again.
func (p *Proxy) ask(ctx context.Context) error {
	said := ""
	p.follow(ctx)
	for ctx.Err() == nil {
		pause := p.o.Refresh
		err := p.askOnce(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() != nil:
			return nil
		default:
			if said != err.Error() {
				p.logger.Warn("no configuration from the server; the proxy goes on with the one it has", "error", err)
			}
			said = err.Error()
			pause = min(pause, firstRefresh)
		}
		wait(ctx, pause)
	}
	return nil
}

func (p *Proxy) askOnce(ctx context.Context) error {
	r := zbx.ProxyRequest{Name: zbx.ProxyConfig, Host: p.o.Name, Version: protocol}
	body, err := p.asker.exchange(ctx, r.End(r.Begin(nil), 0, false))
	if err != nil {
		return err
	}
	err = p.useConfiguration(ctx, body)
	p.asker.reader.Shrink()
	return err
}

// useConfiguration brings what the server gave into force.
func (p *Proxy) useConfiguration(ctx context.Context, body []byte) error {
	changed, err := p.configuration.take(body, time.Now().UnixNano())
	if err != nil || !changed {
		return versionError(err)
	}
	if _, err := p.cache.Refresh(ctx); err != nil {
		return err
	}
	s := p.cache.Snapshot()
	p.configuration.settled(s.Revision())
	p.look(s)
	p.logger.Info("a new configuration is in force", "hosts", s.HostCount(), "items", s.ItemCount())
	p.follow(ctx)
	return nil
}

// follow brings the configuration to the page.
func (p *Proxy) follow(ctx context.Context) {
	if p.o.Page == nil {
		return
	}
	if err := p.o.Page.Follow(ctx, p.cache.Snapshot()); err != nil && ctx.Err() == nil {
		p.logger.Error("the page does not show the newest configuration", "error", err)
	}
}

// serveHTTP serves metrics and state.
func (p *Proxy) serveHTTP(ctx context.Context) error {
	web := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn),
	}
	stopped := context.AfterFunc(ctx, func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if web.Shutdown(stopping) != nil {
			_ = web.Close()
		}
	})
	defer stopped()
	if err := web.Serve(p.o.HTTP); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}
