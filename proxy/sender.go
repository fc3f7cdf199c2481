package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
	"tidemark/proxy/queue"
	"tidemark/wire/zbx"
)

const (
	// batchRows and batchBytes end a request; Zabbix's proxies send at most 10,000 values in one, too.
	batchRows  = 10_000
	batchBytes = 4 << 20
	// sendEvery is how long values wait for others to travel with, and how often the server is asked for tasks.
	sendEvery = time.Second
	// firstPause and lastPause are those after a failure.
	firstPause, lastPause = time.Second, 15 * time.Second
	// maxNewsRows bounds interfaces and agents of one request.
	maxNewsRows = 10_000
	// protocol is the version that servers are told; they compare the first two numbers with their own.
	protocol = "6.0.0"
)

// sender sends what the proxy has to the server.
type sender struct {
	name       string
	peer       *peer
	queue      *queue.Queue
	interfaces *interfaces
	newcomers  *newcomers
	finds      *finds
	tasks      *tasks
	logger     *slog.Logger

	request zbx.ProxyRequest
	body    []byte

	requests, failures *metrics.Counter

	mu sync.Mutex
	// refused is set while the server wants no values.
	refused bool
	// answeredAt is when it last answered with success, Unix nanoseconds, and failure why the last request failed, since failingSince.
	answeredAt, failingSince int64
	failure                  string
}

func (s *sender) measure(set *metrics.Set) {
	s.requests = set.NewCounter("tidemark_proxy_requests_total")
	s.failures = set.NewCounter("tidemark_proxy_failed_requests_total")
	s.finds.measure(set)
	set.NewGauge("tidemark_proxy_server_up", func() float64 {
		if st := s.state(); st.Failure == "" && st.AnsweredAt > 0 {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_proxy_upload_disabled", func() float64 {
		if s.state().Refused {
			return 1
		}
		return 0
	})
}

// connection is how the server answers.
type connection struct {
	Refused                  bool
	AnsweredAt, FailingSince int64
	Failure                  string
}

func (s *sender) state() connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return connection{s.refused, s.answeredAt, s.failingSince, s.failure}
}

// Run sends until ctx ends.
func (s *sender) Run(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		more, err := s.send(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.failed(err)
			wait(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		case more:
			pause = firstPause
			continue
		}
		pause = firstPause
		wait(ctx, sendEvery)
	}
	return nil
}

// wait waits for a time or for the end.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// offer is what one request brings to the server.
type offer struct {
	batch  *queue.Batch
	states []interfaceState
	agents []zbx.ProxiedAgent
	found  []zbx.ProxyFind
	// results are what became of tasks.
	results []zbx.Task
}

// gather takes what there is for one request, values only while the server takes some.
func (s *sender) gather(ctx context.Context) (o *offer, err error) {
	o = &offer{batch: &queue.Batch{}}
	if !s.state().Refused {
		if o.batch, err = s.queue.Next(ctx, batchRows, batchBytes); err != nil {
			return nil, err
		}
	}
	o.states, o.agents, o.found = s.interfaces.waiting(maxNewsRows), s.newcomers.waiting(maxNewsRows), s.finds.waiting(maxNewsRows)
	o.results = s.tasks.waiting()
	return o, nil
}

// gatherResults takes what became of tasks.
func (s *sender) gatherResults(context.Context) (*offer, error) {
	return &offer{batch: &queue.Batch{}, results: s.tasks.waiting()}, nil
}

func (o *offer) empty() bool {
	return len(o.batch.Rows)+len(o.states)+len(o.agents)+len(o.found)+len(o.results) == 0
}

// encode appends an offer, as a request or, without a name, as the answer to one.
func (s *sender) encode(dst []byte, o *offer, name string) []byte {
	s.request = zbx.ProxyRequest{Name: name, Host: s.name, Session: s.queue.Session(), Version: protocol}
	dst = s.request.Begin(dst)
	for i := range o.states {
		dst = s.request.AddInterface(dst, o.states[i].id, o.states[i].available, o.states[i].reason)
	}
	for i := range o.batch.Rows {
		dst = s.addRow(dst, &o.batch.Rows[i])
	}
	for i := range o.found {
		dst = s.request.AddFind(dst, &o.found[i])
	}
	for i := range o.agents {
		dst = s.request.AddAgent(dst, &o.agents[i])
	}
	for i := range o.results {
		dst = s.request.AddTask(dst, &o.results[i])
	}
	return s.request.End(dst, time.Now().UnixNano(), o.batch.More)
}

// taken drops what the server has.
func (s *sender) taken(o *offer) error {
	s.interfaces.told(o.states)
	s.newcomers.told(o.agents)
	s.finds.told(len(o.found))
	s.tasks.told(len(o.results))
	if s.state().Refused {
		// Whether it took these values is not known; if so it knows their ids.
		return nil
	}
	return s.queue.Acknowledge(o.batch)
}

// send makes one request of what there is, and reports whether there is more. A server that takes no values is asked without some until
// it does.
func (s *sender) send(ctx context.Context) (more bool, err error) {
	o, err := s.gather(ctx)
	if err != nil {
		return false, err
	}
	if o.empty() {
		if err := s.queue.Acknowledge(o.batch); err != nil || o.batch.More {
			return o.batch.More, err
		}
		return false, s.askTasks(ctx)
	}
	s.body = s.encode(s.body[:0], o, zbx.ProxyData)
	taken, err := s.exchange(ctx, s.body)
	if cap(s.body) > 4*batchBytes {
		s.body = nil
	}
	if err != nil || !taken {
		return false, err
	}
	err = s.taken(o)
	return o.batch.More && !s.state().Refused, err
}

