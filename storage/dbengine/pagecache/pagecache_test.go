package pagecache

import (
	"math/rand/v2"
	"testing"
)

func TestCache_staysWithinItsLimit(t *testing.T) {
	c := New(100_000)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		k := Key{File: uint64(r.IntN(4)), Offset: int64(r.IntN(500))}
		if v, ok := c.Get(k); ok && v.(Key) != k {
			t.Fatalf("%v gave %v", k, v)
		}
		c.Put(k, k, r.IntN(2000))
		if r.IntN(500) == 0 {
			c.Forget(uint64(r.IntN(4)))
		}
		if s := c.Stats(); s.UsedBytes > s.LimitBytes || s.UsedBytes < 0 {
			t.Fatalf("%+v", s)
		}
	}
	if s := c.Stats(); s.Hits == 0 || s.Misses == 0 || s.Evictions == 0 {
		t.Errorf("%+v", s)
	}
	for file := range uint64(4) {
		c.Forget(file)
	}
	if s := c.Stats(); s.UsedBytes != int64(len(c.slots))*slotBytes || c.protectedBytes != 0 || c.count != 0 {
		t.Errorf("%+v, %d protected, %d entries after everything was forgotten", s, c.protectedBytes, c.count)
	}
}

func TestCache_withstandsAScan(t *testing.T) {
	c := New(100_000)
	hot := make([]Key, 20)
	for i := range hot {
		hot[i] = Key{File: 1, Offset: int64(i)}
		c.Put(hot[i], i, 1000)
		c.Get(hot[i])
	}
	for i := range 1000 {
		c.Put(Key{File: 2, Offset: int64(i)}, i, 1000)
	}
	for _, k := range hot {
		if _, ok := c.Get(k); !ok {
			t.Errorf("the scan drove out %v", k)
		}
	}
	c.Put(Key{File: 3}, 0, 50_000)
	if _, ok := c.Get(Key{File: 3}); ok {
		t.Error("a value of half the cache was kept")
	}
}
