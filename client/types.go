package client

import (
	"encoding/json"
	"math"
	"strconv"
)

// Times are Unix milliseconds and ids are decimal text everywhere; docs/user/api.md says more.

// Tag is a name with a value.
type Tag struct {
	Tag   string `json:"tag"`
	Value string `json:"value"`
}

// Macro is a user macro that is not secret.
type Macro struct {
	Macro string `json:"macro"`
	Value string `json:"value"`
}

// Host is one host in lists; Metadata and Macros come with a single host only.
type Host struct {
	ID        string   `json:"id"`
	Host      string   `json:"host"`
	Name      string   `json:"name"`
	Enabled   bool     `json:"enabled"`
	Groups    []string `json:"groups"`
	Templates []string `json:"templates"`
	Tags      []Tag    `json:"tags"`
	Problems  int      `json:"problems"`
	Worst     string   `json:"worst"`
	Items     int      `json:"items"`
	// LastSeen is when the host last gave a sign of life, Unix milliseconds; nil for never.
	LastSeen *int64 `json:"last_seen"`
	State    string `json:"state"`
	// SeenBy says by what the host was last seen: agent, or values that others bring; empty for never.
	SeenBy string `json:"seen_by"`
	// Proxy is the name of the proxy that asks the host; empty for the server itself.
	Proxy string `json:"proxy,omitempty"`
	// DiscoveredBy is the id of the discovery rule that made the host; items and triggers have it too.
	DiscoveredBy string  `json:"discovered_by,omitempty"`
	Metadata     *string `json:"metadata,omitempty"`
	// Inventory comes with a single host only: what was filled in by hand, and what items fill.
	Inventory map[string]string `json:"inventory,omitempty"`
	Macros    []Macro           `json:"macros,omitempty"`
}

// HostList is a page of hosts.
type HostList struct {
	Hosts []Host `json:"hosts"`
	Total int    `json:"total"`
	Next  string `json:"next,omitempty"`
}

// Item is one item in lists; the pointers at the end come with a single item only.
type Item struct {
	ID         string            `json:"id"`
	HostID     string            `json:"host_id"`
	Host       string            `json:"host"`
	Key        string            `json:"key"`
	Name       string            `json:"name"`
	ValueType  string            `json:"value_type"`
	Units      string            `json:"units"`
	Kind       string            `json:"kind"`
	Labels     map[string]string `json:"labels"`
	IntervalMS int64             `json:"interval_ms"`
	Enabled    bool              `json:"enabled"`
	State      string            `json:"state"`
	Error      string            `json:"error"`
	Last       *Reading          `json:"last"`
	Previous   *Reading          `json:"previous"`
	// DiscoveredBy is the id of the discovery rule that made the item.
	DiscoveredBy string `json:"discovered_by,omitempty"`

	Steps       []Step   `json:"steps,omitempty"`
	Description *string  `json:"description,omitempty"`
	HistoryDays *float64 `json:"history_days,omitempty"`
	TrendsDays  *float64 `json:"trends_days,omitempty"`
}

// Step is one preprocessing step; the numbers are Zabbix's.
type Step struct {
	Type      int      `json:"type"`
	Params    []string `json:"params"`
	OnFail    int      `json:"on_fail"`
	FailValue string   `json:"fail_value"`
}

// ItemList is a page of items.
type ItemList struct {
	Items []Item `json:"items"`
	Total int    `json:"total"`
	Next  string `json:"next,omitempty"`
}

// Reading is one value and its time.
type Reading struct {
	AtNS  string `json:"at_ns"`
	At    int64  `json:"at"`
	Value Value  `json:"value"`
}

// Value is a value without loss: V is text for every type.
type Value struct {
	T string `json:"t"`
	V string `json:"v"`
	// Mapped is the text that the item's value map gives the value.
	Mapped string `json:"mapped,omitempty"`
	// Level says how bad a log line or a text is: debug, information, warning or error. Only lists of values have it.
	Level string `json:"level,omitempty"`
	// Encoding is "base64" for a text that is no UTF-8, which JSON cannot hold; binary values are always in base64.
	Encoding string `json:"encoding,omitempty"`
	// Log has what a log line carries besides its text.
	Log *LogParts `json:"log,omitempty"`
}

// LogParts are the parts of a log value besides its text.
type LogParts struct {
	// At is the time in the line, Unix milliseconds; zero when unknown.
	At       int64  `json:"at"`
	Severity uint32 `json:"severity"`
	EventID  uint32 `json:"event_id"`
	Source   string `json:"source"`
}

// ValueList is a page of one item's values.
type ValueList struct {
	Item   Item      `json:"item"`
	Values []Reading `json:"values"`
	Next   string    `json:"next,omitempty"`
}

// Chart is columns for drawing.
type Chart struct {
	From   int64         `json:"from"`
	To     int64         `json:"to"`
	StepMS float64       `json:"step_ms"`
	Series []ChartSeries `json:"series"`
}

// ChartSeries is one item of a chart. Where Avg is null a gap begins.
type ChartSeries struct {
	ID        string            `json:"id"`
	Host      string            `json:"host"`
	Key       string            `json:"key"`
	Name      string            `json:"name"`
	Units     string            `json:"units"`
	Labels    map[string]string `json:"labels"`
	ValueType string            `json:"value_type"`
	Source    string            `json:"source"`
	// Rate says that the values are growth per second of a counter.
	Rate bool    `json:"rate"`
	At   []int64 `json:"at"`
	Avg  Numbers `json:"avg"`
	Min  Numbers `json:"min,omitempty"`
	Max  Numbers `json:"max,omitempty"`
}

