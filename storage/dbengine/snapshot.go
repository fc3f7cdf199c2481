package dbengine

import (
	"context"
	"errors"
	"path/filepath"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine/translog"
)

// Frozen is a file of the engine as it belongs to a snapshot.
type Frozen struct {
	// Name is the file's name in the engine's folder.
	Name string
	// Bytes is how much of the file belongs to the snapshot. What stands behind is written later.
	Bytes int64
}

// Freeze calls take for each file of a snapshot of everything that Append had finished when Freeze was called. take makes a
// hard link of the file, or copies its first Bytes bytes; both may be done while the engine goes on, because those bytes never change
// and the file keeps its name until take returns. Pages are not written to datafiles only while take has the file pair that
// grows, and Freeze waits for at most one group of them. Freeze returns how far the log is in the snapshot.
//
// done, if not nil, is called with that when all files were taken and before the engine may remove any of them.
func (db *DB) Freeze(ctx context.Context, take func(Frozen) error, done func(model.LSN) error) (model.LSN, error) {
	if err := db.log.Wait(ctx, db.log.End()); err != nil {
		return 0, err
	}
	f := freezing{db: db, take: take}
	defer f.release()
	lsn, err := f.freeze(ctx)
	if err != nil {
		return 0, err
	}
	if err := f.rest(ctx); err != nil {
		return 0, err
	}
	if done != nil {
		err = done(lsn)
	}
	return lsn, err
}

// KeepLog keeps all of the log that is there until release is called: a snapshot that begins with what refers to the log needs it.
func (db *DB) KeepLog() (release func()) {
	_, _, release = db.log.Hold()
	return release
}

// freezing is one Freeze.
type freezing struct {
	db    *DB
	take  func(Frozen) error
	pairs []*pair
	open  *pair
	log   []translog.HeldFile
	free  func()
}

// freeze fixes the moment of the snapshot and takes what is written to in place. From keeping the log on nothing of it goes, so that what is in no
// pair yet is in it; it is cut last, at the moment, so that it has all that is in the pairs and promised by the marks.
func (f *freezing) freeze(ctx context.Context) (model.LSN, error) {
	defer f.db.KeepLog()()
	if err := f.growing(ctx); err != nil {
		return 0, err
	}
	lsn, files, free := f.db.log.Hold()
	f.log, f.free = files, free
	return lsn, nil
}

// growing lists the pairs and takes the one that grows, and the marks.
func (f *freezing) growing(ctx context.Context) error {
	db := f.db
	db.growing.Lock()
	defer db.growing.Unlock()
	if db.ctx.Err() != nil {
		return storage.ErrClosed
	}
	for _, p := range db.pairs.all() {
		if !p.acquire() { // it is being deleted
			continue
		}
		f.pairs = append(f.pairs, p)
		if p == db.pairs.open {
			f.open = p
		}
	}
	if open := f.open; open != nil {
		if err := f.taken(ctx, open.id.Name(), open.size); err != nil {
			return err
		}
		if err := f.taken(ctx, open.id.JournalName(), open.journalSize); err != nil {
			return err
		}
	}
	return f.whole(ctx, marksName)
}

// rest takes the files that nobody writes to any more, and the log.
func (f *freezing) rest(ctx context.Context) error {
	for _, p := range f.pairs {
		if p == f.open {
			continue
		}
		if err := errors.Join(f.whole(ctx, p.id.Name()), f.whole(ctx, p.id.JournalName())); err != nil {
			return err
		}
	}
	for _, file := range f.log {
		if err := f.taken(ctx, file.Name, file.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// whole takes all of a file, if it is there: a journalfile may be missing, and be made again from its datafile.
func (f *freezing) whole(ctx context.Context, name string) error {
	info, err := f.db.fs.Stat(filepath.Join(f.db.dir, name))
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.taken(ctx, name, info.Size())
}

func (f *freezing) taken(ctx context.Context, name string, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.take(Frozen{Name: name, Bytes: size})
}

func (f *freezing) release() {
	for _, p := range f.pairs {
		p.release()
	}
	if f.free != nil {
		f.free()
	}
}

// SnapshotStore keeps snapshots of the engine's files by hard links in the engine's file system.
type SnapshotStore interface {
	// Holds reports whether a kept snapshot has the engine's file of that name.
	Holds(name string) bool
	// DropOldest removes the oldest snapshot, if the settings allow it, and reports whether it did.
	DropOldest() bool
}
