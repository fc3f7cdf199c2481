// Package querylog keeps which values were asked for lately: items and times, never values, texts or who asked. A trial of codecs replays it.
//
// The log is a file of JSON lines in the data folder and, behind it, the one before it; both together stay within a size.
package querylog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

const (
	// FileName is the log's name in the data folder.
	FileName = "queries.jsonl"
	// olderSuffix is behind the name of the file before it.
	olderSuffix = ".1"
	// MinBytes is the smallest size of a log.
	MinBytes = 64 << 10
	// maxRuns bounds the runs of neighbouring items of an entry; the rest is left out.
	maxRuns = 64
	// maxItems bounds the items of an entry that is read.
	maxItems = 100_000
	// maxLine bounds a line that is read, in bytes.
	maxLine = 64 << 10
	// maxWaiting bounds what waits to be written, in bytes.
	maxWaiting = 64 << 10
	writeEvery = 5 * time.Second
)

// Entry is one query.
type Entry struct {
	Items []model.ItemID
	// Range is half-open, Unix nanoseconds.
	Range model.TimeRange
	// Newest, if not zero, is how many of the last values of each item were asked for.
	Newest int
}

// line is an entry in the file.
type line struct {
	// At is when it was asked, Unix milliseconds.
	At     int64 `json:"at"`
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Newest int   `json:"newest,omitempty"`
	// Items are runs of ids: the first and the last of each.
	Items [][2]uint64 `json:"items"`
}

// Log writes the log. All its methods may be called at the same time.
type Log struct {
	name    string
	limit   int64
	logger  *slog.Logger
	entries *metrics.Counter
	dropped *metrics.Counter

	mu      sync.Mutex
	waiting []byte

	// writing serialises writes, and guards size, that of the file.
	writing sync.Mutex
	size    int64
}

// New returns the log in a data folder that takes at most limitBytes, at least MinBytes.
func New(data string, limitBytes int64, set *metrics.Set, logger *slog.Logger) *Log {
	l := &Log{
		name: filepath.Join(data, FileName), limit: max(limitBytes, MinBytes) / 2, logger: logger, size: -1,
		entries: set.NewCounter("tidemark_querylog_entries_total"), dropped: set.NewCounter("tidemark_querylog_dropped_entries_total"),
	}
	set.NewGauge("tidemark_querylog_waiting_bytes", func() float64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(len(l.waiting))
	})
	return l
}

// Put takes a query. It never waits for the disk: when too much is waiting already, the query is left out and counted.
func (l *Log) Put(items []model.ItemID, r model.TimeRange, newest int) {
	text, err := json.Marshal(line{At: time.Now().UnixMilli(), From: r.From, To: r.To, Newest: newest, Items: runs(items)})
	if err != nil {
		return // there is nothing in it that has no JSON
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting)+len(text) >= maxWaiting {
		l.dropped.Inc()
		return
	}
	l.waiting = append(append(l.waiting, text...), '\n')
	l.entries.Inc()
}

// runs joins neighbours.
func runs(items []model.ItemID) [][2]uint64 {
	out := [][2]uint64{}
	for _, id := range items {
		if n := len(out); n > 0 && out[n-1][1]+1 == uint64(id) {
			out[n-1][1] = uint64(id)
			continue
		}
		if len(out) == maxRuns {
			break
		}
		out = append(out, [2]uint64{uint64(id), uint64(id)})
	}
	return out
}

// Run writes what was put until ctx ends, and then the rest.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	failing := false
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		err := l.write()
		if err != nil && !failing {
			l.logger.Warn("the log of queries cannot be written; it is tried again", "file", l.name, "error", err)
		}
		failing = err != nil
	}
	return nil
}

// write appends what waits to the file, and begins a new one when that is full.
func (l *Log) write() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	text := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	if len(text) == 0 {
		return nil
	}
	if l.size < 0 {
		info, err := os.Stat(l.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if l.size = 0; err == nil {
			l.size = info.Size()
		}
	}
	for len(text) > 0 {
		n := l.fitting(text)
		if n == 0 {
			if err := os.Rename(l.name, l.name+olderSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			l.size = 0
			continue
		}
		if err := l.append(text[:n]); err != nil {
			l.size = -1
			return err
		}
		text = text[n:]
	}
	return nil
}

// fitting returns how many bytes of whole lines the file still takes; an empty one takes at least one line.
func (l *Log) fitting(text []byte) int {
	room := l.limit - l.size
	if int64(len(text)) <= room {
		return len(text)
	}
	if room > 0 {
		if n := bytes.LastIndexByte(text[:room], '\n') + 1; n > 0 {
			return n
		}
	}
	if l.size == 0 {
		return bytes.IndexByte(text, '\n') + 1
	}
	return 0
}

func (l *Log) append(text []byte) error {
	f, err := os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	l.size += int64(len(text))
	return errors.Join(err, f.Close())
}

// maxEntries bounds what Read returns.
const maxEntries = 20_000

// Read returns the entries of a log and of the file before it, oldest first, the last 20,000. A line that is no entry is an error, but for the last
// one, which may be half written.
func Read(name string) ([]Entry, error) {
	entries, err := readFile(name+olderSuffix, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return readFile(name, entries)
}

func readFile(name string, entries []Entry) ([]Entry, error) {
	f, err := os.Open(name)
	if err != nil {
		return entries, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, maxLine)
	var bad error
	for n := 1; in.Scan(); n++ {
		if bad != nil {
			return nil, bad
		}
		e, err := parse(in.Bytes())
		if err != nil {
			bad = fmt.Errorf("%s: line %d: %w", name, n, err)
			continue
		}
		if len(entries) >= 2*maxEntries {
			entries = slices.Delete(entries, 0, len(entries)-maxEntries)
		}
		entries = append(entries, e)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w; expected lines of at most %d bytes", name, err, maxLine)
	}
	return entries[max(len(entries)-maxEntries, 0):], nil
}

func parse(text []byte) (Entry, error) {
	var in line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Entry{}, fmt.Errorf("expected {\"at\":…,\"from\":…,\"to\":…,\"items\":[[first,last],…]}: %w", err)
	}
	e := Entry{Range: model.TimeRange{From: in.From, To: in.To}, Newest: in.Newest}
	if in.From >= in.To || in.Newest < 0 || len(in.Items) == 0 || len(in.Items) > maxRuns {
		return e, fmt.Errorf("from %d, to %d, newest %d, %d runs of items; expected from below to, and 1 to %d runs", in.From, in.To, in.Newest, len(in.Items), maxRuns)
	}
	for _, r := range in.Items {
		if r[0] > r[1] || r[1]-r[0] >= uint64(maxItems-len(e.Items)) {
			return e, fmt.Errorf("the items %d to %d; expected rising ids, at most %d in all", r[0], r[1], maxItems)
		}
		for k := range r[1] - r[0] + 1 {
			e.Items = append(e.Items, model.ItemID(r[0]+k))
		}
	}
	return e, nil
}
