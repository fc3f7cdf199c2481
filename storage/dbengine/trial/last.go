package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FileName is the file of the data folder with the report of the last trial.
const FileName = "trial.json"

// maxLastBytes bounds that file: it has at most 64 candidates.
const maxLastBytes = 256 << 10

// Last is a report with when it was made.
type Last struct {
	// At is in Unix milliseconds.
	At int64 `json:"at"`
	Report
}

// Save leaves a report in a data folder, in the place of the one before. Everybody may read it: it has figures and no values.
func (r *Report) Save(data string, at time.Time) (err error) {
	b, err := json.MarshalIndent(&Last{At: at.UnixMilli(), Report: *r}, "", " ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(data, FileName+".*")
	if err != nil {
		return fmt.Errorf("keep the report of the trial: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("keep the report of the trial: %w", err), os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(data, FileName))
}

// ReadLast reads the report of the last trial in a data folder; nil if there was none.
func ReadLast(data string) (*Last, error) {
	f, err := os.Open(filepath.Join(data, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLastBytes+1))
	if err != nil {
		return nil, err
	}
	return decodeLast(b)
}

// decodeLast reads a report; one that is not as Save writes it is an error that says what to do.
func decodeLast(b []byte) (*Last, error) {
	if len(b) > maxLastBytes {
		return nil, fmt.Errorf("%s has more than %d bytes; remove it, or try codecs again", FileName, maxLastBytes)
	}
	l := &Last{}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%s cannot be read; remove it, or try codecs again: %w", FileName, err)
	}
	if l.At <= 0 || l.Rounds < 0 || len(l.Candidates) > maxCandidates {
		return nil, fmt.Errorf("%s is no report of a trial: time %d, %d rounds, %d candidates; remove it, or try codecs again", FileName, l.At, l.Rounds, len(l.Candidates))
	}
	return l, nil
}
