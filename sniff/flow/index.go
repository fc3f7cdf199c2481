package flow

import (
	"encoding/binary"
	"math/bits"
)

// The index finds a flow by its ends. It is a chained hash table whose chains run through the flows, so that it costs eight bytes a flow, a
// fifth of a map with keys of 36 bytes.
type index struct {
	places []*Flow // a power of two
	seed   uint64
}

const firstPlaces = 64

func newIndex(seed uint64) index { return index{places: make([]*Flow, firstPlaces), seed: seed} }

// hash is seeded, because the ends are chosen by others.
func (x *index) hash(k *flowKey) uint32 {
	h := fold(x.seed, binary.LittleEndian.Uint64(k.a.Address[:]))
	h = fold(h, binary.LittleEndian.Uint64(k.a.Address[8:]))
	h = fold(h, binary.LittleEndian.Uint64(k.b.Address[:]))
	h = fold(h, binary.LittleEndian.Uint64(k.b.Address[8:]))
	h = fold(h, uint64(k.a.Port)|uint64(k.b.Port)<<16)
	return uint32(h >> 32)
}

// fold adds 64 bits to a hash: a multiplication whose two halves are joined, as in wyhash.
func fold(h, v uint64) uint64 {
	high, low := bits.Mul64(h^v^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93^bits.RotateLeft64(v, 32))
	return high ^ low
}

func (x *index) place(hash uint32) **Flow { return &x.places[hash&uint32(len(x.places)-1)] }

// find returns the flow with a key, or nil.
func (x *index) find(k *flowKey, hash uint32) *Flow {
	for f := *x.place(hash); f != nil; f = f.next {
		if f.hash == hash && f.is(k) {
			return f
		}
	}
	return nil
}

// add puts in a flow, which is number count.
func (x *index) add(f *Flow, count int) {
	if count > len(x.places) {
		old := x.places
		x.places = make([]*Flow, 2*len(old))
		for _, f := range old {
			for f != nil {
				next := f.next
				place := x.place(f.hash)
				f.next, *place = *place, f
				f = next
			}
		}
	}
	place := x.place(f.hash)
	f.next, *place = *place, f
}

// remove takes a flow out.
func (x *index) remove(f *Flow) {
	at := x.place(f.hash)
	for *at != f {
		at = &(*at).next
	}
	*at, f.next = f.next, nil
}
