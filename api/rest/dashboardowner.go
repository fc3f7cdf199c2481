package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidemark/access"
	"tidemark/api"
	"tidemark/dashboard"
	"tidemark/model"
)

// maxOwnDashboards bounds the dashboards of one user who is no editor.
const maxOwnDashboards = 20

// ownsDashboard reports whether a dashboard is somebody's own.
func ownsDashboard(who *access.Identity, s *model.SavedDashboard) bool {
	return who != nil && who.User != 0 && who.User == s.Owner
}

// inGroups reports whether somebody is in one of some user groups.
func inGroups(who *access.Identity, groups []string) bool {
	return who != nil && slices.ContainsFunc(groups, func(name string) bool {
		return slices.ContainsFunc(who.Groups, func(own string) bool { return strings.EqualFold(own, name) })
	})
}

// seesDashboard reports whether somebody may see a dashboard. What is shown in it is limited to the hosts that they may see whatever this says.
func seesDashboard(who *access.Identity, s *model.SavedDashboard) bool {
	switch {
	case who.MostRole() < model.Viewer:
		return false
	case who.MostRole() == model.Administrator || ownsDashboard(who, s) || inGroups(who, s.Groups):
		return true
	}
	return !s.Private && (s.Everyone || who.SeesAllHosts())
}

// changesDashboard reports whether somebody may change a dashboard: the owner and administrators always, editors of all hosts what is not private.
func changesDashboard(who *access.Identity, s *model.SavedDashboard) bool {
	if who.MostRole() == model.Administrator || ownsDashboard(who, s) {
		return true
	}
	return !s.Private && who.MostRole() >= model.Editor && who.SeesAllHosts()
}

func denied(format string, args ...any) error {
	return &api.Error{Status: http.StatusForbidden, Code: "denied", Message: fmt.Sprintf(format, args...)}
}

// mayShow returns why somebody may not let others see a dashboard as it says.
func mayShow(who *access.Identity, d *dashboard.Dashboard) error {
	switch {
	case who.MostRole() < model.Editor && (!d.Private || len(d.Groups) > 0):
		return denied("showing a dashboard to others needs the role editor, and %s has %s; make it private, without user groups", who.Name, who.MostRole())
	case d.Everyone && !who.SeesAllHosts():
		return denied("showing a dashboard to everyone needs all hosts, and %s may see only some; choose user groups instead", who.Name)
	case who.SeesAllHosts():
		return nil
	}
	for _, name := range d.Groups {
		if !inGroups(who, []string{name}) {
			return denied("%s is not in the user group %.100q and may not show it a dashboard", who.Name, name)
		}
	}
	return nil
}

// setOwner makes s that of the owner whom the dashboard names; without a name it stays whose it is, and a new one is the maker's. old is nil
// for a new one.
func (a *API) setOwner(who *access.Identity, s, old *model.SavedDashboard, d *dashboard.Dashboard) error {
	s.Owner, s.OwnerName = who.User, who.Name
	if who.User == 0 {
		s.OwnerName = ""
	}
	if old != nil {
		s.Owner, s.OwnerName = old.Owner, old.OwnerName
	}
	s.Everyone, s.Private, s.Groups = d.Everyone, d.Private, d.Groups
	if err := a.knownGroups(d.Groups); err != nil {
		return err
	}
	if d.Owner == "" || strings.EqualFold(d.Owner, s.OwnerName) {
		return nil
	}
	if who.MostRole() < model.Administrator && (old == nil || !ownsDashboard(who, old)) {
		return denied("the dashboard %.100q can be given to another owner by its owner and by administrators", d.Name)
	}
	if who.MostRole() < model.Editor {
		return denied("giving a dashboard to somebody needs the role editor, and %s has %s", who.Name, who.MostRole())
	}
	if a.options.Access != nil {
		if u, ok := a.options.Access.UserNamed(d.Owner); ok {
			s.Owner, s.OwnerName = u.ID, u.Name
			return nil
		}
	}
	return dashboardError(fmt.Errorf("%w %.60q: there is no user %.100q, who is to own it", dashboard.ErrInvalid, d.Name, d.Owner))
}

// knownGroups returns which of some user groups there is not.
func (a *API) knownGroups(names []string) error {
	if len(names) == 0 || a.options.Access == nil {
		return nil
	}
	known := a.options.Access.Groups()
	for _, name := range names {
		if !slices.ContainsFunc(known, func(g model.UserGroup) bool { return strings.EqualFold(g.Name, name) }) {
			return dashboardError(fmt.Errorf("%w: there is no user group %.100q", dashboard.ErrInvalid, name))
		}
	}
	return nil
}

// mayMakeDashboard returns why somebody may not make one more.
func (a *API) mayMakeDashboard(r *http.Request, who *access.Identity) error {
	if who.MostRole() >= model.Editor {
		return nil
	}
	saved, err := a.options.Dashboards.List(r.Context())
	if err != nil {
		return err
	}
	own := 0
	for i := range saved {
		if ownsDashboard(who, &saved[i]) {
			own++
		}
	}
	if own >= maxOwnDashboards {
		return denied("%s has %d dashboards, as many as can be with the role %s; delete one first", who.Name, own, who.MostRole())
	}
	return nil
}

// ownedDashboard is a dashboard as it is kept, with whose it is and who may see it as that is now.
func ownedDashboard(s *model.SavedDashboard) (*dashboard.Dashboard, error) {
	d, err := dashboard.Decode(s.Body)
	if err != nil {
		return nil, fmt.Errorf("dashboard %q as it is kept: %w", s.Name, err)
	}
	d.Owner, d.Private, d.Groups, d.Everyone = s.OwnerName, s.Private, s.Groups, s.Everyone
	return d, nil
}

// ownedBody is ownedDashboard as JSON.
func ownedBody(s *model.SavedDashboard) ([]byte, error) {
	d, err := ownedDashboard(s)
	if err != nil {
		return nil, err
	}
	return d.Encode()
}
