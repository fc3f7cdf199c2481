package dbengine

import (
	"fmt"
	"slices"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/dbengine/translog"
)

// Finding is something that Check found.
type Finding struct {
	File string `json:"file"`
	// Offset is where in the file, in bytes.
	Offset int64 `json:"offset"`
	// Damage is false for what is only remarkable: an unfinished write that the next start tidies up.
	Damage bool   `json:"damage"`
	Text   string `json:"text"`
}

// String describes the finding.
func (f Finding) String() string {
	what := "note"
	if f.Damage {
		what = "damage"
	}
	return fmt.Sprintf("%s: %s at byte %d: %s", what, f.File, f.Offset, f.Text)
}

// Progress says how far Check is.
type Progress struct {
	File string `json:"file"`
	// DoneBytes of TotalBytes are checked.
	DoneBytes  int64 `json:"done_bytes"`
	TotalBytes int64 `json:"total_bytes"`
}

// Check reads every byte of an engine's folder and compares it with its checksums, and journalfiles with their datafiles.
// It changes nothing. progress, which may be nil, is called after each file.
func Check(fsys vfs.FS, dir string, progress func(Progress)) ([]Finding, error) {
	f, err := openFolder(fsys, dir)
	if err != nil {
		return nil, err
	}
	c := &checking{folder: f, progress: progress}
	_, replaced := readHeads(fsys, dir, f.ids).divide(f.ids)
	for _, id := range replaced {
		c.note(id.Name(), 0, "a newer generation of the pair is there; the next start removes this one")
	}
	for _, name := range f.names {
		c.at.TotalBytes += f.size(name)
	}
	for _, name := range f.names {
		c.file(name)
		c.at.File = name
		c.at.DoneBytes += f.size(name)
		if progress != nil {
			progress(c.at)
		}
	}
	c.logRecords()
	return c.findings, nil
}

type checking struct {
	*folder
	findings []Finding
	at       Progress
	progress func(Progress)
}

func (c *checking) damage(name string, offset int64, format string, args ...any) {
	c.findings = append(c.findings, Finding{File: name, Offset: offset, Damage: true, Text: fmt.Sprintf(format, args...)})
}

func (c *checking) note(name string, offset int64, format string, args ...any) {
	c.findings = append(c.findings, Finding{File: name, Offset: offset, Text: fmt.Sprintf(format, args...)})
}

func (c *checking) file(name string) {
	if id, isJournal, ok := datafile.ParseName(name); ok {
		if isJournal {
			if c.size(id.Name()) == 0 {
				c.damage(name, 0, "its datafile %s is missing or empty", id.Name())
			}
			return
		}
		c.pair(id)
		return
	}
	switch {
	case name == marksName:
		b, err := c.read(name, maxMarksBytes)
		if err == nil {
			_, _, err = decodeMarks(b)
		}
		if err != nil {
			c.damage(name, 0, "%v", err)
		}
	case isForeign(name):
		c.note(name, 0, "not a file of the engine")
	}
}

// pair checks a datafile against its checksums and its journalfile.
func (c *checking) pair(id datafile.ID) {
	file, err := datafile.Open(c.fs, c.dir, id, false)
	if err != nil {
		c.damage(id.Name(), 0, "%v", err)
		return
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		c.damage(id.Name(), 0, "%v", err)
		return
	}
	extents := c.journal(id)
	at := int64(header.Bytes)
	for i := range extents {
		e := &extents[i]
		if e.Offset < at || e.Offset+int64(e.Length) > size {
			c.damage(id.JournalName(), 0, "extent %d is said to be at bytes %d to %d of a datafile of %d", e.Sequence, e.Offset, e.Offset+int64(e.Length), size)
			continue
		}
		c.padding(file, at, e.Offset)
		c.extent(file, e)
		at = e.Offset + int64(e.Length)
	}
	if extents == nil || at < size {
		c.tail(file, at, size)
	}
}

// journal reads the journalfile of a pair and checks it.
func (c *checking) journal(id datafile.ID) []journal.Extent {
	name := id.JournalName()
	b, err := c.read(name, journal.MaxBytes)
	if isNotExist(err) { // a process that ended between the two files of a pair leaves it so
		c.note(id.Name(), 0, "it has no journalfile yet; the next start makes one of it")
		return nil
	}
	if err != nil {
		c.damage(name, 0, "%v", err)
		return nil
	}
	contents, err := journal.Read(b, id)
	if err != nil {
		c.damage(name, 0, "%v", err)
		return nil
	}
	if contents.Damage != nil {
		c.damage(name, contents.Valid, "%v", contents.Damage)
	}
	return contents.Extents
}

// padding checks that the bytes between two extents are zeros.
func (c *checking) padding(file *datafile.File, from, to int64) {
	if to-from >= datafile.Align {
		c.damage(file.ID.Name(), from, "%d bytes that no extent of the journalfile names", to-from)
		return
	}
	b := make([]byte, to-from)
	if err := file.ReadAt(b, from); err != nil {
		c.damage(file.ID.Name(), from, "%v", err)
		return
	}
	for i, x := range b {
		if x != 0 {
			c.damage(file.ID.Name(), from+int64(i), "%#02x between two extents, expected zero", x)
			return
		}
	}
}

