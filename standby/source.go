package standby

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/storage/dbengine"
)

const (
	// maxWait bounds how long a request waits for something new.
	maxWait = 10 * time.Second
	// defaultAlone is how long values wait for a standby in synchronous mode.
	defaultAlone = 10 * time.Second
	// keepFor is how long the log is kept for a standby that asks no more, within the log's budget.
	keepFor = 15 * time.Minute
	// maxFollowers bounds the standbys at one time.
	maxFollowers = 8
	// maxAddressBytes bounds ids and addresses of standbys.
	maxAddressBytes = 255
	// copyEvery is the least time between two looks at the configuration, and copyShare how many times as long as one took.
	copyEvery = time.Second
	copyShare = 20
)

// SourceOptions are what a primary gives to its standbys.
type SourceOptions struct {
	Node    *Node
	Engine  *dbengine.DB
	DB      *confdb.DB
	Catalog *catalog.Catalog
	// Synchronous acknowledges nothing that no standby has; without one for Alone (zero means 10 s) values are refused.
	Synchronous bool
	Alone       time.Duration
	// Fenced is called when this server is fenced while it runs.
	Fenced  func()
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// Source answers standbys.
type Source struct {
	o SourceOptions

	mu        sync.Mutex
	followers map[string]*follower
	evaluated model.LSN
	// alone says that values are refused because no standby has them.
	alone bool
	began time.Time
	// kick asks for a look at the configuration at once; it is closed and replaced.
	kick chan struct{}
	// acknowledged is closed and replaced when a standby has a newer configuration.
	acknowledged chan struct{}

	instance string
	// looking guards what follows.
	looking sync.Mutex
	pages   *confdb.Pages
	looked  time.Time
	took    time.Duration
}

// follower is a standby as its primary knows it.
type follower struct {
	address  string
	position model.LSN
	seenAt   time.Time
	// sent is how far the log was at the last answer, at sentAt; wholeAt is the latest moment of which it has everything.
	sent            model.LSN
	sentAt, wholeAt time.Time
	seeding         bool
	// rows is how far its configuration is.
	rows int64
}

// NewSource readies a source. In synchronous mode nothing is acknowledged from now on before a standby has asked.
func NewSource(o SourceOptions) *Source {
	if o.Alone <= 0 {
		o.Alone = defaultAlone
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	s := &Source{
		o: o, followers: map[string]*follower{}, began: time.Now(), kick: make(chan struct{}), acknowledged: make(chan struct{}),
		instance: hex.EncodeToString(id), pages: o.DB.NewPages(),
	}
	if o.Synchronous {
		o.Engine.Synchronous()
	}
	o.Metrics.NewGauge("tidemark_standby_followers", func() float64 { return float64(len(s.Followers())) })
	o.Metrics.NewGauge("tidemark_standby_follower_lag_bytes", func() float64 {
		most := 0.0
		for _, f := range s.Followers() {
			most = max(most, float64(f.LagBytes))
		}
		return most
	})
	o.Metrics.NewGauge("tidemark_standby_follower_lag_seconds", s.lagSeconds)
	o.Metrics.NewGauge("tidemark_standby_refusing_alone", func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.alone {
			return 1
		}
		return 0
	})
	return s
}

// lagSeconds is for how long the standby that is farthest behind has lacked something.
func (s *Source) lagSeconds() float64 {
	durable := s.o.Engine.DurableLSN()
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0.0
	for _, f := range s.followers {
		if f.position < durable && time.Since(f.seenAt) < keepFor {
			most = max(most, time.Since(f.wholeAt).Seconds())
		}
	}
	return most
}

// Followed is a standby as it is shown.
type Followed struct {
	Address string `json:"address"`
	// LagBytes is how much of the log it lacks, SeenAt when it asked last, Unix milliseconds.
	LagBytes uint64 `json:"lag_bytes"`
	SeenAt   int64  `json:"seen_at"`
	Seeding  bool   `json:"seeding"`
}

// Followers lists the standbys that asked lately.
func (s *Source) Followers() []Followed {
	durable := s.o.Engine.DurableLSN()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Followed{}
	for _, f := range s.followers {
		if time.Since(f.seenAt) < keepFor {
			out = append(out, Followed{Address: f.address, LagBytes: uint64(durable - min(f.position, durable)), SeenAt: f.seenAt.UnixMilli(), Seeding: f.seeding})
		}
	}
	return out
}

// errAlone says why values are refused in synchronous mode.
func (s *Source) errAlone() error {
	return fmt.Errorf("standby.synchronous is on and no standby has confirmed values for %v: they are refused so that nothing acknowledged can be lost; start the standby, or set standby.synchronous: false", s.o.Alone)
}

// Release says that evaluation needs the log no more up to an LSN; standbys may.
func (s *Source) Release(evaluated model.LSN) {
	s.mu.Lock()
	s.evaluated = max(s.evaluated, evaluated)
	s.mu.Unlock()
	s.release()
}

func (s *Source) release() {
	s.mu.Lock()
	lsn := s.evaluated
	for id, f := range s.followers {
		if time.Since(f.seenAt) > keepFor {
			delete(s.followers, id)
			continue
		}
		lsn = min(lsn, f.position)
	}
	s.mu.Unlock()
	s.o.Engine.Release(lsn)
}

// Run watches over the synchronous mode until ctx ends.
func (s *Source) Run(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if s.o.Synchronous {
				s.watch()
			}
		}
	}
}

