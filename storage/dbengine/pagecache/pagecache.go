// Package pagecache keeps recently used parts of datafiles in memory, within a hard limit of bytes.
//
// It is a segmented LRU: what is used once stays in the probation list, and a second use moves it to the protected one,
// which may take four fifths of the room. A long scan therefore does not drive out what is used again and again.
package pagecache

import "sync"

// Key names a part of a file.
type Key struct {
	// File is a number that its owner gives to each open file.
	File uint64
	// Offset is where the extent starts; Slot is the page in it, or -1 for its directory, -2 for all of it.
	Offset int64
	Slot   int32
}

const (
	// entryBytes is charged for each entry besides its own size: what it takes itself, in the size that Go gives it.
	entryBytes = 80
	// slotBytes is charged for each slot of the table, of which there are at least as many as entries.
	slotBytes = 8
	minSlots  = 64
)

// Cache is a page cache.
type Cache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	// slots are chains of entries by their key's hash: unlike those of a map its bytes are known. It grows with the entries, and counts.
	slots []*entry
	count int
	// The lists are rings; the sentinel's next is the newest.
	probation, protected entry
	protectedBytes       int64

	hits, misses, evictions uint64
}

type entry struct {
	key        Key
	value      any
	size       int64
	protected  bool
	prev, next *entry
	// chain is the next entry of the slot.
	chain *entry
}

// New returns a cache of at most limitBytes.
func New(limitBytes int64) *Cache {
	c := &Cache{limit: limitBytes, slots: make([]*entry, minSlots), used: minSlots * slotBytes}
	for _, l := range []*entry{&c.probation, &c.protected} {
		l.prev, l.next = l, l
	}
	return c
}

// Get returns what was put under the key.
func (c *Cache) Get(k Key) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := *c.find(k)
	if e == nil {
		c.misses++
		return nil, false
	}
	c.hits++
	e.unlink()
	if !e.protected {
		e.protected = true
		c.protectedBytes += e.size
		for c.protectedBytes > c.limit/5*4 && c.protected.prev != &c.protected {
			last := c.protected.prev
			last.unlink()
			last.protected = false
			c.protectedBytes -= last.size
			last.link(&c.probation)
		}
	}
	if e.protected {
		e.link(&c.protected)
	}
	return e.value, true
}

// Put keeps a value of sizeBytes; what is larger than an eighth of the cache is not kept. The value must not change.
func (c *Cache) Put(k Key, value any, sizeBytes int) {
	size := int64(sizeBytes) + entryBytes
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > c.limit/8 || *c.find(k) != nil {
		return
	}
	e := &entry{key: k, value: value, size: size}
	c.grow()
	*c.find(k) = e
	c.count++
	e.link(&c.probation)
	c.used += size
	for c.used > c.limit {
		last := c.probation.prev
		if last == &c.probation {
			last = c.protected.prev
		}
		if last == &c.protected {
			return
		}
		c.drop(last)
		c.evictions++
	}
}

// Forget drops everything of a file.
func (c *Cache) Forget(file uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.slots {
		for e != nil {
			next := e.chain
			if e.key.File == file {
				c.drop(e)
			}
			e = next
		}
	}
}

func (c *Cache) drop(e *entry) {
	e.unlink()
	*c.find(e.key) = e.chain
	c.count--
	c.used -= e.size
	if e.protected {
		c.protectedBytes -= e.size
	}
}

// find returns where the entry of a key hangs, or where it would.
func (c *Cache) find(k Key) **entry {
	h := (k.File*0x9E3779B97F4A7C15 ^ uint64(k.Offset)) * 0xD6E8FEB86659FD93
	h = (h ^ h>>32 ^ uint64(uint32(k.Slot))) * 0xD6E8FEB86659FD93
	at := &c.slots[(h^h>>32)&uint64(len(c.slots)-1)]
	for *at != nil && (*at).key != k {
		at = &(*at).chain
	}
	return at
}

// grow makes room for one more entry.
func (c *Cache) grow() {
	if c.count < len(c.slots) {
		return
	}
	old := c.slots
	c.slots = make([]*entry, 2*len(old))
	c.used += int64(len(old)) * slotBytes
	for _, e := range old {
		for e != nil {
			next := e.chain
			e.chain = nil
			*c.find(e.key) = e
			e = next
		}
	}
}

// Stats says how the cache does.
type Stats struct {
	Hits, Misses, Evictions uint64
	UsedBytes, LimitBytes   int64
}

// Stats returns the counts since New.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Hits: c.hits, Misses: c.misses, Evictions: c.evictions, UsedBytes: c.used, LimitBytes: c.limit}
}

func (e *entry) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}

func (e *entry) link(list *entry) {
	e.prev, e.next = list, list.next
	list.next.prev = e
	list.next = e
}
