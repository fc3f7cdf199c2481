package translog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/header"
)

// Found is what Open met.
type Found struct {
	// Gaps are stretches that should hold records and do not.
	Gaps []Gap
	// Foreign are files with a segment's name that are none: they are not read, and Open leaves them where they are.
	Foreign map[string]error
	// Torn is where the log ends before records that a torn write left; nil if nothing stands behind its end.
	Torn *Gap
}

// Walk calls visit for every record of a log that is not open, and changes nothing.
func Walk(fsys vfs.FS, dir string, visit func(end model.LSN, kind byte, payload []byte) error) (*Found, error) {
	l := &Log{o: Options{FS: fsys, Dir: dir}}
	found, err := l.list(false)
	if err != nil {
		return nil, err
	}
	_, err = l.walkAll(context.Background(), found, visit)
	return found, err
}

// WalkFile is Walk for one file.
func WalkFile(fsys vfs.FS, dir, name string, visit func(end model.LSN, kind byte, payload []byte) error) (*Found, error) {
	l := &Log{o: Options{FS: fsys, Dir: dir}}
	s, err := l.openSegment(name)
	if err != nil {
		return nil, err
	}
	l.segments = []*segment{s}
	found := &Found{}
	_, err = l.walkAll(context.Background(), found, visit)
	return found, err
}

// walkAll calls visit for every record and returns the LSN behind the last.
func (l *Log) walkAll(ctx context.Context, found *Found, visit func(end model.LSN, kind byte, payload []byte) error) (model.LSN, error) {
	end := model.LSN(0)
	for i, s := range l.segments {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if i > 0 && s.first > end {
			found.Gaps = append(found.Gaps, Gap{File: s.file, From: end, To: s.first})
		}
		gaps, err := l.walk(i, func(r record) error {
			if r.kind == kindClosed {
				return nil
			}
			return visit(r.end, r.kind, r.payload)
		})
		if err != nil {
			return 0, err
		}
		found.Gaps = append(found.Gaps, gaps...)
		end = max(end, s.end)
		if s.leftovers {
			found.Torn = &Gap{File: s.file, Offset: headerBytes + int64(s.end-s.first), From: s.end, To: s.end}
		}
	}
	return end, nil
}

