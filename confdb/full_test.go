package confdb

import (
	"database/sql"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDiskFull: SQLite's word for a full disk is the system's as well. A limit of pages is what a full disk is to SQLite.
func TestDiskFull(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "full.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, text := range []string{"PRAGMA max_page_count = 3", "CREATE TABLE t (x BLOB)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	_, err = db.Exec("INSERT INTO t VALUES (zeroblob(100000))")
	if err == nil || !errors.Is(diskFull(err), syscall.ENOSPC) {
		t.Errorf("a full database says %v", err)
	}
	if _, err = db.Exec("nonsense"); errors.Is(diskFull(err), syscall.ENOSPC) || !errors.Is(diskFull(err), err) {
		t.Errorf("nonsense became %v", diskFull(err))
	}
}
