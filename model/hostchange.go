package model

// HostChange is what actions do with a host that registered itself or that network discovery found.
type HostChange struct {
	// HostID is the host; zero for one that is to be made, which Make must be set for.
	HostID HostID
	Make   bool
	// Host is the technical name for a host that is made; when it is taken it gets a number. Name is the visible one, empty for the same.
	Host, Name string
	// Proxy is the proxy that asks a host that is made; empty for the server itself.
	Proxy string
	// Delete deletes the host; all else is left out then.
	Delete bool
	// Group is the group of a host that is made and that no action puts into one.
	Group                        string
	AddGroups, RemoveGroups      []string
	LinkTemplates, DropTemplates []string
	// Enabled is nil to leave it.
	Enabled *bool
	// InventoryMode is DISABLED, MANUAL or AUTOMATIC; empty to leave it.
	InventoryMode string
	Tags          []Tag
	// Interfaces are added where the host has none of the same type, address and port.
	Interfaces []Interface
}

// HostChanged is what became of a HostChange.
type HostChanged struct {
	HostID        HostID
	Host          string
	Made, Deleted bool
	// Missing are templates that do not exist.
	Missing []string
}

// NetHost is what network discovery found under one address, or under one value that stands for a host.
type NetHost struct {
	ID   int64
	Rule string
	// Ident is the address or the value.
	Ident string
	// HostID is the host that was made of it; zero for none.
	HostID HostID
	Up     bool
	// ChangedAt is when it came up or went down, Unix seconds.
	ChangedAt int64
	Services  []NetService
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
