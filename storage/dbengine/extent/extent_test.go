package extent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"tidemark/model"
	"tidemark/storage/dbengine/page"
)

func testPages() []Page {
	var pages []Page
	for i := range 10 {
		n := 5 + i%2
		at := make([]int64, n)
		v := make([]uint64, n)
		for j := range at {
			at[j] = 1_800_000_000_000_000_000 + int64(j)*1e9
			v[j] = uint64(i*j*j) + 7
		}
		pages = append(pages, Page{
			Item: model.ItemID(100 + i), Type: model.Uint, From: at[0], To: at[n-1], Count: n, Kind: uint8(i % 4),
			Times: page.AppendTimes(nil, at), Values: page.AppendUints(nil, v),
		})
	}
	return pages
}

func TestBuild_parse(t *testing.T) {
	id := Identity{Generation: 1, File: 7, Sequence: 3}
	for _, codec := range []Codec{None, LZ4, Zstd} {
		pages := testPages()
		b, err := Build([]byte("xyz"), id, codec, 3, pages)
		if err != nil {
			t.Fatal(err)
		}
		b = b[3:]
		if n, got, err := Peek(b); err != nil || n != len(b) || got != id {
			t.Fatalf("Peek = %d, %v, %v; want %d, %v", n, got, err, len(b), id)
		}
		if err := Verify(b, id); err != nil {
			t.Fatal(err)
		}
		d, err := Parse(b, id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pages {
			p, err := d.Page(i)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(p, pages[i]) {
				t.Fatalf("page %d = %+v; want %+v", i, p, pages[i])
			}
		}
	}
}

func TestParse_flippedBit(t *testing.T) {
	id := Identity{Generation: 1, File: 7, Sequence: 3}
	for _, codec := range []Codec{None, LZ4, Zstd} {
		b, err := Build(nil, id, codec, 3, testPages()[:5])
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			if err := Verify(b, id); err == nil {
				t.Fatalf("%v: bit %d flipped and not seen", codec, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		other := id
		other.Sequence++
		if _, err := Parse(b, other); err == nil {
			t.Fatal("an extent passed for another one")
		}
	}
}

func TestBuild_refuses(t *testing.T) {
	good := testPages()[:1]
	for _, test := range []struct {
		name   string
		codec  Codec
		level  int
		change func(p *Page)
		none   bool
	}{
		{name: "no pages", none: true},
		{name: "no values", change: func(p *Page) { p.Count = 0 }},
		{name: "too many values", change: func(p *Page) { p.Count = page.MaxValues + 1 }},
		{name: "times that go back", change: func(p *Page) { p.To = p.From - 1 }},
		{name: "an unknown codec", codec: 3},
		{name: "level 0", codec: Zstd},
		{name: "level 23", codec: Zstd, level: 23},
		{name: "too long", change: func(p *Page) { p.Values = make([]byte, MaxBytes+1) }},
	} {
		pages := append([]Page(nil), good...)
		if test.none {
			pages = nil
		}
		if test.change != nil {
			test.change(&pages[0])
		}
		b, err := Build([]byte("kept"), Identity{}, test.codec, test.level, pages)
		if !errors.Is(err, ErrPages) || string(b) != "kept" {
			t.Errorf("%s: %q, %v", test.name, b, err)
		}
	}
}

func TestBuild_fallsBackToNone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pages := testPages()[:1]
	pages[0].Values = make([]byte, 4000)
	for i := range pages[0].Values {
		pages[0].Values[i] = byte(r.Uint32())
	}
	for codec, want := range map[Codec]Codec{None: None, LZ4: None, Zstd: None} {
		if got := buildAndParse(t, codec, pages).Codec(); got != want {
			t.Errorf("%v on noise became %v", codec, got)
		}
	}
	for i := range pages[0].Values {
		pages[0].Values[i] = byte(i / 100)
	}
	for _, codec := range []Codec{None, LZ4, Zstd} {
		if got := buildAndParse(t, codec, pages).Codec(); got != codec {
			t.Errorf("%v on runs became %v", codec, got)
		}
	}
}

// buildAndParse builds an extent, reads it again and compares the pages.
func buildAndParse(t rapid.TB, codec Codec, pages []Page) *Directory {
	t.Helper()
	id := Identity{Generation: 2, File: 9, Sequence: 1 << 40}
	b, err := Build(nil, id, codec, 1, pages)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(b, id); err != nil {
		t.Fatal(err)
	}
	d, err := Parse(b, id)
	if err != nil {
		t.Fatal(err)
	}
	n, err := HeadBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	head, err := ParseHead(b[:n], id)
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != len(pages) || head.Len() != len(pages) {
		t.Fatalf("%d pages; want %d", d.Len(), len(pages))
	}
	for i := range pages {
		p, err := d.Page(i)
		if err != nil || !equal(p, pages[i]) {
			t.Fatalf("page %d = %+v, %v; want %+v", i, p, err, pages[i])
		}
		if d.Codec() != None {
			continue
		}
		timesAt, timesSize, valuesAt, valuesSize := head.Span(i)
		p, err = head.PageFrom(i, b[timesAt:timesAt+timesSize], b[valuesAt:valuesAt+valuesSize])
		if err != nil || !equal(p, pages[i]) {
			t.Fatalf("page %d from its span = %+v, %v; want %+v", i, p, err, pages[i])
		}
	}
	return d
}

func equal(a, b Page) bool {
	if !bytes.Equal(a.Times, b.Times) || !bytes.Equal(a.Values, b.Values) {
		return false
	}
	a.Times, a.Values, b.Times, b.Values = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

func TestBuild_anyPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		column := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.SampledFrom([][]byte{nil, {1}, bytes.Repeat([]byte{7}, 500)}))
		pages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Page {
			from, to := rapid.Int64().Draw(t, "from"), rapid.Int64().Draw(t, "to")
			return Page{
				Item: model.ItemID(rapid.Uint64().Draw(t, "item")), Type: model.ValueType(rapid.Byte().Draw(t, "type")),
				From: min(from, to), To: max(from, to), Count: rapid.IntRange(1, page.MaxValues).Draw(t, "count"),
				Kind: rapid.Byte().Draw(t, "kind"), Times: column.Draw(t, "times"), Values: column.Draw(t, "values"),
			}
		}), 1, 80).Draw(t, "pages")
		buildAndParse(t, Codec(rapid.IntRange(0, 2).Draw(t, "codec")), pages)
	})
}

