package dbengine

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/dbengine/pagecache"
)

const (
	// slotDirectory and slotExtent are the cache's slots for an extent's directory and for all of it.
	slotDirectory = -1
	slotExtent    = -2
	// headGuessBytes is read first of an extent, in the hope that the directory is in it.
	headGuessBytes = 4096
	// pageCharge is what a page is charged with besides its columns.
	pageCharge = int(unsafe.Sizeof(extent.Page{}))
)

// errGone means that a page's pair was deleted.
var errGone = errors.New("the pair was deleted")

// decoded is a page's values.
type decoded struct {
	valueType model.ValueType
	at        []int64
	bits      []uint64
	arena     []byte
}

// readPage returns a page's bytes, from the cache or the disk. They must not be changed.
func (db *DB) readPage(ref *pageRef) (extent.Page, error) {
	return db.fetchPage(ref, fetching{keep: true})
}

// fetching says how a page is read that is not in the cache: kept there, or in passing, by the extents of its pair.
type fetching struct {
	keep bool
	past *extentReader
}

// fetchPage is readPage for pages that may be in passing.
func (db *DB) fetchPage(ref *pageRef, how fetching) (extent.Page, error) {
	p, offset := ref.pair, ref.offset()
	key := pagecache.Key{File: p.key, Offset: offset, Slot: int32(ref.slot)}
	if v, ok := db.cache.Get(key); ok {
		return v.(extent.Page), nil
	}
	if v, ok := db.cache.Get(pagecache.Key{File: p.key, Offset: offset, Slot: slotExtent}); ok {
		q, err := v.(*extent.Directory).Page(int(ref.slot))
		return q, ref.locate(err)
	}
	if how.past != nil && how.past.pair == p {
		return how.past.passingPage(ref, db.m.readBytes.Add)
	}
	if !p.acquire() {
		return extent.Page{}, errGone
	}
	defer p.release()
	d, err := db.readDirectory(ref)
	if err != nil {
		return extent.Page{}, ref.locate(err)
	}
	if int(ref.slot) >= d.Len() {
		return extent.Page{}, ref.locate(fmt.Errorf("%w: %d pages, expected one in slot %d", extent.ErrExtent, d.Len(), ref.slot))
	}
	if d.Codec() != extent.None {
		return db.readExtent(ref)
	}
	timesAt, timesSize, valuesAt, valuesSize := d.Span(int(ref.slot))
	b := slices.Grow([]byte(nil), timesSize+valuesSize)[:timesSize+valuesSize] // its capacity is what it takes
	times, values := b[:timesSize:timesSize], b[timesSize:]
	if timesAt+timesSize == valuesAt {
		err = p.readAt(b, offset+int64(timesAt))
	} else if err = p.readAt(times, offset+int64(timesAt)); err == nil {
		err = p.readAt(values, offset+int64(valuesAt))
	}
	if err != nil {
		return extent.Page{}, err
	}
	db.m.readBytes.Add(len(b))
	q, err := d.PageFrom(int(ref.slot), times, values)
	if err != nil {
		return extent.Page{}, ref.locate(err)
	}
	if how.keep {
		db.cache.Put(key, q, cap(b)+pageCharge)
	}
	return q, nil
}

// readDirectory returns the directory of an extent, whose pair is acquired.
func (db *DB) readDirectory(ref *pageRef) (*extent.Directory, error) {
	key := pagecache.Key{File: ref.pair.key, Offset: ref.offset(), Slot: slotDirectory}
	if v, ok := db.cache.Get(key); ok {
		return v.(*extent.Directory), nil
	}
	b := make([]byte, min(int64(ref.length), headGuessBytes))
	if err := ref.pair.readAt(b, ref.offset()); err != nil {
		return nil, err
	}
	n, err := extent.HeadBytes(b)
	if err != nil {
		return nil, err
	}
	if n > int(ref.length) {
		return nil, fmt.Errorf("%w: a directory of %d bytes in an extent of %d", extent.ErrExtent, n, ref.length)
	}
	if n > len(b) {
		head := make([]byte, n)
		copy(head, b)
		if err := ref.pair.readAt(head[len(b):], ref.offset()+int64(len(b))); err != nil {
			return nil, err
		}
		b = head
	}
	d, err := extent.ParseHead(b, ref.pair.id.Extent(uint64(ref.sequence)))
	if err != nil {
		return nil, err
	}
	db.m.readBytes.Add(n)
	db.m.extentsRead.Inc()
	db.cache.Put(key, d, d.HeldBytes())
	return d, nil
}

