package dbengine

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
	"tidemark/storage/dbengine/page"
)

// manyPairs are closed pairs full of pages: in each of them every series has so many pages of two values, a minute apart.
type manyPairs struct{ pairs, series, pages int }

func (m manyPairs) pageFrom(pair, k int) int64 {
	return testBase + int64(pair*m.pages+k)*int64(time.Minute)
}

// write makes the files; the engine itself would need a day of values for each page.
func (m manyPairs) write(t testing.TB, fsys vfs.FS, dir string) {
	t.Helper()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for n := range m.pairs {
		m.writePair(t, fsys, dir, n)
	}
}

func (m manyPairs) writePair(t testing.TB, fsys vfs.FS, dir string, n int) {
	t.Helper()
	id := datafile.ID{Generation: 1, Number: uint32(n + 1)}
	f, err := datafile.Create(fsys, dir, id)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	var extents []journal.Extent
	start := int64(header.Bytes)
	for k := range m.pages {
		for first := 0; first < m.series; first += extentPages {
			var pages []extent.Page
			var lsns []uint64
			e := journal.Extent{Offset: start + int64(len(b)), Sequence: uint64(len(extents) + 1)}
			from := m.pageFrom(n, k)
			times := page.AppendTimes(nil, []int64{from, from + int64(time.Second)})
			for i := first; i < min(first+extentPages, m.series); i++ {
				item := model.ItemID(i + 1)
				pages = append(pages, extent.Page{
					Item: item, Type: model.Uint, From: from, To: from + int64(time.Second), Count: 2,
					Times: times, Values: page.AppendUints(nil, []uint64{uint64(item), uint64(item)}),
				})
				lsns = append(lsns, 1)
				e.Pages = append(e.Pages, journal.Page{Item: item, Type: model.Uint, From: from, To: from + int64(time.Second), Count: 2, LSN: 1})
			}
			pages = append(pages, extent.Page{Kind: kindSeals, Count: len(lsns), Values: page.AppendUints(nil, lsns)})
			if b, err = extent.Build(b, id.Extent(e.Sequence), extent.None, 0, pages); err != nil {
				t.Fatal(err)
			}
			e.Length = uint32(start + int64(len(b)) - e.Offset)
			b = append(b, make([]byte, (datafile.Align-len(b)%datafile.Align)%datafile.Align)...)
			extents = append(extents, e)
		}
	}
	if err := f.WriteAt(b, start); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(fsys, path.Join(dir, id.JournalName()), journal.AppendIndex(nil, id, extents)); err != nil {
		t.Fatal(err)
	}
}

