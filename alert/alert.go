// Package alert tells people and machines of problems: actions choose events, escalations send messages step by step, media types
// carry them.
//
// Everything that alerting decides is written in one transaction of its Store before anything is sent: the events that were looked
// at, the escalations, and the alerts, which are the queue. After a crash it goes on from there. An alert is sent, then recorded as sent; a
// crash between the two sends it again: at least once, and twice only then (see docs/design/0020-alerting.md).
//
// One goroutine, in Run, decides; messages are sent by others, at most a few per media type.
package alert

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/alert/media"
	"tidemark/model"
)

const (
	// maxPut bounds the events that wait in memory; when more come they are read from the store instead.
	maxPut = 10_000
	// pageSize is how many events and escalations are handled in one transaction.
	pageSize = 1000
	// maxEscalations and maxWaiting bound memory; what goes over is counted and told in the log.
	maxEscalations = 200_000
	maxWaiting     = 100_000
	// idleTime is how long Run sleeps at most, so that the heartbeat can see that it lives.
	idleTime = 10 * time.Second
	// storeRetry is the wait after the store failed.
	storeRetry = time.Second
	// keepAlerts is how long alerts can be listed, pruneEvery how often older ones are deleted.
	keepAlerts = 30 * 24 * time.Hour
	pruneEvery = time.Hour
	// stopGrace is how long messages on their way may take when Run ends.
	stopGrace = time.Second
)

// Store keeps what alerting must not forget.
type Store interface {
	// LoadAlerts reads everything; Recent are the events since a time, Unix nanoseconds.
	LoadAlerts(ctx context.Context, since int64) (model.AlertsLoaded, error)
	// RecordAlerts writes a change in one transaction. After an error nothing of it is stored.
	RecordAlerts(ctx context.Context, c model.AlertChange) error
	// EventsAfter returns at most limit events with a higher id, in order of id.
	EventsAfter(ctx context.Context, id model.EventID, limit int) ([]model.Event, error)
	// ProblemUpdates lists what was done to a problem, oldest first.
	ProblemUpdates(ctx context.Context, id model.EventID) ([]model.ProblemUpdate, error)
	// PutAlertObjects stores and deletes configuration in one transaction.
	PutAlertObjects(ctx context.Context, puts, deletes []model.AlertObject) error
	// Alerts lists alerts, newest first.
	Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error)
}

// Objects finds definitions. The results must not be changed.
type Objects interface {
	TriggerByID(id model.TriggerID) (*model.Trigger, bool)
	HostByID(id model.HostID) (*model.Host, bool)
	// Template returns a template's name, empty when unknown.
	Template(id model.TemplateID) string
	// UserMacro returns the value of a user macro, given with its braces, for a host; zero is no host.
	UserMacro(host model.HostID, macro string) (string, bool)
}

// Problems knows what is wrong now.
type Problems interface {
	// Problem returns an open problem; false when it is over or unknown.
	Problem(id model.EventID) (model.Problem, bool)
	// State returns a trigger's state; false when it has none.
	State(id model.TriggerID) (model.TriggerState, bool)
	// AddTags adds tags to an open problem that are stored elsewhere; it does nothing for others.
	AddTags(id model.EventID, tags []model.Tag)
}

// Names expands macros.
type Names interface {
	// Macros returns a function that expands one macro, given with its braces; unknown ones come back as they are.
	Macros(ctx context.Context, e *model.Event) func(macro string) string
}

// Options of an Alerter. Store, Objects, Problems and Names are needed.
type Options struct {
	Store    Store
	Objects  Objects
	Problems Problems
	Names    Names
	// Scripts runs webhooks in JavaScript; nil permits none.
	Scripts media.Runner
	// Commands runs commands on hosts; nil permits none.
	Commands media.Commander
	// ScriptFolder is where the programs of script media must be; empty permits none.
	ScriptFolder string
	// Healthy is asked before each heartbeat; an error keeps it back. Nil: always healthy.
	Healthy func() error
	// Once stores that an alert is about to be sent before it is, and sends none again whose server ended in between: it may have arrived. Without it such
	// an alert is sent again.
	Once bool
	// Zone is the time zone of conditions, maintenances and messages; nil is the local one.
	Zone *time.Location
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Metrics receives the package's metrics; nil: none.
	Metrics *metrics.Set
	// Logger; nil: discard.
	Logger *slog.Logger
}

