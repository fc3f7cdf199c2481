package server

import (
	"context"
	"errors"
	"fmt"

	"tidemark/confdb"
	"tidemark/internal/vfs"
)

// MoveConfiguration moves the configuration of a server that does not run between its data folder and PostgreSQL; a folder in use is ErrInUse.
func MoveConfiguration(ctx context.Context, data string, o confdb.MoveOptions) (moved confdb.Moved, err error) {
	fsys := vfs.OS{}
	if _, err := fsys.Stat(data); err != nil {
		return moved, fmt.Errorf("the data folder %s: %w; check the name, or make the folder first if it is to be a new one", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return moved, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return confdb.Move(ctx, data, o)
}
