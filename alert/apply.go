package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"tidemark/alert/media"
	"tidemark/model"
)

// Errors that callers tell apart.
var (
	// ErrInvalid says that a configuration is wrong; nothing of it was taken.
	ErrInvalid = errors.New("invalid alerting configuration")
	// ErrNotFound says that there is no object of that name.
	ErrNotFound = errors.New("not found")
)

// Config returns the configuration; secrets are hidden. The caller must not change it.
func (a *Alerter) Config() *Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config.shown()
}

// Apply puts the objects of a configuration over those of the same name; with replace, all others are deleted. It is stored and in
// force when it returns nil. A secret of ******** keeps its stored value.
func (a *Alerter) Apply(ctx context.Context, c *Config, replace bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	merged := a.config.merge(c)
	if replace {
		merged = only(merged, c)
	}
	return a.apply(ctx, merged)
}

// only is the merged configuration without the objects that are not wanted.
func only(merged, wanted *Config) *Config {
	return &Config{
		URL: wanted.URL, Heartbeat: wanted.Heartbeat, Shadow: merged.Shadow,
		Media:        keep(merged.Media, wanted.Media, func(m *Media) string { return m.Name }),
		Receivers:    keep(merged.Receivers, wanted.Receivers, func(r *Receiver) string { return r.Name }),
		Actions:      keep(merged.Actions, wanted.Actions, func(a *Action) string { return a.Name }),
		Maintenances: keep(merged.Maintenances, wanted.Maintenances, func(m *Maintenance) string { return m.Name }),
	}
}

func keep[T any](list, wanted []T, name func(*T) string) []T {
	return slices.DeleteFunc(slices.Clone(list), func(o T) bool {
		return !slices.ContainsFunc(wanted, func(w T) bool { return name(&w) == name(&o) })
	})
}

// Delete removes objects of one kind, which is media, receiver, action or maintenance: all of them or, with an error, none. Something that others refer
// to cannot be deleted.
func (a *Alerter) Delete(ctx context.Context, kind string, names ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := *a.config
	for _, name := range names {
		if err := next.remove(kind, name); err != nil {
			return err
		}
	}
	return a.apply(ctx, &next)
}

// Receivers puts receivers over those of the same name and removes others, as Apply and Delete together do. With check it only says whether that can
// be done.
func (a *Alerter) Receivers(ctx context.Context, put []Receiver, gone []string, check bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := *a.config.merge(&Config{Receivers: put})
	for _, name := range gone {
		if err := next.remove(kindReceiver, name); err != nil {
			return err
		}
	}
	if check {
		_, err := a.prepare(&next)
		return err
	}
	return a.apply(ctx, &next)
}

// remove takes one object away; its list is made anew.
func (c *Config) remove(kind, name string) error {
	found := false
	switch kind {
	case kindMedia:
		c.Media, found = without(c.Media, func(m *Media) bool { return m.Name == name })
	case kindReceiver:
		c.Receivers, found = without(c.Receivers, func(r *Receiver) bool { return r.Name == name })
	case kindAction:
		c.Actions, found = without(c.Actions, func(o *Action) bool { return o.Name == name })
	case kindMaintenance:
		c.Maintenances, found = without(c.Maintenances, func(m *Maintenance) bool { return m.Name == name })
	default:
		return fmt.Errorf("kind is %.40q, expected media, receiver, action or maintenance: %w", kind, ErrInvalid)
	}
	if !found {
		return fmt.Errorf("%s %q: %w", kind, name, ErrNotFound)
	}
	return nil
}

func without[T any](list []T, is func(*T) bool) ([]T, bool) {
	rest := slices.DeleteFunc(slices.Clone(list), func(o T) bool { return is(&o) })
	return rest, len(rest) < len(list)
}

// prepared is a configuration that was checked.
type prepared struct {
	objects []model.AlertObject
	config  *Config
	plan    *plan
}

