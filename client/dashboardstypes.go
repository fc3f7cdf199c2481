package client

import "encoding/json"

// DashboardAnswer is one version of a dashboard.
type DashboardAnswer struct {
	DashboardHead
	// Newest is the number of the newest version.
	Newest    uint32          `json:"newest"`
	Dashboard json.RawMessage `json:"dashboard"`
}

// DashboardBody is the body of a save.
type DashboardBody struct {
	// Version is the one that the change was made from; left out for a new dashboard.
	Version uint32 `json:"version,omitempty"`
	// Note says what was changed, at most 200 bytes.
	Note      string          `json:"note,omitempty"`
	Dashboard json.RawMessage `json:"dashboard"`
}

// DashboardHead is one dashboard in lists, or one version of it.
type DashboardHead struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Everyone bool   `json:"everyone"`
	// Owner is the name of the user whose it is, empty for nobody's. Private says that only the owner, administrators and Groups may see it.
	Owner   string   `json:"owner"`
	Private bool     `json:"private"`
	Groups  []string `json:"groups"`
	// Editable says that whoever asks may change it.
	Editable bool   `json:"editable"`
	Version  uint32 `json:"version"`
	// SavedAt is Unix milliseconds.
	SavedAt int64  `json:"saved_at"`
	SavedBy string `json:"saved_by"`
	Note    string `json:"note"`
}

// DashboardList is all dashboards, or the versions of one.
type DashboardList struct {
	Dashboards []DashboardHead `json:"dashboards"`
}

// DashboardPlan says what applying a file does, or did.
type DashboardPlan struct {
	Steps []DashboardStep `json:"steps"`
}

// DashboardStep is what becomes of one dashboard when a file is applied.
type DashboardStep struct {
	Name string `json:"name"`
	// What is create, change, unchanged or delete.
	What string `json:"what"`
	// Differences are the lines of its YAML that go ("-") and come ("+").
	Differences []string `json:"differences,omitempty"`
}

// Graph is one graph of a host, with the items that it has there.
type Graph struct {
	Name  string `json:"name"`
	Stack bool   `json:"stack"`
	// Items are in the order of the graph; at most 100.
	Items []Item `json:"items"`
}

// GraphList is the graphs of a host.
type GraphList struct {
	Graphs []Graph `json:"graphs"`
	// Left counts the graphs that were left out because there are more than 500, and Empty those without an item on this host.
	Left  int `json:"left"`
	Empty int `json:"empty"`
}
