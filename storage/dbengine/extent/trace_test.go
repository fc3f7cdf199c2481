package extent

import (
	"slices"
	"testing"

	"tidemark/model"
	"tidemark/storage/dbengine/page"
	"tidemark/storage/dbengine/page/pagetest"
)

// tracePages encodes the recorded trace, or only its columns that vary, as one page a column. All share their times.
func tracePages(t testing.TB, varying, dense bool) []Page {
	t.Helper()
	columns, err := pagetest.Trace()
	if err != nil {
		t.Fatal(err)
	}
	n := len(columns[0].Bits)
	at := make([]int64, n)
	for i := range at {
		at[i] = 1_796_022_383_000_000_000 + int64(i)*1e9
	}
	times := page.AppendTimes(nil, at)
	var pages []Page
	for i, c := range columns {
		if varying && slices.Min(c.Bits) == slices.Max(c.Bits) {
			continue
		}
		p := Page{Item: model.ItemID(i + 1), Type: model.Uint, From: at[0], To: at[n-1], Count: n, Times: times}
		switch {
		case c.Float && dense:
			p.Type, p.Values = model.Float, page.AppendDenseFloats(nil, c.Bits)
		case c.Float:
			p.Type, p.Values = model.Float, page.AppendFloats(nil, c.Bits)
		case dense:
			p.Values = page.AppendDenseUints(nil, c.Bits)
		default:
			p.Values = page.AppendUints(nil, c.Bits)
		}
		pages = append(pages, p)
	}
	return pages
}

// TestTrace_size checks the bytes a value on disk, everything in the extents counted.
func TestTrace_size(t *testing.T) {
	encoded := map[[2]bool][]Page{}
	for _, test := range []struct {
		name           string
		varying, dense bool
		codec          Codec
		level          int
		want           float64
	}{
		{"all, none", false, false, None, 0, 0.0785},
		{"varying, none", true, false, None, 0, 0.625},
		{"all, lz4", false, false, LZ4, 0, 0.0785},
		{"varying, lz4", true, false, LZ4, 0, 0.625},
		{"all, zstd 1", false, false, Zstd, 1, 0.075},
		{"varying, zstd 1", true, false, Zstd, 1, 0.60},
		{"all, dense", false, true, None, 0, 0.070},
		{"varying, dense", true, true, None, 0, 0.545},
	} {
		key := [2]bool{test.varying, test.dense}
		if encoded[key] == nil {
			encoded[key] = tracePages(t, test.varying, test.dense)
		}
		pages := encoded[key]
		total, values, directory := 0, 0, 0
		for first := 0; first < len(pages); first += 64 {
			part := pages[first:min(first+64, len(pages))]
			b, err := Build(nil, Identity{File: 1, Sequence: uint64(first)}, test.codec, test.level, part)
			if err != nil {
				t.Fatal(err)
			}
			head, err := HeadBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			total += len(b)
			directory += head + TrailerBytes
			values += len(part) * part[0].Count
		}
		perValue, perPage := float64(total)/float64(values), float64(directory)/float64(len(pages))
		t.Logf("%s: %.4f B a value, of these %.1f B a page for header, directory and trailer", test.name, perValue, perPage)
		if perValue > test.want || perPage > 10 {
			t.Errorf("%s: %.4f B a value, %.1f B a page; expected at most %v and 10", test.name, perValue, perPage, test.want)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	pages := tracePages(b, true, false)[:64]
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = Build(buf[:0], Identity{File: 1}, None, 0, pages); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/page")
}

func BenchmarkParse(b *testing.B) {
	buf, err := Build(nil, Identity{File: 1}, None, 0, tracePages(b, true, false)[:64])
	if err != nil {
		b.Fatal(err)
	}
	b.Run("directory", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse(buf, Identity{File: 1}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/page")
	})
	b.Run("pages", func(b *testing.B) {
		d, err := Parse(buf, Identity{File: 1})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for i := range d.Len() {
				if _, err := d.Page(i); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/page")
	})
}
