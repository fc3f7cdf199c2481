package standby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sync/errgroup"

	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/storage/dbengine"
)

// markKey is the key of the mark that says up to where the primary's log is stored.
const markKey = "standby"

const (
	// askWait is how long the primary may wait with an answer.
	askWait = 5 * time.Second
	// retryFirst and retryMost are the pauses after failures.
	retryFirst = 100 * time.Millisecond
	retryMost  = 2 * time.Second
)

// positionMark is the mark of a record.
func positionMark(epoch uint64, lsn model.LSN, at int64) model.Mark {
	return model.Mark{Key: markKey, Value: fmt.Sprintf("%d %d", epoch, lsn), At: at}
}

// parsePosition reads a mark's value.
func parsePosition(text string) (epoch uint64, lsn model.LSN, ok bool) {
	first, second, found := strings.Cut(text, " ")
	epoch, err := strconv.ParseUint(first, 10, 64)
	n, err2 := strconv.ParseUint(second, 10, 64)
	return epoch, model.LSN(n), found && err == nil && err2 == nil
}

// FollowerOptions say what follows whom.
type FollowerOptions struct {
	Node    *Node
	Client  *Client
	Engine  *dbengine.DB
	DB      *confdb.DB
	Catalog *catalog.Catalog
	// Standby names this server among the standbys, Address is where others reach it.
	Standby, Address string
	// Observe, if not nil, sees each batch that was stored.
	Observe func(*model.Batch)
	// Changed, if not nil, is called after the configuration changed.
	Changed func(context.Context) error
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Follower keeps this server's data equal to the primary's.
type Follower struct {
	o       FollowerOptions
	catalog *catalog.Follower

	records, values, copies, pages, failures, mismatches *metrics.Counter

	// copying is held while pages are put in place.
	copying sync.Mutex

	mu sync.Mutex
	// position is how far the primary's log is stored here, on disk.
	position model.LSN
	// own are places in both logs, rising.
	own []place
	// durable, now and arrived are what the primary said last; answered is when.
	durable      model.LSN
	now, arrived int64
	answered     time.Time
	// catalogDone says that the catalog was complete at the last answer.
	catalogDone bool
	problem     string
	have        ConfigurationHeader
	copiedAt    time.Time
	released    model.LSN
	// verifiedAt is when values were compared with the primary's, differs what came of it.
	verifiedAt time.Time
	differs    bool
	// progress is closed and replaced when position moves.
	progress chan struct{}
}

// place is the same place in both logs.
type place struct{ theirs, ours model.LSN }

// maxPlaces bounds the places that are remembered.
const maxPlaces = 1024

// NewFollower readies a follower from where the engine's marks say that it is.
func NewFollower(o FollowerOptions) *Follower {
	state := o.Node.State()
	f := &Follower{o: o, catalog: o.Catalog.NewFollower(), position: state.Seed, progress: make(chan struct{})}
	o.Engine.Marks(func(m model.Mark) {
		if epoch, lsn, ok := parsePosition(m.Value); m.Key == markKey && ok && epoch == state.Epoch {
			f.position = lsn
		}
	})
	counter := func(name string) *metrics.Counter { return o.Metrics.NewCounter("tidemark_standby_" + name + "_total") }
	f.records, f.values, f.copies, f.pages, f.failures = counter("records"), counter("values"), counter("configuration_copies"), counter("configuration_pages"), counter("failed_requests")
	f.mismatches = counter("digest_mismatches")
	o.Metrics.NewGauge("tidemark_standby_lag_bytes", func() float64 { return float64(f.Lag().Bytes) })
	o.Metrics.NewGauge("tidemark_standby_lag_seconds", func() float64 { return f.Lag().Seconds })
	return f
}

// Lag is how far a standby is behind.
type Lag struct {
	// Bytes of the log are missing, as of the last answer; Seconds is the age of the newest value here if any is missing, or the time since the last answer when
	// the primary does not answer.
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Connected says that the primary answers. Problem says why not.
	Connected bool   `json:"connected"`
	Problem   string `json:"problem,omitempty"`
	// Position is how far the primary's log is stored here.
	Position uint64 `json:"position"`
	// ConfigurationAt is when the configuration was last known to be equal, Unix milliseconds; zero for not yet.
	ConfigurationAt int64 `json:"configuration_at"`
	// VerifiedAt is when the values of an hour were last compared with the primary's, zero for not yet; Differs that they were not the same.
	VerifiedAt int64 `json:"verified_at"`
	Differs    bool  `json:"differs"`
}

// Lag says how far behind the primary this server is.
func (f *Follower) Lag() Lag {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := Lag{Problem: f.problem, Position: uint64(f.position), Differs: f.differs}
	if !f.verifiedAt.IsZero() {
		l.VerifiedAt = f.verifiedAt.UnixMilli()
	}
	if !f.copiedAt.IsZero() {
		l.ConfigurationAt = f.copiedAt.UnixMilli()
	}
	if f.answered.IsZero() {
		return l
	}
	since := time.Since(f.answered)
	l.Connected = f.problem == "" && since < 2*askWait
	l.Bytes = uint64(f.durable - min(f.position, f.durable))
	if l.Bytes > 0 && f.arrived > 0 {
		l.Seconds = time.Duration(max(f.now-f.arrived, 0)).Seconds() + since.Seconds()
	} else if !l.Connected {
		l.Seconds = since.Seconds()
	}
	return l
}

// Run follows until ctx ends, or until it returns ErrSeed.
func (f *Follower) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.repeat(ctx, f.askLog) })
	g.Go(func() error { return f.verifyAll(ctx) })
	g.Go(func() error {
		return f.repeat(ctx, func(ctx context.Context) error { return f.copyConfiguration(ctx, true, f.o.Changed) })
	})
	err := g.Wait()
	if ctx.Err() != nil && !errors.Is(err, ErrSeed) {
		return nil
	}
	return err
}

