package model

// DashboardID names a dashboard for as long as it exists; it is never given again.
type DashboardID uint64

// SavedDashboard is one version of a dashboard.
type SavedDashboard struct {
	ID   DashboardID
	Name string
	// Everyone says that people who may see only some hosts may see it.
	Everyone bool
	// Owner is whose it is; zero for nobody's. OwnerName is the name that the user has now, set by what reads it.
	Owner     UserID
	OwnerName string
	// Private says that only the owner, administrators and the members of Groups may see it; Groups are names of user groups whose members may.
	Private bool
	Groups  []string
	Version uint32
	// At is when the version was saved, Unix nanoseconds; Author and Note say by whom and why.
	At           int64
	Author, Note string
	// Body is JSON.
	Body []byte
}

// DashboardChange is a change of several dashboards at once.
type DashboardChange struct {
	// Puts are saved over those of the same name, whatever their version; Deletes are the names of others.
	Puts    []SavedDashboard
	Deletes []string
	// At and Author are those of all versions.
	At     int64
	Author string
}
