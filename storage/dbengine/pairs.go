package dbengine

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/journal"
)

// generation is that of pairs as they are first written.
const generation = 1

// isCold tells pairs that were re-compressed by their generation: theirs is even, any other odd. Leaving values out adds two.
func isCold(generation uint32) bool { return generation%2 == 0 }

// coldGeneration is that of a pair that is re-compressed.
func coldGeneration(before uint32) uint32 { return (before | 1) + 1 }

// pair is a datafile with its journalfile.
type pair struct {
	id datafile.ID
	// tier is what the pair holds; pairs of a tier sum up the one whose number is source.
	tier   header.Tier
	source uint32
	// first and members say for which pairs of values it stands, or which it sums up: so many from first to order().
	first, members uint32
	// merged means that a pair of a tier holds what all binary values of its source merge to.
	merged bool
	// lean means that a pair of values lacks the rows of hours that follow from them.
	lean bool
	// key names the pair in the page cache.
	key uint64
	// file is open while the pair grows. After that it belongs to files, as do users: how many read it now.
	file  *datafile.File
	files *descriptors
	users int
	// out is what is written to while the pair grows: file, or the same file without the system's cache.
	out *datafile.File
	// journal is open while the pair grows.
	journal vfs.File
	// size and journalSize are the lengths up to which the files are valid; failed means that writing beyond them failed.
	size, journalSize int64
	failed            bool
	sequence          uint64
	// extents are what a start found of a pair without an index, until the series know their pages.
	extents []journal.Extent
	// index is set when the pair is closed; without it the references to its pages stay in memory. mending guards making it again.
	index   atomic.Pointer[pairIndex]
	mending sync.Mutex
	// claimed means that it is being written anew; shares is what the shares have of it, classes what kinds of values take, once that was asked for.
	claimed atomic.Bool
	shares  atomic.Pointer[shareAccount]
	classes atomic.Pointer[pairClasses]

	mu sync.Mutex
	// oldest and newestValue bound the times of the pair's values, newestHour those of its rows; minTime if there are none.
	oldest, newestValue, newestHour int64
	pageCount                       int64
	values                          uint64
	readers                         int
	deleted                         bool
	// charged is what the files count for in the quota.
	charged int64
	gone    func(*pair)
}

// acquire keeps the pair's files open until release. It fails when the pair was deleted.
func (p *pair) acquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted {
		return false
	}
	p.readers++
	return true
}

func (p *pair) release() {
	p.mu.Lock()
	p.readers--
	gone := p.deleted && p.readers == 0
	p.mu.Unlock()
	if gone {
		p.gone(p)
	}
}

// pairs are the pairs of an engine, oldest first.
type pairs struct {
	mu   sync.Mutex
	list []*pair
	open *pair
	// damaged means that there are indexes which are only in memory.
	damaged atomic.Bool
	// builtTo are the numbers of the last pairs that the tiers sum up.
	builtTo [header.TierCount]uint32
	nextKey uint64
	next    uint32
}

// add takes a pair over.
func (ps *pairs) add(p *pair) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.nextKey++
	p.key = ps.nextKey
	ps.list = append(ps.list, p)
	ps.next = max(ps.next, p.id.Number)
	if p.tier != header.Raw {
		ps.builtTo[p.tier] = max(ps.builtTo[p.tier], p.source)
	}
}

// setOpen says which pair grows. Only who holds db.flushing calls it, and may read open without the lock.
func (ps *pairs) setOpen(p *pair) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.open = p
}

func (ps *pairs) all() []*pair {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return append([]*pair(nil), ps.list...)
}

func (ps *pairs) close() error {
	var errs []error
	for _, p := range ps.all() {
		errs = append(errs, p.files.drop(p))
	}
	ps.mu.Lock()
	ps.list = nil
	ps.mu.Unlock()
	return errors.Join(errs...)
}

