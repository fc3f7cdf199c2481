// Package queue keeps the values of a proxy on disk until the server has them.
//
// It is a log in segments (storage/spool), the position up to which the server has acknowledged it, and the facts that came with the values
// (model.Mark), which outlive them. The id of a value is its place in the log, so that a value has the same id however often it is sent.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/spool"
)

// Options of Open.
type Options struct {
	// Folder is created.
	Folder string
	FS     vfs.FS
	// LimitBytes bounds the log; at least MinLimitBytes. MaxAge is how old values become; zero for no limit.
	LimitBytes int64
	MaxAge     time.Duration
	// SegmentBytes is where a further segment is begun, and so the least that is dropped at once; zero is 16 MiB.
	SegmentBytes int64
	// IsRule reports whether values of an item are for a discovery rule: they are sent as they are, other binary ones in base64.
	IsRule func(model.ItemID) bool
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics *metrics.Set
}

// MinLimitBytes is the least that a queue can work in.
const MinLimitBytes = 64 << 20

// The kinds of rows in the log, besides their type.
const (
	plainRow       = 0
	unsupportedRow = 1
	base64Row      = 2
)

// Queue is an open queue. All methods may be called at the same time, but Append only by one goroutine.
type Queue struct {
	o       Options
	log     *spool.Log
	session string

	mu sync.Mutex
	// position is the LSN up to which the server has everything.
	position model.LSN
	// waiting are the values behind it, oldest when the first of them came, Unix nanoseconds; zero for none.
	waiting  int
	oldest   int64
	marks    map[string]model.Mark
	lastDrop Drop

	appended, acknowledged, dropped, damaged *metrics.Counter
}

// Drop is what a full queue gave up.
type Drop struct {
	// At is when, Unix nanoseconds; zero for never.
	At int64
	// Values are how many the server will never get, Reason why.
	Values int
	Reason string
}

const (
	// maxMarks bounds the facts that are kept; beyond it the oldest are forgotten.
	maxMarks = 200_000
	logMark  = "log/"
)

// Open opens the queue and reads what waits in it.
func Open(ctx context.Context, o Options) (*Queue, error) {
	if o.LimitBytes < MinLimitBytes && o.SegmentBytes == 0 {
		return nil, fmt.Errorf("the queue may take %d bytes, expected at least %d", o.LimitBytes, MinLimitBytes)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	log, err := spool.Open(o.FS, filepath.Join(o.Folder, "values"), spool.Options{SegmentBytes: o.SegmentBytes, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	q := &Queue{o: o, log: log, marks: map[string]model.Mark{}}
	if err := q.recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the queue in %s: %w", o.Folder, err), log.Close())
	}
	q.measure(o.Metrics)
	return q, nil
}

func (q *Queue) measure(set *metrics.Set) {
	q.appended = set.NewCounter("tidemark_proxy_queue_appended_values_total")
	q.acknowledged = set.NewCounter("tidemark_proxy_queue_acknowledged_values_total")
	q.dropped = set.NewCounter("tidemark_proxy_queue_dropped_values_total")
	q.damaged = set.NewCounter("tidemark_proxy_queue_damaged_segments_total")
	set.NewGauge("tidemark_proxy_queue_values", func() float64 { return float64(q.State().Values) })
	set.NewGauge("tidemark_proxy_queue_bytes", func() float64 { return float64(q.log.SizeBytes()) })
	set.NewGauge("tidemark_proxy_queue_damaged_bytes", func() float64 { return float64(q.log.Damage().Bytes) })
	set.NewGauge("tidemark_proxy_queue_limit_bytes", func() float64 { return float64(q.o.LimitBytes) })
	set.NewGauge("tidemark_proxy_queue_oldest_seconds", func() float64 {
		if s := q.State(); s.OldestAt > 0 {
			return time.Since(time.Unix(0, s.OldestAt)).Seconds()
		}
		return 0
	})
}

func (q *Queue) path(name string) string { return filepath.Join(q.o.Folder, name) }

// recover reads position and marks, and counts what waits. A position that is lost or damaged only costs that values are sent again.
func (q *Queue) recover(ctx context.Context) error {
	if err := q.readMarks(); err != nil {
		return err
	}
	text, err := ReadFile(q.o.FS, q.path("position"))
	if q.bearable("position", err) != nil {
		return err
	}
	if len(text) == 16 && binary.LittleEndian.Uint64(text) == q.log.ID() {
		q.position = model.LSN(binary.LittleEndian.Uint64(text[8:]))
	}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("tidemark proxy "), q.log.ID()))
	q.session = hex.EncodeToString(sum[:16])
	// Ids that the server has must not come again.
	q.log.StartAt(q.position)
	if size := q.log.SizeBytes(); size > 64<<20 {
		q.o.Logger.Info("values that wait for the server are read", "bytes", size)
	}
	return q.log.Read(ctx, 0, func(end model.LSN, r spool.Record) error {
		q.mark(r.Batch.Marks)
		if end > q.position {
			q.count(r.Batch)
		}
		return nil
	})
}

