package dbengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidemark/model"
	"tidemark/storage/dbengine/datafile"
	"tidemark/storage/dbengine/header"
	"tidemark/storage/dbengine/translog"
)

// recover reads what is on disk: pairs, marks, log.
func (db *DB) recover(ctx context.Context) error {
	names, err := db.fs.List(db.dir)
	if err != nil {
		return err
	}
	if err := db.checkVersions(names); err != nil {
		return err
	}
	db.space.quota = db.o.DiskSpaceBytes
	if err := db.chargeFiles(names); err != nil {
		return err
	}
	db.probeDirect()
	if db.direct.queries() {
		db.files.buffers = db.direct.buffers
	}
	lsn, err := db.loadPairs(ctx, names)
	if err != nil {
		return err
	}
	marksLSN, err := db.loadMarks()
	if err != nil {
		return err
	}
	if err := db.openLog(ctx, max(lsn, marksLSN), marksLSN); err != nil {
		return err
	}
	for db.space.usedBytes() > db.space.quota && db.deleteOldest() {
	}
	if err := db.log.Reserve(); err != nil {
		db.o.Logger.Warn("allocate a spare log file", "error", err)
	}
	return nil
}

// checkVersions refuses a folder in which a newer program has written, before anything is changed.
func (db *DB) checkVersions(names []string) error {
	for _, name := range names {
		magic, ok := magicOf(name)
		if !ok {
			continue
		}
		b, err := db.readHead(name)
		if err != nil {
			return err
		}
		if _, err := header.Decode(b, magic); errors.Is(err, header.ErrNewer) {
			return fmt.Errorf("%s: %w; nothing was changed: use the version that wrote it, or a newer one", name, err)
		}
	}
	return nil
}

// magicOf returns what the header of a file must say, by its name.
func magicOf(name string) (header.Magic, bool) {
	if _, journal, ok := datafile.ParseName(name); ok {
		if journal {
			return header.Journalfile, true
		}
		return header.Datafile, true
	}
	if _, ok := translog.ParseName(name); ok {
		return header.Log, true
	}
	return header.Marks, name == marksName
}

// readHead reads the first bytes of a file.
func (db *DB) readHead(name string) ([]byte, error) {
	f, err := db.fs.Open(filepath.Join(db.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, header.Bytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// chargeFiles counts what is in the folder, and removes what an interrupted writing left.
func (db *DB) chargeFiles(names []string) error {
	for _, name := range names {
		path := filepath.Join(db.dir, name)
		if strings.HasSuffix(name, tempSuffix) {
			if err := db.fs.Remove(path); err != nil {
				db.o.Logger.Warn("remove a file that was not finished", "file", name, "error", err)
			}
		}
		db.charge(path)
	}
	set, err := db.fs.List(filepath.Join(db.dir, quarantineDir))
	if err != nil && !isNotExist(err) {
		return err
	}
	for _, name := range set {
		db.charge(filepath.Join(db.dir, quarantineDir, name))
	}
	return nil
}

func (db *DB) charge(path string) {
	info, err := db.fs.Stat(path)
	if err == nil && !info.IsDir() {
		db.space.used += roundUp(info.Size())
	}
}

// quarantine sets a file aside. It keeps counting for the quota.
func (db *DB) quarantine(name string, reason error) {
	db.m.quarantined.Inc()
	dir := filepath.Join(db.dir, quarantineDir)
	err := db.fs.MkdirAll(dir)
	if err == nil {
		to := filepath.Join(dir, fmt.Sprintf("%s.%d", name, time.Now().UnixNano()))
		err = errors.Join(db.fs.Rename(filepath.Join(db.dir, name), to), db.fs.SyncDir(dir), db.fs.SyncDir(db.dir))
	}
	db.o.Logger.Error("a damaged file is set aside", "file", name, "to", quarantineDir, "reason", reason, "error", err)
}

// openLog replays the log into the series and opens it for appending.
func (db *DB) openLog(ctx context.Context, floor, marksLSN model.LSN) error {
	b := model.NewBatch()
	defer b.Free()
	before := model.LSN(0)
	log, found, err := translog.Open(ctx, translog.Options{
		FS: db.fs, Dir: db.dir, SegmentBytes: db.o.limits.segmentBytes,
		RetryDelay: db.o.limits.tick, GroupDelay: db.o.GroupDelay, Relaxed: db.o.Durability == Relaxed,
		Reserve: db.reserveQuota, Released: db.space.release, Pinned: db.pinned,
		Durable: func(model.LSN) {}, Synced: db.m.synced, Logger: db.o.Logger,
	}, floor, func(end model.LSN, kind byte, payload []byte) error {
		defer func() { before = end }()
		if kind != translog.KindBatch {
			return nil
		}
		if err := translog.DecodeBatch(b, payload); err != nil {
			db.m.damagedRecords.Inc()
			db.o.Logger.Error("a log record with an intact checksum cannot be read", "lsn", end, "error", err)
			return nil
		}
		if end > marksLSN {
			db.marks.put(b.Marks)
		}
		db.replayRows(b, before, end)
		if db.dirtyBytes.Load() < 4*db.o.limits.dirtyBytes {
			return nil
		}
		db.flushing.Lock()
		defer db.flushing.Unlock()
		if err := db.flush(ctx); err != nil { // it is tried again when the engine runs
			db.noteFlush(err)
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		return err
	}
	db.log = log
	for name, reason := range found.Foreign {
		db.quarantine(name, reason)
	}
	for _, gap := range found.Gaps {
		db.m.damagedRecords.Inc()
		db.o.Logger.Error("the log has a gap; the rest is served", "gap", gap.String())
	}
	return nil
}

// replayRows puts the rows of a log record that no page holds into their series.
func (db *DB) replayRows(b *model.Batch, before, end model.LSN) {
	var full []*series
	now := db.o.Now()
	for i, id := range b.Items {
		s := db.shardOf(id).get(id)
		if !s.known {
			db.learn(s)
		}
		if end <= s.sealedLSN {
			continue
		}
		v := value{at: b.At[i], bits: b.Bits[i], valueType: b.Types[i]}
		if v.valueType.InArena() {
			v.text = b.Bytes(i)
		}
		if db.place(s, &v, before, now)&model.Duplicate != 0 {
			continue
		}
		db.hotBytes.Add(int64(16 + len(v.text)))
		db.values.Add(1)
		if db.full(s) {
			full = append(full, s)
		}
	}
	for _, s := range full {
		if s.unsealed() && db.full(s) {
			db.detach(s, end, now)
		}
	}
}

// sortIDs orders pairs from old to new.
func sortIDs(ids []datafile.ID) {
	slices.SortFunc(ids, func(a, b datafile.ID) int {
		switch {
		case a.Less(b):
			return -1
		case b.Less(a):
			return 1
		}
		return 0
	})
}