// openPair returns the pair that grows, which it makes if need be. db.flushing is held.
func (db *DB) openPair() (*pair, error) {
	if p := db.pairs.open; p != nil {
		return p, nil
	}
	db.balance(db.ctx, maxThinned)
	db.pairs.mu.Lock()
	db.pairs.next++
	id := datafile.ID{Generation: generation, Number: db.pairs.next}
	db.pairs.mu.Unlock()
	if err := db.reserve(2 * blockBytes); err != nil {
		return nil, err
	}
	db.growing.Lock()
	defer db.growing.Unlock()
	p, err := db.createPair(id)
	if err != nil {
		db.space.release(2 * blockBytes)
		return nil, err
	}
	p.charged = 2 * blockBytes
	db.openOut(p)
	db.pairs.add(p)
	db.pairs.setOpen(p)
	return p, nil
}

func (db *DB) createPair(id datafile.ID) (*pair, error) {
	file, err := datafile.Create(db.fs, db.dir, id)
	if err != nil {
		return nil, err
	}
	// The folder is synced in between, so that no power cut leaves a journalfile without its datafile.
	name := filepath.Join(db.dir, id.JournalName())
	if err := db.fs.SyncDir(db.dir); err != nil {
		return nil, errors.Join(err, file.Close(), db.fs.Remove(filepath.Join(db.dir, id.Name())))
	}
	j, err := db.fs.Create(name)
	if err != nil {
		return nil, errors.Join(err, file.Close(), db.fs.Remove(filepath.Join(db.dir, id.Name())))
	}
	_, err = j.WriteAt(journal.Header(id, false), 0)
	if err == nil {
		err = j.SyncData()
	}
	if err == nil {
		err = db.fs.SyncDir(db.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", id.JournalName(), errors.Join(err, j.Close(), file.Close(),
			db.fs.Remove(name), db.fs.Remove(filepath.Join(db.dir, id.Name()))))
	}
	return &pair{
		id: id, first: id.Number, members: 1, file: file, files: &db.files, users: 1, journal: j, size: header.Bytes, journalSize: header.Bytes, gone: db.pairGone,
		oldest: minTime, newestValue: minTime, newestHour: minTime,
	}, nil
}

// closePair ends the growth of the open pair and rewrites its journalfile as an index. If that fails the journalfile
// stays as it is, which serves as well. db.flushing is held.
func (db *DB) closePair() {
	p := db.pairs.open
	if p == nil {
		return
	}
	db.growing.Lock()
	defer db.growing.Unlock()
	defer db.pairs.setOpen(nil) // until the index is there nobody may delete the pair
	extents, damage := db.journalled(p)
	if err := p.journal.Close(); err != nil {
		db.o.Logger.Warn("close a journalfile", "file", p.id.JournalName(), "error", err)
	}
	p.journal = nil
	if err := db.closeOut(p); err != nil {
		db.o.Logger.Warn("cut a datafile behind its last extent", "file", p.id.Name(), "error", err)
	}
	err := damage
	if err == nil {
		err = db.writeIndex(p, extents)
	}
	if err != nil {
		db.o.Logger.Warn("the index of a closed pair was not written; its journal serves instead", "file", p.id.JournalName(), "error", err)
	}
	db.files.finish(p)
	if p.index.Load() != nil {
		db.publish(p)
	}
}

// journalled reads what the journalfile of the pair that grows says, so that it need not be kept in memory: 40 bytes a page.
func (db *DB) journalled(p *pair) ([]journal.Extent, error) {
	b := make([]byte, p.journalSize)
	if n, err := p.journal.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	c, err := journal.Read(b, p.id)
	if err != nil {
		return nil, err
	}
	return c.Extents, c.Damage
}

// writeIndex replaces the pair's journalfile by an index, from which the pair can then serve.
func (db *DB) writeIndex(p *pair, extents []journal.Extent) error {
	b := journal.AppendIndex(nil, p.id, extents)
	if err := db.replaceIndex(p, b); err != nil {
		return err
	}
	parts, err := journal.OpenParts(bytes.NewReader(b), p.id, int64(len(b)))
	if err == nil {
		db.setIndex(p, parts, nil)
	}
	return err
}

// replaceIndex replaces the pair's journalfile by the bytes of an index.
func (db *DB) replaceIndex(p *pair, b []byte) error {
	size := roundUp(int64(len(b)))
	if err := db.reserve(size); err != nil {
		return err
	}
	if err := db.replaceFile(p.id.JournalName(), b); err != nil {
		db.space.release(size)
		return err
	}
	old := roundUp(p.journalSize)
	p.journalSize = int64(len(b))
	p.mu.Lock()
	p.charged += size - old
	p.mu.Unlock()
	db.space.release(old)
	return nil
}

