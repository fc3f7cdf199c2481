package dbengine

import (
	"iter"
	"sync"

	"tidemark/model"
)

const (
	// shardCount is how many locks the registry has. A batch of a thousand neighbours locks half of them, so that writers of different hosts seldom
	// wait for one another, nor readers for them.
	shardCount = 32
	// shardRun is how many neighbouring ids share a shard: items of one host are often made together and come together.
	shardRun = 64
	// lockTries is how often a reader tries a lock, some 20 µs, before it sleeps.
	lockTries = 8192
)

// roomSeries is how many series are allocated at once: 20 of 160 bytes fill one of Go's sizes.
const roomSeries = 20

// shard is a part of the registry.
type shard struct {
	mu     sync.Mutex
	closed bool
	// runs hold the series by id, a run of neighbours each: a batch usually has neighbours next to one another.
	runs map[uint64]*run
	// indexed are the closed pairs that have an index, oldest first. What a slice holds never changes.
	indexed []indexedPair
	// minutes are the pairs of that tier, hours those whose pair with the values is still there, in the same way.
	minutes, hours []indexedPair
	// shares say to which shares of the disk the items belong, by run.
	shares map[uint64]shareRun
	// dirty are the detached pages of its series, oldest first.
	dirty  []*sealed
	probe  probe
	crowds crowds
	// near is the clock that was used last, clocks how many there were.
	near   *clock
	clocks uint64
	// room is for series that are not made yet.
	room []series
	_    [64]byte // keeps the locks of two shards on different cache lines
}

// run holds the series of neighbouring ids.
type run struct {
	series [shardRun]*series
	// classes are the retention classes of the items, also of those whose series is not in memory.
	classes [shardRun]uint8
	count   int
}

func shardIndex(id model.ItemID) uint { return uint(id/shardRun) % shardCount }

func (db *DB) shardOf(id model.ItemID) *shard { return &db.shards[shardIndex(id)] }

// find returns the series of an item, nil if there is none; the shard is locked.
func (sh *shard) find(id model.ItemID) *series {
	if r := sh.runs[uint64(id/shardRun)]; r != nil {
		return r.series[id%shardRun]
	}
	return nil
}

// get returns the series of an item, which it makes if need be; the shard is locked.
func (sh *shard) get(id model.ItemID) *series {
	return sh.run(id).get(sh, id)
}

// run returns the run that holds an item's series.
func (sh *shard) run(id model.ItemID) *run {
	r := sh.runs[uint64(id/shardRun)]
	if r == nil {
		r = &run{}
		sh.runs[uint64(id/shardRun)] = r
	}
	return r
}

func (r *run) get(sh *shard, id model.ItemID) *series {
	s := r.series[id%shardRun]
	if s == nil {
		s = sh.makeSeries(id)
		s.class = r.classes[id%shardRun]
		r.series[id%shardRun] = s
		r.count++
	}
	return s
}

// define sets the retention class of an item; the shard is locked.
func (sh *shard) define(id model.ItemID, class uint8) {
	if class == 0 && sh.runs[uint64(id/shardRun)] == nil {
		return
	}
	r := sh.run(id)
	r.classes[id%shardRun] = class
	if s := r.series[id%shardRun]; s != nil {
		s.class = class
	}
}

// makeSeries makes a series beside the one made before: they are often used one after the other.
func (sh *shard) makeSeries(id model.ItemID) *series {
	if len(sh.room) == 0 {
		sh.room = make([]series, roomSeries)
	}
	s := &sh.room[0]
	sh.room = sh.room[1:]
	s.id, s.floor, s.newest = id, minTime, minTime
	return s
}

// all iterates over the series; the shard is locked. The one that is given may be removed.
func (sh *shard) all() iter.Seq[*series] {
	return func(yield func(*series) bool) {
		for _, r := range sh.runs {
			for _, s := range r.series {
				if s != nil && !yield(s) {
					return
				}
			}
		}
	}
}

// remove forgets a series; the shard is locked.
func (sh *shard) remove(id model.ItemID) {
	r := sh.runs[uint64(id/shardRun)]
	r.series[id%shardRun] = nil
	if r.count--; r.count == 0 && r.classes == [shardRun]uint8{} {
		delete(sh.runs, uint64(id/shardRun))
	}
}

// dropIdle drops the series that got no value since a time and whose values are all in closed pairs, in whose indexes they are found
// again; the shard is locked. It returns how many are kept by nothing but pages in the pair that grows.
func (sh *shard) dropIdle(before int64) (held int) {
	for s := range sh.all() {
		switch {
		case s.since >= before || s.unsealed() || s.dirty != nil:
		case s.disk == nil:
			sh.remove(s.id)
		default:
			held++
		}
	}
	return held
}

// lockBriefly locks the shard for a reader. A batch holds it for some ten microseconds, so it is tried for about as long: who sleeps for it waits
// for a turn of the scheduler, which is ten milliseconds while writers keep all processors busy.
func (sh *shard) lockBriefly() {
	for range lockTries {
		if sh.mu.TryLock() {
			return
		}
	}
	sh.mu.Lock()
}

// lockShards locks the shards in the mask in order.
func (db *DB) lockShards(mask uint32) {
	for i := range db.shards {
		if mask&(1<<i) != 0 {
			db.shards[i].mu.Lock()
		}
	}
}

func (db *DB) unlockShards(mask uint32) {
	for i := range db.shards {
		if mask&(1<<i) != 0 {
			db.shards[i].mu.Unlock()
		}
	}
}
