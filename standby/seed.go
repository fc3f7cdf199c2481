package standby

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidemark/confdb"
	"tidemark/model"
	"tidemark/snapshot"
)

const (
	// seedFolder is where a seed is put together, in the data folder.
	seedFolder = "seed"
	// readyName is the file in it that says that it is whole.
	readyName = "ready.json"
)

// seeded are the parts of a data folder that a seed replaces.
var seeded = []string{"engine", "catalog", confdb.FileName, confdb.SecretFileName}

// SeedOptions say how a data folder becomes a standby's.
type SeedOptions struct {
	// Data is the folder; the caller holds its lock, and nothing in it is open.
	Data   string
	Client *Client
	// Standby names the one that asks, Address is where it can be reached.
	Standby, Address string
	Progress         func(snapshot.Progress)
	Logger           *slog.Logger
}

// Seed copies the primary's data. What the folder held is removed when all is there; what is equal in both is not sent.
func Seed(ctx context.Context, o SeedOptions) error {
	work := filepath.Join(o.Data, seedFolder)
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	ask := &LogRequest{Standby: o.Standby, Address: o.Address, Seeding: true}
	first, err := o.Client.log(ctx, ask)
	if err != nil {
		return fmt.Errorf("ask %s for its data: %w", o.Client.Address, err)
	}
	remote, err := o.Client.takeSnapshot(ctx, "standby-"+time.Now().UTC().Format("20060102-150405.000"))
	if err != nil {
		return fmt.Errorf("have %s make a snapshot: %w", o.Client.Address, err)
	}
	defer func() {
		if err := remote.remove(ctx); err != nil {
			o.Logger.Warn("the snapshot at the primary could not be removed", "name", remote.name, "error", err)
		}
	}()
	copying := seeding{o: o, work: work, remote: remote, ask: ask, asked: time.Now()}
	if err := copying.files(ctx); err != nil {
		return err
	}
	state := State{
		Cluster: first.Cluster, Epoch: first.Epoch, Role: Standby, Primary: o.Client.Address, Seed: model.LSN(remote.manifest.LSN), FollowedEpoch: first.Epoch,
		Node: o.Standby,
	}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(work, readyName), text); err != nil {
		return err
	}
	return FinishSeed(o.Data)
}

// seeding is one Seed.
type seeding struct {
	o      SeedOptions
	work   string
	remote *remoteSnapshot
	ask    *LogRequest
	asked  time.Time
	at     snapshot.Progress
}

