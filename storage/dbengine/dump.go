package dbengine

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/translog"
)

// Dump writes what a folder, or one file of it, holds in the words of the format: a line for each extent, page, mark and
// log record. It changes nothing and goes on past damage.
func Dump(fsys vfs.FS, name string, w io.Writer) error {
	out := bufio.NewWriter(w)
	d := dumping{w: out}
	info, err := fsys.Stat(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Split(filepath.Clean(name))
	names := []string{base}
	if info.IsDir() {
		dir = name
		f, err := openFolder(fsys, dir)
		if err != nil {
			return err
		}
		names = f.names
	}
	d.folder = &folder{fs: fsys, dir: dir}
	logged := false
	for _, name := range names {
		if _, ok := translog.ParseName(name); ok {
			if !logged || !info.IsDir() {
				d.log(name, info.IsDir())
			}
			logged = true
			continue
		}
		d.file(name)
	}
	return out.Flush()
}

type dumping struct {
	*folder
	w *bufio.Writer
}

func (d *dumping) line(format string, args ...any) {
	fmt.Fprintf(d.w, format+"\n", args...)
}

func when(at int64) string { return time.Unix(0, at).UTC().Format("2006-01-02T15:04:05.000000000Z") }

func (d *dumping) file(name string) {
	id, isJournal, ok := datafile.ParseName(name)
	switch {
	case ok && isJournal:
		d.journal(id)
	case ok:
		d.datafile(id)
	case name == marksName:
		d.marks()
	}
}

func (d *dumping) datafile(id datafile.ID) {
	d.line("datafile %s %d bytes", id.Name(), d.size(id.Name()))
	f, err := datafile.Open(d.fs, d.dir, id, false)
	if err != nil {
		d.line("  damage: %v", err)
		return
	}
	defer f.Close()
	if h, err := datafile.ReadHeader(d.fs, d.dir, id); err == nil {
		first, last, members := h.Run()
		if h.Incompatible&header.Lean != 0 {
			d.line("  without the rows of hours that follow from its values")
		}
		if h.Incompatible&header.Repeats != 0 {
			d.line("  with columns that repeat")
		}
		switch {
		case members > 1 && h.Tier == header.Raw:
			d.line("  stands for %d pairs with numbers from %d to %d", members, first, last)
		case members > 1:
			d.line("  sums up %d pairs with numbers from %d to %d", members, first, last)
		case h.Tier != header.Raw:
			d.line("  sums up the pair with number %d", last)
		}
	}
	_, damage, err := f.Scan(header.Bytes, func(offset int64, sequence uint64, b []byte) error {
		x, err := extent.Parse(b, id.Extent(sequence))
		if err != nil {
			d.line("  extent %d at %d: damage: %v", sequence, offset, err)
			return nil
		}
		plain, stored := x.PayloadBytes()
		d.line("  extent %d at %d: %d bytes, %d pages, codec %v, payload %d stored in %d", sequence, offset, len(b), x.Len(), x.Codec(), plain, stored)
		for i := range x.Len() {
			p, err := x.Page(i)
			if err != nil {
				d.line("    page %d: damage: %v", i, err)
				continue
			}
			if p.Kind == kindSeals {
				d.line("    page %d: seals of %d pages, %d bytes", i, p.Count, len(p.Values))
				continue
			}
			d.line("    page %d: item %d %v %s %s to %s, %d values in %d+%d bytes", i, p.Item, p.Type, kindName(p.Kind),
				when(p.From), when(p.To), p.Count, len(p.Times), len(p.Values))
		}
		return nil
	})
	for _, x := range damage {
		d.line("  bytes %d to %d: no extent: %v", x.From, x.To, x.Err)
	}
	if err != nil {
		d.line("  damage: %v", err)
	}
}

func kindName(kind uint8) string {
	switch kind {
	case extent.Values:
		return "values"
	case extent.Late:
		return "late values"
	case extent.Hourly:
		return "hourly rows"
	case extent.Minute:
		return "minute rows"
	case extent.Merged:
		return "merged values"
	case kindSeals:
		return "seals"
	}
	return fmt.Sprintf("kind %d", kind)
}

func (d *dumping) journal(id datafile.ID) {
	d.line("journalfile %s %d bytes", id.JournalName(), d.size(id.JournalName()))
	b, err := d.read(id.JournalName(), journal.MaxBytes)
	if err != nil {
		d.line("  damage: %v", err)
		return
	}
	c, err := journal.Read(b, id)
	if err != nil {
		d.line("  damage: %v", err)
		return
	}
	form := "open"
	if c.Closed {
		form = "closed"
	}
	d.line("  %s, %d extents", form, len(c.Extents))
	for _, e := range c.Extents {
		d.line("  extent %d at %d: %d bytes, %d pages", e.Sequence, e.Offset, e.Length, len(e.Pages))
		for slot, p := range e.Pages {
			d.line("    page %d: item %d %v %s %s to %s, %d values, sealed at LSN %d", slot, p.Item, p.Type, kindName(p.Kind),
				when(p.From), when(p.To), p.Count, p.LSN)
		}
	}
	if c.Damage != nil {
		d.line("  damage behind byte %d: %v", c.Valid, c.Damage)
	}
}

func (d *dumping) marks() {
	b, err := d.read(marksName, maxMarksBytes)
	var all []model.Mark
	lsn := model.LSN(0)
	if err == nil {
		lsn, all, err = decodeMarks(b)
	}
	if err != nil {
		d.line("marks: damage: %v", err)
		return
	}
	d.line("marks up to LSN %d", lsn)
	for _, m := range all {
		d.line("  %s = %q at %s", m.Key, m.Value, when(m.At))
	}
}

// log dumps the whole log, or the one file of it.
func (d *dumping) log(name string, whole bool) {
	d.line("log")
	b := model.NewBatch()
	defer b.Free()
	visit := func(end model.LSN, kind byte, payload []byte) error {
		if kind != translog.KindBatch {
			d.line("  record before LSN %d: kind %d, %d bytes", end, kind, len(payload))
			return nil
		}
		if err := translog.DecodeBatch(b, payload); err != nil {
			d.line("  record before LSN %d: damage: %v", end, err)
			return nil
		}
		d.line("  record before LSN %d: %d values and %d marks in %d bytes, arrived %s", end, b.Len(), len(b.Marks), len(payload), when(b.ArrivedAt))
		return nil
	}
	var found *translog.Found
	var err error
	if whole {
		found, err = translog.Walk(d.fs, d.dir, visit)
	} else {
		found, err = translog.WalkFile(d.fs, d.dir, name, visit)
	}
	if err != nil {
		d.line("  damage: %v", err)
		return
	}
	for file, err := range found.Foreign {
		d.line("  %s: damage: %v", file, err)
	}
	for _, g := range found.Gaps {
		d.line("  gap: %v", g)
	}
}