// repeat does something again and again; a failure is shown and tried again.
func (f *Follower) repeat(ctx context.Context, do func(context.Context) error) error {
	pause := retryFirst
	for {
		err := do(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			pause = retryFirst
			continue
		}
		if errors.Is(err, ErrSeed) {
			return err
		}
		f.fail(err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		pause = min(2*pause, retryMost)
	}
}

// fail notes why the primary's data does not come.
func (f *Follower) fail(err error) {
	f.failures.Inc()
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Code == "fenced" {
		f.o.Logger.Error("the primary was fenced by another one; follow that one", "error", err)
	}
	f.mu.Lock()
	first := f.problem == ""
	f.problem = err.Error()
	f.mu.Unlock()
	if first {
		f.o.Logger.Warn("the primary's data does not come; it is asked again", "primary", f.o.Client.Address, "error", err)
	}
}

// askLog asks for what comes behind the position and stores it.
func (f *Follower) askLog(ctx context.Context) error {
	state := f.o.Node.State()
	f.mu.Lock()
	q := &LogRequest{
		Cluster: state.Cluster, Epoch: state.Epoch, Standby: f.o.Standby, Address: f.o.Address, Position: f.position,
		Catalog: f.catalog.Position(), WaitMs: int(askWait / time.Millisecond),
	}
	if !f.catalogDone {
		q.WaitMs = 0
	}
	f.mu.Unlock()
	a, err := f.o.Client.log(ctx, q)
	if err != nil {
		return err
	}
	if a.Cluster != state.Cluster || a.Epoch != state.Epoch || a.From != q.Position {
		return fmt.Errorf("%w: cluster %s, epoch %d, LSN %d; expected %s, %d, %d", ErrAnswer, a.Cluster, a.Epoch, a.From, state.Cluster, state.Epoch, q.Position)
	}
	if err := f.o.Node.SetPeers(a.Peers); err != nil {
		return err
	}
	return f.store(ctx, state.Epoch, a)
}

// store takes an answer over: items before their values.
func (f *Follower) store(ctx context.Context, epoch uint64, a *LogAnswer) error {
	if err := f.catalog.Apply(ctx, a.Catalog, a.CatalogRecords, a.CatalogEnd); err != nil {
		return err
	}
	arrived := int64(0)
	end, err := dbengine.DecodeLog(a.Log, a.From, func(lsn model.LSN, b *model.Batch) error {
		arrived = b.ArrivedAt
		f.records.Inc()
		f.values.Add(b.Len())
		return f.append(ctx, positionMark(epoch, lsn, a.Now), b)
	})
	if err != nil {
		return err
	}
	ours, err := f.o.Engine.Sync(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position, f.durable, f.now, f.answered, f.problem = end, max(a.Durable, end), a.Now, time.Now(), ""
	f.catalogDone = f.catalog.Position().Offset >= a.CatalogEnd
	if arrived != 0 {
		f.arrived = arrived
	}
	if len(a.Log) > 0 {
		f.own = append(f.own, place{end, ours})
		if len(f.own) > maxPlaces {
			f.own = f.own[maxPlaces/2:]
		}
	}
	close(f.progress)
	f.progress = make(chan struct{})
	return nil
}

// append stores a record with its position.
func (f *Follower) append(ctx context.Context, mark model.Mark, b *model.Batch) error {
	b.Marks = append(b.Marks, mark)
	if _, err := f.o.Engine.Append(ctx, b); err != nil {
		return err
	}
	if f.o.Observe != nil {
		f.o.Observe(b)
	}
	return nil
}

// copyConfiguration brings the configuration up to date, waiting for a change if wait is set, and calls changed, if not nil, when something changed.
func (f *Follower) copyConfiguration(ctx context.Context, wait bool, changed func(context.Context) error) error {
	state := f.o.Node.State()
	f.mu.Lock()
	have := f.have
	f.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	h, pages, err := f.o.Client.configuration(waiting, &state, f.o.Standby, &have, wait && have.Version != 0)
	if err != nil {
		return err
	}
	defer pages.Close()
	f.copying.Lock()
	defer f.copying.Unlock()
	f.mu.Lock()
	overtaken := f.have != have
	f.mu.Unlock()
	if overtaken {
		return nil
	}
	if h.Cluster != state.Cluster || h.Epoch != state.Epoch {
		return fmt.Errorf("%w: cluster %s, epoch %d; expected %s, %d", ErrAnswer, h.Cluster, h.Epoch, state.Cluster, state.Epoch)
	}
	if err := f.putConfiguration(ctx, h, pages, changed); err != nil {
		if errors.Is(err, confdb.ErrDiffers) {
			f.mu.Lock()
			f.have = ConfigurationHeader{} // all of it
			f.mu.Unlock()
		}
		return err
	}
	f.mu.Lock()
	f.have, f.copiedAt = *h, time.Now()
	f.mu.Unlock()
	return f.releaseEvaluated(ctx)
}

func (f *Follower) putConfiguration(ctx context.Context, h *ConfigurationHeader, pages io.Reader, changed func(context.Context) error) error {
	if h.Pages == 0 {
		return nil
	}
	if secret, err := f.o.DB.Secret(); err != nil {
		return err
	} else if secret != h.Secret && h.Secret != "" {
		if err := f.o.DB.PutSecret(h.Secret); err != nil {
			return err
		}
	}
	if err := f.o.DB.WritePages(ctx, pages, h.Pages, h.Sum); err != nil {
		return err
	}
	f.copies.Inc()
	f.pages.Add(h.Pages)
	if changed == nil {
		return nil
	}
	return changed(ctx)
}

// releaseEvaluated lets the engine's log go of what the primary has evaluated.
func (f *Follower) releaseEvaluated(ctx context.Context) error {
	evaluated, err := f.o.DB.Evaluated(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	ours := model.LSN(0)
	for _, p := range f.own {
		if p.theirs <= evaluated {
			ours = p.ours
		}
	}
	f.released = max(f.released, ours)
	f.mu.Unlock()
	if ours > 0 {
		f.o.Engine.Release(ours)
	}
	return nil
}

// Released is a place in the engine's log that is not behind what the primary had evaluated; zero when none is known.
func (f *Follower) Released() model.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.released
}

// Reach returns when everything up to a position of the primary's log is stored, with the catalog.
func (f *Follower) Reach(ctx context.Context, lsn model.LSN) error {
	for {
		f.mu.Lock()
		reached, progress := f.position >= lsn && f.catalogDone, f.progress
		f.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CopyNow brings the configuration up to date without waiting for a change, for one who opens it anew then: Changed is not called.
func (f *Follower) CopyNow(ctx context.Context) error { return f.copyConfiguration(ctx, false, nil) }

// OwnEvaluated finds the place in the engine's log up to which a standby's primary had evaluated. from is a place before it, zero when none is known.
func OwnEvaluated(ctx context.Context, engine *dbengine.DB, state *State, evaluated, from model.LSN) (model.LSN, error) {
	// Up to the seed both logs are the same.
	own := max(min(evaluated, state.Seed), from)
	err := engine.Replay(ctx, from, func(lsn model.LSN, b *model.Batch) error {
		for _, m := range b.Marks {
			if epoch, theirs, ok := parsePosition(m.Value); m.Key == markKey && ok && epoch == state.FollowedEpoch && theirs <= evaluated {
				own = lsn
			}
		}
		return nil
	})
	return min(own, engine.LastLSN()), err
}
