package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// world is everything around an Alerter: the store, which outlives it, hosts, triggers, the open problems, and who receives messages.
type world struct {
	mu          sync.Mutex
	objects     map[string]model.AlertObject
	escalations map[escalationKey]model.Escalation
	alerts      map[uint64]model.Alert
	lastEvent   model.EventID
	lastAlert   uint64
	events      []model.Event

	triggers map[model.TriggerID]*model.Trigger
	hosts    map[model.HostID]*model.Host
	open     map[model.EventID]model.Problem
	updates  map[model.EventID][]model.ProblemUpdate
	sent     []sentMessage
	refuse   func(to string) error // what the receivers answer

	// calls counts what goes through the store and the senders; the process dies at call number cut: before it has an effect, or after if cutAfter.
	calls, cut int
	cutAfter   bool
	dead       bool
	// once is Options.Once.
	once bool
	// refusesCommits makes the store take nothing but claims.
	refusesCommits bool
	// claiming is how long the store takes to note that alerts are about to be sent.
	claiming time.Duration
}

type sentMessage struct {
	at                time.Time
	to, subject, body string
	id, thread        string
}

var errDead = errors.New("the process is dead")

func newWorld() *world {
	return &world{
		objects: map[string]model.AlertObject{}, escalations: map[escalationKey]model.Escalation{}, alerts: map[uint64]model.Alert{},
		triggers: map[model.TriggerID]*model.Trigger{}, hosts: map[model.HostID]*model.Host{}, open: map[model.EventID]model.Problem{}, updates: map[model.EventID][]model.ProblemUpdate{},
	}
}

// call runs f as one call that the process may die at.
func (w *world) call(f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errDead
	}
	w.calls++
	dies := w.calls == w.cut
	w.dead = dies
	if dies && !w.cutAfter {
		return errDead
	}
	if err := f(); err != nil {
		return err
	}
	if dies {
		return errDead
	}
	return nil
}

func (w *world) event(id model.EventID) model.Event {
	if i := slices.IndexFunc(w.events, func(e model.Event) bool { return e.ID == id }); i >= 0 {
		return w.events[i]
	}
	return model.Event{}
}

func (w *world) LoadAlerts(_ context.Context, since int64) (l model.AlertsLoaded, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.LastEvent, l.LastAlert = w.lastEvent, w.lastAlert
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		l.Objects = append(l.Objects, w.objects[name])
	}
	for _, e := range w.escalations {
		e.Problem, e.Current, e.Recovery = w.event(e.ProblemID), w.event(e.CurrentID), w.event(e.RecoveryID)
		l.Escalations = append(l.Escalations, e)
	}
	for _, id := range slices.Sorted(maps.Keys(w.alerts)) {
		if s := w.alerts[id].State; s == model.AlertWaiting || s == model.AlertClaimed {
			l.Waiting = append(l.Waiting, w.alerts[id])
		}
	}
	for _, e := range w.events {
		if e.ID <= w.lastEvent && e.At >= since {
			l.Recent = append(l.Recent, e)
		}
	}
	return l, nil
}

func (w *world) RecordAlerts(_ context.Context, c model.AlertChange) error {
	claims := slices.ContainsFunc(c.Alerts, func(a model.Alert) bool { return a.State == model.AlertClaimed })
	if claims {
		time.Sleep(w.claiming) //nolint:forbidigo // time of the bubble
	}
	return w.call(func() error {
		if w.refusesCommits && !claims {
			return errors.New("the store is away")
		}
		w.lastEvent = max(w.lastEvent, c.LastEvent)
		for _, e := range c.Ended {
			delete(w.escalations, escalationKey{e.Action, e.ProblemID})
		}
		for _, e := range c.Escalations {
			e.Told = slices.Clone(e.Told)
			w.escalations[escalationKey{e.Action, e.ProblemID}] = e
		}
		for id, tags := range c.Tags {
			e := &w.events[id-1]
			e.Tags = mergeTags(e.Tags, tags)
		}
		for _, a := range c.Alerts {
			w.alerts[a.ID] = a
			w.lastAlert = max(w.lastAlert, a.ID)
		}
		return nil
	})
}

func (w *world) ProblemUpdates(_ context.Context, id model.EventID) ([]model.ProblemUpdate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updates[id], nil
}

func (w *world) EventsAfter(_ context.Context, id model.EventID, limit int) ([]model.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []model.Event
	for _, e := range w.events {
		if e.ID > id && len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}

func (w *world) PutAlertObjects(_ context.Context, puts, deletes []model.AlertObject) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range puts {
		w.objects[o.Kind+"/"+o.Name] = o
	}
	for _, o := range deletes {
		delete(w.objects, o.Kind+"/"+o.Name)
	}
	return nil
}

func (w *world) Alerts(_ context.Context, _ model.AlertFilter) ([]model.Alert, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.alerts)), nil
}

func (w *world) TriggerByID(id model.TriggerID) (*model.Trigger, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.triggers[id]
	return t, ok
}