// watch refuses values while no standby asks, and lets them in again when one does.
func (s *Source) watch() {
	s.mu.Lock()
	last := s.began
	for _, f := range s.followers {
		if f.seenAt.After(last) && !f.seeding {
			last = f.seenAt
		}
	}
	alone := time.Since(last) > s.o.Alone
	changed := alone != s.alone
	s.alone = alone
	s.mu.Unlock()
	if !changed || s.o.Node.Refusal() != nil {
		return
	}
	if alone {
		s.o.Logger.Error("values are refused", "reason", s.errAlone())
		s.o.Engine.Refuse(s.errAlone())
		return
	}
	s.o.Logger.Info("a standby confirms values again: they are taken")
	s.o.Engine.Refuse(nil)
}

// check compares a request with what this server is. A higher epoch fences it.
func (s *Source) check(cluster string, epoch uint64) error {
	state := s.o.Node.State()
	switch {
	case cluster == "":
	case cluster != state.Cluster:
		return &api.Error{Status: http.StatusConflict, Code: "cluster", Message: "this server is of another cluster: the standby's data did not come from it"}
	case epoch > state.Epoch:
		if err := s.Fence(epoch, ""); err != nil {
			return err
		}
		state = s.o.Node.State()
		return &api.Error{Status: http.StatusConflict, Code: "fenced", Message: s.o.Node.Refusal().Error()}
	case epoch < state.Epoch:
		return &api.Error{Status: http.StatusGone, Code: "seed", Message: fmt.Sprintf("this server was promoted to epoch %s, the standby has data of epoch %s: seed it again", EpochText(state.Epoch), EpochText(epoch))}
	}
	if state.Role == Standby {
		return &api.Error{Status: http.StatusConflict, Code: "standby", Message: "this server is a standby itself; follow its primary"}
	}
	return nil
}

// HandOver fences this server for the standby that is named. A server that is fenced already answers only the one that it handed over to, because that may not
// have got the answer: two that both take over would have the same epoch.
func (s *Source) HandOver(q EpochRequest) error {
	state := s.o.Node.State()
	if generation(q.Epoch) != generation(state.Epoch)+1 {
		return &api.Error{Status: http.StatusConflict, Code: "epoch", Message: fmt.Sprintf("asked to hand over to epoch %s; this server has epoch %s", EpochText(q.Epoch), EpochText(state.Epoch))}
	}
	if q.Standby == "" || state.FencedBy != 0 && (state.FencedFor != q.Standby || generation(state.FencedBy) > generation(q.Epoch)) {
		return &api.Error{Status: http.StatusConflict, Code: "fenced", Message: fmt.Sprintf("another standby (%s) was promoted to epoch %s before", cmp.Or(state.FencedFor, "not known which"), EpochText(state.FencedBy))}
	}
	if q.Epoch > maxEpoch {
		return api.BadRequest("that epoch cannot be")
	}
	return s.fencing(func() error { return s.o.Node.handOver(q.Epoch, q.Standby, q.Address) })
}