// Problem is one problem.
type Problem struct {
	EventID      string `json:"event_id"`
	TriggerID    string `json:"trigger_id"`
	HostID       string `json:"host_id"`
	Host         string `json:"host"`
	HostName     string `json:"host_name"`
	Name         string `json:"name"`
	Severity     string `json:"severity"`
	At           int64  `json:"at"`
	RecoveredAt  *int64 `json:"recovered_at"`
	OpData       string `json:"opdata"`
	Tags         []Tag  `json:"tags"`
	Acknowledged bool   `json:"acknowledged"`
	// Suppression is there while the messages of actions are held back.
	Suppression *Suppression `json:"suppression,omitempty"`
	// Closable says that it may be closed by hand: it is open and its trigger allows that.
	Closable bool   `json:"closable"`
	ValueNow string `json:"value_now"`
	// Links lead to where the problem is dealt with, such as a ticket.
	Links []Link `json:"links,omitempty"`
}

// Suppression is why a problem's messages are held back.
type Suppression struct {
	// Until is its end, Unix milliseconds; nil when somebody has to end it.
	Until *int64 `json:"until"`
	// Maintenance is its name; empty when somebody suppressed the problem.
	Maintenance string `json:"maintenance,omitempty"`
}

// Link is an address with its name.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// ProblemList is a page of problems.
type ProblemList struct {
	Problems []Problem `json:"problems"`
	Total    int       `json:"total"`
	Next     string    `json:"next,omitempty"`
}

// Trigger is one trigger and its state.
type Trigger struct {
	ID                 string `json:"id"`
	HostID             string `json:"host_id"`
	Host               string `json:"host"`
	Name               string `json:"name"`
	Severity           string `json:"severity"`
	Expression         string `json:"expression"`
	RecoveryExpression string `json:"recovery_expression"`
	State              string `json:"state"`
	Error              string `json:"error"`
	Enabled            bool   `json:"enabled"`
	ChangedAt          *int64 `json:"changed_at"`
	DiscoveredBy       string `json:"discovered_by,omitempty"`
}

// TriggerList is a page of triggers.
type TriggerList struct {
	Triggers []Trigger `json:"triggers"`
	Total    int       `json:"total"`
	Next     string    `json:"next,omitempty"`
}

// SearchResult is one thing that a search found.
type SearchResult struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Title    string `json:"title"`
	Subtitle string `json:"subtitle"`
	URL      string `json:"url"`
}

// SearchAnswer is what a search found.
type SearchAnswer struct {
	Results []SearchResult `json:"results"`
}

// Overview is the state of everything.
type Overview struct {
	Hosts            HostCounts     `json:"hosts"`
	Problems         map[string]int `json:"problems"`
	Oldest           []Problem      `json:"oldest"`
	ValuesPerSecond  float64        `json:"values_per_second"`
	HistoryCacheUsed float64        `json:"history_cache_used"`
	Store            Store          `json:"store"`
	Version          string         `json:"version"`
	StartedAt        int64          `json:"started_at"`
	Time             int64          `json:"time"`
	// UTCOffsetSeconds is how far the server's local time, in which maintenances are, is ahead of UTC.
	UTCOffsetSeconds int `json:"utc_offset_seconds"`
}

// HostCounts counts the enabled hosts by state.
type HostCounts struct {
	Total   int `json:"total"`
	OK      int `json:"ok"`
	Problem int `json:"problem"`
	Unknown int `json:"unknown"`
}

// Store is how full the store is.
type Store struct {
	UsedBytes     int64    `json:"used_bytes"`
	QuotaBytes    int64    `json:"quota_bytes"`
	From          *int64   `json:"from"`
	To            *int64   `json:"to"`
	RetentionDays *float64 `json:"retention_days"`
}

// Numbers are floats of which those that JSON cannot hold become null.
type Numbers []float64

// MarshalJSON writes the numbers in the shortest form that reads back the same.
func (n Numbers) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2+12*len(n))
	b = append(b, '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			continue
		}
		b = AppendFloat(b, v)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads numbers; null becomes NaN.
func (n *Numbers) UnmarshalJSON(text []byte) error {
	var list []*float64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*n = nil
	if list != nil {
		*n = make(Numbers, 0, len(list))
	}
	for _, v := range list {
		if v == nil {
			*n = append(*n, math.NaN())
			continue
		}
		*n = append(*n, *v)
	}
	return nil
}

// AppendFloat writes a float in the shortest form that reads back to the same bits, with an exponent only where JSON
// and JavaScript would use one.
func AppendFloat(b []byte, v float64) []byte {
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

// ProblemsUpdate is what is to be done to problems, all of it to all of them. What is left out stays as it is.
type ProblemsUpdate struct {
	// EventIDs are the problems, at most 1,000.
	EventIDs []string `json:"event_ids"`
	// Acknowledge true marks them as seen, false takes that back.
	Acknowledge *bool  `json:"acknowledge,omitempty"`
	Message     string `json:"message,omitempty"`
	// Severity is the name of the new one.
	Severity *string `json:"severity,omitempty"`
	// Suppress true holds back what actions tell of them until SuppressUntil, Unix milliseconds, or until somebody ends it when that is left
	// out; false ends it.
	Suppress      *bool `json:"suppress,omitempty"`
	SuppressUntil int64 `json:"suppress_until,omitempty"`
	// Close ends them, where the trigger allows that.
	Close bool `json:"close,omitempty"`
}

// ProblemsUpdated is the answer to an update.
type ProblemsUpdated struct {
	// EventIDs are those that were changed by it: what was so already is left out.
	EventIDs []string `json:"event_ids"`
}