func (s *seeding) files(ctx context.Context) error {
	m := s.remote.manifest
	s.at.TotalBytes = m.Bytes()
	folders := map[string]bool{s.work: true}
	for i := range m.Files {
		f := &m.Files[i]
		if !wanted(f.Path) {
			continue
		}
		name := filepath.Join(s.work, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		folders[filepath.Dir(name)] = true
		s.at.File = f.Path
		if err := s.file(ctx, f, name); err != nil {
			return fmt.Errorf("copy %s from %s: %w", f.Path, s.o.Client.Address, err)
		}
		// The primary keeps its log only for those who ask.
		if time.Since(s.asked) > keepFor/10 {
			if _, err := s.o.Client.log(ctx, s.ask); err != nil {
				return err
			}
			s.asked = time.Now()
		}
	}
	for folder := range folders {
		if err := syncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a file of a snapshot belongs to what is seeded.
func wanted(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	for _, name := range seeded {
		if top == name {
			return true
		}
	}
	return false
}

// file links what the data folder has, and copies the rest.
func (s *seeding) file(ctx context.Context, f *snapshot.File, name string) error {
	if linked, err := s.link(f, name); err != nil || linked {
		s.advance(f.Bytes)
		return err
	}
	in, err := s.remote.Open(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := fs.FileMode(0o640)
	if f.Path == confdb.SecretFileName {
		mode = 0o600
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// One byte more tells a file that is longer, without the disk filling up.
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(io.TeeReader(in, writerFunc(func(p []byte) { s.advance(int64(len(p))) })), f.Bytes+1))
	if err == nil && n > f.Bytes {
		err = fmt.Errorf("more than the %d bytes that the snapshot has", f.Bytes)
	} else if err == nil && n < f.Bytes {
		err = fmt.Errorf("%d bytes, expected %d", n, f.Bytes)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return compareCopy(f, name, hex.EncodeToString(sum.Sum(nil)))
}

// compareCopy compares a copied file with what the manifest says: its sum, or, of what the snapshot only links, the end of a file that never changes.
func compareCopy(f *snapshot.File, name, sum string) error {
	if f.SHA256 != "" && sum != f.SHA256 {
		return fmt.Errorf("%w: SHA-256 %s, expected %s as the manifest says; it is copied again", snapshot.ErrDamaged, sum, f.SHA256)
	}
	if f.SHA256 != "" || f.Tail == "" {
		return nil
	}
	tail, err := snapshot.TailOfFile(name, f.Bytes)
	if err == nil && tail != f.Tail {
		err = fmt.Errorf("%w: its end is not the one that the manifest says; it is copied again", snapshot.ErrDamaged)
	}
	return err
}

// link takes a closed datafile or its journal that is the same here. The last bytes of a file that never changes tell it from any other.
func (s *seeding) link(f *snapshot.File, name string) (bool, error) {
	if f.Tail == "" || !strings.HasPrefix(f.Path, "engine/datafile-") && !strings.HasPrefix(f.Path, "engine/journalfile-") {
		return false, nil
	}
	own := filepath.Join(s.o.Data, filepath.FromSlash(f.Path))
	tail, err := snapshot.TailOfFile(own, f.Bytes)
	if errors.Is(err, fs.ErrNotExist) || err == nil && tail != f.Tail {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, os.Link(own, name)
}

func (s *seeding) advance(n int64) {
	s.at.DoneBytes += n
	if s.o.Progress != nil {
		s.o.Progress(s.at)
	}
}

// writerFunc lets a function see what passes.
type writerFunc func([]byte)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// FinishSeed puts a seed that is whole in the place of the data, however often it is interrupted; without one it does nothing.
func FinishSeed(data string) error {
	work := filepath.Join(data, seedFolder)
	text, err := os.ReadFile(filepath.Join(work, readyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var state State
	if err = json.Unmarshal(text, &state); err == nil {
		err = state.check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove the folder %s to begin the seeding again", filepath.Join(work, readyName), err, work)
	}
	if err := setSnapshotsAside(data); err != nil {
		return err
	}
	for _, name := range seeded {
		if _, err := os.Lstat(filepath.Join(work, name)); errors.Is(err, fs.ErrNotExist) {
			continue // moved before, or the primary has none
		} else if err != nil {
			return err
		}
		old := []string{filepath.Join(data, name)}
		if name == confdb.FileName {
			old = append(old, old[0]+"-wal", old[0]+"-shm", old[0]+"-journal")
		}
		for i := len(old) - 1; i >= 0; i-- {
			if err := os.RemoveAll(old[i]); err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(work, name), filepath.Join(data, name)); err != nil {
			return err
		}
	}
	if err := syncDir(data); err != nil {
		return err
	}
	if err := state.save(data); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(work), syncDir(data))
}

// setSnapshotsAside renames the folder of snapshots: they are of data that is not there any more, and their files would be counted for the new.
func setSnapshotsAside(data string) error {
	name := filepath.Join(data, "snapshots")
	entries, err := os.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Rename(name, name+"-before-"+time.Now().UTC().Format("20060102-150405"))
}

// SeedID names a standby whose folder may have no data yet: the id that it has, or one for this time.
func SeedID(data string) string {
	if s, found, err := Load(data); err == nil && found && s.Node != "" {
		return s.Node
	}
	return randomID(8)
}
