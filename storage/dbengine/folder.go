package dbengine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/translog"
)

// folder is an engine's folder as the tools read it: without a lock and without changing anything. The engine should be
// stopped; of a running one the tools may report what is being written as unfinished.
type folder struct {
	fs    vfs.FS
	dir   string
	names []string
	ids   []datafile.ID
}

func openFolder(fsys vfs.FS, dir string) (*folder, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{fs: fsys, dir: dir, names: names}
	known := false
	for _, name := range names {
		if id, journal, ok := datafile.ParseName(name); ok && !journal {
			f.ids = append(f.ids, id)
		}
		_, ok := magicOf(name)
		known = known || ok || name == lockName
	}
	if !known {
		return nil, fmt.Errorf("%s is no engine folder: it holds neither datafiles nor a log", dir)
	}
	sortIDs(f.ids)
	return f, nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) size(name string) int64 {
	info, err := f.fs.Stat(f.path(name))
	if err != nil || info.IsDir() {
		return 0
	}
	return info.Size()
}

func (f *folder) read(name string, limit int64) ([]byte, error) {
	file, err := f.fs.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s has %d bytes, expected at most %d", name, size, limit)
	}
	b := make([]byte, size)
	if n, err := file.ReadAt(b, 0); n < len(b) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// extents returns what the journalfile of a pair says, or the datafile where that says nothing.