func (m manyPairs) query(t testing.TB, db *DB, item model.ItemID) {
	t.Helper()
	count := 0
	r := model.TimeRange{From: testBase, To: m.pageFrom(m.pairs, 0)}
	err := db.Read(context.Background(), storage.Query{Items: []model.ItemID{item}, Range: r}, func(c *model.Columns) error {
		for i, at := range c.At {
			if want := m.pageFrom(0, count/2) + int64(count%2)*int64(time.Second); at != want || c.Bits[i] != uint64(item) {
				return fmt.Errorf("value %d of item %d is %d at %d, expected %d at %d", count, item, c.Bits[i], at, item, want)
			}
			count++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * m.pairs * m.pages; count != want {
		t.Fatalf("%d values of item %d, expected %d", count, item, want)
	}
}

// readCounter counts what is read from files.
type readCounter struct {
	vfs.FS
	bytes atomic.Int64
}

type countedFile struct {
	vfs.File
	c *readCounter
}

func (c *readCounter) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	return countedFile{f, c}, err
}

func (c *readCounter) OpenReadWrite(name string) (vfs.File, error) {
	f, err := c.FS.OpenReadWrite(name)
	return countedFile{f, c}, err
}

func (f countedFile) ReadAt(b []byte, at int64) (int, error) {
	f.c.bytes.Add(int64(len(b)))
	return f.File.ReadAt(b, at)
}

// TestOpen_readsFootersOnly opens a folder of many closed pairs: what is read of each does not depend on how many pages it has, a
// query reads the blocks of its item, and all of it stays within the page cache.
func TestOpen_readsFootersOnly(t *testing.T) {
	m := manyPairs{pairs: 24, series: 300, pages: 10}
	counter := &readCounter{FS: vfs.NewMem()}
	m.write(t, counter, "/engine")
	o := smallOptions()
	counter.bytes.Store(0)
	db := openTest(t, counter, o)
	if read, limit := counter.bytes.Load(), int64(m.pairs)*1024; read > limit {
		t.Errorf("%d bytes were read to open, expected at most %d", read, limit)
	}
	if s := db.Stats(); s.Values != uint64(2*m.pairs*m.series*m.pages) || s.Items != uint64(m.series) || s.From != testBase || s.To != m.pageFrom(m.pairs, -1)+int64(time.Second) {
		t.Errorf("stats %+v", s)
	}
	if largest := db.MaxItemID(); largest != model.ItemID(m.series) {
		t.Errorf("largest id %d, expected %d", largest, m.series)
	}
	for item := model.ItemID(1); item <= 300; item += 23 {
		m.query(t, db, item)
	}
	b := &model.Batch{}
	b.AppendUint(7, m.pageFrom(m.pairs, -1), 7)        // stored already
	b.AppendUint(7, m.pageFrom(m.pairs, 0), 7)         // new
	b.AppendUint(7, m.pageFrom(3, 4)+1, 1)             // late
	b.AppendUint(8, m.pageFrom(3, 4), 9)               // moved
	b.AppendUint(1_000_000, m.pageFrom(m.pairs, 0), 1) // an item that no pair has
	appendWait(t, db, b)
	want := []model.Flag{model.Duplicate, 0, model.Late, model.Late | model.Moved, 0}
	for i, f := range b.Flags {
		if f != want[i] {
			t.Errorf("value %d has flags %b, expected %b", i, f, want[i])
		}
	}
	if s := db.cache.Stats(); s.UsedBytes > o.PageCacheBytes {
		t.Errorf("the page cache takes %d bytes, expected at most %d", s.UsedBytes, o.PageCacheBytes)
	}
	n := 0
	for i := range db.shards {
		for range db.shards[i].all() {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d series are in memory, expected the 3 that got values", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDB_mendsIndexes damages each byte region of a closed journalfile behind an open engine: queries are served from an
// index that is made again, and the file is whole afterwards.
func TestDB_mendsIndexes(t *testing.T) {
	m := manyPairs{pairs: 2, series: 200, pages: 12}
	source := vfs.NewMem()
	m.write(t, source, "/engine")
	name := path.Join("/engine", datafile.ID{Generation: 1, Number: 1}.JournalName())
	whole := content(t, source, name)
	for at := header.Bytes; at < len(whole)-journal.FooterBytes; at += 1 + len(whole)/9 {
		fsys := source.Clone()
		b := append([]byte(nil), whole...)
		b[at] ^= 0x10
		replace(t, fsys, name, b)
		db := openTest(t, fsys, smallOptions())
		for item := model.ItemID(1); item <= 200; item += 13 {
			m.query(t, db, item)
		}
		db.work(context.Background())
		m.query(t, db, 200)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if findings, err := Check(fsys, "/engine", nil); err != nil || len(findings) > 0 {
			t.Errorf("byte %d: %v %v", at, findings, err)
		}
	}
}

// TestDB_forgetsStoppedSeries sees a series leave memory when its pair is closed, keep its class, and go on where it was.
func TestDB_forgetsStoppedSeries(t *testing.T) {
	var clock atomic.Int64
	clock.Store(testBase)
	now := testBase
	o := smallOptions()
	o.Classes = []Class{{}, {History: 48 * time.Hour, Trends: 48 * time.Hour}}
	o.Now = clock.Load
	o.limits.idleAge = time.Minute
	db := openTest(t, vfs.NewMem(), o)
	if err := db.Define(context.Background(), []storage.ItemDefinition{{ID: 5, Type: model.Uint, Class: 1}}); err != nil {
		t.Fatal(err)
	}
	b := &model.Batch{}
	b.AppendUint(5, now, 10)
	b.AppendUint(5, now+1e9, 12)
	appendWait(t, db, b)
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	db.flushing.Lock()
	db.closePair()
	db.flushing.Unlock()
	now += int64(2 * time.Minute)
	clock.Store(now)
	db.work(context.Background())
	if s := db.shardOf(5).find(5); s != nil {
		t.Fatal("the series is still in memory")
	}
	b = &model.Batch{}
	b.AppendUint(5, testBase+1e9, 12)
	b.AppendUint(5, now, 15)
	b.AppendUint(5, now-int64(72*time.Hour), 1)
	appendWait(t, db, b)
	if want := []model.Flag{model.Duplicate, 0, model.Expired}; b.Flags[0] != want[0] || b.Flags[1] != want[1] || b.Flags[2] != want[2] {
		t.Errorf("flags %b, expected %b", b.Flags, want)
	}
	rows := 0
	err := db.Trends(context.Background(), storage.Query{Items: []model.ItemID{5}, Range: model.TimeRange{From: testBase - storage.Hour, To: now + 1}}, func(c *storage.TrendColumns) error {
		for _, row := range c.Trends {
			rows++
			if row.Count != 3 || row.First != 10 || row.Last != 15 || row.Increase != 5 {
				t.Errorf("row %+v", row)
			}
		}
		return nil
	})
	if err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkOpen opens 10,000,000 pages in 200 pairs: until values are accepted, and until the first query of each of two items is answered.
//
//	go test -run xxx -bench BenchmarkOpen -benchtime 3x ./storage/dbengine
func BenchmarkOpen(b *testing.B) {
	m := manyPairs{pairs: 200, series: 5000, pages: 10}
	dir := b.TempDir()
	m.write(b, vfs.OS{}, dir)
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		db, err := Open(context.Background(), vfs.OS{}, dir, Options{DiskSpaceBytes: 100 << 30})
		if err != nil {
			b.Fatal(err)
		}
		values := &model.Batch{}
		values.AppendUint(17, m.pageFrom(m.pairs, 0), 1)
		appendWait(b, db, values)
		opened := time.Now()
		runtime.GC()
		runtime.ReadMemStats(&after)
		asked := time.Now()
		m.query(b, db, 17)
		m.query(b, db, 4000)
		b.ReportMetric(opened.Sub(start).Seconds(), "s/ingest")
		b.ReportMetric(time.Since(asked).Seconds()/2, "s/query")
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(m.pairs*m.series*m.pages), "heap-B/page")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"log-", "spare-", "datafile-1-0000000201", "journalfile-1-0000000201"} {
			removeNamed(b, dir, name)
		}
	}
}

func removeNamed(t testing.TB, dir, prefix string) {
	names, err := vfs.OS{}.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if err := (vfs.OS{}).Remove(path.Join(dir, name)); err != nil && !isNotExist(err) {
				t.Fatal(err)
			}
		}
	}
}
