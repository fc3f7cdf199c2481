package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// largeStore is an engine with a closed pair of more than a megabyte.
func largeStore(t *testing.T) *DB {
	t.Helper()
	o := smallOptions()
	o.limits.datafileBytes = 8 << 20
	db := openTest(t, vfs.NewMem(), o)
	r := rand.New(rand.NewPCG(3, 4))
	text := make([]byte, 1<<10)
	for i := range 1500 {
		for k := range text {
			text[k] = byte(' ' + r.IntN(90))
		}
		b := model.NewBatch()
		b.AppendString(1, testBase+int64(i), model.Text, string(text))
		appendWait(t, db, b)
	}
	ctx := context.Background()
	if err := errors.Join(db.ClosePair(ctx), db.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestDB_recompressBusy: while the machine is busy nothing is read or written, and that is shown; afterwards the work goes on.
func TestDB_recompressBusy(t *testing.T) {
	db := largeStore(t)
	defer db.Close()
	asked, paused, during := 0, 0, map[int64]bool{}
	o := everything("zstd:3")
	o.Busy = func() bool {
		asked++
		return asked <= 3
	}
	o.Progress = func(p RecompressProgress) {
		if p.Paused {
			paused++
			during[p.DoneBytes] = true
		}
	}
	done, err := db.Recompress(context.Background(), o)
	if err != nil || done.WrittenPairs == 0 || done.Paused || asked <= 3 {
		t.Errorf("%+v, %v; asked %d times whether the machine is busy", done, err, asked)
	}
	if paused == 0 || len(during) != 1 {
		t.Errorf("the pause was shown %d times, with %v bytes done", paused, during)
	}
}

// TestDB_recompressBusy_stopped: one that waits ends when it is told to, and leaves the store as it was.
func TestDB_recompressBusy_stopped(t *testing.T) {
	db := largeStore(t)
	defer db.Close()
	before := fmt.Sprint(db.Pairs())
	ctx, cancel := context.WithCancel(context.Background())
	o := everything("zstd:3")
	o.Busy = func() bool { return true }
	o.Progress = func(p RecompressProgress) {
		if p.Paused {
			cancel()
		}
	}
	if done, err := db.Recompress(ctx, o); !errors.Is(err, context.Canceled) || done.WrittenPairs != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if after := fmt.Sprint(db.Pairs()); after != before {
		t.Errorf("%s became %s", before, after)
	}
}
