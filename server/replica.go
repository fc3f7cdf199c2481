package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/snapshot"
	"tidemark/standby"
	"tidemark/storage/dbengine"
)

// Peer is how other servers of the cluster are called.
type Peer struct {
	// Token is sent to them; HTTP, if not nil, is used for it.
	Token string
	HTTP  *http.Client
}

// client calls the server at an address.
func (p Peer) client(address string) *standby.Client {
	c := &standby.Client{Address: address, Token: p.Token, HTTP: p.HTTP}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	return c
}

// kept is what outlives a server in its process, when a standby becomes primary.
type kept struct {
	node    *standby.Node
	engine  *dbengine.DB
	shelf   *snapshot.Shelf
	metrics *metrics.Set
	// promoted says that this process was the standby a moment ago: its configuration is that of a running primary, and from is a place in the log before the
	// evaluated one.
	promoted bool
	from     model.LSN
}

// replica is a server's part in a cluster of primary and standbys; nil when values are in PostgreSQL.
type replica struct {
	s      *Server
	node   *standby.Node
	source *standby.Source
	// follower is nil but for a standby that follows.
	follower *standby.Follower
}

// openNode reads what this server is, and asks the standbys that it knew whether one took over.
func (s *Server) openNode(ctx context.Context, _ vfs.FS) error {
	if inPostgres, err := s.configurationInPostgres(); err != nil || inPostgres || s.o.DSN != "" {
		return err
	}
	if s.o.kept != nil {
		s.replica = &replica{s: s, node: s.o.kept.node}
		return nil
	}
	if err := standby.FinishSeed(s.o.Data); err != nil {
		return err
	}
	node, err := standby.Open(s.o.Data)
	if err != nil {
		return err
	}
	state := node.State()
	if state.Role == standby.Standby {
		return fmt.Errorf("the data folder %s is a standby's: start it with --standby-of %s, or make it a primary with tidemark store promote %s", s.o.Data, state.Primary, s.o.Data)
	}
	s.replica = &replica{s: s, node: node}
	s.replica.askStandbys(ctx, &state)
	return nil
}

// askTime bounds the question to a standby at the start.
const askTime = time.Second