func (f *folder) extents(id datafile.ID) ([]journal.Extent, error) {
	b, err := f.read(id.JournalName(), journal.MaxBytes)
	if err == nil {
		c, err := journal.Read(b, id)
		if err == nil && c.Damage == nil {
			return c.Extents, nil
		}
	}
	file, err := datafile.Open(f.fs, f.dir, id, false)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []journal.Extent
	_, _, err = file.Scan(header.Bytes, func(offset int64, sequence uint64, b []byte) error {
		if e, err := readSeals(b, id.Extent(sequence)); err == nil {
			e.Offset, e.Length, e.Sequence = offset, uint32(len(b)), sequence
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// Summary says what a part of an engine's folder holds.
type Summary struct {
	// Samples counts values, or rows of a tier.
	Samples uint64 `json:"samples"`
	// Bytes is what it takes on disk.
	Bytes  int64 `json:"bytes"`
	Series int   `json:"series"`
	Pairs  int   `json:"pairs"`
	// From and To are the first and last time, Unix nanoseconds; both zero when empty.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Information is what Info says of a folder.
type Information struct {
	Summary
	// Instances are the tiers: "history" are the values, "minute" and "hourly" the summaries. Hours stand beside the values, so their bytes are those of
	// their pages' columns.
	Instances map[string]Summary `json:"instances"`
	// LogBytes are the log's files, LogSamples the values that are only in the log.
	LogBytes   int64  `json:"log_bytes"`
	LogSamples uint64 `json:"log_samples"`
	Extents    int    `json:"extents"`
	Pages      int    `json:"pages"`
	Quarantine int    `json:"quarantined_files"`
	// DirectIO says whether the file system takes direct I/O for the folder's files: yes, no with the reason, or unknown where there are none yet.
	DirectIO string `json:"direct_io"`
	// Shares are those that have most of the disk, where it is known which item belongs to which; ShareCount is how many there are.
	Shares     []ShareInfo `json:"shares,omitempty"`
	ShareCount int         `json:"share_count,omitempty"`
}

// topShares is how many shares Info names.
const topShares = 10

// Info says what is in an engine's folder, from its journalfiles and log. It changes nothing. share, if not nil, says to which share of the
// disk an item belongs.
func Info(fsys vfs.FS, dir string, share func(model.ItemID) uint64) (*Information, error) {
	f, err := openFolder(fsys, dir)
	if err != nil {
		return nil, err
	}
	c := counting{
		sealed: map[model.ItemID]model.LSN{},
		tiers:  map[string]*tally{"history": newTally(), "minute": newTally(), "hourly": newTally(), "merged": newTally()}, all: newTally(),
	}
	if share != nil {
		c.share, c.shares = share, map[uint64]*ShareInfo{}
	}
	info := &Information{}
	heads := readHeads(fsys, dir, f.ids)
	ids, _ := heads.divide(f.ids)
	for _, id := range ids {
		extents, err := f.extents(id)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id.Name(), err)
		}
		info.Extents += len(extents)
		h, intact := heads[id]
		again := intact && h.Tier == header.Hour && heads.repeats(&h, ids)
		for i := range extents {
			info.Pages += len(extents[i].Pages)
			c.extent(&extents[i], again)
		}
		c.endPair()
	}
	info.LogSamples, err = c.log(f)
	if err != nil {
		return nil, err
	}
	for _, name := range f.names {
		size := f.size(name)
		info.Bytes += size
		if _, ok := translog.ParseName(name); ok || translog.IsSpare(name) {
			info.LogBytes += size
		}
	}
	if names, err := fsys.List(filepath.Join(dir, quarantineDir)); err == nil {
		info.Quarantine = len(names)
	}
	info.DirectIO = directIO(f, ids)
	bytes := info.Bytes
	info.Summary = c.all.summary()
	info.Bytes, info.Pairs = bytes, len(ids)
	info.Instances = map[string]Summary{}
	for name, t := range c.tiers {
		info.Instances[name] = t.summary()
	}
	info.ShareCount = len(c.shares)
	info.Shares = largestShares(c.shares, topShares)
	return info, nil
}

// tally counts one tier.
type tally struct {
	Summary
	items map[model.ItemID]struct{}
	here  bool
}

func newTally() *tally {
	return &tally{Summary: Summary{From: math.MaxInt64, To: math.MinInt64}, items: map[model.ItemID]struct{}{}}
}

func (t *tally) add(item model.ItemID, from, to int64, count uint64) {
	t.items[item] = struct{}{}
	t.Samples += count
	t.From, t.To = min(t.From, from), max(t.To, to)
	t.here = true
}

func (t *tally) summary() Summary {
	s := t.Summary
	s.Series = len(t.items)
	if s.Samples == 0 {
		s.From, s.To = 0, 0
	}
	return s
}

// counting gathers what Info says.
type counting struct {
	sealed map[model.ItemID]model.LSN
	tiers  map[string]*tally
	all    *tally
	share  func(model.ItemID) uint64
	shares map[uint64]*ShareInfo
}

// extent counts an extent. Again means that its hours stand beside the values that they were made of, and count there.
func (c *counting) extent(e *journal.Extent, again bool) {
	pages := 0
	for i := range e.Pages {
		p := &e.Pages[i]
		size := int64(e.Length) / int64(len(e.Pages))
		c.addShare(p.Item, size, p.Kind <= extent.Late)
		if again && p.Kind == extent.Hourly {
			continue
		}
		c.sealed[p.Item] = max(c.sealed[p.Item], p.LSN)
		tier := c.tiers["history"]
		switch p.Kind {
		case extent.Hourly:
			tier = c.tiers["hourly"]
		case extent.Minute:
			tier = c.tiers["minute"]
		case extent.Merged:
			tier = c.tiers["merged"]
		default:
			c.all.add(p.Item, p.From, p.To, uint64(p.Count))
		}
		tier.add(p.Item, p.From, p.To, uint64(p.Count))
		tier.Bytes += size
		pages++
	}
}

// addShare counts the bytes of a page for the share of its item.
func (c *counting) addShare(item model.ItemID, size int64, value bool) {
	if c.share == nil {
		return
	}
	number := c.share(item)
	s := c.shares[number]
	if s == nil {
		s = &ShareInfo{Share: number}
		c.shares[number] = s
	}
	if value {
		s.Bytes += size
	} else {
		s.TierBytes += size
	}
}

func (c *counting) endPair() {
	for _, t := range c.tiers {
		if t.here {
			t.Pairs++
		}
		t.here = false
	}
}

// log counts the values that only the log holds.
func (c *counting) log(f *folder) (uint64, error) {
	count := uint64(0)
	b := model.NewBatch()
	defer b.Free()
	_, err := translog.Walk(f.fs, f.dir, func(end model.LSN, kind byte, payload []byte) error {
		if kind != translog.KindBatch || translog.DecodeBatch(b, payload) != nil {
			return nil
		}
		for i, item := range b.Items {
			if end > c.sealed[item] {
				c.tiers["history"].add(item, b.At[i], b.At[i], 1)
				c.all.add(item, b.At[i], b.At[i], 1)
				count++
			}
		}
		return nil
	})
	return count, err
}

// isTool reports whether a name is none of the engine's.
func isForeign(name string) bool {
	_, known := magicOf(name)
	return !known && name != lockName && name != quarantineDir && !translog.IsSpare(name) && !strings.HasSuffix(name, tempSuffix)
}
