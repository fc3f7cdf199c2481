package server

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tidemark/internal/vfs"
)

const (
	// mostConnections is how many agents and senders are served at once where the system allows it.
	mostConnections = 2048
	// ownFiles are the descriptors that the store, the page and the process itself need.
	ownFiles = 40
)

// connectionLimit returns how many connections the trapper may hold, so that the store and the page still get descriptors when
// peers open as many as they can.
func connectionLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return mostConnections
	}
	return connectionsFor(l.Cur)
}

// connectionsFor returns the limit for a number of descriptors.
func connectionsFor(files uint64) int {
	if files <= ownFiles {
		return 4
	}
	return int(max(4, min(mostConnections, (files-ownFiles)/2)))
}

// lockFolder takes the lock of the data folder.
func lockFolder(fsys vfs.FS, data string) (io.Closer, error) {
	lock, err := fsys.Lock(filepath.Join(data, lockFile))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("%s: %w", data, ErrInUse)
	case err != nil:
		return nil, fmt.Errorf("the data folder %s cannot be used: %w", data, err)
	}
	return lock, nil
}
