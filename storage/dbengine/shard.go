package dbengine

import (
	"sync"

	"tidemark/model"
)

const (
	shardCount = 16
	// shardRun is how many neighbouring ids share a shard: items of one host are often made together and come together.
	shardRun = 64
)

// shard is a part of the registry.
type shard struct {
	mu     sync.Mutex
	closed bool
	series map[model.ItemID]*series
	// dirty are the detached pages of its series, oldest first.
	dirty []*sealed
	probe probe
	_     [64]byte // keeps the locks of two shards on different cache lines
}

func shardIndex(id model.ItemID) uint { return uint(id/shardRun) % shardCount }

func (db *DB) shardOf(id model.ItemID) *shard { return &db.shards[shardIndex(id)] }

// get returns the series of an item, which it makes if need be; the shard is locked.
func (sh *shard) get(id model.ItemID) *series {
	s := sh.series[id]
	if s == nil {
		s = &series{id: id, floor: minTime, newest: minTime}
		sh.series[id] = s
	}
	return s
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
