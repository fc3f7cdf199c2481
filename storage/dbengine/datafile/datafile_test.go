package datafile

import (
	"errors"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/page"
)

var testID = ID{Generation: 1, Number: 42}

func TestParseName(t *testing.T) {
	for name, want := range map[string]struct {
		id          ID
		journal, ok bool
	}{
		testID.Name():                         {testID, false, true},
		testID.JournalName():                  {testID, true, true},
		"datafile-3-4294967295.ndf":           {ID{3, 1<<32 - 1}, false, true},
		"datafile-1-42.ndf":                   {},
		"datafile-1-0000000042.njf":           {},
		"datafile-1-0000000042.ndf.tmp":       {},
		"datafile-01-0000000042.ndf":          {},
		"journalfile-1-99999999999999999.njf": {},
		"marks.nmk":                           {},
	} {
		id, journal, ok := ParseName(name)
		if ok != want.ok || (ok && (id != want.id || journal != want.journal)) {
			t.Errorf("%s: %v %v %v, expected %v", name, id, journal, ok, want)
		}
	}
}

// build returns a datafile with n extents and where they start.
func build(t *testing.T, fsys vfs.FS, n int) (*File, []int64) {
	t.Helper()
	f, err := Create(fsys, "/", testID)
	if err != nil {
		t.Fatal(err)
	}
	var starts []int64
	at := int64(header.Bytes)
	for i := range n {
		times := make([]int64, 20+i)
		for k := range times {
			times[k] = int64(k * k)
		}
		b, err := extent.Build(nil, testID.Extent(uint64(i+1)), extent.None, 0, []extent.Page{{
			Item: 5, From: 0, To: times[len(times)-1], Count: len(times),
			Times: page.AppendTimes(nil, times), Values: page.AppendFloats(nil, make([]uint64, len(times))),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		starts = append(starts, at)
		at = align(at + int64(len(b)))
	}
	return f, starts
}

func TestFile_scanFindsWhatIsIntact(t *testing.T) {
	for damaged := range 6 {
		f, starts := build(t, vfs.NewMem(), 5)
		if damaged < 5 {
			if err := f.WriteAt([]byte{0xFF}, starts[damaged]+9); err != nil {
				t.Fatal(err)
			}
		}
		var found []uint64
		_, damage, err := f.Scan(0, func(offset int64, sequence uint64, b []byte) error {
			if offset != starts[sequence-1] {
				t.Errorf("extent %d at %d, expected %d", sequence, offset, starts[sequence-1])
			}
			found = append(found, sequence)
			return extent.Verify(b, testID.Extent(sequence))
		})
		if err != nil {
			t.Fatal(err)
		}
		want := 5
		if damaged < 5 {
			want = 4
			if len(damage) != 1 || damage[0].From != starts[damaged] {
				t.Errorf("damage in extent %d: %+v", damaged+1, damage)
			}
		}
		if len(found) != want {
			t.Errorf("extents %v with number %d damaged", found, damaged+1)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen_refusesAnothersFile(t *testing.T) {
	fsys := vfs.NewMem()
	f, _ := build(t, fsys, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	other := ID{Generation: 1, Number: 43}
	if err := fsys.Rename("/"+testID.Name(), "/"+other.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fsys, "/", other, false); !errors.Is(err, header.ErrHeader) {
		t.Errorf("a datafile under another's name: %v", err)
	}
}
