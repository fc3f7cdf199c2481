package confdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"tidemark/model"
)

// ErrConflict says that an object was changed by somebody else since it was read.
var ErrConflict = errors.New("changed meanwhile")

const (
	// keptVersions is how many versions of a dashboard are kept; older ones are deleted.
	keptVersions = 50
	// maxDashboards bounds how many there are.
	maxDashboards = 500
	// maxDashboardBytes bounds one version.
	maxDashboardBytes = 256 << 10

	dashboardKnown  = "d.id, d.name, d.everyone, d.owner_id, COALESCE(u.name, ''), d.private, d.groups, v.version, v.at, v.author, v.note, "
	dashboardHead   = dashboardKnown + "''"
	dashboardFields = dashboardKnown + "v.body"
	dashboardTables = " FROM dashboards d JOIN dashboard_versions v ON v.dashboard_id = d.id LEFT JOIN users u ON u.id = d.owner_id "
)

// DashboardList returns the newest version of each dashboard without its body, by name.
func (d *DB) DashboardList(ctx context.Context) ([]model.SavedDashboard, error) {
	list, err := d.dashboards(ctx, dashboardHead+dashboardTables+"WHERE v.version = d.version ORDER BY lower(d.name)")
	return list, d.wrap("list dashboards", err)
}

// Dashboards returns the newest version of each dashboard, by name.
func (d *DB) Dashboards(ctx context.Context) ([]model.SavedDashboard, error) {
	list, err := d.dashboards(ctx, dashboardFields+dashboardTables+"WHERE v.version = d.version ORDER BY lower(d.name)")
	return list, d.wrap("read dashboards", err)
}

// Dashboard returns one version of a dashboard; version zero is the newest.
func (d *DB) Dashboard(ctx context.Context, id model.DashboardID, version uint32) (model.SavedDashboard, error) {
	list, err := d.dashboards(ctx, dashboardFields+dashboardTables+"WHERE d.id = ?1 AND v.version = CASE WHEN ?2 = 0 THEN d.version ELSE ?2 END", id, version)
	switch {
	case err != nil:
		return model.SavedDashboard{}, d.wrap("read a dashboard", err)
	case len(list) == 0 && version != 0:
		return model.SavedDashboard{}, fmt.Errorf("version %d of dashboard %d: %w; the newest %d versions are kept", version, id, ErrNotFound, keptVersions)
	case len(list) == 0:
		return model.SavedDashboard{}, fmt.Errorf("dashboard %d: %w", id, ErrNotFound)
	}
	return list[0], nil
}

// DashboardVersions returns the versions of a dashboard without their bodies, the newest first.
func (d *DB) DashboardVersions(ctx context.Context, id model.DashboardID) ([]model.SavedDashboard, error) {
	list, err := d.dashboards(ctx, dashboardHead+dashboardTables+"WHERE d.id = ? ORDER BY v.version DESC", id)
	if err == nil && len(list) == 0 {
		return nil, fmt.Errorf("dashboard %d: %w", id, ErrNotFound)
	}
	return list, d.wrap("read the versions of a dashboard", err)
}

func (d *DB) dashboards(ctx context.Context, query string, args ...any) ([]model.SavedDashboard, error) {
	rows, err := d.sql.QueryContext(ctx, "SELECT "+query, args...)
	if err != nil {
		return nil, err
	}
	var list []model.SavedDashboard
	err = each(rows, func(r *sql.Rows) error {
		var s model.SavedDashboard
		var groups string
		if err := r.Scan(&s.ID, &s.Name, &s.Everyone, &s.Owner, &s.OwnerName, &s.Private, &groups, &s.Version, &s.At, &s.Author, &s.Note, &s.Body); err != nil {
			return err
		}
		if s.OwnerName == "" { // a user who was deleted
			s.Owner = 0
		}
		var err error
		s.Groups, err = unpack[string](groups)
		list = append(list, s)
		return err
	})
	return list, err
}

// PutDashboard saves a new version and returns it with its id and number. s.ID zero makes a new dashboard; else s.Version is the version that
// the change was made from, and ErrConflict says that there is a newer one.
func (d *DB) PutDashboard(ctx context.Context, s model.SavedDashboard) (model.SavedDashboard, error) {
	err := d.changeDashboards(ctx, "save a dashboard", func(c *change) error {
		var err error
		s, err = c.putDashboard(ctx, s)
		return err
	})
	return s, err
}

// changeDashboards is change for what people do on a page: why it is refused is told without the name of the database's file.
func (d *DB) changeDashboards(ctx context.Context, what string, f func(*change) error) error {
	var inner error
	err := d.change(ctx, what, func(c *change) error {
		inner = f(c)
		return inner
	})
	if err != nil && (errors.Is(inner, ErrConflict) || errors.Is(inner, ErrInvalid) || errors.Is(inner, ErrNotFound)) {
		return inner
	}
	return err
}