func (s *sender) addRow(dst []byte, r *queue.Row) []byte {
	at := max(r.At, 0)
	row := zbx.Row{
		Has: zbx.HasItemID | zbx.HasClock | zbx.HasNS, ID: r.ID, ItemID: uint64(r.Item), Clock: uint32(at / 1e9), NS: uint32(at % 1e9), Unsupported: r.Unsupported, Value: r.Value,
	}
	if r.Value != nil {
		row.Has |= zbx.HasValue
	}
	if l := r.Log; l != nil {
		row.Timestamp, row.Severity, row.EventID, row.Source = l.At, l.Severity, l.EventID, []byte(l.Source)
	}
	if p := r.Position; p != nil {
		row.Has |= zbx.HasLastLogSize | zbx.HasMTime
		row.LastLogSize, row.MTime = p.Size, p.MTime
	}
	return s.request.Add(dst, &row)
}

// askTasks asks the server for tasks, and while it takes no values whether it does again. Zabbix's proxies ask as often.
func (s *sender) askTasks(ctx context.Context) error {
	r := zbx.ProxyRequest{Name: zbx.ProxyData, Host: s.name, Session: s.queue.Session(), Version: protocol}
	_, err := s.exchange(ctx, r.End(r.Begin(nil), time.Now().UnixNano(), false))
	return err
}

// exchange makes a request and reports whether the server took all of it. Values that it does not want now are no error.
func (s *sender) exchange(ctx context.Context, body []byte) (taken bool, err error) {
	s.requests.Inc()
	text, err := s.peer.exchange(ctx, body)
	if err != nil {
		return false, err
	}
	return s.hear(text)
}

// hear reads what the server says, and reports whether it took all of it. Values that it does not want now are no error.
func (s *sender) hear(text []byte) (taken bool, err error) {
	a, err := zbx.DecodeAnswer(text)
	if err != nil {
		return false, fmt.Errorf("read the server's answer: %w", err)
	}
	s.mu.Lock()
	if a.UploadDisabled != s.refused {
		s.logger.Info("the server says whether it takes values", "takes", !a.UploadDisabled, "reason", a.Info)
	}
	s.refused = a.UploadDisabled
	s.mu.Unlock()
	if !a.Success && !a.UploadDisabled {
		if a.Info == "" {
			a.Info = "it gives no reason"
		}
		return false, errors.New("the server refuses what the proxy sends: " + a.Info)
	}
	s.answered()
	if a.Success {
		s.tasks.take(a.Tasks)
	}
	return a.Success, nil
}

func (s *sender) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != "" {
		s.logger.Info("the server is back", "away", time.Since(time.Unix(0, s.failingSince)).Round(time.Second))
		s.interfaces.again() // it may have forgotten them
	}
	s.answeredAt, s.failure, s.failingSince = time.Now().UnixNano(), "", 0
}

// failed takes note of a failure and logs it when it is another than before.
func (s *sender) failed(err error) {
	s.failures.Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := err.Error(); text != s.failure {
		s.logger.Warn("the server does not take what the proxy has; it is kept", "error", err)
		s.failure = text
	}
	if s.failingSince == 0 {
		s.failingSince = time.Now().UnixNano()
	}
}

// interfaces are whether interfaces of hosts answer, as the server is to know.
type interfaces struct {
	// idsOf are the ids by which the server knows the interfaces at an address that checks of a kind use.
	idsOf func(host model.HostID, kind, address string) []uint64

	mu    sync.Mutex
	known map[uint64]interfaceState
	news  map[uint64]struct{}
}

type interfaceState struct {
	id        uint64
	available int
	reason    string
}

// maxReasonBytes bounds why an interface does not answer, as Zabbix has it.
const maxReasonBytes = 2048

func (i *interfaces) set(host model.HostID, kind, address string, available int, reason string) {
	ids := i.idsOf(host, kind, address)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known == nil {
		i.known, i.news = map[uint64]interfaceState{}, map[uint64]struct{}{}
	}
	for _, id := range ids {
		i.known[id] = interfaceState{id, available, reason[:min(len(reason), maxReasonBytes)]}
		i.news[id] = struct{}{}
	}
}

// again has the server told of all interfaces.
func (i *interfaces) again() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id := range i.known {
		i.news[id] = struct{}{}
	}
}

func (i *interfaces) waiting(limit int) []interfaceState {
	i.mu.Lock()
	defer i.mu.Unlock()
	var list []interfaceState
	for id := range i.news {
		if len(list) == limit {
			break
		}
		list = append(list, i.known[id])
	}
	return list
}

func (i *interfaces) told(list []interfaceState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range list {
		if i.known[s.id] == s {
			delete(i.news, s.id)
		}
	}
}

// keepOnly forgets interfaces that are gone.
func (i *interfaces) keepOnly(ids map[uint64]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id := range i.known {
		if !ids[id] {
			delete(i.known, id)
			delete(i.news, id)
		}
	}
}