// replaceFile writes a file beside the one it replaces, syncs it and renames it.
func (db *DB) replaceFile(name string, b []byte) error {
	path := filepath.Join(db.dir, name)
	temporary := path + tempSuffix
	if err := db.fs.Remove(temporary); err != nil && !isNotExist(err) {
		return err
	}
	f, err := db.fs.Create(temporary)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = db.fs.Rename(temporary, path)
	}
	if err != nil {
		if rm := db.fs.Remove(temporary); rm != nil && !isNotExist(rm) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("write %s: %w", name, err)
	}
	return db.fs.SyncDir(db.dir)
}

// deleteOldest deletes the oldest pair that does not grow, and reports whether there was one.
func (db *DB) deleteOldest() bool {
	db.pairs.mu.Lock()
	var p *pair
	if i := db.pairs.oldest(); i >= 0 {
		p = db.pairs.list[i]
		db.pairs.list = slices.Delete(slices.Clone(db.pairs.list), i, i+1)
	}
	db.pairs.mu.Unlock()
	if p == nil {
		return false
	}
	db.o.Logger.Info("delete the oldest pair to make room", "file", p.id.Name())
	db.deletePair(p)
	return true
}

// oldest returns the place of the pair that goes first when room is needed: the oldest that holds values, then those of the tiers, minutes first;
// -1 if there is only the one that grows. mu is held.
func (ps *pairs) oldest() int {
	found := -1
	for i, p := range ps.list {
		if p != ps.open && (found < 0 || p.tier < ps.list[found].tier) {
			found = i
		}
	}
	return found
}

// deletePair removes a pair, which is no longer in the list, from memory and disk.
func (db *DB) deletePair(p *pair) {
	p.mu.Lock()
	p.deleted = true
	idle := p.readers == 0
	db.values.Add(-int64(p.values))
	p.mu.Unlock()
	x := p.index.Load()
	for i := range db.shards {
		sh := &db.shards[i]
		sh.mu.Lock()
		sh.withdraw(p)
		if p.tier == header.Raw {
			sh.promote(p)
		}
		if x == nil { // else no series has references to it
			for s := range sh.all() {
				s.forget(p)
			}
		}
		sh.mu.Unlock()
	}
	db.cache.Forget(p.key)
	if x != nil {
		db.cache.Forget(x.key)
	}
	if idle {
		db.pairGone(p)
	}
}

// forget drops the references to a pair's pages.
func (s *series) forget(p *pair) {
	if s.disk == nil {
		return
	}
	d := *s.disk
	for _, refs := range []*[]pageRef{&d.pages, &d.lates, &d.hours} {
		has := func(r pageRef) bool { return r.pair == p }
		if !slices.ContainsFunc(*refs, has) {
			continue
		}
		kept := make([]pageRef, 0, len(*refs)) // a new slice: readers may hold the old one
		for _, r := range *refs {
			if !has(r) {
				kept = append(kept, r)
			}
		}
		*refs = kept
	}
	if s.disk = nil; len(d.pages)+len(d.lates)+len(d.hours) > 0 {
		s.disk = &d
	}
}

// pairGone removes the files of a deleted pair that nobody reads any more, and gives its room back.
func (db *DB) pairGone(p *pair) {
	if err := db.files.drop(p); err != nil {
		db.o.Logger.Warn("close a deleted datafile", "file", p.id.Name(), "error", err)
	}
	// A datafile without its journalfile is whole, so that one goes last.
	err := db.fs.Remove(filepath.Join(db.dir, p.id.JournalName()))
	if err == nil || isNotExist(err) {
		err = db.fs.SyncDir(db.dir)
	}
	if err == nil {
		err = db.fs.Remove(filepath.Join(db.dir, p.id.Name()))
	}
	if err != nil && !isNotExist(err) {
		db.o.Logger.Error("a deleted pair could not be removed; its room stays taken", "file", p.id.Name(), "error", err)
		return
	}
	db.m.pairsDeleted.Inc()
	if !db.pinned(p.id.Name(), p.charged) {
		db.space.release(p.charged)
	}
}
