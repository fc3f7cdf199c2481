package histcache

import (
	"time"

	"tidemark/model"
)

// While the cache is behind, one item must not hold up the others. Values beyond an item's quota, and values that are very
// old, go to the bulk lane, which gets a part of each Take while other values wait. The values of one item keep their order: while
// some of them wait in the bulk lane, later ones go there too, and a batch of the lane waits for the ordinary batches before it.

const (
	// behindTakes is how many Takes must wait before values are told apart; below it nothing is counted.
	behindTakes = 4
	// itemQuota is how many ordinary values one item may have waiting then.
	itemQuota = 1000
	// veryOld is how old a value is that need not wait for its turn among its item's newer ones.
	veryOld = int64(24 * time.Hour)
	// slotBits is how many slots values are counted in, as a power of two. Items that share a slot share the quota and the lane.
	slotBits = 16
	// bulkShare is the part of a Take, 1/bulkShare, that the bulk lane gets beside others.
	bulkShare = 4
)

// entry is a batch that waits.
type entry struct {
	batch *model.Batch
	// weight is what it counts for in the cache.
	weight int
	// counted says that its values are in the tally.
	counted bool
	// after is how many ordinary batches must be taken before this one of the bulk lane.
	after uint64
}

// tally is how many values of the items of a slot wait in each lane; only those that came while the cache was behind are counted.
type tally struct{ ordinary, bulk int32 }

// slot spreads items over the tallies.
func slot(item model.ItemID) uint64 { return uint64(item) * 0x9e3779b97f4a7c15 >> (64 - slotBits) }

// isOld reports whether row i need not keep its place among the values of its item.
func isOld(b *model.Batch, i int) bool { return b.ArrivedAt != 0 && b.At[i] < b.ArrivedAt-veryOld }

// behind reports whether values must be told apart; c.mu is held.
func (c *Cache) behind() bool { return c.values >= behindTakes*c.takeValues || len(c.bulk) > 0 }

// hasBulk reports whether a batch has values for the bulk lane; the first batch of a flood does not look like one yet. c.mu is held.
func (c *Cache) hasBulk(b *model.Batch) bool {
	if c.tallies == nil {
		return false
	}
	for i, item := range b.Items {
		if t := &c.tallies[slot(item)]; t.bulk > 0 || t.ordinary >= itemQuota || isOld(b, i) {
			return true
		}
	}
	return false
}

// split counts the values of a batch and moves those of the bulk lane to a second one, nil when there are none. If all are, the
// first is nil. c.mu is held.
func (c *Cache) split(b *model.Batch) (ordinary, bulk *model.Batch) {
	if c.tallies == nil {
		c.tallies = make([]tally, 1<<slotBits)
	}
	c.moves = c.moves[:0]
	for i, item := range b.Items {
		t := &c.tallies[slot(item)]
		switch {
		case isOld(b, i):
			c.moves = append(c.moves, int32(i))
		case t.bulk > 0 || t.ordinary >= itemQuota:
			c.moves = append(c.moves, int32(i))
			t.bulk++
		default:
			t.ordinary++
		}
	}
	switch len(c.moves) {
	case 0:
		return b, nil
	case b.Len():
		return nil, b
	}
	bulk = model.NewBatch()
	bulk.ArrivedAt = b.ArrivedAt
	moves := c.moves
	kept := 0
	for i := range b.Items {
		if len(moves) > 0 && moves[0] == int32(i) {
			moves = moves[1:]
			moveRow(bulk, b, i)
			continue
		}
		b.Items[kept], b.At[kept], b.Types[kept], b.Bits[kept], b.Flags[kept] = b.Items[i], b.At[i], b.Types[i], b.Bits[i], b.Flags[i]
		kept++
	}
	b.Truncate(kept)
	// What waits for the batch waits for both parts. The marks say that all of it is there: they go with the part that is last.
	for _, d := range b.Done {
		d.Add(1)
		bulk.Done = append(bulk.Done, d)
	}
	bulk.Marks = append(bulk.Marks, b.Marks...)
	clear(b.Marks)
	b.Marks = b.Marks[:0]
	return b, bulk
}

// moveRow appends a copy of row i of one batch to another.
func moveRow(to, from *model.Batch, i int) {
	bits := from.Bits[i]
	if from.Types[i].InArena() {
		bits = to.Store(from.Bytes(i))
	}
	to.Append(from.Items[i], from.At[i], from.Types[i], bits)
	to.Flags[to.Len()-1] = from.Flags[i]
}

// uncount takes the values of an entry out of the tally; c.mu is held.
func (c *Cache) uncount(e *entry, isBulk bool) {
	if !e.counted {
		return
	}
	for i, item := range e.batch.Items {
		if isBulk && isOld(e.batch, i) {
			continue
		}
		if t := &c.tallies[slot(item)]; isBulk {
			t.bulk--
		} else {
			t.ordinary--
		}
	}
}

// cut removes from the lanes what one Take returns, ordinary batches first; c.mu is held.
func (c *Cache) cut() []*model.Batch {
	forBulk := 0
	if len(c.bulk) > 0 {
		forBulk = c.takeValues / bulkShare
	}
	taken, values := c.cutLane(&c.queue, nil, c.takeValues-forBulk, takeBytes)
	c.takenBatches += uint64(len(taken))
	if len(c.bulk) > 0 {
		taken, _ = c.cutLane(&c.bulk, taken, c.takeValues-values, takeBytes)
	}
	return taken
}

// cutLane takes from one lane as much as fits, at least one batch when nothing was taken yet. c.mu is held.
func (c *Cache) cutLane(lane *[]entry, taken []*model.Batch, limit, limitBytes int) ([]*model.Batch, int) {
	isBulk := lane == &c.bulk
	n, values, size := 0, 0, 0
	for n < len(*lane) {
		e := &(*lane)[n]
		if isBulk && e.after > c.takenBatches {
			break
		}
		// The first of the bulk lane goes even if it is larger than its share, else it would wait for calm.
		first := n == 0 && (isBulk || len(taken) == 0)
		if !first && (values+e.batch.Len() > limit || size+e.batch.SizeBytes() > limitBytes) {
			break
		}
		values += e.batch.Len()
		size += e.batch.SizeBytes()
		c.uncount(e, isBulk)
		if isBulk {
			c.bulkUsed -= e.weight
		}
		taken = append(taken, e.batch)
		n++
	}
	rest := copy(*lane, (*lane)[n:])
	clear((*lane)[rest:])
	*lane = (*lane)[:rest]
	c.values -= values
	return taken, values
}
