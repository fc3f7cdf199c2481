package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/internal/vfs"
)

// File is a file to import.
type File struct {
	Name   string
	Source []byte
}

// ImportOffline imports Zabbix exports into the data folder of a server that does not run. It returns the reports of the files that
// could be read; a folder in use is ErrInUse.
func ImportOffline(ctx context.Context, data string, files []File, logger *slog.Logger) (reports []*confdb.Report, err error) {
	fsys := vfs.OS{}
	if _, err := fsys.Stat(data); err != nil {
		return nil, fmt.Errorf("the data folder %s: %w; check the name, or make the folder first if it is to be a new one", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	ids := &itemIDs{}
	db, err := confdb.Open(ctx, data, confdb.Options{IDs: ids, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := openCatalog(ctx, fsys, db, 0, catalog.Options{Logger: logger}, data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	ids.catalog = c
	for _, f := range files {
		report, err := db.Import(ctx, f.Name, f.Source, confdb.ImportOptions{Collected: collectedTypes()})
		if err != nil {
			return reports, err // names the file already
		}
		reports = append(reports, report)
	}
	return reports, nil
}
