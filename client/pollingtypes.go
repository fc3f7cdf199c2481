package client

// AlertPause is the answer to GET /api/alerting/paused, and the body of PUT.
type AlertPause struct {
	// Paused says that no alerts are sent.
	Paused bool `json:"paused"`
	// Reason says why, where it cannot be changed here.
	Reason string `json:"reason,omitempty"`
}

// CheckAnswer says what is asked for at once.
type CheckAnswer struct {
	// Items is how many are asked for. Dependent items are had by asking for their masters and are not counted beside them.
	Items int `json:"items"`
	// Proxy is the name of the proxy that asks for them, within seconds; empty for the server itself.
	Proxy string `json:"proxy,omitempty"`
	// ByServer is how many of Items the server asks for although the host has a proxy.
	ByServer int `json:"by_server,omitempty"`
	// NotAsked is how many items cannot be asked for at once: their values are sent, they are disabled, or a proxy makes them by a web scenario.
	NotAsked int `json:"not_asked,omitempty"`
	// NotAskedKeys are the keys of the first of them.
	NotAskedKeys []string `json:"not_asked_keys,omitempty"`
}

// CheckRequest asks for values at once.
type CheckRequest struct {
	// Host is the host's technical name, Key an item's key; without one all items of the host are asked for.
	Host string `json:"host"`
	Key  string `json:"key"`
}

// CommandAnswer is what became of a command.
type CommandAnswer struct {
	// Output is what it printed; Error why there is none.
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
	// Proxy is the name of the proxy that ran it or passed it on; empty for none.
	Proxy string `json:"proxy,omitempty"`
}

// CommandRequest has a command run for a host.
type CommandRequest struct {
	// Host is the host's technical name, Command a line for a shell.
	Host    string `json:"host"`
	Command string `json:"command"`
	// On is agent, the host's own agent, or proxy, the proxy that asks the host.
	On string `json:"on"`
}

// HostProxy says which proxy a host is assigned to; an empty name is the server itself.
type HostProxy struct {
	Proxy string `json:"proxy"`
}

// Interface is an interface of a host as the API shows it.
type Interface struct {
	// Type is agent, snmp, ipmi or jmx.
	Type    string `json:"type"`
	Main    bool   `json:"main"`
	Address string `json:"address"`
	Port    string `json:"port"`
	// State is unknown, available or unavailable; Error why the last check failed, and FailingSince since when they fail, Unix
	// milliseconds.
	State        string `json:"state"`
	Error        string `json:"error,omitempty"`
	FailingSince int64  `json:"failing_since,omitempty"`
}

// InterfaceList is the interfaces of a host.
type InterfaceList struct {
	Interfaces []Interface `json:"interfaces"`
}

// NewProxy is the request that makes a proxy.
type NewProxy struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// AskAt is where the server is to ask a passive proxy, host:port; empty for one that connects by itself. Missing leaves it as it is.
	AskAt *string `json:"ask_at"`
	// TLS says how its connections are protected; without it they are unencrypted.
	TLS *TLSSettings `json:"tls"`
}

// Proxy is one proxy; times are Unix milliseconds, zero for never since the server's start.
type Proxy struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Hosts       int    `json:"hosts"`
	Version     string `json:"version,omitempty"`
	Address     string `json:"address,omitempty"`
	// AskAt is where the server asks a passive proxy, host:port; empty for one that connects by itself. Failure is why it does not answer, since
	// FailingSince.
	AskAt        string `json:"ask_at,omitempty"`
	Failure      string `json:"failure,omitempty"`
	FailingSince int64  `json:"failing_since,omitempty"`
	// AlsoAt is the address of another process that sends under the same name; empty for none.
	AlsoAt string `json:"also_at,omitempty"`
	SeenAt int64  `json:"seen_at"`
	// StoredAt is when values came last, ConfiguredAt when the proxy was given its configuration.
	StoredAt     int64  `json:"stored_at"`
	ConfiguredAt int64  `json:"configured_at"`
	Values       uint64 `json:"values"`
	// Backlog says that the proxy has more values than it could send so far.
	Backlog bool `json:"backlog"`
	// ClockAhead is by how many milliseconds the proxy's clock is ahead.
	ClockAhead int64       `json:"clock_ahead_ms"`
	TLS        TLSSettings `json:"tls"`
}

