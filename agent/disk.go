package agent

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/internal/vfs"
)

// segmentSuffix ends the names of segment files; before it stands the first row's id in 16 hexadecimal digits.
const segmentSuffix = ".rows"

// segment is one file of rows.
type segment struct {
	path            string
	firstID, lastID uint64
	// sizeBytes is the length of the undamaged part.
	sizeBytes int64
	damaged   bool
}

// disk is the part of the buffer in files. It is guarded by the buffer.
type disk struct {
	fs           vfs.FS
	log          *slog.Logger
	dir          string
	segmentBytes int64
	keepBytes    int64

	segments []segment // oldest first
	writing  vfs.File  // the last segment, when it is being written
	writer   blockWriter
	scratch  []byte

	// What take has read of the oldest segment.
	head    []row
	reading vfs.File
	reader  blockReader
	at      int64
}

// open finds the segments of earlier runs.
func (d *disk) open() error {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, segmentSuffix)
		if !ok || len(digits) != 16 {
			continue
		}
		id, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || id == 0 {
			continue
		}
		s := segment{path: filepath.Join(d.dir, name), firstID: id, lastID: id - 1}
		if err := s.scan(d.fs); err != nil {
			s.damaged = true
			// A file that a kill or a power cut left has an unfinished block at its end: no more than what was not synced.
			d.log.Warn("a file of the agent's buffer is damaged or unfinished; what is before that is used",
				"file", s.path, "offset", s.sizeBytes, "error", err)
		}
		if n := len(d.segments); n > 0 && d.segments[n-1].lastID >= s.firstID {
			d.segments[n-1].lastID = s.firstID - 1 // Rows whose write failed, and which went to the next file.
		}
		d.segments = append(d.segments, s)
	}
	return nil
}

// scan reads the whole file, checks its blocks and finds its last id and undamaged length.
func (s *segment) scan(fs vfs.FS) error {
	f, err := fs.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if err := checkMagic(f); err != nil {
		return err
	}
	s.sizeBytes = int64(len(segmentMagic))
	var buf []byte
	for s.sizeBytes < size {
		var h blockHead
		if h, buf, err = readBlock(f, s.sizeBytes, size, buf); err != nil {
			return err
		}
		if h.firstID <= s.lastID {
			return fmt.Errorf("%w: first id %d; expected more than %d", errBlock, h.firstID, s.lastID)
		}
		s.lastID = h.firstID + uint64(h.count) - 1
		s.sizeBytes += int64(blockHeaderBytes + h.payloadBytes)
	}
	return nil
}

func checkMagic(f vfs.File) error {
	var magic [len(segmentMagic)]byte
	if n, err := f.ReadAt(magic[:], 0); n < len(magic) && err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(magic[:]) != segmentMagic {
		return fmt.Errorf("%w: the file begins with %q; expected %q", errBlock, magic[:], segmentMagic)
	}
	return nil
}

// readBlock reads the head and the payload at an offset into buf, which grows as needed, and checks them.
func readBlock(f vfs.File, at, size int64, buf []byte) (blockHead, []byte, error) {
	if cap(buf) < blockHeaderBytes {
		buf = make([]byte, 64<<10)
	}
	buf = buf[:blockHeaderBytes]
	if n, err := f.ReadAt(buf, at); n < len(buf) {
		if err != nil && !errors.Is(err, io.EOF) {
			return blockHead{}, buf, err
		}
		return blockHead{}, buf, fmt.Errorf("%w: the head has %d bytes of %d", errBlock, n, len(buf))
	}
	h, err := decodeBlockHead(buf)
	if err != nil {
		return h, buf, err
	}
	whole := blockHeaderBytes + h.payloadBytes
	if at+int64(whole) > size {
		return h, buf, fmt.Errorf("%w: %d bytes of %d are there", errBlock, size-at, whole)
	}
	if cap(buf) < whole {
		buf = make([]byte, whole)
	}
	buf = buf[:whole]
	if n, err := f.ReadAt(buf, at); n < whole {
		return h, buf, fmt.Errorf("read %d bytes: %w", whole, err)
	}
	return h, buf, h.check(buf)
}

func (d *disk) lastID() uint64 {
	if len(d.segments) == 0 {
		return 0
	}
	return d.segments[len(d.segments)-1].lastID
}

func (d *disk) sizeBytes() (sum int64) {
	for i := range d.segments {
		sum += d.segments[i].sizeBytes
	}
	return sum
}

// rows counts the rows above id taken.
func (d *disk) rows(taken uint64) (sum uint64) {
	for i := range d.segments {
		s := &d.segments[i]
		if first := max(s.firstID, taken+1); s.lastID >= first {
			sum += s.lastID - first + 1
		}
	}
	return sum
}

// append writes a block with the first rows to the newest segment, makes it durable, and returns how many rows those
// are. After a failure none are: they go to a new file then.
func (d *disk) append(rows []row) (int, error) {
	if d.writing == nil {
		if err := d.create(rows[0].id); err != nil {
			return 0, err
		}
	}
	s := &d.segments[len(d.segments)-1]
	var count int
	d.scratch, count = d.writer.encode(d.scratch[:0], rows)
	_, err := d.writing.WriteAt(d.scratch, s.sizeBytes)
	if err == nil {
		err = d.writing.SyncData()
	}
	if err != nil {
		d.abandon()
		return 0, fmt.Errorf("write %s: %w", s.path, err)
	}
	s.sizeBytes += int64(len(d.scratch))
	s.lastID = rows[count-1].id
	if s.sizeBytes >= d.segmentBytes {
		return count, d.finish()
	}
	return count, nil
}