// bearable makes damage and absence of a file a thing to be told.
func (q *Queue) bearable(what string, err error) error {
	var damage *storage.CorruptionError
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &damage):
		q.o.Logger.Error("a file of the queue is damaged and is begun anew", "file", what, "error", err)
		return nil
	}
	return err
}

// Session is what the ids of this queue's values belong to.
func (q *Queue) Session() string { return q.session }

// Marks implements trapper.Marks.
func (q *Queue) Marks(fn func(model.Mark)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.marks {
		fn(m)
	}
}

// mark keeps facts; q.mu is held or not needed yet.
func (q *Queue) mark(list []model.Mark) {
	for _, m := range list {
		q.marks[m.Key] = m
	}
	for len(q.marks) > maxMarks {
		q.forgetMarks()
	}
}

// forgetMarks drops the older half.
func (q *Queue) forgetMarks() {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, m := range q.marks {
		low, high = min(low, m.At), max(high, m.At)
	}
	limit := low + (high-low)/2
	for key, m := range q.marks {
		if m.At <= limit {
			delete(q.marks, key)
		}
	}
}

func (q *Queue) count(b *model.Batch) {
	if n := rowCount(b); n > 0 {
		if q.waiting == 0 {
			q.oldest = b.ArrivedAt
		}
		q.waiting += n
	}
}

// rowCount is how many rows a record makes for the server: its values, and the positions of logs.
func rowCount(b *model.Batch) int {
	n := b.Len()
	for _, m := range b.Marks {
		if strings.HasPrefix(m.Key, logMark) {
			n++
		}
	}
	return n
}

// Append makes the values and marks of a batch durable. The batch is changed: reasons of unsupported items become texts.
func (q *Queue) Append(b *model.Batch) error {
	classes := make([]uint8, b.Len())
	for i, t := range b.Types {
		switch {
		case t == model.Unsupported:
			b.Types[i], classes[i] = model.Text, unsupportedRow
		case t == model.Binary && (q.o.IsRule == nil || !q.o.IsRule(b.Items[i])):
			classes[i] = base64Row
		}
	}
	if _, err := q.log.Append(spool.Record{Batch: b, Classes: classes}); err != nil {
		restore(b, classes)
		return fmt.Errorf("write to the queue: %w", err)
	}
	if _, err := q.log.Sync(); err != nil {
		restore(b, classes)
		return fmt.Errorf("write to the queue: %w", err)
	}
	q.mu.Lock()
	q.mark(b.Marks)
	q.count(b)
	q.mu.Unlock()
	q.appended.Add(b.Len())
	if err := q.shrink(); err != nil {
		// The values are kept; the next ones try again.
		q.o.Logger.Error("the oldest values of a full queue are not dropped", "error", err)
	}
	return nil
}

// restore gives unsupported rows their type back, so that the batch can be tried again.
func restore(b *model.Batch, classes []uint8) {
	for i, c := range classes {
		if c == unsupportedRow {
			b.Types[i] = model.Unsupported
		}
	}
}

// shrink drops the oldest segments while the log is too large.
func (q *Queue) shrink() error {
	for q.log.SizeBytes() > q.o.LimitBytes {
		list := q.log.Segments()
		if len(list) < 2 {
			return nil
		}
		if err := q.drop(list[0].To, fmt.Sprintf("the queue is full: it may take %d bytes", q.o.LimitBytes)); err != nil {
			return err
		}
		if after := q.log.Segments(); len(after) == len(list) {
			return nil // somebody reads it; the next Append tries again
		}
	}
	return nil
}

