package dbengine

import (
	"context"

	"tidemark/model"
	"tidemark/storage/dbengine/translog"
)

// ErrPosition says that the log has no record at a position any more: who follows it must begin anew from a snapshot.
var ErrPosition = translog.ErrPosition

// ReadLog returns the bytes of whole durable log records from LSN from on, about maxBytes of them; none when nothing came since.
// DecodeLog reads them, on another machine too.
func (db *DB) ReadLog(from model.LSN, maxBytes int) ([]byte, error) {
	return db.log.ReadRecords(from, maxBytes)
}

// WaitLog returns when the log is durable beyond lsn.
func (db *DB) WaitLog(ctx context.Context, lsn model.LSN) error { return db.log.WaitBehind(ctx, lsn) }

// DecodeLog calls fn for each batch in what ReadLog returned for the same LSN, and returns the LSN behind the last record. The batch is
// valid during the call.
func DecodeLog(b []byte, from model.LSN, fn func(end model.LSN, batch *model.Batch) error) (model.LSN, error) {
	batch := model.NewBatch()
	defer batch.Free()
	return translog.Records(b, from, func(end model.LSN, kind byte, payload []byte) error {
		if kind != translog.KindBatch {
			return nil
		}
		if err := translog.DecodeBatch(batch, payload); err != nil {
			return err
		}
		return fn(end, batch)
	})
}

// Synchronous makes completions wait, besides the disk, until Replicated has passed their values.
func (db *DB) Synchronous() { db.log.Synchronous() }

// Replicated says that a standby has everything up to lsn on its disk.
func (db *DB) Replicated(lsn model.LSN) { db.log.Replicated(lsn) }

// Refuse finishes what waits for durability with err and refuses new batches with it, until it is called with nil.
func (db *DB) Refuse(err error) { db.log.Refuse(err) }

// DurableLSN is the LSN up to which everything is on disk.
func (db *DB) DurableLSN() model.LSN { return db.log.Durable() }

// Sync waits until everything that was appended is on disk, and returns how far that is.
func (db *DB) Sync(ctx context.Context) (model.LSN, error) {
	lsn := db.log.End()
	return lsn, db.log.Wait(ctx, lsn)
}
