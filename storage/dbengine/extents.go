package dbengine

import (
	"slices"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

const (
	// extentPages and extentBytes end an extent.
	extentPages = 64
	extentBytes = 64 << 10
	// textLevel is Zstandard's level for extents of texts. Numbers are not compressed again: their columns leave little.
	textLevel = 3
	// kindSeals is the page at the end of each extent that says for each page how far the log was when it was sealed.
	kindSeals = 16
)

// extents collects pages into extents for one write. All pages of a sealed go to one extent, and those of a series
// to extents in the order in which they were sealed: what a power cut leaves is then complete up to some LSN.
type extents struct {
	db   *DB
	pair *pair
	err  error
	buf  []byte
	refs []extentPlace
	made []journal.Extent
	// open are the extents being filled: numbers and texts.
	open [2]openExtent
}

// extentPlace is where an extent was put.
type extentPlace struct {
	offset int64
	place
}

type openExtent struct {
	members []*built
	pages   []extent.Page
	lsns    []uint64
	size    int
}

func (x *extents) fill(group []built) {
	for i := range group {
		b := &group[i]
		kind := 0
		if b.text {
			kind = 1
		}
		if other := &x.open[1-kind]; len(other.members) > 0 && other.members[len(other.members)-1].series == b.series {
			x.emit(1 - kind)
		}
		o := &x.open[kind]
		o.members = append(o.members, b)
		for _, p := range b.pages {
			o.pages = append(o.pages, p)
			o.lsns = append(o.lsns, uint64(b.lsn))
			o.size += len(p.Times) + len(p.Values)
		}
		if len(o.pages) >= extentPages || o.size >= extentBytes {
			x.emit(kind)
		}
	}
	x.emit(0)
	x.emit(1)
}

// emit builds an extent from what was collected.
func (x *extents) emit(kind int) {
	o := &x.open[kind]
	if len(o.members) == 0 || x.err != nil {
		return
	}
	codec := x.db.o.HotCodec
	if kind == 1 && codec.Codec != extent.Zstd {
		codec = Codec{Codec: extent.Zstd, Level: textLevel}
	}
	sequence := x.pair.sequence + uint64(len(x.refs)) + 1
	pages := append(slices.Clip(o.pages), extent.Page{Kind: kindSeals, Count: len(o.lsns), Values: page.AppendUints(nil, o.lsns)})
	start := len(x.buf)
	x.buf, x.err = extent.Build(x.buf, x.pair.id.Extent(sequence), codec.Codec, codec.Level, pages)
	if x.err != nil {
		return
	}
	first := (x.pair.size + datafile.Align - 1) / datafile.Align * datafile.Align
	ref := extentPlace{offset: first + int64(start)}
	ref.place = place{at: uint32(ref.offset / datafile.Align), length: uint32(len(x.buf) - start), sequence: uint32(sequence)}
	made := journal.Extent{Offset: ref.offset, Length: ref.length, Sequence: sequence}
	for i, p := range o.pages {
		made.Pages = append(made.Pages, journal.Page{
			Item: p.Item, Type: p.Type, Kind: p.Kind, From: p.From, To: p.To, Count: uint32(p.Count), LSN: model.LSN(o.lsns[i]),
		})
	}
	slot := 0
	for _, b := range o.members {
		b.extent, b.slot = len(x.refs), slot
		slot += len(b.pages)
	}
	x.refs = append(x.refs, ref)
	x.made = append(x.made, made)
	x.buf = append(x.buf, make([]byte, (datafile.Align-len(x.buf)%datafile.Align)%datafile.Align)...)
	*o = openExtent{}
}

// writeExtents appends extents to a pair: first the datafile is synced, then the journal that names them.
func (db *DB) writeExtents(p *pair, x *extents) error {
	records := []byte(nil)
	for i := range x.made {
		records = journal.AppendRecord(records, p.id, p.journalSize+int64(len(records)), &x.made[i])
	}
	start := x.refs[0].offset
	size, journalSize := start+int64(len(x.buf)), p.journalSize+int64(len(records))
	more := roundUp(size) - roundUp(p.size) + roundUp(journalSize) - roundUp(p.journalSize)
	if err := db.reserve(more); err != nil {
		return err
	}
	p.mu.Lock()
	p.charged += more
	p.mu.Unlock()
	db.growing.Lock()
	defer db.growing.Unlock()
	if err := p.out.WriteAt(x.buf, start); err != nil {
		return err
	}
	if err := p.out.Sync(); err != nil {
		return err
	}
	if _, err := p.journal.WriteAt(records, p.journalSize); err != nil {
		return err
	}
	if err := p.journal.SyncData(); err != nil {
		return err
	}
	p.size, p.journalSize = size, journalSize
	p.sequence += uint64(len(x.refs))
	for i := range x.made {
		p.note(&x.made[i])
	}
	db.m.extentsWritten.Add(len(x.refs))
	db.m.writtenBytes.Add(len(x.buf) + len(records))
	return nil
}

// note counts what an extent adds to the pair.
func (p *pair) note(e *journal.Extent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range e.Pages {
		q := &e.Pages[i]
		p.pageCount++
		if q.Kind == extent.Hourly || q.Kind == extent.Minute || q.Kind == extent.Merged {
			p.newestHour = max(p.newestHour, q.To)
			continue
		}
		if p.oldest == minTime || q.From < p.oldest {
			p.oldest = q.From
		}
		p.newestValue = max(p.newestValue, q.To)
		p.values += uint64(q.Count)
	}
}
