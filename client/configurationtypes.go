package client

import "encoding/json"

// Applied is the answer to a change.
type Applied struct {
	Report *ImportReport `json:"report"`
	// Revision is that of the new document; empty for a plan.
	Revision string `json:"revision,omitempty"`
	// ID is the host's id; empty for templates and plans.
	ID string `json:"id,omitempty"`
}

// ConfigurationList is what forms of the configuration need, by name.
type ConfigurationList struct {
	Templates []ConfigurationRow `json:"templates"`
	// Groups are the names of the host groups, for forms.
	Groups []string `json:"host_groups"`
	// Proxies are the names of the proxies, for those who may assign hosts to them: editors of all hosts.
	Proxies []string `json:"proxies"`
	// GlobalMacros hold for all hosts; secret ones have no value.
	GlobalMacros []GlobalMacro `json:"global_macros"`
}

// ConfigurationRow is a template in a list.
type ConfigurationRow struct {
	ID       string `json:"id"`
	Template string `json:"template"`
	Name     string `json:"name"`
	Items    int    `json:"items"`
	Triggers int    `json:"triggers"`
	Hosts    int    `json:"hosts"`
}

// Document is a host or template as the API gives it.
type Document struct {
	// Document is the export of the host or template, in JSON.
	Document json.RawMessage `json:"document"`
	// Revision changes when the document does.
	Revision string `json:"revision"`
	// ID is the host's id; empty for templates.
	ID string `json:"id,omitempty"`
}

// GlobalExpression is one expression of a GlobalRegexp.
type GlobalExpression struct {
	Expression string `json:"expression"`
	// Type is included, any_included, not_included, result_true or result_false.
	Type string `json:"expression_type"`
	// Delimiter is between the texts of AnyIncluded; one of , . /
	Delimiter     string `json:"exp_delimiter,omitempty"`
	CaseSensitive bool   `json:"case_sensitive,omitempty"`
}

