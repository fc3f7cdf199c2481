package trigger

import (
	"cmp"
	"slices"

	"tidemark/expr"
	"tidemark/model"
)

// decide brings the trigger's state up to date with a verdict and returns what changed. A blocked trigger, one of whose masters
// is in PROBLEM, keeps its value.
func (t *trigger) decide(v *verdict, blocked bool) (model.StateChange, bool) {
	change := model.StateChange{TriggerID: t.id, At: v.at}
	if v.failure.Code != expr.FailNone {
		if t.recoveryMatters(v) {
			return t.becomeUnknown(v, change)
		}
	}
	hadFailure := t.unknown
	if hadFailure {
		t.setFailure(expr.Failure{}, "")
	}
	recovered := false
	switch {
	case blocked:
	case v.isTrue && (!t.problem || t.multiple && !v.quiet):
		t.problem, change.Event = true, true
	case !v.isTrue && t.problem && !t.never && (t.recovery == nil || v.recovered):
		// By tag it closes some of the problems: until the events say how many are left, the trigger is in PROBLEM.
		t.problem, change.Event, recovered = t.byTag, true, true
	}
	change.Problem = t.problem && !recovered
	return change, change.Event || hadFailure
}

// recoveryMatters reports whether a failure counts: one of the recovery expression does only while the trigger is in PROBLEM.
func (t *trigger) recoveryMatters(v *verdict) bool { return !v.inRecovery || t.problem }

// becomeUnknown keeps the value and says why nothing is known of it.
func (t *trigger) becomeUnknown(v *verdict, change model.StateChange) (model.StateChange, bool) {
	if t.failure == v.failure && t.unknown {
		return change, false
	}
	text := t.failureTextOf(v)
	same := text == t.failureText
	t.setFailure(v.failure, text)
	if same {
		return change, false
	}
	change.Problem, change.Error = t.problem, text
	return change, true
}

// failureTextOf names the function and the item that failed.
func (t *trigger) failureTextOf(v *verdict) string {
	program, nodes, secret := t.program, t.nodes[:t.recoveryFrom], t.secret
	if v.inRecovery {
		program, nodes, secret = t.recovery, t.nodes[t.recoveryFrom:], t.recoverySecret
	}
	refs := make([]expr.Ref, len(nodes))
	for i, n := range nodes {
		refs[i] = n.ref
	}
	if secret {
		return program.FailureTextWithoutParams(v.failure, refs)
	}
	return program.FailureText(v.failure, refs)
}

// decideDeferred decides on triggers that depend on others, or that others depend on: in order of time, and at the same
// time masters first, so that a master's problem keeps its dependents quiet from that moment on.
func (e *Evaluator) decideDeferred(workers []*worker) {
	deferred := workers[0].deferred
	for _, w := range workers[1:] {
		deferred = append(deferred, w.deferred...)
	}
	slices.SortStableFunc(deferred, func(x, y verdict) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.t.level, y.t.level), cmp.Compare(x.t.id, y.t.id))
	})
	for i := range deferred {
		v := &deferred[i]
		if change, changed := v.t.decide(v, e.blocked(v.t)); changed {
			e.changes = append(e.changes, change)
		}
	}
	clear(deferred)
	workers[0].deferred = deferred[:0]
}

// blocked reports whether a trigger that t depends on, directly or not, is in PROBLEM.
func (e *Evaluator) blocked(t *trigger) bool {
	e.masters = append(e.masters[:0], t.masters...)
	for i := 0; i < len(e.masters) && i < maxMasters; i++ {
		m, ok := e.triggers[e.masters[i]]
		if !ok {
			continue
		}
		if m.problem {
			return true
		}
		for _, id := range m.masters {
			if !slices.Contains(e.masters, id) {
				e.masters = append(e.masters, id)
			}
		}
	}
	return false
}
