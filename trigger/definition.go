package trigger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tidemark/expr"
	"tidemark/model"
)

// node is an item that triggers name, whether it exists or not.
type node struct {
	// What every value needs comes first, in one cache line.
	id   model.ItemID // zero while it does not exist
	kind model.ValueType
	// triggers name the item in their expression or recovery expression, each once.
	triggers []*trigger
	// newestAt is the time of the newest value.
	newestAt int64
	// The item could not be measured from unsupportedAt until supportedAt (zero: still so).
	unsupportedAt, supportedAt int64
	// earlier are the spells before that one that ended in this batch; its rows are evaluated after all are noted.
	earlier []spell

	// since is from when on values of the item would have been seen.
	since int64
	ref   expr.Ref
}

// spell is from when until when an item could not be measured; half-open.
type spell struct{ from, to int64 }

// hostNodes are the nodes of one host, which share its name.
type hostNodes struct {
	name  string
	nodes map[*node]struct{}
}

// trigger is a definition with its state.
type trigger struct {
	// What every evaluation needs comes first, in one cache line.

	// lastAt is the newest time for which values were evaluated. It never goes back.
	lastAt int64
	// firstJob and lastJob are a list in Evaluator.jobs, 1-based; zero: none.
	firstJob, lastJob int32
	// nodes are the items of the expression, then those of the recovery expression, whose program counts from
	// recoveryFrom on.
	nodes             []*node
	program, recovery *expr.Program
	recoveryFrom      uint16
	// slot is the timer slot; noSlot for triggers without timer functions.
	slot uint8
	// level is 0 for triggers that depend on none, else one more than the highest of those they depend on.
	level uint8
	flags

	id model.TriggerID
	// failureText is why the state is unknown; empty when it is known.
	failureText string
	failure     expr.Failure
	masters     []model.TriggerID
	// brokenText says why the trigger cannot be evaluated at all; isBroken is set with it.
	brokenText string
}

// flags of a trigger.
type flags struct {
	problem  bool
	unknown  bool // failureText is not empty
	unsorted bool // the jobs are not in rising time
	isBroken bool
	// related triggers depend on others, or others depend on them.
	related     bool
	never       bool // recovery mode: never
	multiple    bool
	byTag       bool
	manualClose bool
	newestOnly  bool
	// secret and recoverySecret say that an expression has values of secret macros in it.
	secret, recoverySecret bool
}

// Changes are definitions to take over.
type Changes struct {
	// Upserts are new or changed triggers, with user macros expanded.
	Upserts []model.Trigger
	// Deletes are triggers that are gone. Their problems are the business of whoever keeps the events.
	Deletes []model.TriggerID
}

// applyShare is how many triggers are taken over before waiting batches get their turn.
const applyShare = 4096

// Apply takes over new, changed and deleted triggers; all others stay as they are. A changed trigger keeps its state. Triggers
// that cannot be evaluated (wrong syntax, a function that is not evaluated, an item that does not exist) become unknown with a
// text that says why. Batches are evaluated meanwhile, between shares of a large change.
func (e *Evaluator) Apply(ctx context.Context, c Changes) error {
	e.applying.Lock()
	defer e.applying.Unlock()
	var failed error
	share := func(last bool, do func()) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changes = e.changes[:0]
		do()
		if last {
			e.setLevels(c.Upserts)
		}
		if len(e.changes) > 0 {
			failed = errors.Join(failed, e.record(ctx, e.changes))
		}
	}
	share(len(c.Upserts) == 0, func() {
		for _, id := range c.Deletes {
			e.remove(id)
			delete(e.states, id)
		}
	})
	for rest := c.Upserts; len(rest) > 0; {
		n := min(len(rest), applyShare)
		share(n == len(rest), func() {
			for i := range rest[:n] {
				e.upsert(&rest[i])
			}
		})
		rest = rest[n:]
	}
	return failed
}

// upsert replaces one trigger.
func (e *Evaluator) upsert(d *model.Trigger) {
	lastAt := int64(0)
	if old, ok := e.triggers[d.ID]; ok {
		lastAt = old.lastAt
	}
	e.remove(d.ID)
	if !d.Enabled {
		return
	}
	t := &trigger{
		id: d.ID, lastAt: lastAt, masters: slices.Clone(d.DependsOn), slot: noSlot,
		flags: flags{
			never: d.RecoveryMode == model.RecoverNever, multiple: d.MultipleEvents, byTag: d.CorrelationTag != "", manualClose: d.ManualClose,
			related: len(d.DependsOn) > 0 || e.dependents[d.ID] > 0,
		},
	}
	if state, ok := e.states[d.ID]; ok {
		t.problem = state.Problem
		t.setFailure(expr.Failure{}, state.Error)
		delete(e.states, d.ID)
	}
	e.compile(t, d)
	e.triggers[d.ID] = t
	for _, id := range t.masters {
		e.dependents[id]++
		if m, ok := e.triggers[id]; ok {
			m.related = true
		}
	}
	if t.program != nil && t.program.Timer() || t.recovery != nil && t.recovery.Timer() {
		t.slot = uint8(uint64(t.id) % timerSlots)
		e.timers[t.slot][t] = struct{}{}
	}
	e.checkDefinition(t)
}

