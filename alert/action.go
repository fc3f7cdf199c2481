package alert

import (
	"time"

	"tidemark/model"
)

// Action says who is told of which events, when, and how.
type Action struct {
	Name     string `yaml:"name" json:"name"`
	Disabled bool   `yaml:"disabled,omitempty" json:"disabled,omitempty"`
	// AwaitsCutover says that it is off until shadow mode ends, Origin where it was imported from.
	AwaitsCutover bool   `yaml:"awaits_cutover,omitempty" json:"awaits_cutover,omitempty"`
	Origin        string `yaml:"origin,omitempty" json:"origin,omitempty"`
	// Conditions must be met by an event; none is met by every event.
	Conditions []Condition `yaml:"conditions,omitempty" json:"conditions,omitempty"`
	// Evaluation is and_or (conditions of one type are alternatives, different types must all be met; the default), and, or, formula.
	Evaluation string `yaml:"evaluation,omitempty" json:"evaluation,omitempty"`
	// Formula, for evaluation formula, names conditions by their labels: A and (B or not C).
	Formula string `yaml:"formula,omitempty" json:"formula,omitempty"`

	// Delay is how long a problem must last before the first step.
	Delay Duration `yaml:"delay,omitempty" json:"delay,omitempty"`
	// StepDuration is the time from one step to the next; zero is one hour.
	StepDuration Duration    `yaml:"step_duration,omitempty" json:"step_duration,omitempty"`
	Operations   []Operation `yaml:"operations" json:"operations"`
	// Recovery is done when the problem is over; when left out, all who were told of the problem are told. An empty list tells nobody.
	Recovery []Operation `yaml:"recovery,omitempty" json:"recovery"`
	// Update is done when somebody acknowledges the problem, comments it or changes its severity.
	Update []Operation `yaml:"update,omitempty" json:"update,omitempty"`

	// StopWhenAcknowledged ends the steps once the problem is acknowledged.
	StopWhenAcknowledged bool `yaml:"stop_when_acknowledged,omitempty" json:"stop_when_acknowledged,omitempty"`
	// SendSuppressed sends messages of problems in maintenance too; otherwise the steps wait for its end.
	SendSuppressed bool `yaml:"send_suppressed,omitempty" json:"send_suppressed,omitempty"`
	// QuietCancel says nothing when the trigger of a problem that was told is deleted or disabled.
	QuietCancel bool     `yaml:"quiet_cancel,omitempty" json:"quiet_cancel,omitempty"`
	Flapping    Flapping `yaml:"flapping,omitempty" json:"flapping,omitzero"`
}

// Flapping says when a trigger changes too often to tell each change.
type Flapping struct {
	Off bool `yaml:"off,omitempty" json:"off,omitempty"`
	// Changes within Within make a trigger flap; zero is 10 changes in 10 minutes. It flaps until that long nothing changed.
	Changes int      `yaml:"changes,omitempty" json:"changes,omitempty"`
	Within  Duration `yaml:"within,omitempty" json:"within,omitempty"`
}

// The default of Flapping.
const (
	// flapChanges lets somebody who tries a trigger out, or a real problem that comes back a few times, be told each time.
	flapChanges = 10
	flapWithin  = 10 * time.Minute
	maxChanges  = 100
	maxWithin   = 24 * time.Hour
)

func (f *Flapping) limits() (changes int, within time.Duration) {
	changes = f.Changes
	if changes == 0 {
		changes = flapChanges
	}
	return changes, f.Within.Or(flapWithin)
}

// Operation sends messages in one or several steps. Recovery and update operations have no steps.
type Operation struct {
	// From and To are the steps, from 1: From zero is 1, To zero is From, To −1 is for ever.
	From int `yaml:"from,omitempty" json:"from,omitempty"`
	To   int `yaml:"to,omitempty" json:"to,omitempty"`
	// Duration replaces the action's step duration for these steps; the shortest of a step's operations counts.
	Duration Duration `yaml:"duration,omitempty" json:"duration,omitempty"`
	// If is empty, acknowledged or not_acknowledged.
	If string `yaml:"if,omitempty" json:"if,omitempty"`
	// Receivers are told over Media, or over all of their media if empty. Involved adds those who were told of the problem.
	Receivers []string `yaml:"receivers,omitempty" json:"receivers,omitempty"`
	Media     []string `yaml:"media,omitempty" json:"media,omitempty"`
	Involved  bool     `yaml:"involved,omitempty" json:"involved,omitempty"`
	// Text replaces the texts of the media type.
	Text `yaml:",inline" json:",inline"`
}

const (
	ifAcknowledged    = "acknowledged"
	ifNotAcknowledged = "not_acknowledged"
	forEver           = -1
)

// covers reports whether an operation belongs to a step.
func (o *Operation) covers(step int) bool {
	from := max(o.From, 1)
	return step >= from && (o.To == forEver || step <= max(o.To, from))
}

// applies reports whether the operation's condition holds for a problem.
func (o *Operation) applies(acknowledged bool) bool {
	switch o.If {
	case ifAcknowledged:
		return acknowledged
	case ifNotAcknowledged:
		return !acknowledged
	}
	return true
}

// stepsAfter reports whether any operation belongs to a step behind one.
func (a *Action) stepsAfter(step int) bool {
	for i := range a.Operations {
		if o := &a.Operations[i]; o.To == forEver || max(o.To, o.From, 1) > step {
			return true
		}
	}
	return false
}

// stepLength is the time from a step to the next.
func (a *Action) stepLength(step int) time.Duration {
	length := a.StepDuration.Or(time.Hour)
	found := false
	for i := range a.Operations {
		o := &a.Operations[i]
		if o.Duration != 0 && o.covers(step) && (!found || time.Duration(o.Duration) < length) {
			length, found = time.Duration(o.Duration), true
		}
	}
	return length
}

// recovery returns the operations of the recovery.
func (a *Action) recovery() []Operation {
	if a.Recovery == nil {
		return []Operation{{Involved: true}}
	}
	return a.Recovery
}

// operations returns those of a kind of alert.
func (a *Action) operations(kind model.AlertKind) []Operation {
	switch kind {
	case model.AlertRecovery:
		return a.recovery()
	case model.AlertUpdate:
		return a.Update
	case model.AlertCancelled:
		return []Operation{{Involved: true}}
	}
	return a.Operations
}
