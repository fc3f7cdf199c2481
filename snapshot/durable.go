package snapshot

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"
)

const (
	// syncAtOnceBytes is the size from which on a file is synced when it was written, not by Commit.
	syncAtOnceBytes = 8 << 20
	// maxUnsynced bounds the files that wait for Commit.
	maxUnsynced = 256
	// syncing bounds the files that are synced at one time.
	syncing = 32
)

// syncLater has a file synced by Commit, or now if much would have to wait.
func (w *Writer) syncLater(name string, size int64) error {
	w.unsynced = append(w.unsynced, name)
	if size < syncAtOnceBytes && len(w.unsynced) < maxUnsynced {
		return nil
	}
	return w.syncAll()
}

// syncAll makes everything that waits durable.
func (w *Writer) syncAll() error {
	var g errgroup.Group
	g.SetLimit(syncing)
	for _, name := range w.unsynced {
		g.Go(func() error { return syncPath(name) })
	}
	w.unsynced = w.unsynced[:0]
	return g.Wait()
}

// syncPath makes a file or folder durable.
func syncPath(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system has no such operation
	}
	return errors.Join(err, d.Close())
}
