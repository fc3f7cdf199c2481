package dbengine

import (
	"time"

	"tidemark/storage/dbengine/header"
)

// watchAge warns when the pair that the quota deletes next holds values younger than Options.MinimumAge. It begins to look when less room than
// two datafiles is left, so that the warning comes before the deletion. db.flushing is held.
func (db *DB) watchAge() {
	if db.o.MinimumAge <= 0 {
		return
	}
	short := false
	var name string
	var age time.Duration
	if db.space.quota-db.space.usedBytes() < 2*db.o.limits.datafileBytes {
		db.pairs.mu.Lock()
		if i := db.pairs.oldest(); i >= 0 && db.pairs.list[i].tier == header.Raw {
			p := db.pairs.list[i]
			p.mu.Lock()
			if p.newestValue != minTime {
				name, age = p.id.Name(), time.Duration(db.o.Now()-p.newestValue)
				short = age < db.o.MinimumAge
			}
			p.mu.Unlock()
		}
		db.pairs.mu.Unlock()
	}
	if was := db.ageShort.Swap(short); short && !was {
		db.o.Logger.Warn("the disk space does not reach for the minimum age: the next file pair to be deleted has younger values; give the store more room or it fewer values",
			"file", name, "age", age.Round(time.Second), "minimum", db.o.MinimumAge)
	} else if was && !short {
		db.o.Logger.Info("the disk space reaches for the minimum age again", "minimum", db.o.MinimumAge)
	}
}
