package confdb

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"tidemark/model"
)

// TestOpen_migrates opens a database as the first version of the schema left it. Each later version adds its own dump
// beside schema-1.sql.
func TestOpen_migrates(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/schema-1.sql")
	if err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", dataSource(dir+"/"+FileName))
	if err != nil {
		t.Fatal(err)
	}
	old.SetMaxOpenConns(1)
	if _, err := old.ExecContext(ctx, string(script)); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	h := hosts(t, d)["h"]
	if h == nil || h.Host.Name != "Host" || len(h.Items) != 1 || h.Items[0].ID != 41 || h.Items[0].Steps[0].Type != model.StepMultiplier {
		t.Errorf("host after the migration: %+v", h)
	}
	if len(h.Triggers) != 1 || h.Triggers[0].Expression != "last(/h/k)>{$M}" || h.Triggers[0].Severity != model.High {
		t.Errorf("triggers after the migration: %+v", h.Triggers)
	}
	record3(t, d)
	if lsn, err := d.Evaluated(ctx); lsn != 77 || err != nil {
		t.Errorf("Evaluated = %d, %v, want 77", lsn, err)
	}
}

func TestOpen_refusesNewer(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	if _, err := d.sql.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(ctx, dir, options(dir, Options{}))
	if err == nil || !strings.Contains(err.Error(), "its schema is version 9999 and this program knows up to ") {
		t.Errorf("Open of a newer database: %v", err)
	}
}

func TestOpen_noDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/"+FileName, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, Options{}); err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("Open of a file that is no database: %v, want an error that names it", err)
	}
}
