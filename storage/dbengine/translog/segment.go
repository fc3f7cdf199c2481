package translog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/header"
)

// headerBytes is the room of a segment's header: a block, so that records never share one with it.
const headerBytes = 4096

// segment is one file of the log.
type segment struct {
	number uint32
	// file is its name, which is that of its number unless a power cut undid a renaming.
	file  string
	first model.LSN
	// end is the LSN behind its last record.
	end  model.LSN
	size int64
	// leftovers means that records behind its end must not come back.
	leftovers bool
}

// Name returns the file name of a segment.
func Name(number uint32) string { return fmt.Sprintf("log-%010d.nlg", number) }

// spareName is where an allocated file waits to become a segment.
func spareName(number uint32) string { return fmt.Sprintf("spare-%010d.nlg", number) }

// ParseName returns the number in a segment's file name.
func ParseName(name string) (uint32, bool) { return parseName(name, "log-") }

// IsSpare reports whether a file is an allocated one without records.
func IsSpare(name string) bool {
	_, ok := parseName(name, "spare-")
	return ok
}

func parseName(name, prefix string) (uint32, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".nlg")
	if !ok || len(digits) != 10 {
		return 0, false
	}
	number := uint64(0)
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = number*10 + uint64(c-'0')
	}
	if number > 1<<32-1 {
		return 0, false
	}
	return uint32(number), true
}

// readFile reads a whole segment file, whose size must not pass limit.
func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", name, size, limit)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b[:n], nil
}

// startSegment makes a file with the header of a new segment, from a spare file if there is one, and returns it open.
// The segment has its name and is durable when startSegment returns.
func (l *Log) startSegment(first model.LSN) (*segment, vfs.File, error) {
	l.mu.Lock()
	number := l.nextNumber
	l.nextNumber++
	l.mu.Unlock()
	name := l.takeSpare()
	if name == "" {
		var err error
		if name, err = l.makeSpare(); err != nil {
			return nil, nil, err
		}
	}
	path := filepath.Join(l.o.Dir, name)
	f, err := l.o.FS.OpenReadWrite(path)
	if err != nil {
		l.giveSpare(name)
		return nil, nil, err
	}
	h := header.Header{Magic: header.Log, Incompatible: header.Decimals, Number: number, LSN: first}
	if err := writeHeader(f, &h); err == nil {
		err = errors.Join(l.o.FS.Rename(path, filepath.Join(l.o.Dir, Name(number))), l.o.FS.SyncDir(l.o.Dir))
		if err == nil {
			return &segment{number: number, file: Name(number), first: first, end: first, size: l.o.SegmentBytes}, f, nil
		}
		f.Close()
		l.discard(Name(number), name)
		return nil, nil, fmt.Errorf("start log segment %d: %w", number, err)
	} else {
		f.Close()
		l.discard(name)
		return nil, nil, fmt.Errorf("start log segment %d: %w", number, err)
	}
}

func writeHeader(f vfs.File, h *header.Header) error {
	block := make([]byte, headerBytes)
	copy(block, h.Append(nil))
	if _, err := f.WriteAt(block, 0); err != nil {
		return err
	}
	return f.SyncData()
}

// discard removes what a failed start left behind, under whichever name, and gives its room back.
func (l *Log) discard(names ...string) {
	for _, name := range names {
		if l.o.FS.Remove(filepath.Join(l.o.Dir, name)) == nil {
			l.o.Released(l.o.SegmentBytes)
			return
		}
	}
	l.o.Logger.Warn("a log file that could not be used could not be removed either", "file", names[0])
}

// makeSpare allocates a file of a segment's size and returns its name.
func (l *Log) makeSpare() (string, error) {
	if err := l.o.Reserve(l.o.SegmentBytes); err != nil {
		return "", err
	}
	l.mu.Lock()
	l.spareNumber++
	name := spareName(l.spareNumber)
	l.mu.Unlock()
	path := filepath.Join(l.o.Dir, name)
	f, err := l.o.FS.Create(path)
	if err != nil {
		l.o.Released(l.o.SegmentBytes)
		return "", fmt.Errorf("allocate a log segment: %w", err)
	}
	err = f.Allocate(l.o.SegmentBytes)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		l.discard(name)
		return "", fmt.Errorf("allocate a log segment: %w", err)
	}
	return name, nil
}

func (l *Log) takeSpare() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.spares)
	if n == 0 {
		return ""
	}
	name := l.spares[n-1]
	l.spares = l.spares[:n-1]
	return name
}

func (l *Log) giveSpare(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spares = append(l.spares, name)
}
