package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"tidemark/api"
)

// FindStorageFolder looks at an engine's folder.
func FindStorageFolder(dir string) (StorageFolder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return StorageFolder{}, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return StorageFolder{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return StorageFolder{}, fmt.Errorf("%s has no inode", dir)
	}
	return StorageFolder{Folder: dir, Device: uint64(s.Dev), Inode: s.Ino}, nil
}

func (s *snapshots) folderRoute() api.Route {
	return api.Route{
		Method: http.MethodGet, Pattern: "/api/storage/folder", Permission: api.Administer,
		Handler: api.JSON(func(*http.Request) (any, error) { return FindStorageFolder(filepath.Join(s.data, "engine")) }),
		Doc:     &api.Doc{Summary: "The folder of the engine, for tools on the same machine.", Answer: StorageFolder{}},
	}
}
