package confdb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidemark/model"
)

func TestDashboards(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	first, err := d.PutDashboard(ctx, model.SavedDashboard{Name: "Fleet", At: 1, Author: "ada", Body: []byte(`{"n":1}`)})
	if err != nil || first.ID == 0 || first.Version != 1 {
		t.Fatalf("the first version is %+v, %v", first, err)
	}
	second, err := d.PutDashboard(ctx, model.SavedDashboard{ID: first.ID, Version: 1, Name: "fleet", Everyone: true, At: 2, Author: "bob", Note: "more", Body: []byte(`{"n":2}`)})
	if err != nil || second.Version != 2 {
		t.Fatalf("the second version is %+v, %v", second, err)
	}
	_, err = d.PutDashboard(ctx, model.SavedDashboard{ID: first.ID, Version: 1, Name: "Fleet", At: 3, Body: []byte(`{"n":3}`)})
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "you changed version 1, and version 2 was saved since") {
		t.Errorf("a change of an old version: %v", err)
	}
	if _, err = d.PutDashboard(ctx, model.SavedDashboard{Name: "FLEET", Body: []byte("{}")}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second one of the name: %v", err)
	}
	list, err := d.Dashboards(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "fleet" || !list[0].Everyone || list[0].Author != "bob" || string(list[0].Body) != `{"n":2}` {
		t.Errorf("list: %+v, %v", list, err)
	}
	if old, err := d.Dashboard(ctx, first.ID, 1); err != nil || string(old.Body) != `{"n":1}` || old.Author != "ada" {
		t.Errorf("the old version: %+v, %v", old, err)
	}
	if _, err := d.Dashboard(ctx, first.ID, 9); !errors.Is(err, ErrNotFound) {
		t.Errorf("a version that never was: %v", err)
	}
	if err := d.DeleteDashboard(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"delete": d.DeleteDashboard(ctx, first.ID),
		"read":   func() error { _, err := d.Dashboard(ctx, first.ID, 0); return err }(),
		"list":   func() error { _, err := d.DashboardVersions(ctx, first.ID); return err }(),
		"save": func() error {
			_, err := d.PutDashboard(ctx, model.SavedDashboard{ID: first.ID, Version: 2, Name: "x", Body: []byte("{}")})
			return err
		}(),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a deleted one: %v", what, err)
		}
	}
}

func TestDashboards_keepsSomeVersions(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	s, err := d.PutDashboard(ctx, model.SavedDashboard{Name: "x", Body: []byte("{}")})
	for range keptVersions + 4 {
		if err != nil {
			t.Fatal(err)
		}
		s, err = d.PutDashboard(ctx, s)
	}
	list, err := d.DashboardVersions(ctx, s.ID)
	if err != nil || len(list) != keptVersions || list[0].Version != keptVersions+5 || list[keptVersions-1].Version != 6 {
		t.Errorf("%d versions, %v", len(list), err)
	}
	if _, err := d.PutDashboard(ctx, model.SavedDashboard{Name: "y", Body: make([]byte, maxDashboardBytes+1)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
}

func TestApplyDashboards(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	puts := []model.SavedDashboard{{Name: "a", Body: []byte("1")}, {Name: "b", Body: []byte("1")}}
	if err := d.ApplyDashboards(ctx, model.DashboardChange{Puts: puts, At: 5, Author: "ada"}); err != nil {
		t.Fatal(err)
	}
	err := d.ApplyDashboards(ctx, model.DashboardChange{Puts: []model.SavedDashboard{{Name: "A", Body: []byte("2")}, {Name: "c", Body: make([]byte, maxDashboardBytes+1)}}, Deletes: []string{"b"}})
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad one among them: %v", err)
	}
	if got := dashboardNames(t, d); got != "a 1 ada, b 1 ada" {
		t.Errorf("after a refused change: %s", got)
	}
	if err := d.ApplyDashboards(ctx, model.DashboardChange{Puts: []model.SavedDashboard{{Name: "A", Body: []byte("2")}}, Deletes: []string{"b"}, Author: "bob"}); err != nil {
		t.Fatal(err)
	}
	if got := dashboardNames(t, d); got != "A 2 bob" {
		t.Errorf("after the change: %s", got)
	}
}

func dashboardNames(t *testing.T, d *DB) string {
	t.Helper()
	list, err := d.Dashboards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list {
		names = append(names, fmt.Sprintf("%s %d %s", s.Name, s.Version, s.Author))
	}
	return strings.Join(names, ", ")
}
