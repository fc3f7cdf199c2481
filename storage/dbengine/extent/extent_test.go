package extent

import (
	"reflect"
	"testing"

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
		b, err := Build(nil, id, codec, 3, testPages())
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