func TestParse_swappedPages(t *testing.T) {
	// Two pages of equal size whose bytes change places: the trailer aside, only the pages' own checksums can tell.
	pages := testPages()[:2]
	pages[1].Count, pages[1].From, pages[1].To = pages[0].Count, pages[0].From, pages[0].To
	pages[1].Times = pages[0].Times
	pages[0].Values, pages[1].Values = []byte("first"), []byte("other")
	id := Identity{Generation: 1, File: 1, Sequence: 1}
	b, err := Build(nil, id, None, 0, pages)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("firstother"))
	copy(b[at:], "otherfirst")
	d, err := Parse(b, id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := d.Page(i); !errors.Is(err, ErrExtent) {
			t.Errorf("page %d: %v", i, err)
		}
	}
}

func TestParse_features(t *testing.T) {
	id := Identity{Generation: 1, File: 7, Sequence: 3}
	good, err := Build(nil, id, None, 0, testPages())
	if err != nil {
		t.Fatal(err)
	}
	// with returns the extent as a later version may write it.
	with := func(at int, x byte) []byte {
		b := bytes.Clone(good)
		b[at] = x
		binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:40], castagnoli))
		end := HeaderBytes + binary.LittleEndian.Uint32(b[28:])
		sum := crc32.Update(id.seed(), castagnoli, b[:44])
		binary.LittleEndian.PutUint32(b[44:], crc32.Update(sum, castagnoli, b[HeaderBytes:end]))
		return b
	}
	if _, err := Parse(with(7, 0x80), id); err != nil {
		t.Errorf("a compatible feature is refused: %v", err)
	}
	for at, x := range map[int]byte{4: 2, 5: 3, 6: 1} {
		if _, err := Parse(with(at, x), id); !errors.Is(err, ErrExtent) {
			t.Errorf("byte %d of the header is %d: %v", at, x, err)
		}
	}
}
