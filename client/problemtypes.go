package client

// Alert is one message to one receiver.
type Alert struct {
	ID       string `json:"id"`
	Action   string `json:"action"`
	Kind     string `json:"kind"`
	EventID  string `json:"event_id"`
	Problem  string `json:"problem_id"`
	Severity string `json:"severity"`
	Host     string `json:"host"`
	Name     string `json:"name"`
	Step     int    `json:"step,omitempty"`
	Receiver string `json:"receiver"`
	Media    string `json:"media"`
	// To is the address; of a URL only scheme and host, because the rest may be a secret.
	To      string `json:"to"`
	Subject string `json:"subject"`
	// State is waiting, sent or failed.
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	// CreatedAt and SentAt are Unix milliseconds.
	CreatedAt int64  `json:"created_at"`
	SentAt    *int64 `json:"sent_at,omitempty"`
	Error     string `json:"error,omitempty"`
	// Together is the first alert of the message that this one was sent in.
	Together string `json:"together,omitempty"`
}

// AlertList is a page of alerts.
type AlertList struct {
	Alerts []Alert `json:"alerts"`
	Next   string  `json:"next,omitempty"`
}

// AlertTest is the body of a test.
type AlertTest struct {
	// Media is the name of the media type, To the address.
	Media string `json:"media"`
	To    string `json:"to"`
	// Subject and Message may be empty for a text that says that it is a test.
	Subject string `json:"subject,omitempty"`
	Message string `json:"message,omitempty"`
}

// AlertTestAnswer is the answer to a test.
type AlertTestAnswer struct {
	Sent bool `json:"sent"`
	// Answer is what the other side said, Error why the message was not sent.
	Answer string `json:"answer,omitempty"`
	Error  string `json:"error,omitempty"`
}

// EarlierProblem is a problem of the same trigger. Times are Unix milliseconds.
type EarlierProblem struct {
	EventID     string `json:"event_id"`
	At          int64  `json:"at"`
	RecoveredAt *int64 `json:"recovered_at"`
}

// HourList is the answer to what was in the last hour.
type HourList struct {
	Points []HourPoint `json:"points"`
}

// HourPoint is the numbers of the overview at a moment of the last hour.
type HourPoint struct {
	// At is in milliseconds since 1970.
	At              int64   `json:"at"`
	ValuesPerSecond float64 `json:"values_per_second"`
	UsedBytes       int64   `json:"used_bytes"`
	// RetentionDays is null while it is not known.
	RetentionDays *float64 `json:"retention_days"`
}

// ItemStates is one item's states, oldest first.
type ItemStates struct {
	ID     string  `json:"id"`
	States []State `json:"states"`
	// Truncated says that older values of the range were not looked at: there were more than 100,000 values, or more than 1,000 states.
	Truncated bool `json:"truncated"`
}

// ProblemDetail is one problem and why it is there.
type ProblemDetail struct {
	Problem Problem `json:"problem"`
	// Expression is the trigger's as it is now; empty when the trigger is gone.
	Expression         string `json:"expression"`
	RecoveryExpression string `json:"recovery_expression"`
	// Items are those of the expression, in its order, with their newest values.
	Items []Item `json:"items"`
	// Marks are what was done to it and by whom, oldest first.
	Marks []ProblemMark `json:"marks"`
	// Earlier are the problems of the same trigger before it, newest first.
	Earlier []EarlierProblem `json:"earlier"`
}

// ProblemMark is what somebody did to a problem. At is Unix milliseconds.
type ProblemMark struct {
	At     int64  `json:"at"`
	Author string `json:"author"`
	// Done says it in words: acknowledged and commented.
	Done    string `json:"done"`
	Message string `json:"message"`
}

// State is a time in which an item had the same value.
type State struct {
	// From is when it was first seen, To when the next one was, or the last value of it when it is the newest; Unix milliseconds.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Value is the value as text, cut after 200 bytes; Mapped what the item's value map says of it.
	Value  string `json:"value"`
	Mapped string `json:"mapped,omitempty"`
	Count  int    `json:"count"`
}

// StateList is the states of several items in one range.
type StateList struct {
	From  int64        `json:"from"`
	To    int64        `json:"to"`
	Items []ItemStates `json:"items"`
}

// ImportedMedia is the answer to an import of media types.
type ImportedMedia struct {
	// Remarks say what was not taken over.
	Remarks []string `json:"remarks"`
}
