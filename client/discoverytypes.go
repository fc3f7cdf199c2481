package client

// DiscoveredObject is something that a rule made.
type DiscoveredObject struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Key     string `json:"key,omitempty"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	Lost    bool   `json:"lost"`
	// Times are Unix milliseconds.
	LostAt    *int64 `json:"lost_at,omitempty"`
	DisableAt *int64 `json:"disable_at,omitempty"`
	DeleteAt  *int64 `json:"delete_at,omitempty"`
}

// DiscoveryRule is one discovery rule in lists; Objects come with a single rule only.
type DiscoveryRule struct {
	ID     string `json:"id"`
	HostID string `json:"host_id"`
	Host   string `json:"host"`
	Key    string `json:"key"`
	Name   string `json:"name"`
	// Type is how the rule's values come: Zabbix's number.
	Type    int    `json:"type"`
	Delay   string `json:"delay"`
	Enabled bool   `json:"enabled"`
	// State is ok, error, or unknown before the first value.
	State string `json:"state"`
	Error string `json:"error"`
	// DiscoveredAt is when a value was last applied, Unix milliseconds.
	DiscoveredAt *int64             `json:"discovered_at"`
	Items        int                `json:"items"`
	Triggers     int                `json:"triggers"`
	Hosts        int                `json:"hosts"`
	Lost         int                `json:"lost"`
	Objects      []DiscoveredObject `json:"objects,omitempty"`
}

// DiscoveryRuleList is a page of discovery rules.
type DiscoveryRuleList struct {
	Rules []DiscoveryRule `json:"rules"`
	Total int             `json:"total"`
	Next  string          `json:"next,omitempty"`
}

// DiscoveryStatus is how the work on a rule goes.
type DiscoveryStatus struct {
	Rule     string `json:"rule"`
	Disabled bool   `json:"disabled,omitempty"`
	// Proxy is the proxy that looks; empty for the server. Done stays zero then, and LastAt is when it brought something.
	Proxy string `json:"proxy,omitempty"`
	// Running is set during a look; Done of Addresses were asked.
	Running   bool `json:"running"`
	Addresses int  `json:"addresses"`
	Done      int  `json:"done"`
	// Hosts are those that are remembered, Up those that answered.
	Hosts int `json:"hosts"`
	Up    int `json:"up"`
	// LastAt is when the last look ended, Unix seconds, and LastSeconds how long it took; zero for none since the start.
	LastAt      int64   `json:"last_at,omitempty"`
	LastSeconds float64 `json:"last_seconds,omitempty"`
	// Error is the last thing that went wrong.
	Error string `json:"error,omitempty"`
}

// DiscoveryStatusList says how the work on the rules goes.
type DiscoveryStatusList struct {
	Rules []DiscoveryStatus `json:"rules"`
}

// FoundHost is a host that a rule of network discovery found.
type FoundHost struct {
	Ident string `json:"ident"`
	// HostID and Host are the host that was made of it; empty for none.
	HostID string `json:"host_id,omitempty"`
	Host   string `json:"host,omitempty"`
	Up     bool   `json:"up"`
	// ChangedAt is when it came up or went down, Unix seconds; so for the services.
	ChangedAt int64        `json:"changed_at"`
	Services  []NetService `json:"services"`
}

// FoundHostList are what a rule found.
type FoundHostList struct {
	Hosts []FoundHost `json:"hosts"`
	// More are those beyond the limit.
	More int `json:"more,omitempty"`
}

// NetService is something that answered there.
type NetService struct {
	IP string `json:"ip"`
	// Check is the check's kind and key, Port the port.
	Check string `json:"check"`
	Port  int    `json:"port,omitempty"`
	Up    bool   `json:"up"`
	// ChangedAt is when it came up or went down, Unix seconds.
	ChangedAt int64 `json:"changed_at"`
	// Value is what it last answered.
	Value string `json:"value,omitempty"`
}
