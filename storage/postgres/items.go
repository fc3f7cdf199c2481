package postgres

import (
	"math"
	"slices"

	"tidemark/model"
	"tidemark/storage/spool"
)

// pending is a batch that is in the spool and not yet in the database.
type pending struct {
	spool.Record
	lsn   model.LSN
	bytes int
	// unsure says that rows may be in the database already: they were written before a crash, or could not be compared with it.
	unsure bool
}

// ref names a row of a pending batch.
type ref struct {
	at  int64
	p   *pending
	row int
}

// item is what is known of an item without asking the database.
type item struct {
	// newest is the time of its newest value that went through this process. It is the newest of all if known is set.
	newest int64
	known  bool
	class  uint8
	// types and classes say in which tables of the database the item has values, one bit each.
	types   uint8
	classes uint16
	// waiting are its rows that are not in the database yet, by time.
	waiting []ref

	// These belong to the Append that generation names: top is the highest time so far, slow says that a row is not behind it.
	generation uint64
	top        int64
	slow       bool
}

// never is the time of no value.
const never = math.MinInt64

// bound returns a time behind which the item has no value.
func (it *item) bound(high int64) int64 {
	if it.known || it.types == 0 {
		return it.newest
	}
	return max(it.newest, high)
}

// find returns where at is or belongs among the waiting rows.
func (it *item) find(at int64) int {
	if n := len(it.waiting); n == 0 || it.waiting[n-1].at < at {
		return n
	}
	k, _ := slices.BinarySearchFunc(it.waiting, at, func(r ref, at int64) int {
		switch {
		case r.at < at:
			return -1
		case r.at > at:
			return 1
		}
		return 0
	})
	return k
}

// add takes over a row.
func (it *item) add(r ref) {
	it.waiting = slices.Insert(it.waiting, it.find(r.at), r)
}

// settle forgets rows that are in the database.
func (it *item) settle(applied model.LSN) {
	it.waiting = slices.DeleteFunc(it.waiting, func(r ref) bool { return r.p.lsn <= applied })
	if len(it.waiting) == 0 && cap(it.waiting) > 16 {
		it.waiting = nil
	}
}

// get returns an item, which is made if need be. The caller holds db.mu for writing.
func (db *DB) get(id model.ItemID) *item {
	it := db.items.Get(id)
	if it == nil {
		it = &item{newest: never, known: true} // all that the database has were read by Open
		db.items.Set(id, it)
	}
	return it
}

// MaxItemID returns the largest id of an item that the database has values of; zero for none.
func (db *DB) MaxItemID() model.ItemID {
	db.mu.RLock()
	defer db.mu.RUnlock()
	largest := model.ItemID(0)
	db.items.Each(func(id model.ItemID, it *item) bool {
		if it.types != 0 || len(it.waiting) > 0 || it.newest != never {
			largest = max(largest, id)
		}
		return true
	})
	return largest
}
