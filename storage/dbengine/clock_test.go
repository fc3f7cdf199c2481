package dbengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/memory"
	"tidemark/storage/storagetest"
)

// jumps are how far clocks are set.
var jumps = []time.Duration{-365 * 24 * time.Hour, -time.Hour, time.Hour, 365 * 24 * time.Hour}

// TestDB_clockJumps sets the machine's clock, and that of one sender, an hour and a year on and back while values come, with restarts in between: nothing is lost or
// doubled, what other senders send is not touched by it, and flags, reads and trends are those of the reference.
func TestDB_clockJumps(t *testing.T) {
	perSeed(t, count(t, "TIDEMARK_MODEL_ROUNDS", 300)/30, clockRun)
}

func clockRun(t *testing.T, seed uint64) error {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 12))
	var machine atomic.Int64
	machine.Store(storagetest.Base)
	o := tinyOptions()
	o.Now, o.DirectIO = machine.Load, anyDirect(seed)
	fsys := vfs.NewMem()
	db, reference := openTest(t, fsys, o), memory.New(memory.Options{Now: machine.Load})
	// The senders of items 1 and 2 have right clocks, that of 3 does not. Each sends a value a second.
	second, wrong, sent := int64(0), time.Duration(0), 0
	for round := range 40 {
		if r.IntN(3) == 0 {
			wrong += jumps[r.IntN(len(jumps))]
		}
		if r.IntN(3) == 0 {
			machine.Add(int64(jumps[r.IntN(len(jumps))]))
		}
		b := &model.Batch{ArrivedAt: machine.Load()}
		for range 5 + r.IntN(60) {
			at := storagetest.Base + second*int64(time.Second)
			b.AppendFloat(1, at, float64(r.IntN(100))/4)
			b.AppendUint(2, at, r.Uint64()>>r.IntN(64))
			b.AppendUint(3, at+int64(wrong), uint64(second))
			second++
			sent++
			machine.Add(int64(time.Second))
		}
		c := cloneBatch(b)
		if err := appendAll(db, b); err != nil {
			return err
		}
		if _, err := reference.Append(ctx, c); err != nil {
			return err
		}
		if !slices.Equal(b.Flags, c.Flags) || !slices.Equal(b.At, c.At) {
			return fmt.Errorf("round %d: flags and times differ from those of the reference", round)
		}
		if err := clockWork(t, &db, fsys, o, r); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for _, id := range []model.ItemID{1, 2} {
			if got := storagetest.Collect(t, db, storagetest.All(id)); len(got) != sent {
				return fmt.Errorf("round %d: item %d has %d values, expected %d", round, id, len(got), sent)
			}
		}
		q := storagetest.All(1, 2, 3)
		if got, want := storagetest.Collect(t, db, q), storagetest.Collect(t, reference, q); !slices.Equal(got, want) {
			return fmt.Errorf("round %d: %d values, expected %d", round, len(got), len(want))
		}
	}
	if err := compareTrendsOf(db, reference, 1, 2, 3); err != nil {
		return err
	}
	if err := compareMinutes(db, reference, 1, 2, 3); err != nil {
		return err
	}
	return db.Close()
}

// clockWork does some of what happens while an engine runs, or starts it again.
func clockWork(t *testing.T, db **DB, fsys *vfs.Mem, o Options, r *rand.Rand) error {
	ctx := context.Background()
	switch r.IntN(6) {
	case 0:
		return (*db).Flush(ctx)
	case 1:
		if err := (*db).Close(); err != nil {
			return err
		}
		*db = openTest(t, fsys, o)
	case 2:
		if err := (*db).ClosePair(ctx); err != nil {
			return err
		}
		return (*db).buildTiers(ctx)
	case 3:
		_, err := (*db).Prune(ctx, o.Now())
		return err
	}
	return nil
}