// prepare checks a whole configuration.
func (a *Alerter) prepare(next *Config) (p prepared, err error) {
	if p.objects, err = next.objects(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	// Through the stored form, so that what is in force is what a restart will find, and nothing of it is the caller's.
	if p.config, err = configOf(p.objects); err != nil {
		return p, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if p.plan, err = compile(p.config, &a.options); err != nil {
		return p, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return p, nil
}

// apply stores a whole configuration and brings it into force.
func (a *Alerter) apply(ctx context.Context, next *Config) error {
	before, err := a.config.objects()
	if err != nil {
		return err
	}
	after, err := a.prepare(next)
	if err != nil {
		return err
	}
	puts, deletes := difference(before, after.objects)
	if err := a.options.Store.PutAlertObjects(ctx, puts, deletes); err != nil {
		return fmt.Errorf("store the alerting configuration: %w", err)
	}
	plan := after.plan
	a.config, a.plan = after.config, plan
	close(a.beats)
	a.beats = make(chan struct{})
	now := a.now()
	for _, e := range a.escalations {
		if e.paused || plan.action(e.Action) == nil {
			// Its maintenance may have ended with this change, or its action.
			e.paused, e.NextAt, e.RecoveryID = false, max(1, min(now, nonZero(e.NextAt, now))), recoveryKept(e, plan)
			a.schedule(e)
		}
	}
	a.poke()
	return nil
}

func nonZero(v, other int64) int64 {
	if v == 0 {
		return other
	}
	return v
}

// recoveryKept is the recovery that an escalation holds back, unless its action is gone, which ends it at once.
func recoveryKept(e *escalation, p *plan) model.EventID {
	if p.action(e.Action) == nil {
		return 0
	}
	return e.RecoveryID
}

// difference returns what is to be stored and deleted to get from one list of objects to another.
func difference(before, after []model.AlertObject) (puts, deletes []model.AlertObject) {
	same := func(x, y model.AlertObject) bool { return x.Kind == y.Kind && x.Name == y.Name }
	for _, o := range after {
		i := slices.IndexFunc(before, func(b model.AlertObject) bool { return same(o, b) })
		if i < 0 || !bytes.Equal(before[i].Body, o.Body) {
			puts = append(puts, o)
		}
	}
	for _, o := range before {
		if !slices.ContainsFunc(after, func(b model.AlertObject) bool { return same(o, b) }) {
			deletes = append(deletes, o)
		}
	}
	return puts, deletes
}

// Test is a message that is sent at once, to try a media type.
type Test struct{ Media, To, Subject, Message string }

// testMacros stand for what a script asks of an event, which a test has none of.
var testMacros = map[string]string{
	"{TRIGGER.ID}": "1", "{EVENT.ID}": "1", "{TRIGGER.NAME}": "Test", "{TRIGGER.DESCRIPTION}": "", "{TRIGGER.URL}": "", "{HOST.HOST}": "test", "{HOST.IP}": "127.0.0.1",
	"{HOST.CONN}": "127.0.0.1", "{HOST.DNS}": "localhost", "{EVENT.OPDATA}": "", "{EVENT.ACK.STATUS}": "No", "{EVENT.SOURCE}": "0", "{EVENT.OBJECT}": "0",
	"{EVENT.DURATION}": "0s", "{EVENT.AGE}": "0s",
}

// Test sends a message over a media type, past the queue, once. The answer is what the other side said.
func (a *Alerter) Test(ctx context.Context, t Test) (answer string, err error) {
	a.mu.Lock()
	ch := a.plan.channels[t.Media]
	a.mu.Unlock()
	switch {
	case ch == nil:
		return "", fmt.Errorf("media %q: %w", t.Media, ErrNotFound)
	case ch.problem != nil:
		return "", ch.problem
	case ch.runs():
		return "", fmt.Errorf("a command runs on the host of a problem; try it with 'tidemark host run HOST COMMAND': %w", ErrInvalid)
	case t.To == "":
		return "", fmt.Errorf("to is empty, expected an address: %w", ErrInvalid)
	}
	if t.Subject == "" {
		t.Subject = "Test message of Tidemark"
	}
	if t.Message == "" {
		t.Message = "This is a test of the media type " + t.Media + ". Nothing is wrong."
	}
	now := a.now()
	sample := &model.Alert{
		Action: "Test", Severity: model.Information, Host: "Test", Name: t.Subject, Step: 1, Media: t.Media, To: t.To,
		Subject: cut(t.Subject, media.MaxSubjectBytes), Body: cut(t.Message, maxTextBytes), At: now, CreatedAt: now,
	}
	if ch.Zabbix != nil {
		sample.Macros = testMacros
	}
	message := messageOf(ch, sample, a.surroundings())
	message.ID, message.Thread = fmt.Sprintf("tidemark-test-%d", now), ""
	one, cancel := context.WithTimeout(ctx, ch.Timeout.Or(sendTimeout))
	defer cancel()
	return ch.sender.Send(one, message)
}

// Alerts lists alerts, newest first.
func (a *Alerter) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	return a.options.Store.Alerts(ctx, f)
}