// Open reads the log in o.Dir, calls visit for every record in order, and starts the commit goroutine. Damage is
// reported, not returned. New records get LSNs from floor on or from the last record's, whichever is greater. The payload is
// valid during the call.
func Open(ctx context.Context, o Options, floor model.LSN, visit func(end model.LSN, kind byte, payload []byte) error) (*Log, *Found, error) {
	if o.SegmentBytes < MinSegmentBytes || o.SegmentBytes > MaxSegmentBytes {
		return nil, nil, fmt.Errorf("log segments of %d bytes, expected %d to %d", o.SegmentBytes, MinSegmentBytes, MaxSegmentBytes)
	}
	l := &Log{
		o: o, room: make(chan struct{}), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	found, err := l.list(true)
	if err != nil {
		return nil, nil, err
	}
	end, err := l.walkAll(ctx, found, visit)
	if err != nil {
		return nil, nil, err
	}
	end = max(end, floor)
	l.end, l.bufFrom, l.written, l.durable = end, end, end, end
	if err := l.resumeLast(); err != nil {
		return nil, nil, err
	}
	go l.run()
	return l, found, nil
}

// resumeLast goes on in the last segment, unless records stand behind its end that a torn write left there: new records
// could make them look valid again.
func (l *Log) resumeLast() error {
	if len(l.segments) == 0 {
		return nil
	}
	s := l.segments[len(l.segments)-1]
	if s.leftovers || s.end != l.end || s.size != l.o.SegmentBytes {
		return nil
	}
	f, err := l.o.FS.OpenReadWrite(filepath.Join(l.o.Dir, s.file))
	if err != nil {
		return err
	}
	l.current, l.file = s, f
	return nil
}

// list finds the segments, and the spare files if adopt.
func (l *Log) list(adopt bool) (*Found, error) {
	names, err := l.o.FS.List(l.o.Dir)
	if err != nil {
		return nil, err
	}
	found := &Found{Foreign: map[string]error{}}
	for _, name := range names {
		if IsSpare(name) {
			if adopt {
				l.adoptSpare(name)
			}
			continue
		}
		number, ok := ParseName(name)
		if !ok {
			continue
		}
		l.nextNumber = max(l.nextNumber, number)
		s, err := l.openSegment(name)
		if err != nil {
			if errors.Is(err, header.ErrHeader) {
				found.Foreign[name] = err
				continue
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l.nextNumber = max(l.nextNumber, s.number)
		l.segments = append(l.segments, s)
	}
	l.nextNumber++
	slices.SortFunc(l.segments, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

func (l *Log) openSegment(name string) (*segment, error) {
	f, err := l.o.FS.Open(filepath.Join(l.o.Dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > MaxSegmentBytes {
		return nil, fmt.Errorf("%w: the file has %d bytes, expected at most %d", header.ErrHeader, size, MaxSegmentBytes)
	}
	b := make([]byte, min(size, header.Bytes))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	h, err := header.Decode(b, header.Log)
	if err != nil {
		return nil, err
	}
	return &segment{number: h.Number, file: name, first: h.LSN, end: h.LSN, size: size}, nil
}

// adoptSpare keeps a spare file of the right size and removes another.
func (l *Log) adoptSpare(name string) {
	path := filepath.Join(l.o.Dir, name)
	number, _ := parseName(name, "spare-")
	l.spareNumber = max(l.spareNumber, number)
	info, err := l.o.FS.Stat(path)
	if err == nil && info.Size() == l.o.SegmentBytes && len(l.spares) < maxSpares {
		l.spares = append(l.spares, name)
		return
	}
	size := int64(0)
	if err == nil {
		size = info.Size()
	}
	if err := l.o.FS.Remove(path); err != nil {
		l.o.Logger.Warn("remove a spare log file", "file", name, "error", err)
		return
	}
	l.o.Released(size)
}

// walk calls fn for the records of segment i and sets the segment's end.
func (l *Log) walk(i int, fn func(record) error) ([]Gap, error) {
	s := l.segments[i]
	b, err := readFile(l.o.FS, filepath.Join(l.o.Dir, s.file), MaxSegmentBytes)
	if err != nil {
		return nil, err
	}
	sc := scanner{name: s.file, first: s.first, last: i == len(l.segments)-1}
	if len(b) > headerBytes {
		sc.body = b[headerBytes:]
	}
	if !sc.last {
		sc.limit = l.segments[i+1].first
		for _, later := range l.segments[i+1:] {
			sc.limit = min(sc.limit, later.first)
		}
	}
	end, err := sc.scan(fn)
	s.end = max(end, s.first)
	s.leftovers = sc.leftovers || len(b) < headerBytes
	return sc.gaps, err
}

// Replay calls fn for the durable records behind LSN from, oldest first. Their files are kept until it returns.
func (l *Log) Replay(ctx context.Context, from model.LSN, fn func(end model.LSN, kind byte, payload []byte) error) error {
	l.mu.Lock()
	l.replays++
	segments := slices.Clone(l.segments)
	durable := l.durable
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.replays--
		l.mu.Unlock()
	}()
	for i, s := range segments {
		if i+1 < len(segments) && segments[i+1].first <= from {
			continue
		}
		if s.first >= durable {
			break
		}
		err := l.each(segments[i:], from, durable, func(r record) error {
			if r.kind == kindClosed {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(r.end, r.kind, r.payload)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls fn for the records of the first of the segments that end after LSN from and not after durable. Of a file it reads no more than that: what is
// allocated in advance is large, and those who promote a standby wait.
func (l *Log) each(segments []*segment, from, durable model.LSN, fn func(record) error) error {
	s, limit := segments[0], durable
	for _, later := range segments[1:] {
		limit = min(limit, later.first)
	}
	start := max(from, s.first)
	if start >= limit {
		return nil
	}
	b, err := l.readAt(s, start, int64(limit-start))
	if err != nil {
		return err
	}
	if _, ok := readRecord(b, start); !ok && start > s.first { // from is not where a record begins
		if b, err = l.readAt(s, s.first, int64(limit-s.first)); err != nil {
			return err
		}
		start = s.first
	}
	sc := scanner{name: s.file, body: b, first: start, limit: limit}
	_, err = sc.scan(func(r record) error {
		if r.end <= from {
			return nil
		}
		return fn(r)
	})
	return err
}
