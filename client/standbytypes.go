package client

// FollowedStandby is a standby as it is shown.
type FollowedStandby struct {
	Address string `json:"address"`
	// LagBytes is how much of the log it lacks, SeenAt when it asked last, Unix milliseconds.
	LagBytes uint64 `json:"lag_bytes"`
	SeenAt   int64  `json:"seen_at"`
	Seeding  bool   `json:"seeding"`
}

// Lease is the answer to GET /api/lease.
type Lease struct {
	// Shared says that servers share the database; without it nothing else counts.
	Shared bool `json:"shared"`
	// Role is working or waiting.
	Role  string `json:"role"`
	Epoch int64  `json:"epoch"`
	// Holder is the server that works, Address where its page is.
	Holder  string `json:"holder"`
	Address string `json:"address"`
	// Since is when the term began by the database's clock, Unix nanoseconds; zero before the first.
	Since int64 `json:"since,string"`
	// LeftSeconds is how long the lease lasts if it is not renewed.
	LeftSeconds float64 `json:"left_seconds"`
	// Waiting are the servers that wait; only the one that works knows of them.
	Waiting []WaitingServer `json:"waiting"`
	// Problem says why a waiting server knows nothing of the lease.
	Problem string `json:"problem,omitempty"`
}

// Promoted is what a promotion did.
type Promoted struct {
	Epoch uint64 `json:"epoch"`
	// EpochText is the epoch as people read it.
	EpochText string `json:"epoch_text"`
	// HandedOver says that the old primary stopped by itself and everything it had is here.
	HandedOver bool `json:"handed_over"`
	// Milliseconds is how long it took.
	Milliseconds float64 `json:"milliseconds"`
	// Problem says why the old primary did not hand over.
	Problem string `json:"problem,omitempty"`
}

// ShadowCutover says what the end of shadow mode switched on.
type ShadowCutover struct {
	// Since is when shadow mode began, Unix seconds; zero when it was not on.
	Since   int64    `json:"since"`
	Actions []string `json:"actions"`
	Media   []string `json:"media"`
	// Off are actions and media types that stay off because they were off in Zabbix or were switched off here.
	Off []string `json:"off"`
	// Unable are media types that are on and cannot send, with the reason.
	Unable []string `json:"unable"`
}

// ShadowPlan is what the end of shadow mode does or did.
type ShadowPlan struct {
	ShadowCutover
	// OpenProblems began before and are told to nobody.
	OpenProblems int `json:"open_problems"`
}

// ShadowState says whether another server alerts and this one only watches.
type ShadowState struct {
	// Since is when that began, Unix milliseconds; zero when it is not so.
	Since int64 `json:"since"`
}

// Standby is the answer to GET /api/standby.
type Standby struct {
	// Role is primary, standby or fenced.
	Role  string `json:"role"`
	Epoch uint64 `json:"epoch"`
	// FencedBy is the epoch of the server that took over; zero for none.
	FencedBy uint64 `json:"fenced_by"`
	// Primary is the address that a standby follows.
	Primary string `json:"primary"`
	// Synchronous says that nothing is acknowledged that no standby has; Refusal why values are refused.
	Synchronous bool   `json:"synchronous"`
	Refusal     string `json:"refusal"`
	// Lag is how far a standby is behind; null on a primary.
	Lag *StandbyLag `json:"lag"`
	// Standbys are those that follow a primary.
	Standbys []FollowedStandby `json:"standbys"`
	// Node is this server's id, Peers the addresses of the other standbys of the primary that it follows.
	Node  string   `json:"node"`
	Peers []string `json:"peers"`
	// EpochText and FencedByText are epochs as people read them; empty for none.
	EpochText    string `json:"epoch_text"`
	FencedByText string `json:"fenced_by_text"`
}

// StandbyLag is how far a standby is behind.
type StandbyLag struct {
	// Bytes of the log are missing, as of the last answer; Seconds is the age of the newest value here if any is missing, or the time since the last answer when
	// the primary does not answer.
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Connected says that the primary answers. Problem says why not.
	Connected bool   `json:"connected"`
	Problem   string `json:"problem,omitempty"`
	// Position is how far the primary's log is stored here.
	Position uint64 `json:"position"`
	// ConfigurationAt is when the configuration was last known to be equal, Unix milliseconds; zero for not yet.
	ConfigurationAt int64 `json:"configuration_at"`
	// VerifiedAt is when the values of an hour were last compared with the primary's, zero for not yet; Differs that they were not the same.
	VerifiedAt int64 `json:"verified_at"`
	Differs    bool  `json:"differs"`
}

// WaitingServer is a server that waits for the lease. Times are Unix nanoseconds by the database's clock.
type WaitingServer struct {
	Holder  string `json:"holder"`
	Address string `json:"address"`
	Since   int64  `json:"since,string"`
	Seen    int64  `json:"seen,string"`
}
