package server

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/model"
	"tidemark/standby"
	"tidemark/storage/dbengine"
	"tidemark/wire/zbx"
)

// newFollower makes the part that brings the primary's data.
func (s *Server) newFollower(peer *standby.Client, id, address string) {
	s.replica.follower = standby.NewFollower(standby.FollowerOptions{
		Node: s.replica.node, Client: peer, Engine: s.engine.(*dbengine.DB), DB: s.db, Catalog: s.catalog, Standby: id, Address: address,
		Observe: s.observe, Changed: s.reload, Metrics: s.metrics, Logger: s.logger,
	})
}

// observe shows values of the primary that were stored.
func (s *Server) observe(b *model.Batch) {
	s.latest.Observe(b)
	s.hub.Publish(b)
	s.rates.Observe(b)
}

// reload takes over a changed copy of the configuration.
func (s *Server) reload(ctx context.Context) error {
	_, err := s.cache.Refresh(ctx)
	return errors.Join(err, s.access.Reload(ctx), s.events.Reload(ctx))
}

// runStandby follows the primary and answers queries; nothing is collected, evaluated or sent.
func (s *Server) runStandby(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	stopRates := make(chan struct{})
	g.Go(func() error { return s.replica.follower.Run(running) })
	g.Go(func() error { return s.recompressor.run(running) })
	g.Go(func() error { return s.headroom.run(running) })
	if s.queryLog != nil {
		g.Go(func() error { return s.queryLog.Run(running) })
	}
	g.Go(func() error { return s.tellProblems(running) })
	g.Go(func() error { s.rates.sample(stopRates); return nil })
	g.Go(func() error { s.sampleHour(stopRates); return nil })
	g.Go(func() error {
		<-running.Done()
		close(stopRates)
		return nil
	})
	err := g.Wait()
	_ = s.preproc.Close()
	_ = s.histcache.Close()
	return err
}

func lsnOf(m standby.Moved) model.LSN { return model.LSN(m.LSN) }

// refuseTime bounds a refused connection.
const refuseTime = 2 * time.Second

// maxRefusing bounds the refused connections at one time; more are cut at once.
const maxRefusing = 64

// refuseOn answers every connection of agents and senders with a refusal, so that they keep their values.
func refuseOn(l net.Listener, why string) *refusingListener {
	r := &refusingListener{Listener: l, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		places := make(chan struct{}, maxRefusing)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case places <- struct{}{}:
				go func() { refuse(c, why); <-places }() // it ends within refuseTime; a promotion does not wait for a silent peer
			default:
				_ = c.Close()
			}
		}
	}()
	return r
}

// deadliner is a listener whose Accept can be interrupted.
type deadliner interface{ SetDeadline(time.Time) error }

// Stop ends the refusing and gives the listener back.
func (r *refusingListener) Stop() net.Listener {
	r.once.Do(func() {
		if d, ok := r.Listener.(deadliner); ok {
			_ = d.SetDeadline(time.Unix(1, 0))
			<-r.done
			_ = d.SetDeadline(time.Time{})
		}
	})
	return r.Listener
}

// refuse reads what comes, so that the answer is not lost with the connection, and says why nothing is taken.
func refuse(c net.Conn, why string) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(refuseTime))
	reader := zbx.FrameReader{}
	_, _, _ = reader.Read(c)
	_, _ = c.Write(zbx.AppendFrame(nil, zbx.AppendFailed(nil, why)))
}