// extent checks every byte of an extent, decodes its pages, and compares it with the journal.
func (c *checking) extent(file *datafile.File, e *journal.Extent) {
	name := file.ID.Name()
	b := make([]byte, e.Length)
	if err := file.ReadAt(b, e.Offset); err != nil {
		c.damage(name, e.Offset, "%v", err)
		return
	}
	id := file.ID.Extent(e.Sequence)
	if err := extent.Verify(b, id); err != nil {
		c.damage(name, e.Offset, "%v", err)
		return
	}
	sealed, err := readSeals(b, id)
	if err != nil {
		c.damage(name, e.Offset, "%v", err)
		return
	}
	if len(sealed.Pages) != len(e.Pages) {
		c.damage(file.ID.JournalName(), 0, "extent %d has %d pages, and the datafile has %d", e.Sequence, len(e.Pages), len(sealed.Pages))
		return
	}
	d, err := extent.Parse(b, id)
	if err != nil {
		c.damage(name, e.Offset, "%v", err)
		return
	}
	for slot := range e.Pages {
		want := sealed.Pages[slot]
		got := e.Pages[slot]
		if got.LSN == 0 {
			want.LSN = 0 // adopted behind a hole
		}
		if got != want {
			c.damage(file.ID.JournalName(), 0, "page %d of extent %d is %+v, and %+v in the datafile", slot, e.Sequence, got, want)
		}
		if err := checkPage(d, slot); err != nil {
			c.damage(name, e.Offset, "page %d: %v", slot, err)
		}
	}
}

// checkPage decodes a page and checks what its directory says of it.
func checkPage(d *extent.Directory, slot int) error {
	p, err := d.Page(slot)
	if err != nil {
		return err
	}
	if p.Kind == extent.Hourly {
		_, err := decodeRows(&p)
		return err
	}
	if p.Kind == extent.Merged && p.Type != model.Binary {
		return fmt.Errorf("%w: merged values of type %v", page.ErrColumn, p.Type)
	}
	if p.Kind == extent.Minute {
		_, err := decodeMinutes(nil, &p)
		return err
	}
	var v decoded
	if err := v.decode(&p); err != nil {
		return err
	}
	for i := 1; i < len(v.at); i++ {
		if v.at[i] <= v.at[i-1] {
			return fmt.Errorf("value %d is not later than the one before it", i)
		}
	}
	if v.at[0] != p.From || v.at[len(v.at)-1] != p.To {
		return fmt.Errorf("its values are from %d to %d, and its directory says %d to %d", v.at[0], v.at[len(v.at)-1], p.From, p.To)
	}
	return nil
}

// fillsBlock reports whether what stands behind the last extent are the zeros that fill up the last block of a datafile that is written directly.
func (c *checking) fillsBlock(file *datafile.File, from, size int64) bool {
	if size%vfs.DirectBytes != 0 || size-from >= vfs.DirectBytes {
		return false
	}
	b := make([]byte, size-from)
	return file.ReadAt(b, from) == nil && !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

// tail checks what stands behind the last extent that the journalfile names.
func (c *checking) tail(file *datafile.File, from, size int64) {
	if c.fillsBlock(file, from, size) {
		return
	}
	found := false
	end, damage, err := file.Scan(from, func(offset int64, sequence uint64, b []byte) error {
		found = true
		if err := extent.Verify(b, file.ID.Extent(sequence)); err != nil {
			c.damage(file.ID.Name(), offset, "%v", err)
		} else {
			c.note(file.ID.Name(), offset, "extent %d is not in the journalfile; the next start adopts it", sequence)
		}
		return nil
	})
	if err != nil {
		c.damage(file.ID.Name(), from, "%v", err)
		return
	}
	for _, d := range damage {
		if d.From >= end {
			c.note(file.ID.Name(), d.From, "%d bytes of an unfinished write behind the last extent", size-d.From)
			return
		}
		c.damage(file.ID.Name(), d.From, "%d bytes that are no extent: %v", d.To-d.From, d.Err)
	}
	if !found && len(damage) == 0 && size-from >= datafile.Align {
		c.note(file.ID.Name(), from, "%d bytes behind the last extent", size-from)
	}
}

// logRecords checks the log.
func (c *checking) logRecords() {
	b := model.NewBatch()
	defer b.Free()
	found, err := translog.Walk(c.fs, c.dir, func(end model.LSN, kind byte, payload []byte) error {
		if kind != translog.KindBatch {
			return nil
		}
		if err := translog.DecodeBatch(b, payload); err != nil {
			c.damage("log", 0, "the record before LSN %d: %v", end, err)
		}
		return nil
	})
	if err != nil {
		c.damage("log", 0, "%v", err)
		return
	}
	for name, err := range found.Foreign {
		c.damage(name, 0, "%v", err)
	}
	for _, g := range found.Gaps {
		c.damage(g.File, g.Offset, "%v", g)
	}
	if found.Torn != nil {
		c.note(found.Torn.File, found.Torn.Offset, "the log ends here, and records stand behind it: an unfinished write, or damage in its last records")
	}
}