func (c *change) putDashboard(ctx context.Context, s model.SavedDashboard) (model.SavedDashboard, error) {
	if len(s.Body) > maxDashboardBytes {
		return s, fmt.Errorf("dashboard %q: %w; %d bytes, at most %d", s.Name, ErrInvalid, len(s.Body), maxDashboardBytes)
	}
	other, err := c.id(ctx, "SELECT id FROM dashboards WHERE lower(name) = lower(?)", s.Name)
	if err != nil {
		return s, err
	}
	if other != 0 && model.DashboardID(other) != s.ID {
		return s, fmt.Errorf("dashboard %q: %w; there is another one of this name, choose a different one", s.Name, ErrInvalid)
	}
	if s.ID == 0 {
		if s, err = c.newDashboard(ctx, s); err != nil {
			return s, err
		}
	} else if err := c.nextVersion(ctx, &s); err != nil {
		return s, err
	}
	err = c.exec(ctx, "INSERT INTO dashboard_versions (dashboard_id, version, at, author, note, body) VALUES (?, ?, ?, ?, ?, ?)", s.ID, s.Version, s.At, s.Author, s.Note, string(s.Body))
	if err == nil {
		err = c.exec(ctx, "DELETE FROM dashboard_versions WHERE dashboard_id = ? AND version <= ?", s.ID, int64(s.Version)-keptVersions)
	}
	return s, err
}

func (c *change) newDashboard(ctx context.Context, s model.SavedDashboard) (model.SavedDashboard, error) {
	count, err := c.id(ctx, "SELECT count(*) FROM dashboards")
	if err != nil {
		return s, err
	}
	if count >= maxDashboards {
		return s, fmt.Errorf("dashboard %q: %w; there are %d already, delete some first", s.Name, ErrInvalid, count)
	}
	s.Version = 1
	id, err := c.insert(ctx, "INSERT INTO dashboards (name, everyone, owner_id, private, groups, version) VALUES (?, ?, ?, ?, ?, ?)", s.Name, s.Everyone, s.Owner, s.Private, pack(s.Groups), s.Version)
	s.ID = model.DashboardID(id)
	return s, err
}

func (c *change) nextVersion(ctx context.Context, s *model.SavedDashboard) error {
	newest, err := c.id(ctx, "SELECT version FROM dashboards WHERE id = ?", s.ID)
	switch {
	case err != nil:
		return err
	case newest == 0:
		return fmt.Errorf("dashboard %d: %w; it was deleted", s.ID, ErrNotFound)
	case uint32(newest) != s.Version:
		return fmt.Errorf("dashboard %q: %w; you changed version %d, and version %d was saved since", s.Name, ErrConflict, s.Version, newest)
	}
	s.Version++
	return c.exec(ctx, "UPDATE dashboards SET name = ?, everyone = ?, owner_id = ?, private = ?, groups = ?, version = ? WHERE id = ?", s.Name, s.Everyone, s.Owner, s.Private, pack(s.Groups), s.Version, s.ID)
}

// DeleteDashboard deletes a dashboard with all its versions.
func (d *DB) DeleteDashboard(ctx context.Context, id model.DashboardID) error {
	return d.changeDashboards(ctx, "delete a dashboard", func(c *change) error {
		found, err := c.id(ctx, "SELECT id FROM dashboards WHERE id = ?", id)
		if err == nil && found == 0 {
			err = fmt.Errorf("dashboard %d: %w", id, ErrNotFound)
		}
		if err != nil {
			return err
		}
		return c.exec(ctx, "DELETE FROM dashboards WHERE id = ?", id)
	})
}

// ApplyDashboards saves and deletes several dashboards: all of it or nothing.
func (d *DB) ApplyDashboards(ctx context.Context, all model.DashboardChange) error {
	return d.changeDashboards(ctx, "apply dashboards", func(c *change) error {
		for _, name := range all.Deletes {
			if err := c.exec(ctx, "DELETE FROM dashboards WHERE lower(name) = lower(?)", name); err != nil {
				return err
			}
		}
		for _, s := range all.Puts {
			id, err := c.id(ctx, "SELECT id FROM dashboards WHERE lower(name) = lower(?)", s.Name)
			if err != nil {
				return err
			}
			if s.ID = model.DashboardID(id); id != 0 {
				version, err := c.id(ctx, "SELECT version FROM dashboards WHERE id = ?", id)
				if err != nil {
					return err
				}
				s.Version = uint32(version)
			}
			s.At, s.Author = all.At, all.Author
			if _, err := c.putDashboard(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}