func (w *world) HostByID(id model.HostID) (*model.Host, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h, ok := w.hosts[id]
	return h, ok
}

func (w *world) Template(id model.TemplateID) string { return fmt.Sprintf("Template %d", id) }

func (w *world) UserMacro(host model.HostID, macro string) (string, bool) {
	if macro == "{$HOOK}" {
		return fmt.Sprintf("hook of host %d", host), true
	}
	return "", false
}

func (w *world) AddTags(id model.EventID, tags []model.Tag) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.open[id]; ok {
		p.Tags = mergeTags(p.Tags, tags)
		w.open[id] = p
	}
}

func (w *world) Problem(id model.EventID) (model.Problem, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.open[id]
	return p, ok
}

func (w *world) State(id model.TriggerID) (model.TriggerState, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.open {
		if p.TriggerID == id {
			return model.TriggerState{TriggerID: id, Problem: true}, true
		}
	}
	return model.TriggerState{}, false
}

func (w *world) Macros(_ context.Context, e *model.Event) func(string) string {
	return func(macro string) string {
		if macro == "{HOST.NAME}" {
			if h, ok := w.HostByID(e.HostID); ok {
				return h.Name
			}
		}
		if macro == "{ITEM.ID}" {
			return "77"
		}
		if macro == "{ITEM.VALUE}" {
			return "12.345 MB"
		}
		return macro
	}
}

// messages returns what was sent so far.
func (w *world) messages() []sentMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// receiver is a sender that puts messages into the world.
type receiver struct{ w *world }

func (r receiver) Send(ctx context.Context, m media.Message) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", r.w.call(func() error {
		if r.w.refuse != nil {
			if err := r.w.refuse(m.To); err != nil {
				return err
			}
		}
		r.w.sent = append(r.w.sent, sentMessage{time.Now(), m.To, m.Subject, m.Body, m.ID, m.Thread})
		return nil
	})
}

// process is one life of an Alerter.
type process struct {
	*Alerter
	w    *world
	stop func()
}

// start opens an Alerter over the world and lets it run until stop. config, if not empty, is applied first.
func (w *world) start(t *testing.T, config string) *process {
	t.Helper()
	w.mu.Lock()
	w.dead = false
	w.mu.Unlock()
	a, err := Open(t.Context(), Options{Store: w, Objects: w, Problems: w, Names: w, Zone: time.UTC, Once: w.once})
	if err != nil {
		t.Fatal(err)
	}
	if config != "" {
		c, err := Parse([]byte(config))
		if err == nil {
			err = a.Apply(t.Context(), c, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ch := range a.plan.channels {
		ch.sender = receiver{w}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(ctx) })
	return &process{a, w, func() { cancel(); wg.Wait() }}
}

// host adds a host with triggers that have ids from first on.
func (w *world) host(id model.HostID, name string, groups ...string) {
	w.hosts[id] = &model.Host{ID: id, Host: strings.ToLower(name), Name: name, Enabled: true, Groups: groups}
}

// problem stores a problem and returns its id; put tells a process of it.
func (w *world) problem(trigger model.TriggerID, severity model.Severity, name string) model.EventID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.triggers[trigger] == nil {
		w.triggers[trigger] = &model.Trigger{ID: trigger, HostID: 1, Enabled: true, Severity: severity}
	}
	e := model.Event{
		ID: model.EventID(len(w.events) + 1), TriggerID: trigger, HostID: w.triggers[trigger].HostID, At: time.Now().UnixNano(), Problem: true,
		Severity: severity, Name: name, Tags: []model.Tag{{Name: "scope", Value: "load"}},
	}
	w.events = append(w.events, e)
	w.open[e.ID] = model.Problem{Event: e}
	return e.ID
}

func (w *world) recovery(problem model.EventID) model.EventID {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.open[problem].Event
	delete(w.open, problem)
	e.ID, e.At, e.Problem, e.ProblemID = model.EventID(len(w.events)+1), time.Now().UnixNano(), false, problem
	w.events = append(w.events, e)
	return e.ID
}

// tell puts the events from an id on.
func (p *process) tell(ids ...model.EventID) {
	p.w.mu.Lock()
	var list []model.Event
	for _, id := range ids {
		list = append(list, p.w.event(id))
	}
	p.w.mu.Unlock()
	p.Put(list)
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lines are the messages so far, one a line: seconds since from, address, subject. Those of one second are sorted: addresses do not wait for each
// other.
func (w *world) lines(from time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	messages := slices.Clone(w.sent)
	slices.SortStableFunc(messages, func(x, y sentMessage) int {
		return cmp.Or(x.at.Truncate(time.Second).Compare(y.at.Truncate(time.Second)), cmp.Compare(x.to, y.to))
	})
	var list []string
	for _, m := range messages {
		list = append(list, fmt.Sprintf("%d %s %s", m.at.Sub(from)/time.Second, m.to, m.subject))
	}
	return list
}

func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("messages:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