// askStandbys fences this server if one of its standbys was promoted while it was down.
func (r *replica) askStandbys(ctx context.Context, state *standby.State) {
	if state.Role != standby.Primary || len(state.Standbys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers := make(chan uint64, len(state.Standbys))
	for _, address := range state.Standbys {
		go func() {
			known, err := r.s.o.Peer.client(address).Epoch(ctx, state.Cluster)
			if err != nil {
				known.Epoch = 0
			}
			answers <- known.Epoch
		}()
	}
	for range state.Standbys {
		if err := r.node.Fence(<-answers); err != nil {
			r.s.logger.Error("a standby was promoted; that could not be written down", "error", err)
		}
	}
	if err := r.node.Refusal(); err != nil {
		r.s.logger.Error("this server refuses values", "reason", err)
	}
}

// following reports whether this server is a standby.
func (s *Server) following() bool {
	return s.replica != nil && s.replica.node.State().Role == standby.Standby
}

// refusal says why no values and changes are taken; nil when they are.
func (s *Server) refusal() error {
	if s.replica == nil {
		return nil
	}
	return s.replica.node.Refusal()
}

// release lets the engine's log go of what was evaluated, as far as standbys have it.
func (s *Server) release(evaluated model.LSN) {
	if s.replica != nil && s.replica.source != nil {
		s.replica.source.Release(evaluated)
		return
	}
	s.engine.Release(evaluated)
}

// openReplica readies the standby's or the primary's part.
func (s *Server) openReplica(ctx context.Context, _ vfs.FS) error {
	r := s.replica
	if r == nil {
		return nil
	}
	engine := s.engine.(*dbengine.DB)
	s.metrics.NewGauge("tidemark_standby_epoch", func() float64 { return float64(r.node.State().Epoch) })
	s.metrics.NewGauge("tidemark_standby_is_primary", func() float64 {
		if r.node.Refusal() != nil {
			return 0
		}
		return 1
	})
	if s.following() {
		return nil
	}
	if err := s.translateEvaluated(ctx, engine); err != nil {
		return err
	}
	r.source = standby.NewSource(standby.SourceOptions{
		Node: r.node, Engine: engine, DB: s.db, Catalog: s.catalog, Synchronous: s.o.Synchronous, Alone: s.o.Alone, Fenced: r.fenced,
		Metrics: s.metrics, Logger: s.logger,
	})
	if r.node.Refusal() != nil {
		engine.Refuse(standby.ErrFenced)
	}
	return nil
}

// translateEvaluated puts this server's own evaluated LSN in the place of that of the primary that it followed. It may be interrupted anywhere.
func (s *Server) translateEvaluated(ctx context.Context, engine *dbengine.DB) error {
	state := s.replica.node.State()
	if state.Translate {
		theirs, err := s.db.Evaluated(ctx)
		if err != nil {
			return err
		}
		from := model.LSN(0)
		if s.o.kept != nil {
			from = s.o.kept.from
		}
		own, err := standby.OwnEvaluated(ctx, engine, &state, theirs, from)
		if err != nil {
			return err
		}
		if err := s.replica.node.Translated(&own); err != nil {
			return err
		}
		state.Evaluated = &own
	}
	if state.Evaluated == nil {
		return nil
	}
	if err := s.db.ResetEvaluated(ctx, *state.Evaluated); err != nil {
		return err
	}
	return s.replica.node.Translated(nil)
}

// fenced stops values, changes and alerts; queries are answered.
func (r *replica) fenced() {
	r.s.engine.(*dbengine.DB).Refuse(standby.ErrFenced)
	if a := r.s.alerter; a != nil {
		a.Pause(true)
	}
	if err := r.s.db.ReadOnly(context.Background(), true); err != nil {
		r.s.logger.Error("the configuration could not be made read-only", "error", err)
	}
}

// run watches over synchronous mode, and tells the old primary of a promotion until it knows.
func (r *replica) run(ctx context.Context) error {
	if r.source == nil {
		return nil
	}
	if r.node.Refusal() != nil {
		r.fenced()
	}
	telling := make(chan struct{})
	go func() { defer close(telling); r.tellOld(ctx) }()
	err := r.source.Run(ctx)
	<-telling
	return err
}

// tellEvery is the pause between two calls on the old primary.
const tellEvery = time.Second

func (r *replica) tellOld(ctx context.Context) {
	said := false
	for {
		state := r.node.State()
		if !state.Unfenced {
			return
		}
		calling, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := r.s.o.Peer.client(state.Primary).Fence(calling, standby.EpochRequest{Cluster: state.Cluster, Epoch: state.Epoch})
		cancel()
		var refused *standby.RefusedError
		if err == nil || errors.As(err, &refused) && refused.Code == "cluster" {
			r.s.logger.Info("the old primary knows of the promotion", "address", state.Primary, "answer", err)
			err = r.node.Told()
		}
		if err != nil && !said {
			r.s.logger.Warn("the old primary is not yet told of the promotion; it is called again until it answers", "address", state.Primary, "error", err)
			said = true
		}
		timer := time.NewTimer(tellEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// authorize lets somebody in; a standby and a fenced server take no changes.
func (s *Server) authorize(r *http.Request, route api.Route) (context.Context, error) {
	ctx, err := api.Authorizer{Control: s.access}.Authorize(r, route)
	if err != nil {
		return nil, err
	}
	if changes(&route) {
		if refusal := s.refusal(); refusal != nil {
			return nil, &api.Error{Status: http.StatusServiceUnavailable, Code: "standby", Message: refusal.Error()}
		}
	}
	return ctx, nil
}

// changes reports whether a route changes what a standby has from its primary.
func changes(r *api.Route) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Permission == api.Public || r.Permission == api.View {
		return false
	}
	return !strings.HasPrefix(r.Pattern, "/api/standby/") && !strings.HasPrefix(r.Pattern, "/api/storage/")
}

// roleText is what the health endpoint says of a server that is no primary alone.
func (s *Server) roleText() string {
	if s.replica == nil {
		return ""
	}
	state := s.replica.node.State()
	switch {
	case s.replica.follower != nil:
		lag := s.replica.follower.Lag()
		return fmt.Sprintf(": standby of %s, epoch %d, %d bytes and %.1f s behind", state.Primary, state.Epoch, lag.Bytes, lag.Seconds)
	case state.Role == standby.Fenced:
		return fmt.Sprintf(": fenced by epoch %d", state.FencedBy)
	}
	return ""
}

// sayPrimary answers 200 on a primary and 503 elsewhere, for load balancers.
func (s *Server) sayPrimary(w http.ResponseWriter, _ *http.Request) {
	if err := s.refusal(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, err.Error()+"\n")
		return
	}
	_, _ = io.WriteString(w, "primary\n")
}
