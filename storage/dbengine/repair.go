package dbengine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

// repairQuota is large enough that a repair never deletes a pair to make room.
const repairQuota = 1 << 50

// Repaired says what Repair did.
type Repaired struct {
	// Rewritten are the datafiles that had damage; they are in the quarantine as they were.
	Rewritten []string `json:"rewritten"`
	// LostExtents could not be read at all, LostPages are other pages whose columns were damaged, LostValues those in them.
	LostExtents int    `json:"lost_extents"`
	LostPages   int    `json:"lost_pages"`
	LostValues  uint64 `json:"lost_values"`
	// Quarantined counts the files that were set aside.
	Quarantined int `json:"quarantined_files"`
}

// Repair makes the folder of a stopped engine whole, so that Check finds nothing: what the log holds goes to a datafile,
// journalfiles that are damaged or missing are made again, and each datafile with damage is written anew without it. What is replaced is moved
// to quarantine/ first; nothing is deleted. It needs room for one datafile more. A folder of a newer version is refused.
func Repair(ctx context.Context, fsys vfs.FS, dir string, logger *slog.Logger) (*Repaired, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if _, err := openFolder(fsys, dir); err != nil {
		return nil, err
	}
	before := quarantined(fsys, dir)
	db, err := Open(ctx, fsys, dir, Options{DiskSpaceBytes: repairQuota, Logger: logger})
	if err != nil {
		return nil, err
	}
	db.Release(db.LastLSN())
	if err := errors.Join(db.Flush(ctx), db.saveMarks(ctx)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	f, err := openFolder(fsys, dir)
	if err != nil {
		return nil, err
	}
	r := &repairing{folder: f, done: &Repaired{}}
	for _, id := range f.ids {
		if err := ctx.Err(); err != nil {
			return r.done, err
		}
		c := &checking{folder: f}
		c.pair(id)
		if len(c.findings) == 0 {
			continue
		}
		if err := r.pair(id); err != nil {
			return r.done, fmt.Errorf("repair %s: %w", id.Name(), err)
		}
	}
	r.done.Quarantined = quarantined(fsys, dir) - before
	return r.done, nil
}

func quarantined(fsys vfs.FS, dir string) int {
	names, err := fsys.List(filepath.Join(dir, quarantineDir))
	if err != nil {
		return 0
	}
	return len(names)
}

type repairing struct {
	*folder
	done *Repaired
}

// pair writes what is intact of a pair to new files. The journalfile goes first, since a datafile without one is whole.
func (r *repairing) pair(id datafile.ID) error {
	temporary := r.path(id.Name()) + tempSuffix
	extents, err := r.copyIntact(id, temporary)
	if err != nil {
		if rm := r.fs.Remove(temporary); rm != nil && !isNotExist(rm) {
			err = errors.Join(err, rm)
		}
		return err
	}
	if err := r.setAside(id.JournalName()); err != nil && !isNotExist(err) {
		return err
	}
	if err := r.setAside(id.Name()); err != nil {
		return err
	}
	if err := errors.Join(r.fs.Rename(temporary, r.path(id.Name())), r.fs.SyncDir(r.dir)); err != nil {
		return err
	}
	r.done.Rewritten = append(r.done.Rewritten, id.Name())
	index := r.path(id.JournalName())
	if err := writeFile(r.fs, index+tempSuffix, journal.AppendIndex(nil, id, extents)); err != nil {
		return err
	}
	return errors.Join(r.fs.Rename(index+tempSuffix, index), r.fs.SyncDir(r.dir))
}

// setAside moves a file to the quarantine.
func (r *repairing) setAside(name string) error {
	to := filepath.Join(r.dir, quarantineDir)
	if err := r.fs.MkdirAll(to); err != nil {
		return err
	}
	err := r.fs.Rename(r.path(name), filepath.Join(to, fmt.Sprintf("%s.%d", name, time.Now().UnixNano())))
	if err != nil {
		return err
	}
	return errors.Join(r.fs.SyncDir(to), r.fs.SyncDir(r.dir))
}

func writeFile(fsys vfs.FS, name string, b []byte) error {
	if err := fsys.Remove(name); err != nil && !isNotExist(err) {
		return err
	}
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// copyIntact writes the intact pages of a datafile to another file, in extents of the same numbers.
func (r *repairing) copyIntact(id datafile.ID, name string) ([]journal.Extent, error) {
	file, err := datafile.Open(r.fs, r.dir, id, false)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := r.fs.Remove(name); err != nil && !isNotExist(err) {
		return nil, err
	}
	out, err := r.fs.Create(name)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	h, err := datafile.ReadHeader(r.fs, r.dir, id)
	if err != nil {
		return nil, err
	}
	if h.Tier != header.Raw {
		h.Compatible &^= header.Merged // what is lost is read from the values
	}
	if _, err := out.WriteAt(h.Append(nil), 0); err != nil {
		return nil, err
	}
	var extents []journal.Extent
	end := int64(header.Bytes)
	_, damage, err := file.Scan(header.Bytes, func(_ int64, sequence uint64, b []byte) error {
		if len(extents) > 0 && sequence <= extents[len(extents)-1].Sequence {
			return nil // a copy, or out of place
		}
		b, e, err := r.intact(b, id.Extent(sequence))
		if err != nil || b == nil {
			return err
		}
		e.Offset = (end + datafile.Align - 1) / datafile.Align * datafile.Align
		e.Length, e.Sequence = uint32(len(b)), sequence
		if _, err := out.WriteAt(b, e.Offset); err != nil {
			return err
		}
		end = e.Offset + int64(len(b))
		extents = append(extents, e)
		return nil
	})
	r.done.LostExtents += len(damage)
	return extents, errors.Join(err, out.Sync())
}

// intact returns an extent as it is, or built again from its intact pages; nothing if none is left.
func (r *repairing) intact(b []byte, id extent.Identity) ([]byte, journal.Extent, error) {
	if extent.Verify(b, id) == nil {
		if e, err := readSeals(b, id); err == nil && r.wholePages(b, id) {
			return b, e, nil
		}
	}
	d, err := extent.Parse(b, id)
	if err != nil {
		r.done.LostExtents++
		return nil, journal.Extent{}, nil
	}
	n := d.Len() - 1
	lsns := make([]uint64, max(n, 0)) // unknown ones are zero: then the log is read in full
	if last, err := d.Page(n); err == nil && last.Kind == kindSeals && last.Count == n {
		if read, err := page.DecodeUints(nil, last.Values, n); err == nil {
			lsns = read
		}
	}
	var pages []extent.Page
	var kept []uint64
	for slot := range n {
		p, err := d.Page(slot)
		if err == nil {
			err = checkPage(d, slot)
		}
		if err != nil {
			r.done.LostPages++
			if row := d.Row(slot); row.Kind == extent.Values || row.Kind == extent.Late {
				r.done.LostValues += uint64(row.Count)
			}
			continue
		}
		pages, kept = append(pages, p), append(kept, lsns[slot])
	}
	if len(pages) == 0 {
		return nil, journal.Extent{}, nil
	}
	pages = append(pages, extent.Page{Kind: kindSeals, Count: len(kept), Values: page.AppendUints(nil, kept)})
	built, err := extent.Build(nil, id, d.Codec(), textLevel, pages)
	if err != nil {
		return nil, journal.Extent{}, err
	}
	e, err := readSeals(built, id)
	return built, e, err
}

// wholePages reports whether all pages of an extent can be decoded.
func (r *repairing) wholePages(b []byte, id extent.Identity) bool {
	d, err := extent.Parse(b, id)
	if err != nil {
		return false
	}
	for slot := range d.Len() - 1 {
		if checkPage(d, slot) != nil {
			return false
		}
	}
	return true
}