// Age drops segments all of whose values are older than the limit.
func (q *Queue) Age(now int64) error {
	for q.o.MaxAge > 0 {
		list := q.log.Segments()
		if len(list) < 2 {
			return nil
		}
		came := int64(0)
		err := q.log.Read(context.Background(), list[0].To, func(_ model.LSN, r spool.Record) error {
			came = r.Batch.ArrivedAt
			return errEnough
		})
		if !errors.Is(err, errEnough) || now-came <= int64(q.o.MaxAge) {
			return nil
		}
		if err := q.drop(list[0].To, fmt.Sprintf("values are older than %s", q.o.MaxAge)); err != nil {
			return err
		}
		if after := q.log.Segments(); len(after) == len(list) {
			return nil
		}
	}
	return nil
}

var errEnough = errors.New("enough")

// drop gives up what is before an LSN.
func (q *Queue) drop(to model.LSN, reason string) error {
	q.mu.Lock()
	from := q.position
	q.mu.Unlock()
	values := 0
	err := q.log.Read(context.Background(), from, func(end model.LSN, r spool.Record) error {
		if end > to {
			return errEnough
		}
		values += rowCount(r.Batch)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if values > 0 {
		q.dropped.Add(values)
		q.o.Logger.Error("values that wait for the server were dropped; give the queue more room (proxy.buffer), or bring the server back", "values", values, "reason", reason)
		q.mu.Lock()
		q.lastDrop = Drop{At: time.Now().UnixNano(), Values: q.lastDrop.Values + values, Reason: reason}
		q.mu.Unlock()
	}
	return q.moveOn(to, values)
}

// Acknowledge takes note that the server has a batch.
func (q *Queue) Acknowledge(b *Batch) error {
	q.acknowledged.Add(len(b.Rows))
	return q.moveOn(b.end, len(b.Rows))
}

// moveOn makes an LSN the position and removes what is before.
func (q *Queue) moveOn(to model.LSN, rows int) error {
	q.mu.Lock()
	if to <= q.position {
		q.mu.Unlock()
		return nil
	}
	q.position = to
	q.waiting = max(0, q.waiting-rows)
	q.mu.Unlock()
	if err := q.findOldest(); err != nil {
		return err
	}
	body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, q.log.ID()), uint64(to))
	if err := WriteFile(q.o.FS, q.path("position"), body); err != nil {
		return fmt.Errorf("keep the position of the queue: %w", err)
	}
	if list := q.log.Segments(); len(list) < 2 || list[0].To > to {
		return nil
	}
	if err := q.writeMarks(); err != nil {
		return err
	}
	return q.log.Trim(to)
}

// findOldest looks when the first value that waits came.
func (q *Queue) findOldest() error {
	q.mu.Lock()
	from := q.position
	q.mu.Unlock()
	oldest := int64(0)
	err := q.log.Read(context.Background(), from, func(_ model.LSN, r spool.Record) error {
		if rowCount(r.Batch) == 0 {
			return nil
		}
		oldest = r.Batch.ArrivedAt
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.position == from {
		q.oldest = oldest
		if oldest == 0 && err == nil && q.log.End() <= from {
			q.waiting = 0 // rows of damaged parts were never counted off
		}
	}
	return nil
}

// State is how full the queue is.
type State struct {
	// Values wait, since OldestAt, Unix nanoseconds; zero for none. Bytes of LimitBytes are taken.
	Values            int
	OldestAt          int64
	Bytes, LimitBytes int64
	// Dropped is the newest loss, with all values that were lost since the start.
	Dropped Drop
}

// State returns how full the queue is.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return State{Values: q.waiting, OldestAt: q.oldest, Bytes: q.log.SizeBytes(), LimitBytes: q.o.LimitBytes, Dropped: q.lastDrop}
}

// Close keeps the marks and closes the files. A second call does nothing.
func (q *Queue) Close() error {
	return errors.Join(q.writeMarks(), q.log.Close())
}