// compile parses the expressions, binds the items and asks for their values.
func (e *Evaluator) compile(t *trigger, d *model.Trigger) {
	t.secret, t.recoverySecret = d.ShownExpression != "", d.ShownRecovery != ""
	parsed, err := expr.Parse(d.Expression)
	if err != nil {
		t.breakBecause("expression: " + unreadable(d.ShownExpression, err.Error()))
		return
	}
	refs := parsed.Refs
	t.recoveryFrom = uint16(len(refs))
	if parsed.Program.Broken() != "" {
		t.breakBecause("expression: " + unreadable(d.ShownExpression, parsed.Program.Broken()))
	}
	t.program = e.programs.Intern(parsed.Program)
	t.newestOnly = t.program.NewestOnly()
	if d.RecoveryMode == model.RecoverByRecoveryExpression {
		recovery, err := expr.Parse(d.Recovery)
		switch {
		case err != nil:
			t.breakBecause("recovery expression: " + unreadable(d.ShownRecovery, err.Error()))
		case recovery.Program.Broken() != "":
			t.breakBecause("recovery expression: " + unreadable(d.ShownRecovery, recovery.Program.Broken()))
		default:
			t.recovery = e.programs.Intern(recovery.Program)
			t.newestOnly = t.newestOnly && t.recovery.NewestOnly()
			refs = append(refs, recovery.Refs...)
		}
	}
	t.nodes = make([]*node, len(refs))
	for i, ref := range refs {
		n := e.node(ref)
		t.nodes[i] = n
		if !slices.Contains(n.triggers, t) {
			n.triggers = append(n.triggers, t)
		}
		if n.id != 0 {
			e.ask(t, i, true)
		}
	}
}

// unreadable is why an expression cannot be evaluated, for people. With secret macros outside of keys, shown is set, and the reason may quote their values.
func unreadable(shown, reason string) string {
	if shown == "" {
		return reason
	}
	return "it cannot be read with the values of its secret macros in place; the reason is not shown, because it may hold them"
}

func (t *trigger) breakBecause(text string) {
	t.brokenText, t.isBroken = text, true
}

// setFailure keeps why the state is unknown; an empty text makes it known.
func (t *trigger) setFailure(f expr.Failure, text string) {
	t.failure, t.failureText, t.unknown = f, text, text != ""
}

// node returns the node of an item, which is looked up when it is new.
func (e *Evaluator) node(ref expr.Ref) *node {
	if n, ok := e.nodes[ref]; ok {
		return n
	}
	ref.Key = strings.Clone(ref.Key)
	host := e.hosts[ref.Host]
	if host == nil {
		host = &hostNodes{name: strings.Clone(ref.Host), nodes: make(map[*node]struct{})}
		e.hosts[host.name] = host
	}
	ref.Host = host.name
	n := &node{ref: ref}
	e.nodes[ref] = n
	host.nodes[n] = struct{}{}
	if id, kind, ok := e.items.ItemByKey(ref.Host, ref.Key); ok {
		e.bind(n, id, kind)
	}
	return n
}

// bind gives a node the item it stands for.
func (e *Evaluator) bind(n *node, id model.ItemID, kind model.ValueType) {
	n.id, n.kind, n.since = id, kind, e.now().UnixNano()
	n.newestAt, n.unsupportedAt, n.supportedAt, n.earlier = 0, 0, 0, nil
	e.byItem.Set(id, n)
}

// ask asks for the values that trigger t needs of its node i, or releases them.
func (e *Evaluator) ask(t *trigger, i int, asked bool) {
	n := t.nodes[i]
	program, ref := t.program, i
	if from := int(t.recoveryFrom); i >= from {
		program, ref = t.recovery, i-from
	}
	for j := range program.Funcs {
		f := &program.Funcs[j]
		if int(f.Ref) != ref {
			continue
		}
		span, count := f.Need()
		if asked {
			e.values.Ask(n.id, n.kind, span, count)
		} else {
			e.values.Release(n.id, span, count)
		}
	}
}

