package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"tidemark/internal/vfs"
)

// The file format; see FORMAT.md.
const (
	magic         = "TMCATLOG"
	formatVersion = 1
	headerBytes   = 32
	frameBytes    = 8
	// readChunk is how much is read at once; a chunk that cannot be read is treated as damaged.
	readChunk = 1 << 20
	// maxLogBytes is refused rather than read into memory: it is ten times what the limits on items allow.
	maxLogBytes = 8 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errClosed = errors.New("catalog: closed")

// VersionError says that the log was written by a newer version, which this one must not touch.
type VersionError struct {
	File     string
	Version  uint16
	Features uint32
}

// Error names the file and the versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has format version %d and features %#x, written by a newer tidemark; this one reads version %d without features",
		e.File, e.Version, e.Features, formatVersion)
}

// Log keeps records elsewhere than in a file of this package, such as in a database that servers share.
type Log interface {
	// Load calls apply for each record, the oldest first.
	Load(ctx context.Context, apply func([]byte) error) error
	// Append makes records durable behind all others. After an error it is not known whether they are.
	Append(records [][]byte) error
	// Rewrite puts what fill emits in the place of all records, all of it or nothing. fill does not change a record after it was emitted.
	Rewrite(fill func(emit func([]byte) error) error) error
}

// log is the file that new records go to.
type log struct {
	// shared, if not nil, is used in the place of the file.
	shared Log

	fsys   vfs.FS
	dir    string
	logger *slog.Logger

	file    vfs.File
	number  uint64
	size    int64
	records int
	// sizeBytes is size for the metrics, which must not wait for a write.
	sizeBytes atomic.Int64
	// failed is set by a write or sync that did not succeed: the end of the file is unknown from then on.
	failed bool
	closed bool
	// bad are damaged files, to be set aside when a whole log stands beside them.
	bad []badLog
}

type badLog struct {
	number uint64
	why    error
}

// logState is what openLog found.
type logState struct {
	torn, damaged, missing bool
}

// openLog finds the newest log, hands every record to apply and leaves the file open for appending.
func openLog(ctx context.Context, fsys vfs.FS, dir string, logger *slog.Logger, apply func([]byte) error) (*log, logState, error) {
	l := &log{fsys: fsys, dir: dir, logger: logger}
	var state logState
	if err := errors.Join(fsys.MkdirAll(dir), fsys.SyncDir(filepath.Dir(dir))); err != nil {
		return nil, state, err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, state, err
	}
	numbers := l.sortOut(names)
	for len(numbers) > 0 {
		number := numbers[len(numbers)-1]
		numbers = numbers[:len(numbers)-1]
		l.number = max(l.number, number)
		content, err := l.load(ctx, number)
		if err == nil {
			err = checkHeader(content, l.name(number))
		}
		var newer *VersionError
		if errors.As(err, &newer) || ctx.Err() != nil {
			return nil, state, err
		}
		if err != nil {
			state.damaged = true
			l.bad = append(l.bad, badLog{number, err})
			continue
		}
		if err := l.replay(number, content, &state, apply); err != nil {
			return nil, state, err
		}
		// Older logs are left over from a rewrite that was cut short after its rename.
		for _, old := range numbers {
			if err := fsys.Remove(l.name(old)); err != nil {
				return nil, state, err
			}
		}
		return l, state, nil
	}
	state.missing = true
	return l, state, nil
}

// sortOut returns the numbers of the logs among names, rising, and removes unfinished rewrites.
func (l *log) sortOut(names []string) []uint64 {
	var numbers []uint64
	for _, name := range names {
		if strings.HasPrefix(name, "catalog-") && strings.HasSuffix(name, ".log.new") {
			_ = l.fsys.Remove(filepath.Join(l.dir, name)) // never complete, so nothing is lost; a rewrite replaces it
			continue
		}
		digits, ok := strings.CutPrefix(name, "catalog-")
		if !ok {
			continue
		}
		if digits, ok = strings.CutSuffix(digits, ".log"); !ok || len(digits) != 10 {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers // List is sorted and the numbers have one width
}

func (l *log) name(number uint64) string {
	return filepath.Join(l.dir, fmt.Sprintf("catalog-%010d.log", number))
}

// load reads a whole file. What cannot be read is left as zeros, which fail their checksums.
func (l *log) load(ctx context.Context, number uint64) ([]byte, error) {
	f, err := l.fsys.Open(l.name(number))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxLogBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that a catalog can have", l.name(number), size, int64(maxLogBytes))
	}
	content := make([]byte, size)
	for at := int64(0); at < size; at += readChunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		chunk := content[at:min(at+readChunk, size)]
		if _, err := f.ReadAt(chunk, at); err != nil && !errors.Is(err, io.EOF) {
			l.logger.Error("read the catalog's log", "file", l.name(number), "offset", at, "error", err)
			clear(chunk)
		}
	}
	return content, nil
}

