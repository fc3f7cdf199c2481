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

// TestDecode_joined reads the header of a datafile that stands for a run, sees every flipped bit of it, and refuses runs that cannot be.
func TestDecode_joined(t *testing.T) {
	h := Header{Magic: Datafile, Generation: 4, Number: 9}
	h.Join(3, 4)
	b := h.Append(nil)
	got, err := Decode(b, Datafile)
	if err != nil || got != h {
		t.Fatalf("%+v %v, expected %+v", got, err, h)
	}
	if first, last, members := got.Run(); first != 3 || last != 9 || members != 4 {
		t.Errorf("%d to %d, %d pairs", first, last, members)
	}
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := Decode(b, Datafile); !errors.Is(err, ErrHeader) {
			t.Errorf("bit %d of byte %d: %v, expected ErrHeader", i%8, i/8, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for _, run := range [][2]uint32{{9, 2}, {10, 2}, {3, 8}, {3, 1 << 31}} {
		wrong := h
		wrong.Join(run[0], run[1])
		if _, err := Decode(wrong.Append(nil), Datafile); !errors.Is(err, ErrHeader) {
			t.Errorf("%d pairs from %d to 9: %v, expected ErrHeader", run[1], run[0], err)
		}
	}
	tier := Header{Magic: Datafile, Number: 20, Tier: Hour, Source: 9}
	tier.Join(3, 4)
	if got, err := Decode(tier.Append(nil), Datafile); err != nil || got != tier {
		t.Errorf("%+v %v, expected %+v", got, err, tier)
	}
	tier.Join(3, 1)
	if first, last, members := tier.Run(); tier.Incompatible != 0 || first != 9 || last != 9 || members != 1 {
		t.Errorf("%+v: %d to %d, %d pairs", tier, first, last, members)
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
