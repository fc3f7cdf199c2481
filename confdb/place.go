package confdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PlaceFileName is the file in the data folder that says in which PostgreSQL database the configuration is, so that commands that are given
// the folder alone find it too. Open writes it; only its owner may read it, because a connection string can have a password.
const PlaceFileName = "config-postgres.json"

// maxPlaceBytes bounds the file.
const maxPlaceBytes = 16 << 10

// place is what the file says.
type place struct {
	DSN    string `json:"dsn"`
	Schema string `json:"schema"`
}

// Exists reports whether a data folder has a configuration, or says where it is.
func Exists(dir string) bool {
	for _, name := range []string{FileName, PlaceFileName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// InPostgres reports whether the configuration of a data folder is in PostgreSQL.
func InPostgres(dir string) (bool, error) {
	p, err := readPlace(dir)
	return p.DSN != "", err
}

// readPlace returns an empty place when the folder has its own configuration.
func readPlace(dir string) (place, error) {
	path := filepath.Join(dir, PlaceFileName)
	var p place
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil && info.Size() > maxPlaceBytes {
		return p, fmt.Errorf("%s: %d bytes, at most %d", path, info.Size(), maxPlaceBytes)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return p, fmt.Errorf("read where the configuration is: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s: %w; expected {\"dsn\": …, \"schema\": …}; without the file configuration.engine and configuration.dsn say where the configuration is", path, err)
	}
	if p.DSN == "" {
		return p, fmt.Errorf("%s: no dsn", path)
	}
	return p, nil
}

// findPlace fills in where the configuration is. A folder that has one of its own is not left for an empty one in PostgreSQL.
func findPlace(dir string, o *Options) error {
	p, err := readPlace(dir)
	if err != nil && o.DSN == "" {
		return err
	}
	if o.DSN == "" {
		o.DSN, o.Schema = p.DSN, p.Schema
		return nil
	}
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil && p.DSN == "" {
		return fmt.Errorf("%s: the folder has a configuration of its own, and another in PostgreSQL is asked for; move it there with 'tidemark config migrate', or rename the file",
			filepath.Join(dir, FileName))
	}
	return nil
}

// writePlace writes the file when it says something else.
func writePlace(dir string, is place) error {
	if was, err := readPlace(dir); err == nil && was == is {
		return nil
	}
	text, err := json.MarshalIndent(is, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, PlaceFileName)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write where the configuration is: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write where the configuration is: %w", err)
	}
	return os.Rename(path+".new", path)
}
