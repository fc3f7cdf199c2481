package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/standby"
	"tidemark/storage/dbengine"
	"tidemark/wire/sketch"
)

// PromoteOffline makes the data folder of a stopped standby, or fenced server, that of a primary. A folder in use is ErrInUse.
func PromoteOffline(data string) (p Promoted, err error) {
	lock, err := lockFolder(vfs.OS{}, data)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := standby.FinishSeed(data); err != nil {
		return p, err
	}
	state, found, err := standby.Load(data)
	if err != nil {
		return p, err
	}
	if !found || state.Role == standby.Primary {
		return p, fmt.Errorf("%s is a primary's data folder already", data)
	}
	node, err := standby.Open(data)
	if err != nil {
		return p, err
	}
	p.Epoch, err = node.Promote(state.Role == standby.Standby, 0, nil)
	p.EpochText = standby.EpochText(p.Epoch)
	return p, err
}

// DigestOffline sums up the values of an engine folder that no server works in.
func DigestOffline(ctx context.Context, engine string, from, to int64) (a Digest, err error) {
	db, err := dbengine.Open(ctx, vfs.OS{}, engine, dbengine.Options{DiskSpaceBytes: 1 << 50, Merge: sketch.AppendMerged})
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	began := time.Now()
	d, lsn, err := digestOf(ctx, db, model.TimeRange{From: from, To: to})
	return Digest{Values: d.Values, Digest: d.String(), LSN: uint64(lsn), Seconds: time.Since(began).Seconds()}, err
}

// Digest is the sum of all values in a range.
type Digest struct {
	Values  uint64
	Digest  string
	LSN     uint64
	Seconds float64
}
