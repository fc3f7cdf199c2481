package page

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"tidemark/model"
)

// seedColumns are encoded columns of every scheme, plain and dense, with their number of values.
func seedColumns(float bool) (columns [][]byte, counts []int) {
	for k, kind := range kinds {
		if kind.float != float {
			continue
		}
		for _, n := range []int{1, 3, 65, 200} {
			for _, dense := range []bool{false, true} {
				c := traceColumn{float: float, dense: dense, v: drawKind(k, n)}
				columns, counts = append(columns, c.append(nil)), append(counts, n)
			}
		}
	}
	special := []uint64{0, 1 << 63, math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), 5, math.MaxUint64}
	c := traceColumn{float: float, v: append(special, drawKind(0, 90)...)}
	return append(columns, c.append(nil)), append(counts, len(c.v))
}

// checkDecoded encodes again what a decoder made of foreign bytes; it must come back.
func checkDecoded(t *testing.T, c traceColumn) {
	t.Helper()
	got, err := c.decode(nil, c.append(nil))
	if err != nil || !slices.Equal(got, c.v) {
		t.Fatalf("%x does not come back: %v", c.v, err)
	}
}

func FuzzDecodeUints(f *testing.F) {
	columns, counts := seedColumns(false)
	for i := range columns {
		f.Add(columns[i], counts[i])
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 0xFFF
		v, err := DecodeUints(make([]uint64, 0, 8), b, n)
		if _, foldErr := FoldUints(b, n, 0, n); n > 0 && (err == nil) != (foldErr == nil) {
			t.Fatalf("decode: %v; fold: %v", err, foldErr)
		}
		if err != nil {
			return
		}
		if len(v) != n {
			t.Fatalf("%d values, asked for %d", len(v), n)
		}
		checkDecoded(t, traceColumn{v: v})
		checkDecoded(t, traceColumn{v: v, dense: true})
	})
}

func FuzzDecodeFloats(f *testing.F) {
	columns, counts := seedColumns(true)
	for i := range columns {
		f.Add(columns[i], counts[i])
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 0xFFF
		v, err := DecodeFloats(nil, b, n)
		if _, foldErr := FoldFloats(b, n, 0, n); n > 0 && (err == nil) != (foldErr == nil) {
			t.Fatalf("decode: %v; fold: %v", err, foldErr)
		}
		if err != nil {
			return
		}
		if len(v) != n {
			t.Fatalf("%d values, asked for %d", len(v), n)
		}
		checkDecoded(t, traceColumn{float: true, v: v})
		checkDecoded(t, traceColumn{float: true, v: v, dense: true})
	})
}

func FuzzDecodeTimes(f *testing.F) {
	for _, at := range [][]int64{{5}, {1e18, 2e18, 3e18}, {-1, 1 << 62, 7, 7, 8}} {
		f.Add(AppendTimes(nil, at), len(at))
	}
	columns, counts := seedColumns(false)
	for i := range columns {
		f.Add(columns[i], counts[i])
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 0xFFF
		at, err := DecodeTimes(nil, b, n)
		if err != nil {
			return
		}
		again, err := DecodeTimes(nil, AppendTimes(nil, at), n)
		if err != nil || !slices.Equal(again, at) {
			t.Fatalf("%v does not come back: %v", at, err)
		}
	})
}

func FuzzDecodeBlobs(f *testing.F) {
	for _, texts := range [][]string{{""}, {"a", "b", "a"}, {"some longer text that repeats, repeats, repeats", "x"}} {
		arena, spans := pack(texts)
		f.Add(AppendBlobs(nil, arena, spans), len(texts))
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 0xFFF
		spans, arena, err := DecodeBlobs(nil, nil, b, n)
		if err != nil {
			return
		}
		texts := make([]string, n)
		for i, s := range spans {
			texts[i] = string(model.SpanBytes(arena, s))
		}
		if n > 0 {
			checkBlobs(t, texts)
		}
	})
}

// FuzzUints encodes any numbers: 8 bytes each, or their running sum.
func FuzzUints(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), false)
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 800), 1<<63), true)
	f.Fuzz(func(t *testing.T, b []byte, sums bool) {
		var v []uint64
		for ; len(b) >= 8; b = b[8:] {
			x := binary.LittleEndian.Uint64(b)
			if sums && len(v) > 0 {
				x += v[len(v)-1]
			}
			v = append(v, x)
		}
		for _, c := range []traceColumn{{v: v}, {v: v, dense: true}, {v: v, float: true}, {v: v, float: true, dense: true}} {
			if encoded := c.append(nil); len(encoded) > 8*len(v)+1 {
				t.Fatalf("%d bytes for %d values", len(encoded), len(v))
			}
			checkDecoded(t, c)
		}
	})
}
