package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tidemark/model"
)

// Position is a place in the log of a catalog: the log's number, and the bytes before the place.
type Position struct {
	Number uint64 `json:"number"`
	Offset int64  `json:"offset"`
}

// ErrRecords says that what came from another catalog's log is not what was written there.
var ErrRecords = errors.New("damaged catalog records")

// ReadLog returns the records of the log from a position on, as they stand in the file: about maxBytes, but at least one if there is one, and
// the position behind them. A position in another log than the current one is the beginning of the current one. end is where the log ends.
func (c *Catalog) ReadLog(from Position, maxBytes int) (records []byte, at Position, end int64, err error) {
	c.writer.Lock()
	defer c.writer.Unlock()
	l := c.log
	if l.closed || l.shared != nil {
		return nil, from, 0, errClosed
	}
	if l.failed { // what a failed write left is not known
		if err := c.rewrite(); err != nil {
			return nil, from, 0, err
		}
	}
	if from.Number != l.number || from.Offset < headerBytes || from.Offset > l.size {
		from = Position{Number: l.number, Offset: headerBytes}
	}
	b := make([]byte, min(l.size-from.Offset, int64(max(maxBytes, frameBytes+maxRecordBytes))))
	if n, err := l.file.ReadAt(b, from.Offset); n < len(b) && err != nil && !errors.Is(err, io.EOF) {
		return nil, from, 0, fmt.Errorf("read %s at %d: %w", l.name(l.number), from.Offset, err)
	}
	n := 0
	for n < len(b) && n < max(maxBytes, 1) {
		payload := frameIn(b[n:], from.Offset+int64(n))
		if payload == nil {
			break
		}
		n += frameBytes + len(payload)
	}
	if n == 0 && len(b) > 0 {
		return nil, from, 0, fmt.Errorf("%s holds no record at byte %d", l.name(l.number), from.Offset)
	}
	return b[:n], from, l.size, nil
}

// frameIn is frameAt for bytes that begin at an offset of their file.
func frameIn(b []byte, offset int64) []byte {
	if len(b) < frameBytes {
		return nil
	}
	n := int(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
	if n == 0 || n > maxRecordBytes || n > len(b)-frameBytes {
		return nil
	}
	payload := b[frameBytes : frameBytes+n]
	sum := uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24
	if checksum(offset, payload) != sum {
		return nil
	}
	return payload
}

// Follower keeps a catalog equal to another one by the records of that one's log.
type Follower struct {
	c  *Catalog
	at Position
	// seen are the items of the other log, while it is read from its beginning: what this catalog has besides is gone there.
	seen map[model.ItemID]bool
}

// NewFollower returns a follower that begins with the whole log of the other.
func (c *Catalog) NewFollower() *Follower { return &Follower{c: c} }

// Position is from where on records are needed.
func (f *Follower) Position() Position { return f.at }

// Apply takes over records that stood at a position; end is where the other's log ended then. They are durable here when it returns.
func (f *Follower) Apply(ctx context.Context, at Position, records []byte, end int64) error {
	if at.Number != f.at.Number {
		if at.Offset != headerBytes {
			return fmt.Errorf("%w: they begin at byte %d of log %d, expected byte %d", ErrRecords, at.Offset, at.Number, headerBytes)
		}
		f.at, f.seen = at, map[model.ItemID]bool{}
	}
	if at != f.at {
		return fmt.Errorf("%w: they stand at %+v, expected %+v", ErrRecords, at, f.at)
	}
	var payloads [][]byte
	for n := 0; n < len(records); {
		payload := frameIn(records[n:], at.Offset+int64(n))
		if payload == nil {
			return fmt.Errorf("%w: none at byte %d of log %d", ErrRecords, at.Offset+int64(n), at.Number)
		}
		r, err := decodeRecord(payload)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRecords, err)
		}
		f.note(&r)
		payloads = append(payloads, payload)
		n += frameBytes + len(payload)
	}
	if err := f.c.take(payloads); err != nil {
		return err
	}
	f.at.Offset += int64(len(records))
	if f.seen == nil || f.at.Offset < end {
		return nil
	}
	seen := f.seen
	f.seen = nil
	return f.c.forgetOthers(ctx, seen)
}

// note remembers what the other log says of items while it is read from its beginning.
func (f *Follower) note(r *record) {
	if f.seen == nil {
		return
	}
	switch r.kind {
	case recordDeclare:
		f.seen[r.item.id] = true
	case recordForget:
		for _, id := range r.ids {
			delete(f.seen, id)
		}
	}
}

// take logs records of another catalog and applies them.
func (c *Catalog) take(payloads [][]byte) error {
	if len(payloads) == 0 {
		return nil
	}
	c.writer.Lock()
	defer c.writer.Unlock()
	if err := c.append(payloads...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, payload := range payloads {
		if err := c.replay(payload); err != nil {
			return err
		}
	}
	c.nextID = max(c.nextID, c.limitID)
	return nil
}

// forgetOthers forgets the declared items that are not among those of another catalog.
func (c *Catalog) forgetOthers(ctx context.Context, seen map[model.ItemID]bool) error {
	c.writer.Lock()
	defer c.writer.Unlock()
	var gone []model.ItemID
	c.mu.RLock()
	for i := range c.index.count {
		if e := c.index.at(i); !e.dead && e.kind == model.Declared && !seen[e.id] {
			gone = append(gone, e.id)
		}
	}
	c.mu.RUnlock()
	_, err := c.forget(ctx, gone) // it writes the log anew when much of it is of no use
	return err
}