// readExtent reads a whole compressed extent, whose pair is acquired, and returns a page of it.
func (db *DB) readExtent(ref *pageRef) (extent.Page, error) {
	b := make([]byte, ref.length)
	if err := ref.pair.readAt(b, ref.offset()); err != nil {
		return extent.Page{}, err
	}
	db.m.readBytes.Add(len(b))
	d, err := extent.Parse(b, ref.pair.id.Extent(uint64(ref.sequence)))
	if err != nil {
		return extent.Page{}, ref.locate(err)
	}
	p, err := d.Page(int(ref.slot))
	if err != nil {
		return extent.Page{}, ref.locate(err)
	}
	db.cache.Put(pagecache.Key{File: ref.pair.key, Offset: ref.offset(), Slot: slotExtent}, d, d.HeldBytes())
	return p, nil
}

// locate makes damage a CorruptionError with its place; other errors stay as they are.
func (r *pageRef) locate(err error) error {
	if !errors.Is(err, extent.ErrExtent) && !errors.Is(err, page.ErrColumn) {
		return err
	}
	return &storage.CorruptionError{File: r.pair.id.Name(), Offset: r.offset(), Want: err.Error()}
}

// damaged counts and reports a page that cannot be read; what asked for it goes on without.
func (db *DB) damaged(err error) {
	if errors.Is(err, errGone) {
		return
	}
	db.m.damagedPages.Inc()
	db.o.Logger.Error("a page cannot be read and is left out", "error", err)
}

// decode reads a page of values.
func (db *DB) decode(ref *pageRef) (*decoded, error) {
	d := new(decoded)
	return d, db.decodeInto(d, ref)
}

// decodeInto reads a page of values into d, whose room it uses.
func (db *DB) decodeInto(d *decoded, ref *pageRef) error {
	p, err := db.readPage(ref)
	if err != nil {
		return err
	}
	if err := d.decode(&p); err != nil {
		return ref.locate(err)
	}
	return nil
}

// decode reads the columns of a page of values.
func (d *decoded) decode(p *extent.Page) (err error) {
	d.valueType = p.Type
	d.bits, d.arena = d.bits[:0], d.arena[:0]
	if d.at, err = page.DecodeTimes(d.at[:0], p.Times, p.Count); err != nil {
		return err
	}
	switch {
	case p.Type == model.Float:
		d.bits, err = page.DecodeFloats(d.bits, p.Values, p.Count)
	case p.Type == model.Uint:
		d.bits, err = page.DecodeUints(d.bits, p.Values, p.Count)
	default:
		d.bits, d.arena, err = page.DecodeBlobs(d.bits, d.arena, p.Values, p.Count)
	}
	return err
}

// probe remembers the last page that an Append looked into: values that are sent again come in order.
type probe struct {
	ref  pageRef
	page decoded
}

// lookupPages looks for the stored value of an instant in the pages on disk; the shard is locked.
func (db *DB) lookupPages(s *series, at int64) (v value, found bool) {
	sh := db.shardOf(s.id)
	look := func(ref *pageRef) {
		if !found && ref.kind <= extent.Late && ref.from <= at && at <= ref.to {
			v, found = db.lookupPage(sh, ref, at)
		}
	}
	if s.disk != nil {
		for _, list := range [][]pageRef{s.disk.pages[firstPage(s.disk.pages, at):], s.disk.lates} {
			for i := range list {
				look(&list[i])
			}
		}
	}
	for i := len(sh.indexed) - 1; i >= 0 && !found; i-- {
		e := &sh.indexed[i]
		if !e.mayHold(s.id) || !e.values.Reaches(at, at+1) {
			continue
		}
		if _, err := db.indexedPages(e.pair, s.id, look); err != nil {
			db.damaged(err)
		}
	}
	return v, found
}

func (db *DB) lookupPage(sh *shard, ref *pageRef, at int64) (v value, found bool) {
	p := &sh.probe
	if p.ref.pair != ref.pair || p.ref.at != ref.at || p.ref.slot != ref.slot {
		p.ref = pageRef{}
		if err := db.decodeInto(&p.page, ref); err != nil {
			db.damaged(err)
			return value{}, false
		}
		p.ref = *ref
	}
	i := searchTimes(p.page.at, at)
	if i == len(p.page.at) || p.page.at[i] != at {
		return value{}, false
	}
	return storedValue(p.page.valueType, sample{at: at, bits: p.page.bits[i]}, p.page.arena), true
}

// searchTimes returns where at is or belongs.
func searchTimes(times []int64, at int64) int {
	low, high := 0, len(times)
	for low < high {
		if mid := int(uint(low+high) >> 1); times[mid] < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
