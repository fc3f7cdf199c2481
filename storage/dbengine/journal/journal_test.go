package journal

import (
	"errors"
	"reflect"
	"testing"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
)

var testID = datafile.ID{Generation: 1, Number: 7}

func sample(extents, pages int) []Extent {
	var all []Extent
	for i := range extents {
		e := Extent{Offset: int64(64 + i*4096), Length: uint32(1000 + i), Sequence: uint64(i + 1)}
		for k := range pages {
			from := int64(1_700_000_000_000_000_000 + i*1000 + k)
			e.Pages = append(e.Pages, Page{
				Item: model.ItemID((k*7919 + i) % 100), Type: model.Uint, Kind: uint8(k % 3), From: from, To: from + int64(k),
				Count: uint32(k + 1), LSN: model.LSN(i * 100),
			})
		}
		all = append(all, e)
	}
	return all
}

func openForm(extents []Extent) []byte {
	b := Header(testID, false)
	for i := range extents {
		b = AppendRecord(b, testID, int64(len(b)), &extents[i])
	}
	return b
}

func TestRead_givesBackBothForms(t *testing.T) {
	for _, extents := range [][]Extent{nil, sample(1, 1), sample(60, 50)} {
		for closed, b := range map[bool][]byte{false: openForm(extents), true: AppendIndex(nil, testID, extents)} {
			c, err := Read(b, testID)
			if err != nil || c.Damage != nil {
				t.Fatal(err, c.Damage)
			}
			if c.Closed != closed || c.Valid != int64(len(b)) || len(c.Extents) != len(extents) {
				t.Fatalf("closed %v, %d bytes of %d, %d extents", c.Closed, c.Valid, len(b), len(c.Extents))
			}
			if len(extents) > 0 && !reflect.DeepEqual(c.Extents, extents) {
				t.Errorf("closed %v: the extents differ", closed)
			}
		}
	}
}

func TestRead_seesEveryFlippedBit(t *testing.T) {
	extents := sample(3, 5)
	for closed, b := range map[bool][]byte{false: openForm(extents), true: AppendIndex(nil, testID, extents)} {
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			c, err := Read(b, testID)
			if err == nil && c.Damage == nil {
				t.Errorf("closed %v: bit %d of byte %d was not seen", closed, i%8, i/8)
			}
			if err != nil && !errors.Is(err, header.ErrHeader) && !errors.Is(err, header.ErrNewer) {
				t.Errorf("byte %d: %v", i/8, err)
			}
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestRead_keepsWhatIsBeforeATornRecord(t *testing.T) {
	extents := sample(5, 4)
	b := openForm(extents)
	for cut := header.Bytes; cut < len(b); cut++ {
		c, err := Read(b[:cut], testID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Extents {
			if !reflect.DeepEqual(c.Extents[i], extents[i]) {
				t.Fatalf("cut to %d: extent %d differs", cut, i)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(openForm(sample(3, 3)))
	f.Add(AppendIndex(nil, testID, sample(3, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Read(b, testID)
		if err == nil && c.Valid > int64(len(b)) {
			t.Errorf("%d bytes valid of %d", c.Valid, len(b))
		}
	})
}

// FuzzReadRecord fuzzes behind the checksum.
func FuzzReadRecord(f *testing.F) {
	e := sample(1, 6)[0]
	f.Add(AppendRecord(nil, testID, 0, &e)[recordHeaderBytes:])
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := readRecord(b)
		if err != nil {
			return
		}
		again, err := readRecord(AppendRecord(nil, testID, 0, &e)[recordHeaderBytes:])
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%+v, then %+v: %v", e, again, err)
		}
	})
}
