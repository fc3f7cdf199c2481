package confdb

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/model"
)

// counter gives ids as the catalog does.
type counter struct{ last model.ItemID }

func (c *counter) NextItemID() (model.ItemID, error) {
	c.last++
	return c.last, nil
}

// open opens a database whose item ids begin behind those that an earlier one in the same folder can have given.
func open(t testing.TB, dir string) *DB {
	t.Helper()
	ids := &counter{}
	if wasOpened(dir) {
		ids.last = 1000
	}
	d, err := Open(context.Background(), dir, options(dir, Options{IDs: ids}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func importFile(t testing.TB, d *DB, name string) *Report {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Import(context.Background(), name, src, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hosts(t testing.TB, d *DB) map[string]*model.HostConfig {
	t.Helper()
	_, ids, _, err := d.Changes(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]*model.HostConfig)
	err = d.HostConfigs(context.Background(), ids, func(h *model.HostConfig) error {
		list[h.Host.Host] = h
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOpen_refusesSecond(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := Open(context.Background(), dir, options(dir, Options{}))
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("second Open: %v, want ErrInUse", err)
	}
	if want := "in use by another tidemark; stop it or use --http"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not say %q", err, want)
	}
}

func TestOpen_again(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	importFile(t, d, "template-6.0.yaml")
	importFile(t, d, "host-7.0.json")
	before := hosts(t, d)["queue-1"]
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	after := hosts(t, open(t, dir))["queue-1"]
	if len(after.Items) != len(before.Items) || after.Items[0].ID != before.Items[0].ID {
		t.Errorf("after reopening %v, before %v", after.Items, before.Items)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if os.Getenv(onPostgres) == "" && !slices.Contains(names, FileName) {
		t.Errorf("the folder has %v, want %s", names, FileName)
	}
}

// TestOpen_needsNoSharedMemoryFile opens what a kill left behind: on a full disk there is no room for such a file.
func TestOpen_needsNoSharedMemoryFile(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	first := open(t, dir)
	importFile(t, first, "template-6.0.yaml")
	importFile(t, first, "host-7.0.json")
	for _, name := range []string{FileName, FileName + "-wal"} {
		content, err := os.ReadFile(dir + "/" + name)
		if err == nil {
			err = os.WriteFile(killed+"/"+name, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, killed)
	if _, err := os.Stat(killed + "/" + FileName + "-shm"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("shared memory file: %v, want none", err)
	}
	if hosts(t, d)["queue-1"] == nil {
		t.Error("the host is missing")
	}
}

// TestRebuild damages a database in several ways: Open or the first use says ErrDamaged, and Rebuild keeps what can be read.
func TestRebuild(t *testing.T) {
	whole := t.TempDir()
	d := open(t, whole)
	importFile(t, d, "template-6.0.yaml")
	importFile(t, d, "host-7.0.json")
	// A page of the schema takes the tables along that it names; any other takes rows.
	var page int
	if err := d.sql.QueryRow("SELECT max(pageno) FROM dbstat WHERE name <> 'sqlite_schema'").Scan(&page); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(whole + "/" + FileName)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty page":  func(b []byte) []byte { clear(b[(page-1)*4096 : page*4096]); return b },
		"cut in half": func(b []byte) []byte { return b[:len(b)/2] },
		"no database": func(b []byte) []byte { copy(b, "something else"); return b },
		"nothing":     func(b []byte) []byte { return bytes.Repeat([]byte{0xa5}, len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/"+FileName, damage(bytes.Clone(content)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Rebuild(t.Context(), dir, Options{}); err != nil {
				t.Fatal(err)
			}
			d := open(t, dir)
			importFile(t, d, "template-6.0.yaml")
			kept := hosts(t, d)["queue-1"]
			if name == "empty page" && (kept == nil || len(kept.Items) == 0) {
				t.Errorf("the host is lost with one page")
			}
			if aside, _ := filepath.Glob(dir + "/" + FileName + ".damaged-*"); len(aside) != 1 {
				t.Errorf("the damaged file was not kept: %v", aside)
			}
			var n int
			if err := d.sql.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&n); err != nil || n != 0 {
				t.Errorf("%d rows without their owner, %v", n, err)
			}
		})
	}
	t.Run("is told", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/"+FileName, bytes.Repeat([]byte{0xa5}, 8192), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v, want ErrDamaged", err)
		}
	})
}