// Alerter turns events into messages. All methods may be called from several goroutines.
type Alerter struct {
	options Options
	wake    chan struct{}
	steppedAt,
	failingSince atomic.Int64 // Unix nanoseconds
	stopped atomic.Bool

	putMu    sync.Mutex
	put      []model.Event
	overflow bool // events are missing in put: read the store

	mu        sync.Mutex
	config    *Config
	plan      *plan
	beats     chan struct{} // closed and replaced when the heartbeat changed
	lastEvent model.EventID
	// nextAlert is the id of the next alert; those from unqueued on are not in their lanes yet, because they are not stored.
	nextAlert, unqueued uint64

	escalations map[escalationKey]*escalation
	// current are the escalations by the id of the trigger's latest problem.
	current map[model.EventID][]*escalation
	// heldBy are those that wait for their trigger to calm down.
	heldBy map[heldKey]*escalation
	flaps  map[model.TriggerID][]int64
	timers timers

	lanes   map[laneKey]*lane
	ready   map[string][]*lane
	active  map[string]int
	waiting int
	sending sync.WaitGroup

	pending  pending
	prunedAt int64

	sent, failed, retried, dropped, cancelled, held, heldCommands, storeFailures, heartbeats, heartbeatFailures *metrics.Counter
	// busy is how long steps took, sendingSeconds how long messages were on their way.
	busy, sendingSeconds *metrics.FloatCounter
}

// escalationKey is what names an escalation.
type escalationKey struct {
	action  string
	problem model.EventID
}

// escalation is one in memory.
type escalation struct {
	model.Escalation
	// paused says that the step waits for the end of a maintenance or of another problem.
	paused bool
	// missing counts how often the problem was neither open nor recovered.
	missing int
}

func (e *escalation) key() escalationKey { return escalationKey{e.Action, e.ProblemID} }

// pending is what is decided but not yet stored.
type pending struct {
	escalations map[escalationKey]*escalation
	ended       map[escalationKey]model.Escalation
	alerts      map[uint64]*model.Alert
	tags        map[model.EventID][]model.Tag
	lastEvent   bool // worth a transaction of its own
	retryAt     int64
}

func (p *pending) empty() bool {
	return len(p.escalations)+len(p.ended)+len(p.alerts)+len(p.tags) == 0 && !p.lastEvent
}

// Open loads configuration, escalations and queue from the store. Nothing is sent before Run.
func Open(ctx context.Context, o Options) (*Alerter, error) {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	loaded, err := o.Store.LoadAlerts(ctx, o.Now().Add(-maxWithin).UnixNano())
	if err != nil {
		return nil, fmt.Errorf("load alerts: %w", err)
	}
	config, err := configOf(loaded.Objects)
	if err != nil {
		return nil, err
	}
	a := &Alerter{
		options: o, wake: make(chan struct{}, 1), overflow: true, config: config, beats: make(chan struct{}), lastEvent: loaded.LastEvent,
		nextAlert: loaded.LastAlert + 1, unqueued: loaded.LastAlert + 1, escalations: make(map[escalationKey]*escalation), current: make(map[model.EventID][]*escalation),
		heldBy: make(map[heldKey]*escalation), flaps: make(map[model.TriggerID][]int64), lanes: make(map[laneKey]*lane), ready: make(map[string][]*lane), active: make(map[string]int),
		pending: newPending(), prunedAt: o.Now().UnixNano(),
	}
	if a.plan, err = compile(config, &a.options); err != nil {
		// It was correct when it was stored; what can be used is used.
		o.Logger.Error("alerting: stored configuration", "error", err)
	}
	a.registerMetrics()
	a.load(&loaded)
	return a, nil
}

func newPending() pending {
	return pending{
		escalations: make(map[escalationKey]*escalation), ended: make(map[escalationKey]model.Escalation), alerts: make(map[uint64]*model.Alert),
		tags: make(map[model.EventID][]model.Tag),
	}
}

