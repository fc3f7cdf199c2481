package confdb

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tidemark/internal/pgtest"
	"tidemark/model"
)

// fill makes a database that has something of most kinds.
func fill(t *testing.T, d *DB) {
	t.Helper()
	ctx := context.Background()
	importFile(t, d, "template-6.0.yaml")
	importFile(t, d, "host-7.0.json")
	record3(t, d)
	if err := d.PutUser(ctx, &model.User{Name: "Ada", CreatedAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.SetGlobalMacros(ctx, []model.Macro{{Name: "{$S}", Value: "secret", Secret: true}}); err != nil {
		t.Fatal(err)
	}
	// An id that was given and is free again must not be given a second time.
	h, _, err := d.RegisterHost(ctx, "gone", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteHost(ctx, h); err != nil {
		t.Fatal(err)
	}
}

func TestMove(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	c, err := pgtest.Start("-cfsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	o := MoveOptions{DSN: c.DSN("postgres"), ToPostgres: true}
	d := open(t, dir)
	fill(t, d)
	next := nextHostID(t, d)
	want := dump(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	there, err := Move(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(there.Aside); err != nil || Exists(dir) == false {
		t.Errorf("the file was not set aside: %v", err)
	}
	if _, err := Move(ctx, dir, o); err == nil || !strings.Contains(err.Error(), "no configuration to move") {
		t.Errorf("a second move: %v", err)
	}
	d = open(t, dir)
	if d.postgres == nil || dump(t, d) != want {
		t.Errorf("in PostgreSQL %s\nwant %s", dump(t, d), want)
	}
	if id := nextHostID(t, d); id != next+1 {
		t.Errorf("the next host in PostgreSQL is %d, want %d", id, next+1)
	}
	copied := filepath.Join(t.TempDir(), FileName)
	if err := d.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	want = dump(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	restored := open(t, filepath.Dir(copied))
	if dump(t, restored) != want {
		t.Errorf("the copy has %s\nwant %s", dump(t, restored), want)
	}
	o.ToPostgres = false
	back, err := Move(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, table := range back.Tables {
		if strings.Contains("meta hosts deleted_hosts", table.Table) { // host ids were tried above
			continue
		}
		if !reflect.DeepEqual(table, there.Tables[i]) {
			t.Errorf("back %+v, there %+v", table, there.Tables[i])
		}
	}
	d = open(t, dir)
	if d.postgres != nil || dump(t, d) != want {
		t.Errorf("back in the file %s\nwant %s", dump(t, d), want)
	}
	if id := nextHostID(t, d); id != next+2 {
		t.Errorf("the next host in the file is %d, want %d", id, next+2)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	o.ToPostgres = true
	if _, err := Move(ctx, dir, o); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("a move over another configuration: %v", err)
	}
	o.Replace = true
	if _, err := Move(ctx, dir, o); err != nil {
		t.Error(err)
	}
}

// nextHostID makes a host and deletes it again.
func nextHostID(t *testing.T, d *DB) model.HostID {
	t.Helper()
	h, _, err := d.RegisterHost(t.Context(), "next", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteHost(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}
