package event

import (
	"context"
	"slices"

	"tidemark/model"
)

// State returns the state of a trigger; false when it has none yet.
func (l *Log) State(id model.TriggerID) (model.TriggerState, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.states[id]
	return s, ok
}

// Problem returns an open problem; false when it is over or unknown.
func (l *Log) Problem(id model.EventID) (model.Problem, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.open[id]
	return p, ok
}

// Macros returns a function that expands one macro, given with its braces, for an event: {HOST.*}, {ITEM.*}, {TRIGGER.*},
// the {EVENT.*} of names, and {?expression}. Other macros come back as they are. It may be called after the trigger is gone; then the
// macros of hosts and items are *UNKNOWN*. The function belongs to one goroutine.
func (l *Log) Macros(ctx context.Context, e *model.Event) func(macro string) string {
	t, ok := l.options.Objects.TriggerByID(e.TriggerID)
	if !ok {
		t = &model.Trigger{ID: e.TriggerID, HostID: e.HostID, Name: e.Name, Severity: e.Severity}
	}
	n := l.namer(t, e)
	return func(macro string) string {
		if len(macro) < 3 || macro[0] != '{' {
			return macro
		}
		return n.macro(ctx, macro, 0)
	}
}

// AddTags adds tags to an open problem that are stored elsewhere; it does nothing for others.
func (l *Log) AddTags(id model.EventID, tags []model.Tag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.open[id]
	if !ok {
		return
	}
	p.Tags = slices.Clone(p.Tags) // the old ones are in what Problems returned
	for _, tag := range tags {
		if !slices.Contains(p.Tags, tag) {
			p.Tags = append(p.Tags, tag)
		}
	}
	l.open[id] = p
	l.publishedStale = true
	l.notify()
}

// Update takes over how a problem is after somebody changed it, which is stored already: acknowledged, suppressed, its severity. False is for
// one that is not open.
func (l *Log) Update(changed *model.Problem) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.open[changed.ID]
	if !ok {
		return false
	}
	p.Acknowledged, p.Severity, p.SuppressedUntil = changed.Acknowledged, changed.Severity, changed.SuppressedUntil
	l.open[changed.ID] = p
	l.publishedStale = true
	l.notify()
	return true
}