func (a *Alerter) registerMetrics() {
	counter := func(name string) *metrics.Counter {
		return a.options.Metrics.NewCounter("tidemark_alert_" + name + "_total")
	}
	a.sent, a.failed, a.retried = counter("sent_alerts"), counter("failed_alerts"), counter("retries")
	a.dropped, a.cancelled, a.held, a.heldCommands = counter("dropped_alerts"), counter("cancelled_escalations"), counter("held_changes"), counter("held_commands")
	a.storeFailures, a.heartbeats, a.heartbeatFailures = counter("store_failures"), counter("heartbeats"), counter("heartbeat_failures")
	a.busy = a.options.Metrics.NewFloatCounter("tidemark_alert_busy_seconds_total")
	a.sendingSeconds = a.options.Metrics.NewFloatCounter("tidemark_alert_sending_seconds_total")
	locked := func(f func() int) func() float64 {
		return func() float64 {
			a.mu.Lock()
			defer a.mu.Unlock()
			return float64(f())
		}
	}
	a.options.Metrics.NewGauge("tidemark_alert_paused", func() float64 {
		if a.stopped.Load() {
			return 1
		}
		return 0
	})
	a.options.Metrics.NewGauge("tidemark_alert_waiting_alerts", locked(func() int { return a.waiting }))
	a.options.Metrics.NewGauge("tidemark_alert_escalations", locked(func() int { return len(a.escalations) }))
}

func (a *Alerter) load(l *model.AlertsLoaded) {
	now := a.now()
	for i := range l.Recent {
		a.noteChange(&l.Recent[i], l.Recent[i].At)
	}
	for _, stored := range l.Escalations {
		e := &escalation{Escalation: stored}
		a.escalations[e.key()] = e
		a.current[e.CurrentID] = append(a.current[e.CurrentID], e)
		if e.RecoveryID != 0 {
			a.heldBy[heldKey{e.Action, e.Problem.TriggerID}] = e
		}
		a.schedule(e)
	}
	for i := range l.Waiting {
		if alert := &l.Waiting[i]; a.once(a.plan.channels[alert.Media]) && alert.State == model.AlertClaimed {
			a.giveUp(alert, now)
		} else {
			alert.State = model.AlertWaiting
			a.enqueue(alert, now)
		}
	}
}

// giveUp notes that nobody knows whether an alert arrived: the server that sent it ended meanwhile.
func (a *Alerter) giveUp(alert *model.Alert, now int64) {
	alert.State, alert.SentAt = model.AlertFailed, now
	alert.Attempts++
	alert.Error = "the server ended while it sent this, so it may have arrived; it is not sent again"
	a.failed.Inc()
	a.options.Logger.Error("alerting: an alert may have arrived or not, because the server that sent it ended meanwhile; it is not sent again", "alert", alert.ID, "media", alert.Media, "problem", alert.ProblemID)
	a.pending.alerts[alert.ID] = alert
}

func (a *Alerter) now() int64 { return a.options.Now().UnixNano() }

// Put takes events that were stored; it implements event.Sink and does not block.
func (a *Alerter) Put(events []model.Event) {
	a.putMu.Lock()
	if len(a.put)+len(events) > maxPut {
		a.put, a.overflow = nil, true
	}
	if !a.overflow {
		a.put = append(a.put, events...)
	}
	a.putMu.Unlock()
	a.poke()
}

func (a *Alerter) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Pause stops deciding and sending, or goes on with it. Events that come meanwhile are dealt with afterwards.
func (a *Alerter) Pause(on bool) {
	a.stopped.Store(on)
	a.poke()
}

// Paused reports whether nothing is sent.
func (a *Alerter) Paused() bool { return a.stopped.Load() }

