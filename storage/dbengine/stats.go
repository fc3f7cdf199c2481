package dbengine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// MaxItemID returns the largest id of an item that the engine has values of; zero for none.
func (db *DB) MaxItemID() model.ItemID {
	largest := model.ItemID(0)
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for s := range sh.all() {
			largest = max(largest, s.id)
		}
		for k := range sh.indexed {
			largest = max(largest, sh.indexed[k].last)
		}
		sh.mu.Unlock()
	}
	return largest
}

// Stats says how full the engine is. Items counts those in memory, which all are that had values in the last minutes, or those of the
// closed pair that has most, whichever is more: which items two closed pairs have in common only reading both would tell.
func (db *DB) Stats() storage.Stats {
	s := storage.Stats{
		Values: uint64(max(db.values.Load(), 0)), DiskBytes: db.space.usedBytes(), QuotaBytes: db.o.DiskSpaceBytes, Durable: db.log.Durable(),
		From: minTime, To: minTime,
	}
	indexed := uint64(0)
	widen := func(from, to int64) {
		if from != minTime && (s.From == minTime || from < s.From) {
			s.From = from
		}
		s.To = max(s.To, to)
	}
	for _, p := range db.pairs.all() {
		p.mu.Lock()
		if p.newestValue != minTime {
			widen(p.oldest, p.newestValue)
		}
		p.mu.Unlock()
		if x := p.index.Load(); x != nil {
			indexed = max(indexed, uint64(x.parts.Footer().Items))
		}
	}
	memory := func(samples []sample) {
		if len(samples) > 0 {
			widen(samples[0].at, samples[len(samples)-1].at)
		}
	}
	numeric := func(n numbers) {
		if len(n.times) > 0 {
			widen(n.times[0], n.times[len(n.times)-1])
		}
	}
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		for x := range sh.all() {
			s.Items++
			numeric(x.page.freeze())
			o := x.rest()
			memory(o.texts)
			memory(o.late)
		}
		for _, d := range sh.dirty {
			numeric(d.numbers)
			memory(d.texts)
			memory(d.late)
		}
		sh.mu.Unlock()
	}
	s.Items = max(s.Items, indexed)
	if s.From == minTime {
		s.From, s.To = 0, 0
	}
	return s
}

// SetClasses changes how long the retention classes keep; their number stays what it was at Open. What is too old by now goes with the next Prune.
func (db *DB) SetClasses(classes []Class) error {
	if len(classes) != len(db.o.Classes) {
		return fmt.Errorf("retention classes: %d, expected %d as at the start", len(classes), len(db.o.Classes))
	}
	if err := checkClasses(classes); err != nil {
		return err
	}
	classes = slices.Clone(classes)
	db.kept.Store(&classes)
	return nil
}

func checkClasses(classes []Class) error {
	for i, c := range classes {
		if c.History < 0 || c.Trends < 0 || c.MinimumAge < 0 {
			return fmt.Errorf("retention class %d: history %v, trends %v, minimum age %v, expected none below zero", i, c.History, c.Trends, c.MinimumAge)
		}
	}
	return nil
}

// Prune deletes the pairs whose values and summaries are all past the retention of every class.
func (db *DB) Prune(ctx context.Context, now int64) (freedBytes int64, err error) {
	history, trends := time.Duration(0), time.Duration(0)
	for _, c := range *db.kept.Load() {
		if c.History == 0 {
			return 0, nil
		}
		history = max(history, c.History)
		trends = max(trends, c.Trends, c.History)
	}
	before := db.space.usedBytes()
	for _, p := range db.pairs.all() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p.mu.Lock()
		kept := p.newestValue >= now-int64(history) || p.newestHour >= now-int64(trends)
		p.mu.Unlock()
		if kept || !db.removePair(p) {
			continue
		}
		db.deletePair(p)
	}
	return max(before-db.space.usedBytes(), 0), nil
}

// removePair takes a pair that does not grow out of the list.
func (db *DB) removePair(p *pair) bool {
	db.pairs.mu.Lock()
	defer db.pairs.mu.Unlock()
	i := slices.Index(db.pairs.list, p)
	if i < 0 || p == db.pairs.open {
		return false
	}
	db.pairs.list = slices.Delete(slices.Clone(db.pairs.list), i, i+1)
	return true
}