// appendHeader appends the file header.
func appendHeader(b []byte, number uint64) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, formatVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-headerBytes+4:], castagnoli))
}

// checkHeader reports a header that is damaged or too new.
func checkHeader(content []byte, file string) error {
	if len(content) < headerBytes {
		return fmt.Errorf("%s has %d bytes, shorter than its header of %d", file, len(content), headerBytes)
	}
	header := content[:headerBytes]
	if !bytes.Equal(header[:8], []byte(magic)) {
		return fmt.Errorf("%s begins with %q instead of %q", file, header[:8], magic)
	}
	if crc32.Checksum(header[:28], castagnoli) != binary.LittleEndian.Uint32(header[28:]) {
		return fmt.Errorf("%s: the header's checksum does not match", file)
	}
	version, features := binary.LittleEndian.Uint16(header[8:]), binary.LittleEndian.Uint32(header[12:])
	if version != formatVersion || features != 0 {
		return &VersionError{File: file, Version: version, Features: features}
	}
	return nil
}

// checksum covers the place of a record besides its payload, so that old bytes found elsewhere never count.
func checksum(offset int64, payload []byte) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(offset))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, payload)
}

func appendFrame(b []byte, offset int64, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, checksum(offset, payload))
	return append(b, payload...)
}

// frameAt returns the payload of the record at offset, or nil if there is none.
func frameAt(content []byte, offset int64) []byte {
	rest := content[offset:]
	if len(rest) < frameBytes {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(rest))
	if n == 0 || n > maxRecordBytes || n > int64(len(rest)-frameBytes) {
		return nil
	}
	payload := rest[frameBytes : frameBytes+n]
	if checksum(offset, payload) != binary.LittleEndian.Uint32(rest[4:]) {
		return nil
	}
	return payload
}

// scan calls apply for each record that can be read and returns the end of the last one and the first damaged byte
// (-1 for none). A bad stretch is passed over to the next record whose checksum fits its place; if there is none,
// the stretch is a torn tail and not damage.
func scan(content []byte, apply func([]byte) error) (end, damagedAt int64, records int) {
	end, damagedAt = headerBytes, -1
	bad := int64(-1)
	for at := int64(headerBytes); at < int64(len(content)); {
		payload := frameAt(content, at)
		if payload == nil || apply(payload) != nil {
			if bad < 0 {
				bad = at
			}
			at++
			continue
		}
		if bad >= 0 && damagedAt < 0 {
			damagedAt = bad
		}
		bad = -1
		at += frameBytes + int64(len(payload))
		end = at
		records++
	}
	return end, damagedAt, records
}

// replay reads a log's records. A damaged log is set aside, to be written anew by the caller; a torn tail is cut off.
func (l *log) replay(number uint64, content []byte, state *logState, apply func([]byte) error) error {
	end, damagedAt, records := scan(content, apply)
	if damagedAt >= 0 {
		state.damaged = true
		l.bad = append(l.bad, badLog{number, fmt.Errorf("%s is damaged at byte %d: no record with a matching checksum there; %d records around it were kept",
			l.name(number), damagedAt, records)})
		return nil
	}
	file, err := l.fsys.OpenReadWrite(l.name(number))
	if err != nil {
		return err
	}
	if end < int64(len(content)) {
		state.torn = true
		l.logger.Warn("cut off the torn end of the catalog's log", "file", l.name(number), "offset", end, "bytes", int64(len(content))-end)
		if err := errors.Join(file.Truncate(end), file.Sync()); err != nil {
			_ = file.Close()
			return err
		}
	}
	l.file, l.number, l.size, l.records = file, number, end, records
	l.sizeBytes.Store(end)
	return nil
}

