package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// follower reads the lines that are added to a file, over its rotation: a file that was renamed is read to its end before the new one begins, one
// that was cut is read from its start. It begins at the end of what is there. It belongs to one goroutine.
type follower struct {
	path string
	// line gets every whole line without its end, valid during the call; nil for one over the limit.
	line  func([]byte)
	limit int

	file     *os.File
	began    bool // the file was there once, so that the next one is read from its start
	offset   int64
	held     []byte // the beginning of a line whose end is not there yet
	skipping bool   // until the end of a line over the limit
	buffer   []byte
}

const (
	followBuffer = 64 << 10
	// followRead bounds what one call reads, so that a log of gigabytes does not hold up the rest.
	followRead = 16 << 20
)

// poll reads what is new.
func (f *follower) poll() error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.buffer == nil {
		f.buffer = make([]byte, followBuffer)
	}
	for total := 0; total < followRead; {
		n, err := f.file.Read(f.buffer)
		f.offset += int64(n)
		total += n
		f.split(f.buffer[:n])
		if errors.Is(err, io.EOF) {
			return f.turn()
		}
		if err != nil {
			return fmt.Errorf("follow %s: %w", f.path, err)
		}
	}
	return nil
}

func (f *follower) open() error {
	file, err := os.Open(f.path)
	if err != nil {
		f.began = f.began || errors.Is(err, os.ErrNotExist) // What comes later is new.
		return fmt.Errorf("follow: %w", err)
	}
	f.offset = 0
	if !f.began {
		if f.offset, err = file.Seek(0, io.SeekEnd); err != nil {
			file.Close()
			return fmt.Errorf("follow %s: %w", f.path, err)
		}
		f.skipping = f.offset > 0 && !endsLine(file, f.offset)
	}
	f.file, f.began = file, true
	return nil
}

// endsLine reports whether the byte before an offset ends a line.
func endsLine(file *os.File, offset int64) bool {
	var last [1]byte
	_, err := file.ReadAt(last[:], offset-1)
	return err == nil && last[0] == '\n'
}

// turn looks, at the end of the file, whether it is still the one at its path.
func (f *follower) turn() error {
	here, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.path, err)
	}
	if here.Size() < f.offset { // It was cut.
		f.held, f.skipping = f.held[:0], false
		f.offset = 0
		_, err := f.file.Seek(0, io.SeekStart)
		return err
	}
	there, err := os.Stat(f.path)
	if err == nil && os.SameFile(here, there) || errors.Is(err, os.ErrNotExist) {
		return nil // Until the new one is there, the old one may still grow.
	}
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	f.close()
	return nil
}

// split hands on the whole lines.
func (f *follower) split(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if !f.skipping && len(f.held)+len(b) > f.limit {
				f.held, f.skipping = f.held[:0], true
				f.line(nil)
			}
			if !f.skipping {
				f.held = append(f.held, b...)
			}
			return
		}
		switch {
		case f.skipping:
			f.skipping = false
		case len(f.held)+end > f.limit:
			f.line(nil)
		case len(f.held) > 0:
			f.line(append(f.held, b[:end]...))
		default:
			f.line(b[:end])
		}
		f.held = f.held[:0]
		b = b[end+1:]
	}
}

// close lets go of the file; the next poll opens the one at the path.
func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	clear(f.buffer)
	clear(f.held[:cap(f.held)])
	f.held, f.skipping = f.held[:0], false
}
