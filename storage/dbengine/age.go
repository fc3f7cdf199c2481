package dbengine

import (
	"cmp"
	"errors"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/dbengine/header"
)

// minimumOf returns how long values of a class shall be there in any case; zero for no such time.
func (db *DB) minimumOf(class int) time.Duration {
	return cmp.Or((*db.kept.Load())[class].MinimumAge, db.o.MinimumAge)
}

// longestMinimum returns the longest minimum age of all classes, and whether all have the same.
func (db *DB) longestMinimum() (longest time.Duration, same bool) {
	same = true
	for class := range db.o.Classes {
		longest, same = max(longest, db.minimumOf(class)), same && db.minimumOf(class) == db.minimumOf(0)
	}
	return longest, same
}

// young says which values of a pair are younger than they shall be when it goes: those of a retention class.
type young struct {
	class        int
	age, minimum time.Duration
}

// classAges are the newest values of a pair by retention class; minTime where it has none.
type classAges struct {
	pair *pair
	// definitions is how often Define was called before.
	definitions int64
	newest      [MaxClasses]int64
}

// tooYoung reports whether a pair has values that are younger than the minimum age of their class. Classes are told apart by the pair's index, which
// is read once for each pair that is the next to go. Where it cannot be read all values count for the class with the longest time.
func (db *DB) tooYoung(p *pair) (young, bool) {
	p.mu.Lock()
	newest := p.newestValue
	p.mu.Unlock()
	longest, same := db.longestMinimum()
	y := young{age: time.Duration(db.o.Now() - newest), minimum: longest}
	if newest == minTime || longest <= 0 || y.age >= longest {
		return y, false
	}
	if same {
		return y, true
	}
	for class := range db.o.Classes {
		if db.minimumOf(class) == longest {
			y.class = class
		}
	}
	ages, err := db.agesOf(p)
	if err != nil {
		return y, true
	}
	for class := range db.o.Classes {
		age, minimum := time.Duration(db.o.Now()-ages.newest[class]), db.minimumOf(class)
		if ages.newest[class] != minTime && age < minimum {
			return young{class, age, minimum}, true
		}
	}
	return y, false
}

// errNoIndex means that the index of a pair could not be written yet.
var errNoIndex = errors.New("the pair has no index")

// classOf returns the retention class of an item.
func (db *DB) classOf(id model.ItemID) uint8 {
	sh := db.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.runs[uint64(id/shardRun)]; r != nil {
		return r.classes[id%shardRun]
	}
	return 0
}

// agesOf reads the index of a pair.
func (db *DB) agesOf(p *pair) (*classAges, error) {
	if known := db.ages.Load(); known != nil && known.pair == p && known.definitions == db.definitions.Load() {
		return known, nil
	}
	if !p.acquire() {
		return nil, errGone
	}
	defer p.release()
	ages := &classAges{pair: p, definitions: db.definitions.Load()}
	for i := range ages.newest {
		ages.newest[i] = minTime
	}
	x := p.index.Load()
	if x == nil {
		return nil, errNoIndex
	}
	t, err := db.indexTable(p, x)
	if err != nil {
		return nil, err
	}
	for i := range x.parts.Footer().Blocks {
		b, err := db.readBlock(p, x, t, i)
		if err != nil {
			return nil, err
		}
		for k, item := range b.items {
			end := len(b.refs)
			if k+1 < len(b.items) {
				end = b.items[k+1].start
			}
			to := &ages.newest[db.classOf(item.id)]
			for _, ref := range b.refs[item.start:end] {
				if ref.kind <= extent.Late {
					*to = max(*to, ref.to)
				}
			}
		}
	}
	db.ages.Store(ages)
	return ages, nil
}

// nextToGo returns the pair of values that the quota deletes next, nil if there is none.
func (db *DB) nextToGo() *pair {
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	if i := db.pairs.oldest(); i >= 0 && db.pairs.list[i].tier == header.Raw {
		return db.pairs.list[i]
	}
	return nil
}

// watchAge warns when the pair that the quota deletes next holds values younger than the minimum age of their class. It begins to look when less room
// than two datafiles is left, so that the warning comes before the deletion. db.flushing is held.
func (db *DB) watchAge() {
	if longest, _ := db.longestMinimum(); longest <= 0 {
		return
	}
	var y young
	var p *pair
	short := false
	if db.space.limit()-db.space.usedBytes() < 2*db.o.limits.datafileBytes {
		if p = db.nextToGo(); p != nil {
			y, short = db.tooYoung(p)
		}
	}
	if was := db.ageShort.Swap(short); short && !was {
		db.o.Logger.Warn("the disk space does not reach for the minimum age: the next file pair to be deleted has younger values; give the store more room or it fewer values",
			"file", p.id.Name(), "age", y.age.Round(time.Second), "minimum", y.minimum, "history", (*db.kept.Load())[y.class].History)
	} else if was && !short {
		db.o.Logger.Info("the disk space reaches for the minimum age again")
	}
}
