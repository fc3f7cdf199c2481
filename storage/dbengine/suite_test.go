package dbengine

import (
	"context"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

func suiteOptions(direct DirectIO) Options {
	o := smallOptions()
	o.DirectIO = direct
	o.Classes = []Class{{History: storagetest.Retention}}
	o.Now = storagetest.Now
	return o
}

func TestDB_suite(t *testing.T) {
	for _, files := range []struct {
		name   string
		fs     vfs.FS
		direct DirectIO
	}{{"memory", vfs.NewMem(), DirectOff}, {"memory direct", vfs.NewMem(), DirectAll}, {"os", vfs.OS{}, DirectOff}, {"os direct", vfs.OS{}, DirectAll}} {
		t.Run(files.name, func(t *testing.T) {
			dirs := map[storage.Engine]string{}
			open := func(t *testing.T, dir string) storage.Engine {
				db, err := Open(context.Background(), files.fs, dir, suiteOptions(files.direct))
				if err != nil {
					t.Fatal(err)
				}
				dirs[db] = dir
				return db
			}
			storagetest.Run(t, func(t *testing.T) storage.Engine {
				return open(t, t.TempDir())
			}, func(t *testing.T, e storage.Engine) storage.Engine {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				return open(t, dirs[e])
			})
		})
	}
}
