package dbengine

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
)

// ClosedPair is a file pair of values that nobody writes to any more.
type ClosedPair struct {
	// Name and JournalName are the names of its files in the engine's folder.
	Name, JournalName string
	// Bytes is the size of both.
	Bytes int64
	// Values counts the values, Pages their pages; summaries count as pages too.
	Values uint64
	Pages  int
	// From and To are the first and last time of its values, Unix nanoseconds.
	From, To int64
}

// ClosedPairs lists the closed pairs of values in an engine's folder, oldest first, each in its newest generation. It changes nothing and may
// be used while an engine has the folder open: a pair that is removed meanwhile is left out. Pairs without an intact index are left out too.
func ClosedPairs(fsys vfs.FS, dir string) ([]ClosedPair, error) {
	f, err := openFolder(fsys, dir)
	if err != nil {
		return nil, err
	}
	ids, _ := readHeads(fsys, dir, f.ids).divide(f.ids)
	var list []ClosedPair
	for _, id := range ids {
		p, err := closedPair(fsys, dir, id)
		if isNotExist(err) || isDamage(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			list = append(list, *p)
		}
	}
	return list, nil
}

// closedPair returns nil for a pair that grows, or has no values.
func closedPair(fsys vfs.FS, dir string, id datafile.ID) (*ClosedPair, error) {
	h, err := datafile.ReadHeader(fsys, dir, id)
	if err != nil || h.Tier != header.Raw {
		return nil, err
	}
	info, err := fsys.Stat(filepath.Join(dir, id.Name()))
	if err != nil {
		return nil, err
	}
	parts, index, size, err := openIndex(fsys, dir, id)
	if err != nil || parts == nil {
		return nil, err
	}
	defer index.Close()
	end, err := dataEnd(index, parts)
	if err != nil {
		return nil, err
	}
	footer := parts.Footer()
	if s := &footer.Summary; s.ValueTimes != journal.NoBounds && s.Values > 0 && end <= info.Size() {
		return &ClosedPair{
			Name: id.Name(), JournalName: id.JournalName(), Bytes: info.Size() + size, Values: s.Values, Pages: footer.Pages,
			From: s.ValueTimes.From, To: s.ValueTimes.To,
		}, nil
	}
	return nil, nil
}

// openIndex opens a journalfile; parts are nil, and nothing is open, if the pair is not closed.
func openIndex(fsys vfs.FS, dir string, id datafile.ID) (*journal.Parts, vfs.File, int64, error) {
	f, err := fsys.Open(filepath.Join(dir, id.JournalName()))
	if err != nil {
		return nil, nil, 0, err
	}
	size, err := f.Size()
	if err == nil {
		var parts *journal.Parts
		if parts, err = journal.OpenParts(f, id, size); err == nil && parts != nil {
			return parts, f, size, nil
		}
	}
	_ = f.Close()
	return nil, nil, 0, err
}

// Items returns the items of a closed pair in rising order, at most limit of them: those of blocks of the index that are spread evenly over it.
func (p *ClosedPair) Items(fsys vfs.FS, dir string, limit int) ([]model.ItemID, error) {
	id, _, ok := datafile.ParseName(p.Name)
	if !ok || limit < 1 {
		return nil, fmt.Errorf("%s: expected the name of a datafile", p.Name)
	}
	parts, in, _, err := openIndex(fsys, dir, id)
	if err != nil {
		return nil, err
	}
	if parts == nil {
		return nil, fmt.Errorf("%s: %w", p.Name, fs.ErrNotExist)
	}
	defer in.Close()
	return itemsOf(in, parts, limit)
}

// itemBlocks bounds the blocks of an index that Items reads.
const itemBlocks = 64

func itemsOf(in io.ReaderAt, parts *journal.Parts, limit int) ([]model.ItemID, error) {
	t, err := parts.Table(in)
	if err != nil {
		return nil, err
	}
	blocks := parts.Footer().Blocks
	step := max(blocks/itemBlocks, 1)
	each := max(limit*step/max(blocks, 1), 1)
	var items []model.ItemID
	last := model.ItemID(math.MaxUint64)
	for i := 0; i < blocks && len(items) < limit; i += step {
		b, err := parts.Block(in, t, i)
		if err != nil {
			return nil, err
		}
		for k, n := 0, 0; k < len(b.Pages) && n < each; k++ {
			if q := &b.Pages[k]; q.Kind != kindSeals && q.Item != last && len(items) < limit {
				items, last = append(items, q.Item), q.Item
				n++
			}
		}
	}
	return items, nil
}