// remove takes a trigger out. Its state is kept in case it comes back.
func (e *Evaluator) remove(id model.TriggerID) {
	t, ok := e.triggers[id]
	if !ok {
		return
	}
	delete(e.triggers, id)
	e.states[id] = model.TriggerState{TriggerID: id, Problem: t.problem, Error: t.failureText}
	for _, m := range t.masters {
		if e.dependents[m]--; e.dependents[m] == 0 {
			delete(e.dependents, m)
		}
	}
	if t.slot != noSlot {
		delete(e.timers[t.slot], t)
	}
	for i, n := range t.nodes {
		if n.id != 0 {
			e.ask(t, i, false)
		}
		n.triggers = slices.DeleteFunc(n.triggers, func(other *trigger) bool { return other == t })
		if len(n.triggers) == 0 {
			e.forget(n)
		}
	}
	if t.program != nil {
		e.programs.Release(t.program)
	}
	if t.recovery != nil {
		e.programs.Release(t.recovery)
	}
}

// forget removes a node that no trigger names.
func (e *Evaluator) forget(n *node) {
	if e.nodes[n.ref] != n {
		return
	}
	delete(e.nodes, n.ref)
	if n.id != 0 {
		e.byItem.Set(n.id, nil)
	}
	host := e.hosts[n.ref.Host]
	delete(host.nodes, n)
	if len(host.nodes) == 0 {
		delete(e.hosts, host.name)
	}
}

// checkDefinition makes a trigger unknown that cannot be evaluated, and takes back an earlier such verdict.
func (e *Evaluator) checkDefinition(t *trigger) {
	text := t.brokenText
	for i := 0; text == "" && i < len(t.nodes); i++ {
		if t.nodes[i].id == 0 {
			text = "item " + t.nodes[i].ref.String() + " does not exist"
		}
	}
	if text == "" && t.failure.Code != expr.FailMissing && !strings.HasSuffix(t.failureText, " does not exist") {
		return
	}
	failure := expr.Failure{}
	if text != "" {
		failure = expr.Failure{Code: expr.FailMissing, Func: -1}
	}
	same := text == t.failureText
	t.setFailure(failure, text)
	if same {
		return
	}
	e.changes = append(e.changes, model.StateChange{TriggerID: t.id, At: e.now().UnixNano(), Problem: t.problem, Error: text})
}

// ItemsChanged resolves the items of a host again: after items were made, deleted, enabled, disabled or changed their type.
func (e *Evaluator) ItemsChanged(ctx context.Context, host string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = e.changes[:0]
	known := e.hosts[host]
	if known == nil {
		return nil
	}
	for n := range known.nodes {
		id, kind, ok := e.items.ItemByKey(n.ref.Host, n.ref.Key)
		if !ok {
			id = 0
		}
		if id == n.id && (id == 0 || kind == n.kind) {
			continue
		}
		e.rebind(n, id, kind)
	}
	if len(e.changes) == 0 {
		return nil
	}
	return e.record(ctx, e.changes)
}

// rebind lets a node stand for another item, or for none.
func (e *Evaluator) rebind(n *node, id model.ItemID, kind model.ValueType) {
	each := func(asked bool) {
		if n.id == 0 {
			return
		}
		for _, t := range n.triggers {
			for i := range t.nodes {
				if t.nodes[i] == n {
					e.ask(t, i, asked)
				}
			}
		}
	}
	each(false)
	if n.id != 0 {
		e.byItem.Set(n.id, nil)
	}
	n.id = 0
	if id != 0 {
		e.bind(n, id, kind)
	}
	each(true)
	for _, t := range n.triggers {
		e.checkDefinition(t)
	}
}

// RestoreUnsupported says that an item could not be measured from a time on (Unix nanoseconds), as it is known from before a
// restart. It is called after Apply and before the first Evaluate.
func (e *Evaluator) RestoreUnsupported(id model.ItemID, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.byItem.Get(id); n != nil {
		n.note(model.Unsupported, at)
	}
}

// setLevels orders triggers behind those that they depend on, after some were changed.
func (e *Evaluator) setLevels(changed []model.Trigger) {
	if !slices.ContainsFunc(changed, func(d model.Trigger) bool { return len(d.DependsOn) > 0 || e.dependents[d.ID] > 0 }) {
		return
	}
	// Each round settles one level; a circle ends at the limit.
	for range maxLevels {
		settled := true
		for _, t := range e.triggers {
			level := uint8(0)
			for _, id := range t.masters {
				if m, ok := e.triggers[id]; ok {
					level = max(level, min(m.level+1, maxLevels))
				}
			}
			if level != t.level {
				t.level, settled = level, false
			}
		}
		if settled {
			return
		}
	}
}
