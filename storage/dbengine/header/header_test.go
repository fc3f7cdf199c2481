package header

import (
	"errors"
	"testing"
)

func TestDecode_seesEveryFlippedBit(t *testing.T) {
	h := Header{Magic: Log, Generation: 1, Number: 2, LSN: 3, Compatible: 1}
	b := h.Append(nil)
	got, err := Decode(b, Log)
	if err != nil || got != h {
		t.Fatalf("%+v %v, expected %+v", got, err, h)
	}
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := Decode(b, Log); !errors.Is(err, ErrHeader) {
			t.Errorf("bit %d of byte %d: %v, expected ErrHeader", i%8, i/8, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	if _, err := Decode(b[:63], Log); !errors.Is(err, ErrHeader) {
		t.Errorf("a short header: %v", err)
	}
	if _, err := Decode(b, Marks); !errors.Is(err, ErrHeader) {
		t.Errorf("another kind: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	h := Header{Magic: Datafile, Generation: 1, Number: 2}
	f.Add(h.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := Decode(b, Datafile); err == nil && h.Magic != Datafile {
			t.Errorf("%+v", h)
		}
	})
}
