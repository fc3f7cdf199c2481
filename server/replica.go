package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/confdb"
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
	// Own is the address at which they reach this server, for those that it takes the place of.
	Own string
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
	node   *standby.Node
	engine *dbengine.DB
	shelf  *snapshot.Shelf
	// db and catalog are those that the standby follows with, so that a promotion opens neither of them again.
	db      *confdb.DB
	catalog *catalog.Catalog
	metrics *metrics.Set
	page    http.Handler
	// promoted says that this process was the standby a moment ago: its configuration is that of a running primary, and from is a place in the log before the
	// evaluated one.
	promoted bool
	from     model.LSN
	// configuration is what the standby had in memory, so that its database need not be read again.
	configuration *confcache.Snapshot
}

// close closes what is open. A second call does nothing.
func (k *kept) close() error {
	if k == nil {
		return nil
	}
	var all []error
	if k.engine != nil {
		all = append(all, k.engine.Close())
	}
	if k.db != nil {
		all = append(all, k.db.Close())
	}
	if k.catalog != nil {
		all = append(all, k.catalog.Close())
	}
	k.engine, k.db, k.catalog = nil, nil, nil
	return errors.Join(all...)
}

// replica is a server's part in a cluster of primary and standbys; nil when values are in PostgreSQL.
type replica struct {
	s      *Server
	node   *standby.Node
	source *standby.Source
	// follower is nil but for a standby that follows.
	follower *standby.Follower
	// stop is closed when this server is fenced, so that it asks no device that the new primary asks too.
	stop    chan struct{}
	stopped sync.Once
}

func (s *Server) newReplica(node *standby.Node) *replica {
	return &replica{s: s, node: node, stop: make(chan struct{})}
}