// ProxyList is the answer of the list of proxies.
type ProxyList struct {
	Proxies []Proxy `json:"proxies"`
}

// Queue says which items are late.
type Queue struct {
	// Late are those that are late by more than 6 s.
	Late int `json:"late"`
	// Types are counts by how late items are: by 5 s, 10 s, 30 s, 1 min, 5 min, 10 min, each up to the next.
	Types []QueueType `json:"types"`
	Items []QueueItem `json:"items"`
	Kinds []QueueKind `json:"kinds"`
}

// QueueItem is an item that is late.
type QueueItem struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	Key  string `json:"key"`
	// DueAt is when it should have been asked for, Unix milliseconds.
	DueAt int64 `json:"due_at"`
}

// QueueKind is how busy the checks of a kind are.
type QueueKind struct {
	Kind     string  `json:"kind"`
	InFlight int     `json:"in_flight"`
	Limit    int     `json:"limit"`
	Busy     float64 `json:"busy_percent"`
	Waiting  int     `json:"waiting"`
}

// QueueType counts the late items of a type of items.
type QueueType struct {
	Type   string `json:"type"`
	Delays [6]int `json:"delays"`
}

// ScrapeJob is how a job and its targets are doing.
type ScrapeJob struct {
	Job     string         `json:"job"`
	Targets []ScrapeTarget `json:"targets"`
	// Dropped counts targets that relabelling dropped, OverLimit those over target_limit or the limit of all targets.
	Dropped   int `json:"dropped"`
	OverLimit int `json:"over_limit"`
	// Errors are why targets could not be read or are wrong.
	Errors []string `json:"errors,omitempty"`
}

// ScrapeTarget is how a target is doing.
type ScrapeTarget struct {
	URL    string            `json:"url"`
	Labels map[string]string `json:"labels"`
	// Health is unknown before the first scrape, then up or down.
	Health    string `json:"health"`
	LastError string `json:"last_error,omitempty"`
	// LastScrape is Unix milliseconds, zero before the first.
	LastScrape   int64   `json:"last_scrape"`
	LastDuration float64 `json:"last_duration_seconds"`
	IntervalS    float64 `json:"interval_seconds"`
	Samples      int     `json:"samples"`
	// Refused are samples of the last scrape that are not kept.
	Refused string `json:"refused,omitempty"`
}

// ScrapeTargets is the answer about scrapes.
type ScrapeTargets struct {
	Jobs []ScrapeJob `json:"jobs"`
}

// TLSSettings are the TLS settings of a host as the API takes and shows them. A key is taken, never shown.
type TLSSettings struct {
	// Connect is how the server connects to the agent, Accept how values may come: unencrypted, psk, cert.
	Connect string   `json:"connect"`
	Accept  []string `json:"accept"`
	// PSKIdentity and PSK are the pre-shared key, in hexadecimal digits.
	PSKIdentity string `json:"psk_identity,omitempty"`
	PSK         string `json:"psk,omitempty"`
	// Keep is for how long the key that is replaced stays good: "24h"; empty is not at all.
	Keep string `json:"keep,omitempty"`
	// OldPSKIdentity is the identity of a key that was replaced and is good until OldPSKUntil, Unix milliseconds.
	OldPSKIdentity string `json:"old_psk_identity,omitempty"`
	OldPSKUntil    int64  `json:"old_psk_until,omitempty"`
	// Issuer and Subject are what the peer's certificate must have; empty for any.
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// WebScenario is a web scenario of a host.
type WebScenario struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Delay    string `json:"delay"`
	Attempts int    `json:"attempts"`
	// Items are those of the whole scenario: fail, error and in, ids by what they tell.
	Items map[string]string `json:"items"`
	Steps []WebScenarioStep `json:"steps"`
}

// WebScenarioList are the web scenarios of a host. Addresses are left out, because they may hold secrets.
type WebScenarioList struct {
	Scenarios []WebScenario `json:"scenarios"`
}

// WebScenarioStep is one request of a web scenario.
type WebScenarioStep struct {
	Name string `json:"name"`
	// Timeout is in seconds.
	Timeout float64 `json:"timeout_seconds"`
	// Items are in, time and rspcode.
	Items map[string]string `json:"items"`
}
