package postgres

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// numericBytes is one number as array.numeric writes it.
func numericBytes(v uint64) []byte {
	a := newArray(oidNumericArray)
	a.numeric(v)
	return a.bytes[24:]
}

func TestNumeric(t *testing.T) {
	numbers := []uint64{0, 1, 9999, 10_000, 10_001, 1e8, 1e16, 99_990_000, math.MaxInt64, math.MaxUint64}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		numbers = append(numbers, r.Uint64()>>r.IntN(64))
	}
	for _, v := range numbers {
		if got, err := decodeNumeric(numericBytes(v)); err != nil || got != v {
			t.Fatalf("%d became %d, %v", v, got, err)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 7), {0, 1, 0, 9, 0, 0, 0, 0, 0, 1}, {0, 1, 0, 0, 0x40, 0, 0, 0, 0, 1}, {0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}} {
		if v, err := decodeNumeric(bad); err == nil {
			t.Errorf("%x is %d, expected an error", bad, v)
		}
	}
}

func FuzzDecodeNumeric(f *testing.F) {
	for _, v := range []uint64{0, 1, 10_000, math.MaxUint64} {
		f.Add(numericBytes(v))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 8+2*5 && binary.BigEndian.Uint16(p) <= 5 {
			return
		}
		if v, err := decodeNumeric(p); err == nil && len(p) <= 8+2*4 {
			for i := 8; i < len(p); i += 2 {
				if binary.BigEndian.Uint16(p[i:]) > 9999 {
					return // no digit
				}
			}
			if again, err := decodeNumeric(numericBytes(v)); err != nil || again != v {
				t.Errorf("%d became %d, %v", v, again, err)
			}
		}
	})
}
