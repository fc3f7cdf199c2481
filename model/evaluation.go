package model

// StateChange is one thing that trigger evaluation found out: a new value of a trigger, a further problem of a trigger with
// multiple events, or a new reason why its state is unknown.
type StateChange struct {
	TriggerID TriggerID
	// At is the time that the trigger was evaluated for, Unix nanoseconds.
	At int64
	// Problem is the value of the trigger after the change. An unknown trigger keeps the value it had.
	Problem bool
	// Event says that the change makes an event; without it only Error changed.
	Event bool
	// Error is why the state is unknown; empty when it is known.
	Error string
	// Closes, if not zero, is the one problem that this change closes; zero closes every open problem of the trigger.
	Closes EventID
}
