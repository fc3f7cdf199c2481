package server

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tidemark/internal/vfs"
)

func TestConnectionsFor(t *testing.T) {
	for files, want := range map[uint64]int{0: 4, 40: 4, 64: 12, 1024: 492, 1 << 20: 2048, math.MaxUint64: 2048} {
		if got := connectionsFor(files); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", files, got, want)
		}
	}
}

// TestLockFolder tells a folder that somebody uses from one that cannot be used.
func TestLockFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, lockFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := lockFolder(vfs.OS{}, dir); err == nil || errors.Is(err, ErrInUse) {
		t.Errorf("a folder without a lock file: %v, want an error other than ErrInUse", err)
	}
}