// openNode reads what this server is, and asks the standbys that it knew whether one took over.
func (s *Server) openNode(ctx context.Context, _ vfs.FS) error {
	if inPostgres, err := s.configurationInPostgres(); err != nil || inPostgres || s.o.DSN != "" {
		return err
	}
	if s.o.kept != nil {
		s.replica = s.newReplica(s.o.kept.node)
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
	s.replica = s.newReplica(node)
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
	answers := make(chan standby.Known, len(state.Standbys))
	for _, address := range state.Standbys {
		go func() {
			known, err := r.s.o.Peer.client(address).Epoch(ctx, state.Cluster)
			if err != nil {
				known = standby.Known{}
			}
			answers <- known
		}()
	}
	for range state.Standbys {
		known := <-answers
		if err := r.node.Fence(known.Highest(), known.Address); err != nil {
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
	if t := s.o.term; t != nil {
		return t.Err()
	}
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
		engine.Refuse(r.node.Refusal())
		r.stopped.Do(func() { close(r.stop) })
	}
	return nil
}

// collect runs what asks devices, or is sent their values, until ctx ends or this server is fenced.
func (s *Server) collect(ctx context.Context, run func(context.Context) error) error {
	if s.replica == nil {
		return run(ctx)
	}
	collecting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(collecting) }()
	select {
	case err := <-ended:
		return err
	case <-s.replica.stop:
	}
	cancel()
	<-ended // it ends because it was told to
	<-ctx.Done()
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
	// That it is done is in the database itself; the file may say it later.
	return s.db.TranslateEvaluated(ctx, *state.Evaluated, state.Epoch)
}

// fenced stops collecting, values, changes and alerts; queries are answered.
func (r *replica) fenced() {
	r.stopped.Do(func() { close(r.stop) })
	r.s.engine.(*dbengine.DB).Refuse(r.node.Refusal())
	if a := r.s.alerter; a != nil {
		a.Pause(true)
	}
	if err := r.s.db.ReadOnly(context.Background(), true); err != nil {
		r.s.logger.Error("the configuration could not be made read-only", "error", err)
	}
}

// run watches over synchronous mode, and tells others of a promotion until they know.
func (r *replica) run(ctx context.Context) error {
	if r.source == nil {
		return nil
	}
	if state := r.node.State(); state.Evaluated != nil {
		if err := r.node.Translated(nil); err != nil {
			r.s.logger.Error("it could not be written down that the evaluated place is this server's own; that is tried again at the next start", "error", err)
		}
	}
	if r.node.Refusal() != nil {
		r.fenced()
	}
	telling := make(chan struct{})
	go func() { defer close(telling); r.tell(ctx) }()
	err := r.source.Run(ctx)
	<-telling
	return err
}

// tellEvery is the pause between two calls on a server that must be told.
const tellEvery = time.Second

// tell calls on every server that must know of an epoch until it answers: a promoted server on its old primary and on the standbys that this one had,
// which may have been promoted too; a fenced one on its standbys. The highest epoch wins: who hears of one above its own is fenced.
func (r *replica) tell(ctx context.Context) {
	missed, told := map[string]int{}, map[string]uint64{}
	for {
		state := r.node.State()
		epoch, addresses := r.toTell(&state, told)
		answers := make(chan string, len(addresses))
		for _, address := range addresses {
			go func() { answers <- r.tellOne(ctx, address, r.epochOf(&state, epoch)) }()
		}
		for range addresses {
			address := <-answers
			if missing, ok := strings.CutPrefix(address, noAnswer); ok {
				if _, known := missed[missing]; known || len(missed) < maxMissed {
					missed[missing]++
					r.sayMissed(&state, missing, missed[missing])
				}
				continue
			}
			if told[address] = epoch; state.Role == standby.Primary {
				if err := r.node.Told(address); err != nil {
					r.s.logger.Error("it could not be written down that a server knows of the promotion", "address", address, "error", err)
				}
			}
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

const (
	// noAnswer stands before the address of a server that did not answer.
	noAnswer = "!"
	// maxMissed bounds the addresses whose silence is counted.
	maxMissed = 64
	// fencedMisses is how often a standby must not answer a fenced server before that says so: the one that was promoted answers when it is open.
	fencedMisses = 10
)

// sayMissed says once that a server did not answer for so many times, and what that means here.
func (r *replica) sayMissed(state *standby.State, address string, times int) {
	switch {
	case state.Role == standby.Fenced && times == fencedMisses:
		r.s.logger.Info("a standby that this fenced server had does not answer, so that it may not know of the promotion; the new primary calls it too, and this server goes on", "address", address)
	case state.Role == standby.Fenced || times != 1:
	case address == state.Primary:
		r.s.logger.Warn("the old primary does not answer: it is called again until it does, and fenced then", "address", address)
	default:
		r.s.logger.Warn("a standby of the old primary does not answer: it is called again until it knows of the promotion", "address", address)
	}
}

// toTell are the addresses to call on, and the epoch to tell.
func (r *replica) toTell(state *standby.State, told map[string]uint64) (epoch uint64, addresses []string) {
	if state.Role == standby.Fenced {
		addresses = slices.DeleteFunc(state.Standbys, func(a string) bool { return told[a] >= state.FencedBy })
		return state.FencedBy, addresses
	}
	if addresses = state.Untold; state.Unfenced && !slices.Contains(addresses, state.Primary) {
		addresses = append(addresses, state.Primary)
	}
	return state.Epoch, addresses
}

// epochOf tells of an epoch, and whose it is.
func (r *replica) epochOf(state *standby.State, epoch uint64) standby.EpochRequest {
	q := standby.EpochRequest{Cluster: state.Cluster, Epoch: epoch, Standby: state.Node, Address: r.s.o.Peer.Own}
	if state.Role == standby.Fenced {
		q.Standby, q.Address = state.FencedFor, state.FencedAt
	}
	return q
}

// tellOne tells a server of an epoch and returns its address, behind noAnswer if it did not answer. One that knows of a higher epoch fences this one.
func (r *replica) tellOne(ctx context.Context, address string, q standby.EpochRequest) string {
	calling, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	known, err := r.s.o.Peer.client(address).Fence(calling, q)
	refused, ok := errors.AsType[*standby.RefusedError](err)
	switch {
	case err == nil:
		r.s.logger.Info("a server of the cluster knows of the promotion", "address", address, "role", known.Role, "epoch", standby.EpochText(known.Highest()))
		if err := r.source.Fence(known.Highest(), known.Address); err != nil {
			r.s.logger.Error("a higher epoch could not be written down", "epoch", standby.EpochText(known.Highest()), "error", err)
			return noAnswer + address
		}
		return address
	case ok && (refused.Code == "cluster" || refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed):
		r.s.logger.Info("a server that was of the cluster need not know of the promotion", "address", address, "answer", refused.Message)
		return address
	}
	return noAnswer + address
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
	for _, own := range []string{"/api/standby/", "/api/storage/snapshots", "/api/storage/recompress"} {
		if strings.HasPrefix(r.Pattern, own) {
			return false
		}
	}
	return true
}

// roleText is what the health endpoint adds to the reason why a server takes no values.
func (s *Server) roleText() string {
	if s.replica == nil {
		return ""
	}
	state := s.replica.node.State()
	switch {
	case s.replica.follower != nil:
		lag := s.replica.follower.Lag()
		return fmt.Sprintf("; it follows %s, epoch %s, %d bytes and %.1f s behind", state.Primary, standby.EpochText(state.Epoch), lag.Bytes, lag.Seconds)
	case state.Role == standby.Fenced:
		return "; fenced by epoch " + standby.EpochText(state.FencedBy)
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
