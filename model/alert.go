package model

// AlertKind says what a message is about.
type AlertKind uint8

// The kinds of alerts.
const (
	AlertProblem AlertKind = iota
	AlertRecovery
	AlertUpdate
	// AlertCancelled tells that an escalation ended because its trigger or host is gone or disabled.
	AlertCancelled
)

// String returns the kind's name.
func (k AlertKind) String() string {
	switch k {
	case AlertRecovery:
		return "recovery"
	case AlertUpdate:
		return "update"
	case AlertCancelled:
		return "cancelled"
	}
	return "problem"
}

// AlertState is how far an alert got.
type AlertState uint8

// The states of an alert.
const (
	AlertWaiting AlertState = iota // in the queue, perhaps after failed attempts
	AlertSent
	AlertFailed // given up; Error says why
	// AlertClaimed is being sent, by a server that must not send twice: whether it arrived is unknown if that server ends now. Shown as waiting.
	AlertClaimed
)

// String returns the state's name.
func (s AlertState) String() string {
	switch s {
	case AlertSent:
		return "sent"
	case AlertFailed:
		return "failed"
	}
	return "waiting"
}

// Alert is one message for one receiver over one media type.
type Alert struct {
	// ID rises with time and is never reused.
	ID uint64
	// Action is the name of the action that asked for the message.
	Action string
	Kind   AlertKind
	// EventID is the event that the message tells of, ProblemID the problem that it belongs to: the same for a problem.
	EventID, ProblemID EventID
	Severity           Severity
	// Host is the visible name of the host, Name that of the event, Tags those of the event.
	Host, Name string
	Tags       []Tag
	// Step is the step of the escalation, from 1; zero for recoveries and updates.
	Step int
	// Receiver is who is told; Media and To are the media type and the address there.
	Receiver, Media, To string
	Subject, Body       string
	State               AlertState
	// Attempts is how often sending was tried.
	Attempts int
	// NextAt is when a waiting alert is tried, CreatedAt when it was made, SentAt when it was sent or given up: Unix nanoseconds.
	NextAt, CreatedAt, SentAt int64
	// At is the event's time, Unix nanoseconds.
	At int64
	// Macros are values, taken when the alert was made, of macros (with their braces) that the media type's script wants.
	Macros map[string]string
	// Error is what went wrong at the last attempt.
	Error string
	// Together is the first alert of the message that this one was sent in; zero when it was sent alone.
	Together uint64
}

// Escalation is the way of one problem through the steps of one action.
type Escalation struct {
	Action string
	// ProblemID is the problem that the receivers were told of; with Action the key.
	ProblemID EventID
	// CurrentID is the trigger's latest problem: another than ProblemID while the trigger flaps.
	CurrentID EventID
	// RecoveryID is the recovery that is not told yet because the trigger flaps; zero for none.
	RecoveryID EventID
	// Step is the step that is done next, from 1.
	Step int
	// NextAt is when, Unix nanoseconds; zero when all steps are done and only the recovery is awaited.
	NextAt int64
	// HeldUntil, while in the future, says that the trigger flaps: Unix nanoseconds, zero for never.
	HeldUntil int64
	// Told are those who got a message of the problem, and machines that ran a command: receiver, media and address of each.
	Told []AlertTarget
	// Problem, Current and Recovery are the events that the ids name. Stores read them but do not write them.
	Problem, Current, Recovery Event
}

// AlertTarget is where a message goes.
type AlertTarget struct{ Receiver, Media, To string }

// AlertChange is what alerting writes in one transaction.
type AlertChange struct {
	// LastEvent is the newest event that was looked at. It never falls.
	LastEvent EventID
	// Escalations replace the stored ones with the same key; Ended are deleted, by Action and ProblemID.
	Escalations, Ended []Escalation
	// Alerts replace the stored ones with the same id.
	Alerts []Alert
	// Tags are added to stored events.
	Tags map[EventID][]Tag
	// PruneBefore deletes alerts that are not waiting and were made before, Unix nanoseconds; zero deletes none.
	PruneBefore int64
}

// AlertsLoaded is what the store knows of alerting when the process starts.
type AlertsLoaded struct {
	// LastEvent is the newest event that was looked at; without any before, the newest event there is.
	LastEvent EventID
	// LastAlert is the highest id that an alert ever had.
	LastAlert uint64
	// Objects are all of them, sorted by kind and name.
	Objects []AlertObject
	// Escalations whose problem is still stored.
	Escalations []Escalation
	// Waiting are the alerts in state AlertWaiting or AlertClaimed, by id.
	Waiting []Alert
	// Recent are events up to LastEvent of the time asked for, in order of id: enough of them to know which triggers flap.
	Recent []Event
}

// AlertObject is one piece of alerting configuration as it is stored: its kind, its name, and its JSON.
type AlertObject struct {
	Kind, Name string
	Body       []byte
}

// AlertFilter says which alerts are wanted. Zero fields do not filter.
type AlertFilter struct {
	// Problem is the problem that the alerts belong to.
	Problem EventID
	// States, if not empty, are the states wanted.
	States []AlertState
	// Hosts, if not empty, are the hosts whose problems the alerts are about.
	Hosts []HostID
	// Before is the id of the last alert of the page before; zero is the first page.
	Before uint64
	// Limit is at most 10,000; zero is 100.
	Limit int
}
