package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/access"
	"tidemark/api"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/snapshot"
	"tidemark/standby"
)

// FollowOptions say whom a standby follows.
type FollowOptions struct {
	// Of is the primary's address.
	Of string
	// Address is where others reach this server.
	Address string
	// Replace lets the seed take the place of data that did not come from the primary's cluster.
	Replace bool
	// opened, if not nil, sees each standby's server before it runs; for tests.
	opened func(*Server)
}

// following is a process whose server follows another one, until it is promoted.
type following struct {
	o      Options
	f      FollowOptions
	logger *slog.Logger
	kept   *kept
	peer   *standby.Client

	handler atomic.Pointer[http.Handler]
	status  atomic.Pointer[string]
	trapper *refusingListener

	// mu guards standing, the standby's server that runs, and stop, which ends it.
	mu        sync.Mutex
	standing  *Server
	stop      context.CancelFunc
	promoting chan promotion
	// seedID names the standby while it has no data yet.
	seedID string
	// turning is set while the standby's server, which still answers, is closed and the primary's is opened.
	turning   atomic.Bool
	serving   chan struct{} // closed when the promoted server is served, or could not be opened
	primary   *Server       // that one
	servedErr error
}

// promotion is a request to take over.
type promotion struct {
	unfenced bool
	// epoch is the one that the old primary handed over to, or none.
	epoch uint64
	// began is when the last record was here.
	began time.Time
}

// Follow runs a server that follows another one. When it is promoted it goes on as the primary. It returns nil when ctx ended it.
func Follow(ctx context.Context, o Options, f FollowOptions) error {
	if err := o.makeAbsolute(); err != nil {
		return err
	}
	n := &following{o: o, f: f, logger: o.Logger, peer: o.Peer.client(f.Of), promoting: make(chan promotion, 1), serving: make(chan struct{}), seedID: standby.SeedID(o.Data)}
	if o.DSN != "" {
		return errors.New("a standby keeps its values in the embedded engine; PostgreSQL has a replication of its own")
	}
	fsys := vfs.OS{}
	if err := fsys.MkdirAll(o.Data); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	lock, err := lockFolder(fsys, o.Data)
	if err != nil {
		return err
	}
	defer lock.Close()
	n.say("starting")
	n.trapper = refuseOn(o.Trapper, "this server is a standby of "+f.Of+": send to the primary")
	defer n.trapper.Close()
	err = serveWhile(ctx, o.HTTP, n, n.logger, n.run)
	return errors.Join(err, n.kept.close())
}

// serveWhile serves HTTP while run runs, whose context also ends when serving does.
func serveWhile(ctx context.Context, on net.Listener, handler http.Handler, logger *slog.Logger, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() {
		err := web.Serve(on)
		cancel()
		served <- err
	}()
	err := run(ctx)
	stopping, stop := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer stop()
	if web.Shutdown(stopping) != nil {
		_ = web.Close()
	}
	if webErr := <-served; err == nil && !errors.Is(webErr, http.ErrServerClosed) {
		err = fmt.Errorf("serve HTTP: %w", webErr)
	}
	return err
}

// ServeHTTP serves what there is now.
func (n *following) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.turning.Load() && r.Method != http.MethodGet && r.Method != http.MethodHead {
		select { // what may change something is for the primary
		case <-n.serving:
		case <-r.Context().Done():
		}
	}
	if h := n.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/-/healthy" {
		_, _ = io.WriteString(w, "ok: "+*n.status.Load()+"\n")
		return
	}
	w.Header().Set("Retry-After", "2")
	api.WriteError(w, &api.Error{Status: http.StatusServiceUnavailable, Code: "standby", Message: "this server is a standby of " + n.f.Of + " and has no data to show yet: " + *n.status.Load()})
}

// say notes what is done while nothing is served.
func (n *following) say(text string) { n.status.Store(&text) }

