package dbengine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/memory"
	"tidemark/storage/storagetest"
)

// TestDB_model does the same random work with the engine and with the reference, and compares flags, times, reads and trends.
func TestDB_model(t *testing.T) {
	perSeed(t, count(t, "TIDEMARK_MODEL_ROUNDS", 300)/modelRounds, modelRun)
}

// modelRounds are those of one run.
const modelRounds = 30

func modelRun(t *testing.T, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 5))
	o := tinyOptions()
	o.DirectIO = anyDirect(seed)
	o.Classes = []Class{{History: storagetest.Retention}}
	o.HotCodec = everything([]string{"none", "lz4", "zstd:1", "zstd:3"}[r.IntN(4)]).Codec
	fsys := vfs.NewMem()
	db := openTest(t, fsys, o)
	reference := memory.New(memory.Options{History: storagetest.Retention, Now: storagetest.Now})
	clock := storagetest.Base
	var steady rhythm
	items := append(slices.Clone(crashItems), rhythmItems...)
	for round := range modelRounds {
		b := randomBatch(r, &clock)
		steady.add(b, r.IntN(60), clock)
		c := cloneBatch(b)
		if err := appendAll(db, b); err != nil {
			return err
		}
		if _, err := reference.Append(context.Background(), c); err != nil {
			return err
		}
		if !slices.Equal(b.Flags, c.Flags) || !slices.Equal(b.At, c.At) {
			for i := range b.Flags {
				if b.Flags[i] != c.Flags[i] || b.At[i] != c.At[i] {
					return fmt.Errorf("round %d row %d (item %d %v): flags %b at %d, expected %b at %d", round, i,
						b.Items[i], b.Types[i], b.Flags[i], b.At[i]-storagetest.Base, c.Flags[i], c.At[i]-storagetest.Base)
				}
			}
		}
		switch r.IntN(6) {
		case 0:
			if err := db.Flush(context.Background()); err != nil {
				return err
			}
		case 1:
			if err := db.Close(); err != nil {
				return err
			}
			db = openTest(t, fsys, o)
		case 2:
			db.flushing.Lock()
			db.closePair()
			db.flushing.Unlock()
			if err := db.buildTiers(context.Background()); err != nil {
				return err
			}
		}
		if r.IntN(4) == 0 {
			p := everything([]string{"none", "zstd:1"}[r.IntN(2)])
			p.MergeBytes, p.Again = int64(r.IntN(2))*32<<10, r.IntN(4) == 0
			if done, err := db.Recompress(context.Background(), p); err != nil || done.SkippedPairs > 0 {
				return fmt.Errorf("round %d: %+v, %w", round, done, err)
			}
		}
		q := randomQuery(r, clock)
		q.Items = items
		got, want := storagetest.Collect(t, db, q), storagetest.Collect(t, reference, q)
		if !slices.Equal(got, want) {
			storagetest.Compare(t, got, want)
			return fmt.Errorf("round %d: query %+v", round, q)
		}
		if err := storagetest.CompareFolds(db, q, 1+r.Int64N(int64(time.Second)<<r.IntN(14))); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if round%5 == 4 {
			if err := compareTrendsOf(db, reference, items...); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if err := compareMinutes(db, reference, items...); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if a, b := db.Stats(), reference.Stats(); a.Values != b.Values {
				return fmt.Errorf("round %d: %d values counted, expected %d", round, a.Values, b.Values)
			}
		}
	}
	return db.Close()
}

func cloneBatch(b *model.Batch) *model.Batch {
	return &model.Batch{
		Items: slices.Clone(b.Items), At: slices.Clone(b.At), Types: slices.Clone(b.Types), Bits: slices.Clone(b.Bits),
		Flags: slices.Clone(b.Flags), Arena: slices.Clone(b.Arena), ArrivedAt: b.ArrivedAt,
	}
}

// rhythmItems have values that repeat, in columns that say so once they are written anew: whole numbers, decimals, a counter.
var rhythmItems = []model.ItemID{71, 130, 131}

// rhythm makes their values, a second apart.
type rhythm struct {
	n    int
	at   int64
	grew uint64
}

func (y *rhythm) add(b *model.Batch, count int, clock int64) {
	for range count {
		y.at = max(y.at, clock-int64(time.Minute)) + int64(time.Second)
		x := y.n % 7 * (y.n % 7) % 5
		y.n++
		y.grew += uint64(x)
		b.AppendUint(rhythmItems[0], y.at, uint64(x)<<40)
		b.AppendFloat(rhythmItems[1], y.at, float64(x)/8)
		b.AppendUint(rhythmItems[2], y.at, y.grew)
	}
}

// randomBatch has few distinct instants and values, so that duplicates and taken instants are common.
func randomBatch(r *rand.Rand, clock *int64) *model.Batch {
	b := &model.Batch{ArrivedAt: *clock}
	*clock += int64(r.IntN(600)) * int64(time.Second)
	for range r.IntN(60) {
		at := *clock - int64(r.IntN(20))*int64(time.Second)
		switch r.IntN(20) {
		case 0:
			at -= int64(r.IntN(7200)) * int64(time.Second)
		case 1:
			at -= int64(40*24) * int64(time.Hour)
		}
		switch item := crashItems[r.IntN(len(crashItems))]; item {
		case 1, 2:
			b.AppendUint(item, at, uint64(r.IntN(4))<<uint(r.IntN(64)))
		case 200, 201:
			b.AppendString(item, at, model.Text, fmt.Sprint("text ", r.IntN(4)))
		default:
			v := float64(r.IntN(5)) / 4
			if r.IntN(10) == 0 {
				v = math.NaN()
			}
			b.AppendFloat(item, at, v)
		}
	}
	return b
}

func randomQuery(r *rand.Rand, clock int64) storage.Query {
	q := storagetest.All(crashItems...)
	if r.IntN(2) == 0 {
		q.Range.From = clock - int64(r.IntN(10_000))*int64(time.Second)
		q.Range.To = q.Range.From + int64(r.IntN(5_000))*int64(time.Second)
	}
	if r.IntN(2) == 0 {
		q.Newest = 1 + r.IntN(40)
	}
	return q
}