// openShared reads a log that is kept elsewhere. A record that cannot be read stops it: nothing is put right in what others use too.
// An empty one takes over what the file in dir holds, which is that of a server which was alone.
func openShared(ctx context.Context, shared Log, file func() (*log, logState, error), apply func([]byte) error) (*log, logState, error) {
	l := &log{shared: shared}
	err := shared.Load(ctx, func(record []byte) error {
		l.records++
		return apply(record)
	})
	if err != nil || l.records > 0 {
		return l, logState{}, err
	}
	before, _, err := file()
	if err != nil {
		return l, logState{}, err
	}
	return l, logState{missing: true}, before.close()
}

func (l *log) rewriteShared(fill func(emit func([]byte) error) error) error {
	l.failed = true
	records := 0
	err := l.shared.Rewrite(func(emit func([]byte) error) error {
		return fill(func(payload []byte) error {
			records++
			return emit(payload)
		})
	})
	if err != nil {
		return err
	}
	l.records, l.failed = records, false
	return nil
}

// setAside renames damaged files, so that they are kept for a look but not read again.
func (l *log) setAside() {
	for _, bad := range l.bad {
		from := l.name(bad.number)
		to := from + ".damaged"
		for i := 2; i < 100; i++ {
			if _, err := l.fsys.Stat(to); errors.Is(err, fs.ErrNotExist) {
				break
			}
			to = fmt.Sprintf("%s.damaged-%d", from, i)
		}
		err := l.fsys.Rename(from, to)
		l.logger.Error("set aside a damaged log of the catalog", "damage", bad.why, "kept_as", to, "rename_error", err)
	}
	l.bad = nil
}

// append writes payloads and makes them durable.
func (l *log) append(payloads [][]byte) error {
	if l.closed {
		return errClosed
	}
	if l.shared != nil {
		if err := l.shared.Append(payloads); err != nil {
			l.failed = true
			return err
		}
		l.records += len(payloads)
		return nil
	}
	var b []byte
	for _, p := range payloads {
		b = appendFrame(b, l.size+int64(len(b)), p)
	}
	if _, err := l.file.WriteAt(b, l.size); err != nil {
		l.failed = true
		return fmt.Errorf("write %s at %d: %w", l.name(l.number), l.size, err)
	}
	if err := l.file.SyncData(); err != nil {
		l.failed = true
		return fmt.Errorf("sync %s: %w", l.name(l.number), err)
	}
	l.size += int64(len(b))
	l.sizeBytes.Store(l.size)
	l.records += len(payloads)
	return nil
}

// rewrite makes the next log from what fill emits and puts it in the place of the current one.
func (l *log) rewrite(fill func(emit func([]byte) error) error) error {
	if l.closed {
		return errClosed
	}
	if l.shared != nil {
		return l.rewriteShared(fill)
	}
	number := l.number + 1
	unfinished := l.name(number) + ".new"
	_ = l.fsys.Remove(unfinished) // left by an attempt that failed; Create says so if it is still there
	file, err := l.fsys.Create(unfinished)
	if err != nil {
		return err
	}
	w := &logWriter{file: file}
	w.buffer = appendHeader(w.buffer, number)
	err = fill(w.emit)
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = l.fsys.Rename(unfinished, l.name(number))
	}
	if err != nil {
		_ = file.Close()
		_ = l.fsys.Remove(unfinished)
		return fmt.Errorf("rewrite %s: %w", l.name(number), err)
	}
	old, oldNumber := l.file, l.number
	l.file, l.number, l.size, l.records, l.failed = file, number, w.written, w.records, true
	l.sizeBytes.Store(l.size)
	if err := l.fsys.SyncDir(l.dir); err != nil {
		return fmt.Errorf("sync %s: %w", l.dir, err)
	}
	l.failed = false
	if old != nil {
		_ = old.Close()
		if err := l.fsys.Remove(l.name(oldNumber)); err != nil {
			l.logger.Warn("remove the old log of the catalog", "error", err) // the next start removes it
		}
	}
	return nil
}

// logWriter writes frames in large pieces.
type logWriter struct {
	file    vfs.File
	buffer  []byte
	written int64
	records int
}

func (w *logWriter) emit(payload []byte) error {
	w.buffer = appendFrame(w.buffer, w.written+int64(len(w.buffer)), payload)
	w.records++
	if len(w.buffer) < readChunk {
		return nil
	}
	return w.flush()
}

func (w *logWriter) flush() error {
	if _, err := w.file.WriteAt(w.buffer, w.written); err != nil {
		return err
	}
	w.written += int64(len(w.buffer))
	w.buffer = w.buffer[:0]
	return nil
}

func (l *log) close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	if l.file == nil { // or kept elsewhere
		return nil
	}
	return l.file.Close()
}