// run seeds, follows, and at last is the primary.
func (n *following) run(ctx context.Context) error {
	seed, err := n.decide(ctx)
	for err == nil && ctx.Err() == nil {
		if seed {
			if err = n.seed(ctx); err != nil {
				break
			}
		}
		if err = n.openNode(); err != nil {
			break
		}
		if n.kept.node.State().Role != standby.Standby {
			return n.lead(ctx)
		}
		err = n.follow(ctx)
		seed = errors.Is(err, standby.ErrSeed)
		if seed {
			n.logger.Warn("the primary cannot give what is missing: everything is copied again", "reason", err)
			err = n.kept.close()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openNode reads anew what this server is.
func (n *following) openNode() error {
	node, err := standby.Open(n.o.Data)
	if err != nil {
		return err
	}
	if n.kept == nil || n.kept.engine == nil {
		n.kept = &kept{metrics: metrics.NewSet()}
	}
	n.kept.node = node
	return nil
}

// decidePause is the time between two questions to a primary that does not answer.
const decidePause = time.Second

// decide says whether the data folder must be seeded before anything else.
func (n *following) decide(ctx context.Context) (seed bool, err error) {
	if err := standby.FinishSeed(n.o.Data); err != nil {
		return false, err
	}
	state, found, err := standby.Load(n.o.Data)
	if err != nil {
		return false, err
	}
	if !found {
		_, err := os.Stat(filepath.Join(n.o.Data, "engine"))
		if err == nil && !n.f.Replace {
			return false, fmt.Errorf("the data folder %s holds data that is no standby's: choose an empty folder, or give --replace-data to have it replaced by the primary's", n.o.Data)
		}
		return true, nil
	}
	if state.Role == standby.Standby {
		return false, nil
	}
	if state.Role == standby.Primary && state.Primary == n.f.Of {
		n.logger.Info("this server was promoted: it starts as the primary", "epoch", standby.EpochText(state.Epoch), "not_following", n.f.Of)
		return false, nil
	}
	return n.compare(ctx, &state)
}

// compare asks the server that shall be followed for its epoch: data of an older or the same one is replaced by its own.
func (n *following) compare(ctx context.Context, state *standby.State) (seed bool, err error) {
	for first := true; ; first = false {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		known, err := n.peer.Epoch(asking, state.Cluster)
		cancel()
		var refused *standby.RefusedError
		switch {
		case err == nil && known.Epoch >= state.Epoch:
			return true, nil
		case err == nil:
			return false, fmt.Errorf("this server has epoch %s and %s has %s: this one is the newer primary; start it without --standby-of, and the other one with it",
				standby.EpochText(state.Epoch), n.f.Of, standby.EpochText(known.Epoch))
		case errors.As(err, &refused) && refused.Code == "cluster" && n.f.Replace:
			return true, nil
		case errors.As(err, &refused) && refused.Code == "cluster":
			return false, fmt.Errorf("the data in %s did not come from %s: choose an empty folder, or give --replace-data to have it replaced", n.o.Data, n.f.Of)
		}
		if first {
			n.logger.Warn("the server to follow does not answer; it is asked again", "address", n.f.Of, "error", err)
		}
		n.say("waiting for an answer of " + n.f.Of)
		timer := time.NewTimer(decidePause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-timer.C:
		}
	}
}

// seed copies the primary's data, until it succeeds.
func (n *following) seed(ctx context.Context) error {
	said := time.Time{}
	for {
		err := standby.Seed(ctx, standby.SeedOptions{
			Data: n.o.Data, Client: n.peer, Standby: n.id(), Address: n.f.Address, Logger: n.logger,
			Progress: func(p snapshot.Progress) {
				n.say(fmt.Sprintf("copying the primary's data, %d of %d bytes", p.DoneBytes, p.TotalBytes))
				if time.Since(said) > 5*time.Second {
					said = time.Now()
					n.logger.Info("copying the primary's data", "done_bytes", p.DoneBytes, "total_bytes", p.TotalBytes, "file", p.File)
				}
			},
		})
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		n.logger.Warn("the primary's data could not be copied; it is tried again", "error", err)
		n.say("the primary's data could not be copied: " + err.Error())
		timer := time.NewTimer(decidePause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// id names this standby: one folder is one standby, wherever it can be reached.
func (n *following) id() string {
	if n.kept != nil && n.kept.node != nil {
		return n.kept.node.State().Node
	}
	return n.seedID
}

// serve lets requests reach a server.
func (n *following) serve(s *Server) error {
	h, err := s.handler()
	if err == nil {
		n.handler.Store(&h)
	}
	return err
}

// options are those of a server of this process.
func (n *following) options() Options {
	o := n.o
	o.kept, o.HTTP = n.kept, nil
	return o
}

// follow runs the standby's server until ctx ends, it is promoted, or it must be seeded again.
func (n *following) follow(ctx context.Context) error {
	o := n.options()
	o.Trapper, o.Collect.Traps, o.promote = nil, nil, n.promote
	s, err := Open(ctx, o)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	s.newFollower(n.peer, n.id(), n.f.Address)
	if n.f.opened != nil {
		n.f.opened(s)
	}
	n.mu.Lock()
	n.standing, n.stop = s, stop
	n.mu.Unlock()
	if err := n.serve(s); err != nil {
		return errors.Join(err, s.Close())
	}
	n.logger.Info("following", "primary", n.f.Of, "epoch", standby.EpochText(n.kept.node.State().Epoch))
	err = s.Run(running)
	n.mu.Lock()
	n.standing = nil
	n.mu.Unlock()
	select {
	case p := <-n.promoting:
		err = n.turn(ctx, s, p)
		if err != nil {
			n.servedErr = err
			close(n.serving)
		}
		return err
	default:
	}
	n.say("stopping")
	n.handler.Store(nil)
	return errors.Join(err, s.Close())
}

// turn makes this server the primary. Queries are answered from the standby's server until the primary's is open.
func (n *following) turn(ctx context.Context, s *Server, p promotion) error {
	n.turning.Store(true)
	n.logger.Debug("following ended", "after", time.Since(p.began))
	if err := s.Close(); err != nil {
		return err
	}
	k := n.kept
	k.promoted, k.from, k.configuration = true, s.replica.follower.Released(), s.cache.Snapshot()
	theirs, err := k.db.Evaluated(ctx)
	if err != nil {
		return err
	}
	state := k.node.State()
	state.FollowedEpoch = state.Epoch
	own, err := standby.OwnEvaluated(ctx, k.engine, &state, theirs, k.from)
	if err != nil {
		return err
	}
	_, err = k.node.Promote(p.unfenced, p.epoch, &own)
	n.logger.Debug("epoch raised", "after", time.Since(p.began))
	return err
}

// lead runs the primary's server.
func (n *following) lead(ctx context.Context) error {
	listener := n.trapper.Stop()
	o := n.options()
	o.Trapper = listener
	began := time.Now()
	s, err := Open(ctx, o)
	n.logger.Debug("primary opened", "took", time.Since(began))
	if err == nil {
		err = n.serve(s)
	}
	n.primary, n.servedErr = s, err
	close(n.serving)
	if err != nil {
		return err
	}
	n.logger.Info("primary", "epoch", standby.EpochText(n.kept.node.State().Epoch))
	return errors.Join(s.Run(ctx), s.Close())
}

// The times of a promotion.
const (
	// catchUpTime bounds the wait for what the primary has.
	catchUpTime = 20 * time.Second
	// handOverTime is how long the primary may take to answer, busyTime how long one that answered a moment ago: on a busy machine it is slow, not gone.
	handOverTime = time.Second
	busyTime     = 10 * time.Second
)

// promote takes over: from a primary that answers without a loss, from a dead one with what is here. address is who asked for it.
func (n *following) promote(ctx context.Context, address string) (Promoted, error) {
	n.mu.Lock()
	s := n.standing
	n.standing = nil
	stop := n.stop
	n.mu.Unlock()
	if s == nil {
		return Promoted{}, &api.Error{Status: http.StatusConflict, Code: "standby", Message: "a promotion is under way"}
	}
	var out Promoted
	began, err := n.takeOver(ctx, s, &out)
	if err != nil {
		n.mu.Lock()
		n.standing = s
		n.mu.Unlock()
		return out, err
	}
	n.promoting <- promotion{unfenced: !out.HandedOver, epoch: out.Epoch, began: began}
	stop()
	select {
	case <-n.serving:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	out.Milliseconds, out.Epoch = float64(time.Since(began).Microseconds())/1000, n.kept.node.State().Epoch
	out.EpochText = standby.EpochText(out.Epoch)
	n.logger.Info("promoted", "epoch", out.EpochText, "handed_over", out.HandedOver, "milliseconds", out.Milliseconds)
	if n.servedErr != nil {
		return out, n.servedErr
	}
	_, after := access.Difference(nil, out)
	n.primary.access.Audit(ctx, access.From(ctx), model.AuditEntry{Action: "POST /api/standby/promote", Object: "primary in the place of " + n.f.Of, Address: address, After: after})
	return out, nil
}

// takeOver has the primary stop, and waits for what it has. began is when the last record was here.
func (n *following) takeOver(ctx context.Context, s *Server, out *Promoted) (began time.Time, err error) {
	began = time.Now()
	follower := s.replica.follower
	if lag := follower.Lag(); lag.Connected && lag.Bytes > catchUpBytes {
		return began, &api.Error{Status: http.StatusConflict, Code: "behind", Message: fmt.Sprintf("this standby is %d bytes behind a primary that answers: wait until it is less than %d", lag.Bytes, catchUpBytes)}
	}
	if epoch, at := n.kept.node.Superseded(); epoch != 0 {
		return began, &api.Error{Status: http.StatusConflict, Code: "fenced", Message: fmt.Sprintf(
			"another standby was promoted to epoch %s: start this server with --standby-of %s; if it is lost for good, stop this one and run tidemark store promote %s",
			standby.EpochText(epoch), cmp.Or(at, "of that one"), n.o.Data)}
	}
	state := n.kept.node.State()
	patience := handOverTime
	if follower.Lag().Connected {
		patience = busyTime
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	out.Epoch = n.kept.node.NextEpoch()
	moved, err := n.peer.HandOver(asking, standby.EpochRequest{Cluster: state.Cluster, Epoch: out.Epoch, Standby: n.id(), Address: n.o.Peer.Own})
	cancel()
	if refused, ok := errors.AsType[*standby.RefusedError](err); ok && refused.Code == "fenced" {
		return began, &api.Error{Status: http.StatusConflict, Code: "fenced", Message: fmt.Sprintf(
			"%s: start this server with --standby-of of that one; if it is lost for good, stop this one and run tidemark store promote %s", refused.Message, n.o.Data)}
	}
	if err != nil {
		out.Problem = api.Shown(err)
		n.logger.Warn("the primary does not hand over: what is here counts", "error", err)
		return time.Now(), nil
	}
	catching, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if err := follower.Reach(catching, lsnOf(moved)); err != nil {
		out.Problem = "the primary stopped, but its last values did not come: " + api.Shown(err)
		return time.Now(), nil
	}
	began = time.Now()
	if err := follower.CopyNow(catching); err != nil {
		out.Problem = "the primary stopped, but its last changes of the configuration did not come: " + api.Shown(err)
		return began, nil
	}
	out.HandedOver = true
	return began, nil
}

// catchUpBytes is how far behind a standby may be that takes over from a primary that answers.
const catchUpBytes = 64 << 20

// refusingListener answers connections with a refusal until it is stopped.
type refusingListener struct {
	net.Listener
	done chan struct{}
	once sync.Once
}
