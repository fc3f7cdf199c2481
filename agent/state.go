package agent

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"tidemark/internal/vfs"
)

// idsAhead is how many row ids are reserved with one write of the state file: an hour of 300 items at 1 s.
const idsAhead = 1 << 20

// maxStateBytes bounds the state file, which has some 150 bytes.
const maxStateBytes = 64 << 10

// saved is the content of the state file, agent.json.
type saved struct {
	Version int `json:"version"`
	// Session is the token under which the server knows the rows' ids: 32 hexadecimal digits.
	Session string `json:"session"`
	// NextID is above every id that was ever given to a row.
	NextID uint64 `json:"next_id"`
	// Taken is an id up to which the server has taken all rows; rows up to it need not be sent again.
	Taken uint64 `json:"taken"`
	// Tidemark is whether the server last spoke our extension: then the agent may measure before it answers again.
	Tidemark bool `json:"tidemark"`
}

// state is what the agent knows across restarts. Its methods may be called from several goroutines.
type state struct {
	fs   vfs.FS
	path string
	lock io.Closer

	mu    sync.Mutex
	saved saved
}

// openState reads the state file or begins a new session. A damaged file is set aside.
func openState(fsys vfs.FS, dir string, lock io.Closer, log *slog.Logger) (*state, error) {
	s := &state{fs: fsys, path: filepath.Join(dir, "agent.json"), lock: lock}
	err := s.read()
	if err == nil {
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the agent's state is damaged and was set aside; a new session begins", "file", s.path, "error", err)
		if err := fsys.Rename(s.path, s.path+".damaged"); err != nil {
			return nil, fmt.Errorf("set aside %s: %w", s.path, err)
		}
	}
	token := make([]byte, 16)
	rand.Read(token) // Never fails; it ends the program instead.
	s.saved = saved{Version: 1, Session: hex.EncodeToString(token), NextID: 1}
	return s, s.write()
}

func (s *state) read() error {
	f, err := s.fs.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size > maxStateBytes {
		return fmt.Errorf("%d bytes; expected at most %d", size, maxStateBytes)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := json.Unmarshal(b, &s.saved); err != nil {
		return err
	}
	if s.saved.Version != 1 {
		return fmt.Errorf("version %d; expected 1", s.saved.Version)
	}
	if raw, err := hex.DecodeString(s.saved.Session); err != nil || len(raw) != 16 {
		return fmt.Errorf("session %q; expected 32 hexadecimal digits", s.saved.Session)
	}
	s.saved.NextID = max(s.saved.NextID, 1)
	return nil
}

// write replaces the file. The caller holds mu or is alone.
func (s *state) write() error {
	b, err := json.Marshal(s.saved)
	if err != nil {
		return err
	}
	part := s.path + ".part"
	if err := s.fs.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write agent state: %w", err)
	}
	f, err := s.fs.Create(part)
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.fs.Rename(part, s.path)
	}
	if err == nil {
		err = s.fs.SyncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return fmt.Errorf("write agent state: %w", err)
	}
	return nil
}

// reserve makes sure that no id from first on is given again after a kill, and returns the first id that is not
// reserved.
func (s *state) reserve(first uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved.NextID = first + idsAhead
	return s.saved.NextID, s.write()
}

// settle writes the true ids at a clean stop.
func (s *state) settle(next, taken uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved.NextID, s.saved.Taken = next, taken
	return s.write()
}

// setTidemark notes what the server speaks.
func (s *state) setTidemark(v bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved.Tidemark == v {
		return nil
	}
	s.saved.Tidemark = v
	return s.write()
}

func (s *state) get() saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved
}

func (s *state) close() error { return s.lock.Close() }
