package extent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"tidemark/storage/dbengine/page"
)

// ErrPages is wrapped by the errors of Build.
var ErrPages = errors.New("extent cannot be built")

// Build appends the extent of pages to dst. The pages keep their order. level is Zstandard's 1 to 22 and means
// nothing to the other codecs. A codec that saves less than a thirty-second of the payload is replaced by None.
// On an error dst is returned as it was.
func Build(dst []byte, id Identity, codec Codec, level int, pages []Page) ([]byte, error) {
	if err := check(codec, pages); err != nil {
		return dst, err
	}
	start := len(dst)
	h := header{codec: codec, id: id, pages: uint32(len(pages))}
	dst = append(dst, make([]byte, HeaderBytes)...)
	shared := shareTimes(pages)
	dst = appendDirectory(dst, id.seed(), pages, shared)
	h.directory = uint32(len(dst) - start - HeaderBytes)

	body := len(dst)
	for _, i := range shared.first {
		dst = append(dst, pages[i].Times...)
	}
	for i := range pages {
		dst = append(dst, pages[i].Values...)
	}
	h.payload = uint32(len(dst) - body)
	h.stored = h.payload
	if codec != None {
		var err error
		if dst, h.codec, err = compress(dst, body, codec, level); err != nil {
			return dst[:start], err
		}
		h.stored = uint32(len(dst) - body)
	}
	if h.total() > MaxBytes {
		return dst[:start], fmt.Errorf("%w: %d bytes, expected at most %d", ErrPages, h.total(), MaxBytes)
	}
	b := dst[start:]
	h.put(b)
	sum := crc32.Update(id.seed(), castagnoli, b[:44])
	sum = crc32.Update(sum, castagnoli, b[HeaderBytes:HeaderBytes+h.directory])
	binary.LittleEndian.PutUint32(b[44:], sum)
	return binary.LittleEndian.AppendUint32(dst, crc32.Update(id.seed(), castagnoli, b)), nil
}

// check refuses pages that Parse would not give back.
func check(codec Codec, pages []Page) error {
	if codec > Zstd {
		return fmt.Errorf("%w: unknown %v", ErrPages, codec)
	}
	if len(pages) == 0 || len(pages) > MaxPages {
		return fmt.Errorf("%w: %d pages, expected 1 to %d", ErrPages, len(pages), MaxPages)
	}
	payload := 0
	for i := range pages {
		p := &pages[i]
		if p.Count < 1 || p.Count > page.MaxValues {
			return fmt.Errorf("%w: page %d has %d values, expected 1 to %d", ErrPages, i, p.Count, page.MaxValues)
		}
		if p.From > p.To {
			return fmt.Errorf("%w: page %d ends (%d) before it starts (%d)", ErrPages, i, p.To, p.From)
		}
		if payload += len(p.Times) + len(p.Values); payload > MaxBytes {
			return fmt.Errorf("%w: more than %d bytes in %d pages", ErrPages, MaxBytes, len(pages))
		}
	}
	return nil
}

// sharing says which pages have the same time column.
type sharing struct {
	// first holds, for each distinct time column, the first page that has it.
	first []int
	// column is, for each page, the index into first.
	column []uint64
}

// shareTimes finds equal time columns: the items of one collection group are usually collected together.
func shareTimes(pages []Page) sharing {
	s := sharing{column: make([]uint64, len(pages))}
	seen := make(map[string]uint64)
	for i := range pages {
		if i > 0 && string(pages[i].Times) == string(pages[i-1].Times) {
			s.column[i] = s.column[i-1]
			continue
		}
		c, ok := seen[string(pages[i].Times)]
		if !ok {
			c = uint64(len(s.first))
			seen[string(pages[i].Times)] = c
			s.first = append(s.first, i)
		}
		s.column[i] = c
	}
	return s
}

// appendDirectory appends the number of time columns, then the directory's columns, each behind its length, then the pages' checksums.
func appendDirectory(dst []byte, seed uint32, pages []Page, shared sharing) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(shared.first)))
	column := make([]uint64, len(pages))
	add := func(of func(p *Page) uint64) {
		for i := range pages {
			column[i] = of(&pages[i])
		}
		dst = appendColumn(dst, column)
	}
	add(func(p *Page) uint64 { return uint64(p.Item) })
	add(func(p *Page) uint64 { return uint64(p.Type) })
	add(func(p *Page) uint64 { return uint64(p.Kind) })
	add(func(p *Page) uint64 { return uint64(p.From) })
	add(func(p *Page) uint64 { return uint64(p.To) - uint64(p.From) })
	add(func(p *Page) uint64 { return uint64(p.Count) })
	add(func(p *Page) uint64 { return uint64(len(p.Values)) })
	dst = appendColumn(dst, shared.column)
	for i, first := range shared.first {
		column[i] = uint64(len(pages[first].Times))
	}
	dst = appendColumn(dst, column[:len(shared.first)])
	for i := range pages {
		dst = binary.LittleEndian.AppendUint32(dst, pageSum(seed, &pages[i]))
	}
	return dst
}

// appendColumn appends a column behind its length.
func appendColumn(dst []byte, v []uint64) []byte {
	mark := len(dst)
	dst = append(dst, 0)
	dst = page.AppendUints(dst, v)
	size := len(dst) - mark - 1
	if size < 0x80 {
		dst[mark] = byte(size)
		return dst
	}
	// A longer length needs room: move the column behind it.
	var length [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(length[:], uint64(size))
	dst = append(dst, length[:k-1]...)
	copy(dst[mark+k:], dst[mark+1:mark+1+size])
	copy(dst[mark:], length[:k])
	return dst
}