// GlobalMacro is a macro that holds for all hosts; a secret one has no value.
type GlobalMacro struct {
	Macro  string `json:"macro"`
	Value  string `json:"value,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// GlobalMacroBody is a global macro as it shall be.
type GlobalMacroBody struct {
	// Value is left out for a secret macro that keeps its own.
	Value  *string `json:"value,omitempty"`
	Secret bool    `json:"secret,omitempty"`
}

// GlobalRegexp is a global regular expression: where a pattern is wanted, @ and its name stand for it. A text fits when all of its expressions
// say so.
type GlobalRegexp struct {
	Name string `json:"name"`
	// Test is a text that people try it with; it means nothing else.
	Test        string             `json:"test_string,omitempty"`
	Expressions []GlobalExpression `json:"expressions"`
}

// ImportCount tells what became of the objects of one kind.
type ImportCount struct {
	Kind      string `json:"kind"`
	Created   int    `json:"created"`
	Updated   int    `json:"updated"`
	Unchanged int    `json:"unchanged"`
	Deleted   int    `json:"deleted,omitempty"`
	// Refused objects are named in the remarks.
	Refused int `json:"refused,omitempty"`
}

// ImportObject is one that an import changes.
type ImportObject struct {
	// What is created, updated or deleted.
	What string `json:"what"`
	Kind string `json:"kind"`
	// Owner is the host or template, empty for groups; Name the item's or rule's key, or the name.
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
}

// ImportRemark is about one place of the file.
type ImportRemark struct {
	// Path is the object and field: "template Linux, item system.cpu.load, preprocessing[2]".
	Path string `json:"path"`
	// Line in the file, from 1.
	Line int `json:"line"`
	// Reason says what was found and what becomes of it.
	Reason string `json:"reason"`
	// At is the place as a path behind zabbix_export: hosts[0].items[3].delay.
	At string `json:"at,omitempty"`
	// Refused says that something is not taken; else it is, and the remark is a warning.
	Refused bool `json:"refused,omitempty"`
}

// ImportReport says what an import took and what it did not.
type ImportReport struct {
	// File is the name that was given to Import.
	File string `json:"file"`
	// Version is the export's version: "6.0", "6.4", "7.0".
	Version string `json:"version"`
	// Counts has one entry for each kind of object that the file holds, in a fixed order.
	Counts []ImportCount `json:"counts"`
	// Remarks are what was not taken, or was kept but has no effect, in the order of the file.
	Remarks []ImportRemark `json:"remarks"`
	// MoreRemarks counts the remarks beyond the first 1,000.
	MoreRemarks int `json:"more_remarks,omitempty"`
	// Plan says that nothing was changed: the counts are what would become of the objects.
	Plan bool `json:"plan,omitempty"`
	// Owner is the technical name of the host or template, when the file holds one.
	Owner string `json:"owner,omitempty"`
	// Objects are those that were created, updated or deleted, the first 1,000.
	Objects []ImportObject `json:"objects,omitempty"`
}

// ItemTest asks for a test of an item as a document has it, stored or not.
type ItemTest struct {
	// Document is the host's or template's, in JSON.
	Document json.RawMessage `json:"document"`
	// Host is the technical name of the host that the item is tested on; for a document of a template without one user macros of hosts are not
	// known, and only steps can be tested.
	Host string `json:"host,omitempty"`
	// Key is the item's key as the document has it.
	Key string `json:"key"`
	// Value, if given, is taken instead of asking for one; Error stands for a failure to get one.
	Value *string `json:"value,omitempty"`
	Error string  `json:"error,omitempty"`
	// Previous is an earlier value, for steps that look back, and SecondsBefore how much earlier; 0 stands for the item's interval.
	Previous      *string `json:"previous,omitempty"`
	SecondsBefore float64 `json:"seconds_before,omitempty"`
}

// ItemTested is what came of it.
type ItemTested struct {
	// Collected is what the collector brought; nil when a value was given.
	Collected *string `json:"collected,omitempty"`
	// CollectError is why it brought nothing.
	CollectError string `json:"collect_error,omitempty"`
	// Milliseconds is how long the collector took.
	Milliseconds float64      `json:"milliseconds,omitempty"`
	Steps        []TestedStep `json:"steps"`
	// Value is what would be stored, Discarded says that nothing would be, Error why the item would be not supported.
	Value     string `json:"value"`
	ValueType string `json:"value_type"`
	Discarded bool   `json:"discarded,omitempty"`
	Error     string `json:"error,omitempty"`
}

// PreviewItem is an item of the expression.
type PreviewItem struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	Key  string `json:"key"`
	// ValuesFrom is when the first value of the range is; absent when there is none.
	ValuesFrom *int64 `json:"values_from,omitempty"`
}

// PreviewProblem is a problem that would have been, Unix milliseconds.
type PreviewProblem struct {
	From int64 `json:"from"`
	// To is absent for a problem that is open at the end.
	To *int64 `json:"to,omitempty"`
}

// PreviewRequest asks what a trigger, as a document has it, would have done.
type PreviewRequest struct {
	// Document is the host's or template's, in JSON; Host the technical name of the host whose values are taken.
	Document json.RawMessage `json:"document"`
	Host     string          `json:"host"`
	// Trigger is the trigger's name in the document; of several with the name the one with the Expression.
	Trigger    string `json:"trigger"`
	Expression string `json:"expression,omitempty"`
	// From and To are Unix milliseconds; without them it is the last 7 days.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
}

// PurgeAnswer is the first answer, and the second with Purged.
type PurgeAnswer struct {
	// Items is how many have, or had, a history that goes.
	Items int `json:"items"`
	// Token is to be sent with Confirm until ExpiresAt, Unix milliseconds.
	Token     string `json:"token,omitempty"`
	Confirm   string `json:"confirm,omitempty"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
	Purged    bool   `json:"purged"`
}

// PurgeRequest asks for the history of a host or of one of its items to be deleted, first without and then with the token of the first answer.
type PurgeRequest struct {
	// Host is the technical name; Key, if given, the key of the only item.
	Host string `json:"host"`
	Key  string `json:"key,omitempty"`
	// Token is that of the first answer, and Confirm the text that it asks for: the host's technical name, or the item's key.
	Token   string `json:"token,omitempty"`
	Confirm string `json:"confirm,omitempty"`
}

// RegexpList is all global regular expressions.
type RegexpList struct {
	Regexps []RegexpRow `json:"regexps"`
}

// RegexpRow is a global regular expression as the API shows it.
type RegexpRow struct {
	GlobalRegexp
	// Default says that it comes with the program and nobody has put another in its place.
	Default bool `json:"default,omitempty"`
}

// RegexpTest asks what an expression makes of a text.
type RegexpTest struct {
	GlobalRegexp
	Text string `json:"text"`
}

// RegexpTested is the result, of all together and of each expression.
type RegexpTested struct {
	Matches bool   `json:"matches"`
	Each    []bool `json:"each"`
}

// TestedStep is what a preprocessing step made of the value.
type TestedStep struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`
	Value     string `json:"value"`
	Discarded bool   `json:"discarded,omitempty"`
	Error     string `json:"error,omitempty"`
}

// TriggerPreview is what it would have done.
type TriggerPreview struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Expression is with macros expanded.
	Expression string `json:"expression"`
	// Fired is how often a problem would have begun; Problems are when, at most 1,000.
	Fired    int              `json:"fired"`
	Problems []PreviewProblem `json:"problems"`
	// Unknown is why the trigger could not be evaluated at the end of the range; empty when it could.
	Unknown string        `json:"unknown,omitempty"`
	Items   []PreviewItem `json:"items"`
	// Values is how many were evaluated.
	Values int `json:"values"`
}