// Run decides and sends until ctx ends; then messages on their way get a second to arrive, and what is decided is stored. It is called once.
func (a *Alerter) Run(ctx context.Context) error {
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var beating sync.WaitGroup
	beating.Go(func() { a.beat(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-a.wake:
			timer.Reset(a.step(ctx, delivering))
		case <-timer.C:
			timer.Reset(a.step(ctx, delivering))
		}
	}
	grace := time.AfterFunc(stopGrace, stop)
	a.sending.Wait()
	grace.Stop()
	beating.Wait()
	if a.stopped.Load() { // nothing was decided since
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending.lastEvent = true
	return a.commit(context.WithoutCancel(ctx))
}

// step does everything that is due, and returns how long nothing more is.
func (a *Alerter) step(ctx, delivering context.Context) time.Duration {
	defer func(start time.Time) { a.busy.Add(time.Since(start).Seconds()) }(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.steppedAt.Store(now)
	if a.stopped.Load() { // events stay in the store
		return idleTime
	}
	more := false
	if now >= a.pending.retryAt {
		more = a.takeEvents(ctx)
		more = a.runDue(ctx, now) || more
		if now-a.prunedAt >= int64(pruneEvery) {
			a.pending.lastEvent = true
		}
		if err := a.commit(ctx); err != nil && ctx.Err() == nil {
			a.options.Logger.Error("alerting: the state could not be stored; nothing new is sent until it can", "error", err)
		}
	}
	a.startDeliveries(delivering, now)
	if (more || !a.pending.empty()) && a.pending.retryAt <= now {
		return 0
	}
	next := now + int64(idleTime)
	if at, ok := a.timers.next(); ok {
		next = min(next, at)
	}
	if a.pending.retryAt > now {
		next = min(max(next, now+int64(10*time.Millisecond)), a.pending.retryAt)
	}
	return time.Duration(max(next-now, 0))
}

// takeEvents handles a page of events, and reports whether there may be more.
func (a *Alerter) takeEvents(ctx context.Context) bool {
	a.putMu.Lock()
	events, missing := a.put, a.overflow
	if missing {
		// What is put from here on comes behind what the store has now.
		a.put, a.overflow = nil, false
	} else {
		rest := events[min(len(events), pageSize):]
		events = events[:len(events)-len(rest)]
		a.put = slices.Clone(rest)
	}
	a.putMu.Unlock()
	if missing {
		var err error
		if events, err = a.options.Store.EventsAfter(ctx, a.lastEvent, pageSize); err != nil || len(events) == pageSize {
			// The next page too must come from the store.
			a.putMu.Lock()
			a.put, a.overflow = nil, true
			a.putMu.Unlock()
		}
		if err != nil {
			a.fail(err)
			return false
		}
	}
	for i := range events {
		if events[i].ID > a.lastEvent {
			a.handle(ctx, &events[i])
			a.lastEvent = events[i].ID
		}
	}
	return len(events) == pageSize
}

// commit stores what is decided and queues what became alerts.
func (a *Alerter) commit(ctx context.Context) error {
	if a.pending.empty() {
		return nil
	}
	now := a.now()
	change := model.AlertChange{LastEvent: a.lastEvent, Ended: slices.Collect(maps.Values(a.pending.ended)), Tags: a.pending.tags}
	for _, e := range a.pending.escalations {
		change.Escalations = append(change.Escalations, e.Escalation)
	}
	var fresh []*model.Alert
	for _, id := range slices.Sorted(maps.Keys(a.pending.alerts)) {
		alert := a.pending.alerts[id]
		change.Alerts = append(change.Alerts, *alert)
		if alert.State == model.AlertWaiting && id >= a.unqueued {
			fresh = append(fresh, alert)
		}
	}
	if now-a.prunedAt >= int64(pruneEvery) {
		change.PruneBefore = now - int64(keepAlerts)
	}
	if err := a.options.Store.RecordAlerts(ctx, change); err != nil {
		a.fail(err)
		return fmt.Errorf("record %d escalations and %d alerts: %w", len(change.Escalations)+len(change.Ended), len(change.Alerts), err)
	}
	if change.PruneBefore != 0 {
		a.prunedAt = now
		a.forgetChanges(now)
	}
	a.pending, a.unqueued = newPending(), a.nextAlert
	a.failingSince.Store(0)
	for _, alert := range fresh {
		a.enqueue(alert, now)
	}
	return nil
}

// fail notes that the store does not work.
func (a *Alerter) fail(error) {
	a.storeFailures.Inc()
	now := a.now()
	a.pending.retryAt = now + int64(storeRetry)
	a.failingSince.CompareAndSwap(0, now)
}
