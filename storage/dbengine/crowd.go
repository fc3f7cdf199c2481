package dbengine

import (
	"encoding/binary"
	"hash/maphash"

	"tidemark/model"
)

// maxCrowded bounds the values that the crowds of a shard remember; one has about 30 bytes, and an empty crowd is as large as crowdCost.
const (
	maxCrowded = 1 << 15
	crowdCost  = 8
)

// crowds remember, for a shard, where values went that came for one instant of one series. Without them each further one would be
// compared with all before it, and a message with some thousands of them would stop the store for minutes.
type crowds struct {
	seed maphash.Seed
	of   map[crowdKey]*crowd
	kept int
}

type crowdKey struct {
	item model.ItemID
	from int64
}

// crowd is a run of instants that all hold a value: those from its key's on and before next.
type crowd struct {
	next int64
	// at is where a value is, by its hash. Other values may have the same.
	at map[uint64]int64
}

// get returns what is known of the values that came for an instant. What is known of others is forgotten when there is no room.
func (c *crowds) get(item model.ItemID, from int64) *crowd {
	key := crowdKey{item, from}
	known := c.of[key]
	if known != nil && c.kept < 2*maxCrowded {
		return known
	}
	if c.of == nil || c.kept >= maxCrowded {
		*c = crowds{seed: maphash.MakeSeed(), of: make(map[crowdKey]*crowd)}
	}
	known = &crowd{next: from, at: make(map[uint64]int64)}
	c.of[key] = known
	c.kept += crowdCost
	return known
}

// add notes the value at the end of a run. What comes behind maxCrowded others of one instant has a place, but is not known again.
func (c *crowds) add(known *crowd, v *value) {
	known.next = v.at + 1
	if len(known.at) < maxCrowded {
		known.at[c.hash(v)] = v.at
		c.kept++
	}
}

func (c *crowds) hash(v *value) uint64 {
	if v.valueType.InArena() {
		return maphash.Bytes(c.seed, v.text) + uint64(v.valueType)
	}
	var b [9]byte
	binary.LittleEndian.PutUint64(b[:], v.bits)
	b[8] = byte(v.valueType)
	return maphash.Bytes(c.seed, b[:])
}

// makeWay moves a value whose instant may be taken to the first one that is free, at most one behind the newest. It reports whether the
// value is stored already; the shard is locked.
func (db *DB) makeWay(s *series, v *value) (duplicate bool) {
	first, found := db.lookup(s, v.at)
	if !found {
		return false
	}
	if first.equal(v) {
		return true
	}
	c := &db.shardOf(s.id).crowds
	known := c.get(s.id, v.at)
	if at, ok := known.at[c.hash(v)]; ok {
		if o, found := db.lookup(s, at); found && o.equal(v) {
			return true
		}
	}
	for v.at = known.next; v.at <= s.newest; v.at++ {
		o, found := db.lookup(s, v.at)
		if !found {
			break
		}
		c.add(known, &o)
		if o.equal(v) {
			return true
		}
	}
	c.add(known, v)
	return false
}