func (d *disk) create(firstID uint64) error {
	path := filepath.Join(d.dir, fmt.Sprintf("%016x%s", firstID, segmentSuffix))
	f, err := d.fs.Create(path)
	if err != nil {
		return fmt.Errorf("create agent buffer file: %w", err)
	}
	if _, err = f.WriteAt([]byte(segmentMagic), 0); err == nil {
		err = d.fs.SyncDir(d.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("create %s: %w", path, err), f.Close(), d.fs.Remove(path))
	}
	d.writing = f
	d.writer = blockWriter{numbers: map[*item]uint64{}}
	d.segments = append(d.segments, segment{
		path: path, firstID: firstID, lastID: firstID - 1, sizeBytes: int64(len(segmentMagic)),
	})
	return nil
}

// finish ends the writing of the newest segment, all of which is durable.
func (d *disk) finish() error {
	if d.writing == nil {
		return nil
	}
	err := d.writing.Close()
	d.writing = nil
	return err
}

// abandon closes the newest segment after a failure, and removes it if it has no rows. What lies behind its good part
// is cut off; should that fail too, the next start sees that the next file has those rows.
func (d *disk) abandon() {
	s := &d.segments[len(d.segments)-1]
	d.writing.Truncate(s.sizeBytes)
	d.writing.Close()
	d.writing = nil
	if s.lastID < s.firstID {
		d.fs.Remove(s.path)
		d.segments = d.segments[:len(d.segments)-1]
	}
}

// oldest returns rows above id taken, oldest first, as many as limit unless there are fewer. They are valid until the
// next call of the buffer's methods.
func (d *disk) oldest(taken uint64, limit int) []row {
	for len(d.segments) > 0 && len(d.head) < limit {
		s := &d.segments[0]
		more, err := d.readMore(s, taken)
		if err != nil {
			d.log.Error("a file of the agent's buffer cannot be read on; its rest is lost",
				"file", s.path, "offset", d.at, "error", err)
			s.sizeBytes, s.damaged = d.at, true
			if len(d.segments) == 1 && d.writing != nil {
				d.writing.Close() // It was reported; new rows go to a new file.
				d.writing = nil
			}
		}
		if more {
			continue
		}
		if len(d.head) > 0 || len(d.segments) == 1 && d.writing != nil {
			break
		}
		d.removeOldest()
	}
	return d.head
}

// readMore reads the next block of the oldest segment into head; false at the segment's end.
func (d *disk) readMore(s *segment, taken uint64) (bool, error) {
	if d.reading == nil {
		f, err := d.fs.Open(s.path)
		if err != nil {
			return false, err
		}
		d.reading, d.reader, d.at = f, blockReader{}, int64(len(segmentMagic))
	}
	if d.at >= s.sizeBytes {
		return false, nil
	}
	h, buf, err := readBlock(d.reading, d.at, s.sizeBytes, nil)
	if err != nil {
		return false, err
	}
	before := len(d.head)
	if d.head, err = d.reader.decode(d.head, h, buf[blockHeaderBytes:]); err != nil {
		d.head = d.head[:before]
		return false, err
	}
	d.at += int64(len(buf))
	for len(d.head) > before && d.head[len(d.head)-1].id > s.lastID {
		d.head = d.head[:len(d.head)-1]
	}
	if before == 0 {
		d.trimHead(taken)
	}
	return true, nil
}

func (d *disk) trimHead(taken uint64) {
	n := 0
	for n < len(d.head) && d.head[n].id <= taken {
		n++
	}
	kept := copy(d.head, d.head[n:])
	clear(d.head[kept:])
	d.head = d.head[:kept]
}

// drop forgets the rows up to id taken, and removes files of which none are left. The file that is being written stays
// while it is shorter than keepBytes.
func (d *disk) drop(taken uint64) {
	d.trimHead(taken)
	for len(d.segments) > 0 && d.segments[0].lastID <= taken {
		if len(d.segments) == 1 && d.writing != nil {
			if d.segments[0].sizeBytes < d.keepBytes {
				return
			}
			d.writing.Close() // Nothing in it is needed.
			d.writing = nil
		}
		d.removeOldest()
	}
}

// shrink drops the oldest files until the rest is within limit, and returns how many rows above id taken went.
func (d *disk) shrink(limitBytes int64, taken uint64) (lost uint64) {
	for len(d.segments) > 1 && d.sizeBytes() > limitBytes {
		s := d.segments[0]
		if first := max(s.firstID, taken+1); s.lastID >= first {
			lost += s.lastID - first + 1
		}
		d.removeOldest()
	}
	return lost
}

// removeOldest removes the oldest file. A damaged one is kept under another name until the next damage.
func (d *disk) removeOldest() {
	s := d.segments[0]
	if d.reading != nil {
		d.reading.Close() // Opened for reading: nothing can be lost.
		d.reading = nil
	}
	clear(d.head)
	d.head = d.head[:0]
	var err error
	if s.damaged {
		err = d.fs.Rename(s.path, filepath.Join(d.dir, "damaged"))
	} else {
		err = d.fs.Remove(s.path)
	}
	if err != nil {
		d.log.Error("a file of the agent's buffer cannot be removed; its values may be sent again", "file", s.path, "error", err)
	}
	d.segments = append(d.segments[:0], d.segments[1:]...)
}

func (d *disk) close(taken uint64) error {
	d.keepBytes = 0
	d.drop(taken)
	err := d.finish()
	if d.reading != nil {
		err = errors.Join(err, d.reading.Close())
		d.reading = nil
	}
	return err
}
