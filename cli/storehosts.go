package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tidemark/catalog"
	"tidemark/internal/vfs"
	"tidemark/model"
)

// maxCatalogBytes bounds a catalog that is read as a whole.
const maxCatalogBytes = 1 << 30

// hostsOf returns a function that says to which host an item belongs, from a copy of the catalog in memory, since opening may change files; nil if there is
// none, as beside an engine folder.
func hostsOf(ctx context.Context, dir string) (func(model.ItemID) uint64, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no function is the answer
	}
	if err != nil {
		return nil, err
	}
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/catalog"); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name.Type().IsRegular() {
			if err := copyInto(mem, filepath.Join("/catalog", name.Name()), filepath.Join(dir, name.Name())); err != nil {
				return nil, err
			}
		}
	}
	c, err := catalog.Open(ctx, mem, "/catalog", catalog.Options{})
	if err != nil {
		return nil, err
	}
	return func(id model.ItemID) uint64 {
		entry, _ := c.Item(id)
		return uint64(entry.HostID)
	}, nil
}

func copyInto(mem *vfs.Mem, to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxCatalogBytes+1))
	if err != nil {
		return err
	}
	if len(b) > maxCatalogBytes {
		return fmt.Errorf("%s has more than %d bytes; give its engine folder to leave out the hosts", from, maxCatalogBytes)
	}
	out, err := mem.Create(to)
	if err != nil {
		return err
	}
	_, err = out.WriteAt(b, 0)
	return errors.Join(err, out.Close())
}
