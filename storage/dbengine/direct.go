package dbengine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
)

// DirectIO says what is read and written past the system's cache, where the file system takes that.
type DirectIO uint8

// The uses of direct I/O.
const (
	// DirectAuto is for all writes of datafiles, and for reads of pairs as a whole: to sum them up, and to write them anew.
	DirectAuto DirectIO = iota
	// DirectOff leaves everything to the system's cache.
	DirectOff
	// DirectAll is DirectAuto, and what queries read. For comparisons.
	DirectAll
)

// ParseDirectIO reads auto, off or all.
func ParseDirectIO(text string) (DirectIO, error) {
	for d := DirectAuto; d <= DirectAll; d++ {
		if d.String() == text {
			return d, nil
		}
	}
	return DirectAuto, fmt.Errorf("direct I/O %.40q: expected auto, off or all", text)
}

// String is what ParseDirectIO reads.
func (d DirectIO) String() string {
	return [...]string{"auto", "off", "all"}[d]
}

const (
	// directBuffers of directBufferBytes bound the memory for direct I/O.
	directBuffers     = 8
	directBufferBytes = 512 << 10
	probeName         = "direct" + tempSuffix
)

// direct is what the engine does past the system's cache. Nothing if buffers is nil.
type direct struct {
	buffers *vfs.Buffers
	use     DirectIO
	// refused is why the file system is not used so.
	refused error
}

// possible reports whether datafiles are written directly, and read so as a whole; queries whether what queries read is.
func (d *direct) possible() bool { return d.buffers != nil }

func (d *direct) queries() bool { return d.buffers != nil && d.use == DirectAll }

// DirectState says how files are read and written.
type DirectState struct {
	// Setting is what was asked for, Active whether it is done.
	Setting string `json:"setting"`
	Active  bool   `json:"active"`
	// Reason says why it is not.
	Reason string `json:"reason,omitempty"`
	// ReadBytes and WrittenBytes are what was read and written directly since the start.
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	// BufferBytes is the memory for it, at most BufferLimitBytes.
	BufferBytes      int64 `json:"buffer_bytes"`
	BufferLimitBytes int64 `json:"buffer_limit_bytes"`
}

// Direct says how files are read and written.
func (db *DB) Direct() DirectState {
	s := DirectState{Setting: db.o.DirectIO.String()}
	d := &db.direct
	if d.refused != nil {
		s.Reason = d.refused.Error()
	}
	if b := d.buffers; b != nil {
		s.Active = true
		s.ReadBytes, s.WrittenBytes = b.ReadBytes(), b.WrittenBytes()
		s.BufferBytes, s.BufferLimitBytes = b.HeldBytes(), b.LimitBytes()
	}
	return s
}

// probeDirect finds out whether the folder's file system takes direct I/O: a block is written and read in a file of its own. Its room is counted; if there is none,
// what the kernel says of the empty file must do.
func (db *DB) probeDirect() {
	d := &db.direct
	if d.use = db.o.DirectIO; d.use == DirectOff {
		return
	}
	buffers := vfs.NewBuffers(directBuffers, directBufferBytes)
	if d.refused = db.tryDirect(buffers); d.refused == nil {
		d.buffers = buffers
		return
	}
	if !errors.Is(d.refused, errors.ErrUnsupported) {
		db.o.Logger.Warn("direct I/O could not be tried; files go through the system's cache", "error", d.refused)
	}
}

func (db *DB) tryDirect(buffers *vfs.Buffers) (err error) {
	name := filepath.Join(db.dir, probeName)
	f, err := db.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.fs.Remove(name)) }()
	if err := f.Close(); err != nil {
		return err
	}
	file, err := vfs.OpenDirectly(db.fs, name, true, buffers)
	if err != nil {
		return err
	}
	if !db.space.take(blockBytes) {
		return file.Close()
	}
	defer db.space.release(blockBytes)
	want, got := bytes.Repeat([]byte("direct"), 100), make([]byte, 600)
	_, err = file.WriteAt(want, 0)
	if err == nil {
		_, err = file.ReadAt(got, 0)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write a block directly: %w", err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("a block that was written directly is read as something else: %w", errors.ErrUnsupported)
	}
	return nil
}

// create creates a file that is written once, from its start to its end.
func (db *DB) create(name string) (vfs.File, error) {
	f, err := db.fs.Create(name)
	if err != nil || !db.direct.possible() {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, db.fs.Remove(name))
	}
	if f, err = vfs.OpenDirectly(db.fs, name, true, db.direct.buffers); err != nil {
		return nil, errors.Join(err, db.fs.Remove(name))
	}
	return f, nil
}

// openOut opens what the pages of a pair that grows are written to.
func (db *DB) openOut(p *pair) {
	p.out = p.file
	if !db.direct.possible() {
		return
	}
	out, err := datafile.OpenDirectly(db.fs, db.dir, p.id, db.direct.buffers)
	if err != nil {
		db.o.Logger.Warn("a datafile could not be opened for direct I/O; it goes through the system's cache", "file", p.id.Name(), "error", err)
		return
	}
	p.out = out
}

// closeOut ends writing to a pair. What a failed write left behind its last extent is cut off.
func (db *DB) closeOut(p *pair) error {
	var err error
	if p.out != p.file {
		if !p.failed {
			err = p.out.SyncAll()
		}
		if e := p.out.Close(); !p.failed {
			err = errors.Join(err, e)
		}
	}
	p.out = nil
	if p.failed || err != nil {
		err = p.file.Truncate(p.size)
	}
	return err
}

// reader is what a pair is read from that is read as a whole.
func (db *DB) openPassing(p *pair) (io.ReaderAt, func(), error) {
	if db.direct.possible() {
		f, err := vfs.OpenDirectly(db.fs, filepath.Join(db.dir, p.id.Name()), false, db.direct.buffers)
		if err == nil {
			return f, func() { _ = f.Close() }, nil // it was only read
		}
	}
	f, err := p.files.use(p)
	if err != nil {
		return nil, nil, err
	}
	return f.Raw(), func() { p.files.done(p) }, nil
}

// directIO says whether a datafile can be opened directly.
func directIO(f *folder, ids []datafile.ID) string {
	if len(ids) == 0 {
		return "unknown"
	}
	file, err := f.fs.OpenDirect(filepath.Join(f.dir, ids[0].Name()), false)
	if err != nil {
		return "no: " + err.Error()
	}
	_ = file.Close() // nothing was done with it
	return "yes"
}
