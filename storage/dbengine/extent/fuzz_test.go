package extent

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzParse reads foreign bytes, once as they are and once with the checksums of header and directory put right, so
// that what lies behind them is reached.
func FuzzParse(f *testing.F) {
	id := Identity{Generation: 1, File: 1, Sequence: 1}
	for _, codec := range []Codec{None, LZ4, Zstd} {
		b, err := Build(nil, id, codec, 1, testPages())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		readAll(t, b, id)
		if len(b) < HeaderBytes {
			return
		}
		b = append([]byte(nil), b...)
		h := header{
			codec: Codec(b[5] % 3), id: id,
			pages: binary.LittleEndian.Uint32(b[24:]) % 64, directory: binary.LittleEndian.Uint32(b[28:]),
			stored: binary.LittleEndian.Uint32(b[32:]), payload: binary.LittleEndian.Uint32(b[36:]),
		}
		h.put(b)
		if end := HeaderBytes + int(h.directory); end <= len(b) {
			sum := crc32.Update(id.seed(), castagnoli, b[:44])
			binary.LittleEndian.PutUint32(b[44:], crc32.Update(sum, castagnoli, b[HeaderBytes:end]))
		}
		readAll(t, b, id)
	})
}

func readAll(t *testing.T, b []byte, id Identity) {
	t.Helper()
	if n, _, err := Peek(b); err == nil && (n < HeaderBytes+TrailerBytes || n > MaxBytes) {
		t.Fatalf("an extent of %d bytes", n)
	}
	d, err := Parse(b, id)
	if err != nil {
		return
	}
	for i := range d.Len() {
		if p, err := d.Page(i); err == nil && (p.Count < 1 || p.From > p.To) {
			t.Fatalf("page %+v", p)
		}
	}
}
