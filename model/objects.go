package model

import (
	"cmp"
	"time"
)

// Label is one name–value pair of an item as PromQL sees it.
type Label struct{ Name, Value string }

// Labels are sorted by name, without duplicates.
type Labels []Label

// Get returns the value of a label, or "".
func (ls Labels) Get(name string) string {
	for _, l := range ls {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Tag is a Zabbix tag; names may repeat.
type Tag struct{ Name, Value string }

// Macro is a user macro: Name with its braces and context, "{$CPU.MAX}" or "{$CPU.MAX:\"a\"}".
type Macro struct {
	Name, Value string
	// Secret macros are never shown or exported.
	Secret bool
}

// Host is something monitored.
type Host struct {
	ID HostID
	// Host is the technical name that agents and senders use; unique.
	Host string
	// Name is the visible name; equals Host when not set.
	Name      string
	UUID      string
	Enabled   bool
	Groups    []string
	Templates []TemplateID
	Tags      []Tag
	Macros    []Macro
	// Metadata is what an auto-registered agent said of itself.
	Metadata string
	// Interfaces are where the host is reached.
	Interfaces []Interface
	// IPMI is how its management controllers are logged in to; nil for an anonymous login.
	IPMI *IPMIAccess
	// DiscoveredBy is the item of the discovery rule that made this host; zero for others.
	DiscoveredBy ItemID
	// Proxy asks the host instead of the server; zero for none.
	Proxy ProxyID
	// Inventory are the fields that were filled in by hand; AutomaticInventory says that items fill theirs.
	Inventory          Labels
	AutomaticInventory bool
	// Revision rises with every change that an agent or proxy must learn of.
	Revision uint64
}

// ItemKind says where an item's definition comes from.
type ItemKind uint8

// The kinds of items.
const (
	Configured ItemKind = iota // a row of confdb
	Declared                   // made on first sight; lives in the catalog only
)

// ItemType says how an item's values are collected. The numbers are Zabbix's.
type ItemType uint8

// The item types.
const (
	PassiveAgent ItemType = 0
	Trapper      ItemType = 2
	SimpleCheck  ItemType = 3
	Internal     ItemType = 5
	ActiveAgent  ItemType = 7
	WebTest      ItemType = 9 // a web scenario
	External     ItemType = 10
	Database     ItemType = 11
	IPMI         ItemType = 12
	SSH          ItemType = 13
	Telnet       ItemType = 14
	Calculated   ItemType = 15
	JMX          ItemType = 16
	SNMPTrap     ItemType = 17
	Dependent    ItemType = 18
	HTTPAgent    ItemType = 19
	SNMPAgent    ItemType = 20
	Script       ItemType = 21
)

// Item is one thing measured on a host.
type Item struct {
	ID     ItemID
	HostID HostID
	Kind   ItemKind
	Type   ItemType
	UUID   string
	// Key is the item key with its parameters, macros expanded but for those of the interface and secret ones: people see it.
	Key string
	// Name is for people; for declared items from metrics the metric name.
	Name        string
	Description string
	ValueType   ValueType
	Units       string
	// Delay is the interval text as configured ("1m", "10s;…"); Interval its simple part, zero for trapper items.
	Delay    string
	Interval time.Duration
	// History and Trends are how long values and trends are kept; zero keeps none.
	History, Trends time.Duration
	Enabled         bool
	Steps           []Step
	Tags            []Tag
	// Labels are what PromQL sees besides host and key: tags, discovery macros, labels of a declared item.
	Labels Labels
	// AllowedHosts is the list of peers from which a sender may deliver values, macros expanded: addresses, networks and names,
	// separated by commas; empty allows all. Trapping is set for HTTP agent items that take values from senders too.
	AllowedHosts string
	Trapping     bool
	// TemplateID is the template that the item was inherited from; zero for the host's own.
	TemplateID TemplateID
	// Params is what some types need besides the key: the formula of a calculated item, a script, a command, a query, macros expanded.
	Params string
	// Collect is what collectors need besides; nil for none.
	Collect *Collect
	// MasterID is the item whose values a dependent item is made of; zero for others.
	MasterID ItemID
	// HasDependents says that dependent items are made of the item's values.
	HasDependents bool
	// Remote says that a proxy asks for the item's values and preprocesses them.
	Remote bool
	// RuleID is set for the item of a discovery rule: its values are not stored, they say what is there.
	RuleID RuleID
	// DiscoveredBy is the item of the discovery rule that made this item; zero for others.
	DiscoveredBy ItemID
	// ValueMap, if not nil, gives the values a text.
	ValueMap *ValueMap
	// InventoryField is the field of the host's inventory that the newest value fills, in lower case; empty for none.
	InventoryField string
}

// StepType is a preprocessing step. The numbers are Zabbix's.
type StepType uint8

// The preprocessing steps.
const (
	StepMultiplier        StepType = 1
	StepRightTrim         StepType = 2
	StepLeftTrim          StepType = 3
	StepTrim              StepType = 4
	StepRegex             StepType = 5
	StepBoolToDecimal     StepType = 6
	StepOctalToDecimal    StepType = 7
	StepHexToDecimal      StepType = 8
	StepSimpleChange      StepType = 9
	StepChangePerSecond   StepType = 10
	StepXMLPath           StepType = 11
	StepJSONPath          StepType = 12
	StepInRange           StepType = 13
	StepMatchesRegex      StepType = 14
	StepNotMatchesRegex   StepType = 15
	StepCheckJSONError    StepType = 16
	StepCheckXMLError     StepType = 17
	StepCheckRegexError   StepType = 18
	StepDiscardUnchanged  StepType = 19
	StepDiscardHeartbeat  StepType = 20
	StepJavaScript        StepType = 21
	StepPrometheusPattern StepType = 22
	StepPrometheusToJSON  StepType = 23
	StepCSVToJSON         StepType = 24
	StepReplace           StepType = 25
	StepCheckUnsupported  StepType = 26
	StepXMLToJSON         StepType = 27
	StepSNMPWalkValue     StepType = 28
	StepSNMPWalkToJSON    StepType = 29
	StepSNMPGetValue      StepType = 30
)

// OnFail says what happens when a step fails.
type OnFail uint8

// The on-fail actions. The numbers are Zabbix's.
const (
	FailUnsupported OnFail = iota
	FailDiscard
	FailSetValue
	FailSetError
)

// Step is one preprocessing step of an item.
type Step struct {
	Type StepType
	// Params are the step's parameters in Zabbix's order, macros expanded.
	Params []string
	OnFail OnFail
	// FailValue is the value or error text for FailSetValue and FailSetError.
	FailValue string
}

// Severity of a trigger or problem. The numbers are Zabbix's.
type Severity uint8

// The severities.
const (
	NotClassified Severity = iota
	Information
	Warning
	Average
	High
	Disaster
)

// String returns the severity's name in lower case.
func (s Severity) String() string {
	switch s {
	case Information:
		return "information"
	case Warning:
		return "warning"
	case Average:
		return "average"
	case High:
		return "high"
	case Disaster:
		return "disaster"
	}
	return "not classified"
}

// RecoveryMode says how a trigger goes back to OK. The numbers are Zabbix's.
type RecoveryMode uint8

// The recovery modes.
const (
	RecoverByExpression RecoveryMode = iota
	RecoverByRecoveryExpression
	RecoverNever
)

// TriggerText is what tells a trigger from others of its host.
type TriggerText struct{ Name, Expression, Recovery string }

// AsWritten returns the name and the expressions as they are stored.
func (t *Trigger) AsWritten() TriggerText {
	if t.Written != nil {
		return *t.Written
	}
	return TriggerText{t.Name, t.Expression, t.Recovery}
}

// Trigger is an expression over items with a state OK or PROBLEM.
type Trigger struct {
	ID   TriggerID
	UUID string
	// HostID is the host that the trigger is shown under: the first in its expression.
	HostID HostID
	// Name, EventName and OpData may hold macros that are expanded when an event is recorded.
	Name, EventName, OpData string
	// Expression and Recovery are in Zabbix's syntax, user macros expanded; in keys of items secret ones are not.
	Expression, Recovery string
	// ShownExpression and ShownRecovery are for people, with secret macros as they were written; empty when nothing differs.
	ShownExpression, ShownRecovery string
	// Written has the name and the expressions as they are stored, before macros were expanded; nil when nothing differs.
	Written *TriggerText

	RecoveryMode RecoveryMode
	Severity     Severity
	Enabled      bool
	// MultipleEvents makes every evaluation to true a new problem.
	MultipleEvents bool
	ManualClose    bool
	// CorrelationTag, if not empty, is the tag by which a recovery closes problems: those that have the same value of it.
	CorrelationTag string
	Tags           []Tag
	Comments, URL  string
	// DependsOn are triggers that, while in PROBLEM, keep this one quiet.
	DependsOn  []TriggerID
	TemplateID TemplateID
	// DiscoveredBy is the item of the discovery rule that made this trigger; zero for others.
	DiscoveredBy ItemID
}

// Shown returns the expressions for people, in which the values of secret macros do not stand.
func (t *Trigger) Shown() (expression, recovery string) {
	return cmp.Or(t.ShownExpression, t.Expression), cmp.Or(t.ShownRecovery, t.Recovery)
}

// Event is a state change of a trigger.
type Event struct {
	ID        EventID
	TriggerID TriggerID
	HostID    HostID
	// At is the time of the value that caused it, Unix nanoseconds.
	At int64
	// Problem is true for OK → PROBLEM and false for the recovery.
	Problem  bool
	Severity Severity
	Name     string
	OpData   string
	Tags     []Tag
	// ProblemID is, for a recovery, the event that it closes.
	ProblemID EventID
}

// Problem is an event that is, or was until RecoveredAt, open.
type Problem struct {
	Event
	// RecoveredAt is zero while the problem is open.
	RecoveredAt int64
	// RecoveryID is the event that closed it, where it is read from what is stored; zero while it is open.
	RecoveryID   EventID
	Acknowledged bool
	// SuppressedUntil is until when somebody suppressed it, Unix nanoseconds or Forever; a time that is over or zero is none. A
	// maintenance suppresses for itself.
	SuppressedUntil int64
}

// TriggerState is the last known state of a trigger.
type TriggerState struct {
	TriggerID TriggerID
	Problem   bool
	// Error is why the state is unknown; empty when it is known.
	Error string
	// ChangedAt is the time of the last state change, Unix nanoseconds; zero for none.
	ChangedAt int64
	// OpenProblem is the event of the problem that is open; zero for none.
	OpenProblem EventID
}
