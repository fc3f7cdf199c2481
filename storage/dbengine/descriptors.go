package dbengine

import (
	"errors"
	"sync"
	"syscall"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
)

const (
	// minOpenFiles and maxOpenFiles bound how many datafiles are kept open without a reader.
	minOpenFiles = 8
	maxOpenFiles = 1024
)

// descriptors keeps the datafiles of closed pairs open that were read last, and opens the others when they are read. The
// one of the growing pair is always open and not counted. More than limit are open only while more are being read at once.
type descriptors struct {
	fs    vfs.FS
	dir   string
	limit int
	// buffers, if not nil, are for reading files past the system's cache.
	buffers *vfs.Buffers

	mu   sync.Mutex
	open int
	// idle are the pairs whose file is open and not in use, the one used last at the end.
	idle []*pair
}

// openFilesLimit is a quarter of the descriptors that the process may have.
func openFilesLimit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return minOpenFiles
	}
	return int(min(max(r.Cur/4, minOpenFiles), maxOpenFiles))
}

// use returns the pair's file, which stays open until done.
func (d *descriptors) use(p *pair) (*datafile.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.file == nil {
		f, err := datafile.Reopen(d.fs, d.dir, p.id, d.buffers)
		if err != nil {
			return nil, err
		}
		p.file = f
		d.open++
		d.evict()
	} else if p.users == 0 {
		d.unlist(p)
	}
	p.users++
	return p.file, nil
}

// done ends a use.
func (d *descriptors) done(p *pair) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	d.idle = append(d.idle, p)
	d.evict()
}

// finish ends the use that a pair has of its own file while it grows.
func (d *descriptors) finish(p *pair) {
	d.mu.Lock()
	d.open++
	d.mu.Unlock()
	d.done(p)
}

// evict closes what was used longest ago; d.mu is held. A file that was read has nothing to lose when it is closed.
func (d *descriptors) evict() {
	for d.open > d.limit && len(d.idle) > 0 {
		p := d.idle[0]
		d.idle = append(d.idle[:0], d.idle[1:]...)
		_ = p.file.Close()
		p.file = nil
		d.open--
	}
}

func (d *descriptors) unlist(p *pair) {
	for i := len(d.idle) - 1; i >= 0; i-- {
		if d.idle[i] == p {
			d.idle = append(d.idle[:i], d.idle[i+1:]...)
			return
		}
	}
}

// drop closes a pair's files for good. Nobody uses them.
func (d *descriptors) drop(p *pair) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if p.journal != nil {
		errs = append(errs, p.journal.Close())
		p.journal = nil
	}
	if p.out != nil && p.out != p.file {
		errs = append(errs, p.out.Close())
	}
	p.out = nil
	if p.file != nil {
		before := len(d.idle)
		if d.unlist(p); len(d.idle) < before {
			d.open--
		}
		errs = append(errs, p.file.Close())
		p.file = nil
	}
	return errors.Join(errs...)
}

// readAt fills b from a byte of the datafile of a pair that is acquired.
func (p *pair) readAt(b []byte, offset int64) error {
	f, err := p.files.use(p)
	if err != nil {
		return err
	}
	defer p.files.done(p)
	return f.ReadAt(b, offset)
}