// Fence makes this server refuse values and changes if epoch is higher than its own; at is the address of the one that has it, or empty.
func (s *Source) Fence(epoch uint64, at string) error {
	return s.fencing(func() error { return s.o.Node.Fence(epoch, at) })
}

// fencing does what may fence this server, and stops it when it did.
func (s *Source) fencing(do func() error) error {
	before := s.o.Node.Refusal()
	if err := do(); err != nil {
		return err
	}
	state := s.o.Node.State()
	if before != nil || state.Role != Fenced {
		return nil
	}
	text := "fenced: another server was promoted"
	if generation(state.Epoch) == generation(state.FencedBy) {
		text = "fenced: two servers were promoted in the place of one, and the other one wins; values that only this one has taken since are not in the other one"
	}
	s.o.Logger.Error(text, "own_epoch", EpochText(state.Epoch), "epoch", EpochText(state.FencedBy))
	s.o.Fenced()
	return nil
}

// Log serves POST /api/standby/log.
func (s *Source) Log(w http.ResponseWriter, r *http.Request) {
	var q LogRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		api.WriteError(w, api.BodyError(err))
		return
	}
	a, err := s.answerLog(r.Context(), &q)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = a.write(w) // the standby asks again
}

func (s *Source) answerLog(ctx context.Context, q *LogRequest) (*LogAnswer, error) {
	if err := s.check(q.Cluster, q.Epoch); err != nil {
		return nil, err
	}
	if len(q.Standby) == 0 || len(q.Standby) > maxAddressBytes || len(q.Address) > maxAddressBytes {
		return nil, api.BadRequest("standby: expected an id of 1 to 255 characters and an address of at most 255")
	}
	if q.Seeding {
		q.Position = s.o.Engine.DurableLSN()
	}
	if err := s.see(q); err != nil {
		return nil, err
	}
	if !q.Seeding && q.WaitMs > 0 {
		waiting, cancel := context.WithTimeout(ctx, min(time.Duration(q.WaitMs)*time.Millisecond, maxWait))
		err := s.o.Engine.WaitLog(waiting, q.Position)
		cancel()
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	return s.readLog(q)
}

// see notes that a standby has everything up to its position.
func (s *Source) see(q *LogRequest) error {
	if durable := s.o.Engine.DurableLSN(); q.Position > durable {
		return &api.Error{Status: http.StatusGone, Code: "seed", Message: fmt.Sprintf("the standby is at LSN %d, this server's log ends at %d: seed it again", q.Position, durable)}
	}
	s.mu.Lock()
	f := s.followers[q.Standby]
	if f == nil && len(s.followers) >= maxFollowers {
		s.mu.Unlock()
		return &api.Error{Status: http.StatusServiceUnavailable, Code: "limit", Message: fmt.Sprintf("there are %d standbys already, the limit", maxFollowers)}
	}
	if f == nil {
		f = &follower{rows: -1, wholeAt: time.Now()}
		s.followers[q.Standby] = f
	}
	f.address, f.seenAt, f.seeding = q.Address, time.Now(), q.Seeding
	f.position = q.Position
	if q.Position >= f.sent && !f.sentAt.IsZero() {
		f.wholeAt = f.sentAt
	}
	reached := q.Position
	for _, other := range s.followers {
		if !other.seeding && time.Since(other.seenAt) < s.o.Alone {
			reached = min(reached, other.position)
		}
	}
	s.mu.Unlock()
	if !q.Seeding {
		s.o.Engine.Replicated(reached)
		if s.o.Synchronous {
			s.watch()
		}
		if err := s.o.Node.AddStandby(q.Address); err != nil {
			return err
		}
	}
	s.release()
	return nil
}

func (s *Source) readLog(q *LogRequest) (*LogAnswer, error) {
	state := s.o.Node.State()
	a := &LogAnswer{LogHeader: LogHeader{Cluster: state.Cluster, Epoch: state.Epoch, From: q.Position, Durable: s.o.Engine.DurableLSN(), Now: time.Now().UnixNano()}}
	a.Peers = slices.DeleteFunc(state.Standbys, func(address string) bool { return address == q.Address || len(address) > maxAddressBytes })
	if q.Seeding {
		return a, nil
	}
	var err error
	if a.Log, err = s.o.Engine.ReadLog(q.Position, maxLogBytes); err != nil {
		if errors.Is(err, dbengine.ErrPosition) {
			return nil, &api.Error{Status: http.StatusGone, Code: "seed", Message: err.Error() + ": seed the standby again"}
		}
		return nil, err
	}
	s.mu.Lock()
	if f := s.followers[q.Standby]; f != nil {
		f.sent, f.sentAt = a.Durable, time.Unix(0, a.Now)
	}
	s.mu.Unlock()
	// After the log: an item is in the catalog before its first value is in the log.
	a.CatalogRecords, a.Catalog, a.CatalogEnd, err = s.o.Catalog.ReadLog(q.Catalog, maxCatalogBytes)
	return a, err
}

// Configuration serves GET /api/standby/configuration: the pages that changed since the version that is named.
func (s *Source) Configuration(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	epoch, err := strconv.ParseUint(q.Get("epoch"), 10, 64)
	version, err2 := strconv.ParseUint(q.Get("version"), 10, 64)
	if err != nil || err2 != nil {
		api.WriteError(w, api.BadRequest("epoch and version: expected numbers"))
		return
	}
	if err := s.check(q.Get("cluster"), epoch); err != nil {
		api.WriteError(w, err)
		return
	}
	if q.Get("instance") != s.instance {
		version = 0
	}
	h, pages, err := s.changedPages(r.Context(), q.Get("standby"), version, q.Get("wait") != "")
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = writeConfiguration(w, h, pages)
}

// changedPages returns the pages that changed since a version, at the latest after maxWait.
func (s *Source) changedPages(ctx context.Context, standby string, since uint64, wait bool) (*ConfigurationHeader, *bytes.Buffer, error) {
	state := s.o.Node.State()
	h := &ConfigurationHeader{Cluster: state.Cluster, Epoch: state.Epoch, Instance: s.instance}
	s.hasVersion(standby, since)
	deadline := time.NewTimer(maxWait)
	defer deadline.Stop()
	urgent := !wait
	for last := !wait; ; {
		kicked := s.kicked()
		pages, pause, err := s.look(ctx, h, since, urgent, last)
		if err != nil || pages != nil {
			return h, pages, err
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, nil, ctx.Err()
		case <-kicked:
			urgent = true
			s.unkick()
		case <-again.C:
		case <-deadline.C:
			last = true
		}
		again.Stop()
	}
}

// look looks at the configuration if it changed and it is time to, or it is urgent; with anyway in any case. Without pages it says how long to wait.
func (s *Source) look(ctx context.Context, h *ConfigurationHeader, since uint64, urgent, anyway bool) (*bytes.Buffer, time.Duration, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	changed, err := s.pages.Changed(ctx)
	if err != nil {
		return nil, 0, err
	}
	if !anyway && since == s.pages.Version() && since != 0 {
		pause := max(copyEvery, copyShare*s.took) - time.Since(s.looked)
		if !changed {
			return nil, copyEvery / 4, nil
		}
		if pause > 0 && !urgent {
			return nil, pause, nil
		}
	}
	began := time.Now()
	pages := &bytes.Buffer{}
	h.Sum, err = s.pages.Look(ctx, since, func(number uint32, content []byte) error {
		confdb.AppendPage(pages, number, content)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	s.looked, s.took = time.Now(), time.Since(began)
	h.Version = s.pages.Version()
	h.Secret, err = s.o.DB.Secret()
	return pages, 0, err
}
