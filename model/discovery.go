package model

import "time"

// RuleID identifies one low-level discovery rule as it is defined; hosts that inherit it share the id. Zero is no rule.
type RuleID uint64

// PrototypeID identifies one prototype of a discovery rule. Zero is no prototype.
type PrototypeID uint64

// Rule is a low-level discovery rule as one host has it: how the values of its item are read, and what is made of them.
type Rule struct {
	ID RuleID
	// ItemID is the item that takes the rule's values; HostID is its host.
	ItemID ItemID
	HostID HostID
	Key    string
	Name   string
	Filter Filter
	// Paths say where in an element of the payload the value of a macro is.
	Paths     []MacroPath
	Overrides []Override
	// Deletes and Disables say when what is no longer discovered goes, and when it is switched off before.
	Deletes, Disables Lifetime
	// Prototypes are shared between hosts and must not be changed.
	Prototypes []Prototype
}

// MacroPath is the JSONPath of a macro.
type MacroPath struct{ Macro, Path string }

// FilterKind says how the conditions of a filter are joined.
type FilterKind uint8

// The kinds of filters.
const (
	// FilterAndOr joins conditions on the same macro by or and those on different macros by and.
	FilterAndOr FilterKind = iota
	FilterAnd
	FilterOr
	FilterFormula
)

// Filter says which elements of a payload are taken. Without conditions all are.
type Filter struct {
	Kind FilterKind
	// Formula joins the conditions by their ids, for FilterFormula: "A and (B or C)".
	Formula    string
	Conditions []Condition
}

// ConditionOperator is how a macro is compared.
type ConditionOperator uint8

// The operators of conditions.
const (
	MatchesRegex ConditionOperator = iota
	NotMatchesRegex
	MacroExists
	MacroNotExists
)

// Condition is one condition of a filter.
type Condition struct {
	ID       string
	Macro    string
	Operator ConditionOperator
	// Value is a regular expression, or @ and the name of a global one.
	Value string
}

// LifetimeKind says what becomes of what is no longer discovered.
type LifetimeKind uint8

// The kinds of lifetimes.
const (
	LifetimeAfter LifetimeKind = iota
	LifetimeNever
	LifetimeImmediately
)

// Lifetime is when something happens to what is no longer discovered.
type Lifetime struct {
	Kind LifetimeKind
	// Text is the time as configured, such as "7d" or "{$LLD.KEEP}"; After what it says, for LifetimeAfter.
	Text  string
	After time.Duration
}

// PrototypeKind is what is made of a prototype.
type PrototypeKind uint8

// The kinds of prototypes. The numbers are Zabbix's.
const (
	ItemPrototype PrototypeKind = iota
	TriggerPrototype
	GraphPrototype
	HostPrototype
)

// Prototype is what a discovery rule knows of one of its prototypes.
type Prototype struct {
	ID   PrototypeID
	Kind PrototypeKind
	// Name is the name by which overrides find it, with its discovery macros.
	Name string
	// Discovers is whether something is made of it without an override that says so.
	Discovers bool
}

// Override changes what is made of prototypes for the elements that its filter takes.
type Override struct {
	Name string
	// Stops says that later overrides are not looked at for elements that the filter takes.
	Stops      bool
	Filter     Filter
	Operations []Operation
}

// NameOperator is how an operation finds prototypes by name.
type NameOperator uint8

// The operators of operations. The numbers are Zabbix's, which has 0, 1, 2, 3, 8 and 9.
const (
	NameEquals      NameOperator = 0
	NameDiffers     NameOperator = 1
	NameContains    NameOperator = 2
	NameContainsNot NameOperator = 3
	NameMatches     NameOperator = 8
	NameMatchesNot  NameOperator = 9
)

// Operation changes the prototypes of one kind whose name fits.
type Operation struct {
	Kind     PrototypeKind
	Operator NameOperator
	// Value is compared with the name that the object will have; empty fits all names.
	Value  string
	Change Change
}

// Change is what overrides change of one discovered object. Nil and empty fields change nothing.
type Change struct {
	// Discover decides whether the object is made at all.
	Discover  *bool     `json:"discover,omitempty"`
	Enabled   *bool     `json:"enabled,omitempty"`
	Delay     string    `json:"delay,omitempty"`
	History   string    `json:"history,omitempty"`
	Trends    string    `json:"trends,omitempty"`
	Severity  *Severity `json:"severity,omitempty"`
	Tags      []Tag     `json:"tags,omitempty"`
	Templates []string  `json:"templates,omitempty"`
	Inventory string    `json:"inventory,omitempty"`
}

// Instance is one object that a discovery rule asks for.
type Instance struct {
	Prototype PrototypeID
	// Macros are the discovery macros of the element, by name with braces.
	Macros map[string]string
	// Change may be nil.
	Change *Change
}

// Discovery is what was found by one payload of a rule: the complete truth.
type Discovery struct {
	Rule      *Rule
	Instances []Instance
	// Beyond counts the objects that were left out because a rule may make at most Limit.
	Beyond, Limit int
	// At is when the payload came. Order rises from payload to payload, whatever the clock does.
	At    time.Time
	Order int64
}

// RuleValue is a value of a discovery rule that waits.
type RuleValue struct {
	Item ItemID
	Host HostID
	// Order rises from value to value: when it came, Unix nanoseconds, or more after a clock went back.
	Order int64
	Text  []byte
}

// Discovered is what became of a Discovery.
type Discovered struct {
	// Created, Updated, Lost and Deleted count objects; Refused those that could not be made, of which Reasons names the first few.
	Created, Updated, Lost, Deleted, Refused int
	Reasons                                  []string
	// RevisionBefore and HostRevision are the revisions of the rule's host before and after.
	RevisionBefore, HostRevision uint64
}
