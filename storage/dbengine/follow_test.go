package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// everyTime is the range of all values.
var everyTime = model.TimeRange{From: minTime + 1, To: 1<<63 - 1}

// follow brings what one engine has behind a position to another, in pieces of maxBytes.
func follow(t *testing.T, from *DB, at model.LSN, to *DB, maxBytes int) model.LSN {
	t.Helper()
	for {
		b, err := from.ReadLog(at, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			return at
		}
		at, err = DecodeLog(b, at, func(end model.LSN, batch *model.Batch) error {
			batch.Marks = append(batch.Marks, model.Mark{Key: "standby", Value: fmt.Sprint(end)})
			_, err := to.Append(context.Background(), batch)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func followedBatch(r *rand.Rand, second int) *model.Batch {
	b := model.NewBatch()
	for item := model.ItemID(1); item <= 20; item++ {
		at := testBase + int64(second)*int64(time.Second)
		switch r.IntN(10) {
		case 0:
			at -= int64(r.IntN(100)) * int64(time.Second) // late, or taken already
		case 1:
			continue
		}
		b.AppendFloat(item, at, float64(r.IntN(1000))/10)
		b.AppendUint(item+100, at, r.Uint64()>>r.IntN(60))
		b.AppendString(item+200, at, model.Text, fmt.Sprint("line ", r.IntN(5)))
	}
	b.Marks = append(b.Marks, model.Mark{Key: fmt.Sprint("session/", second%7), Value: fmt.Sprint(second)})
	return b
}

// TestDB_ReadLog follows a log over restarts of both sides; values, marks and digests are equal whatever the codec.
func TestDB_ReadLog(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 2))
	fsA, fsB := vfs.NewMem(), vfs.NewMem()
	o := smallOptions()
	o.limits.segmentBytes = 64 << 10
	at := model.LSN(0)
	for round := range 6 {
		a, b := openTest(t, fsA, o), openTest(t, fsB, smallOptions())
		for k := range 40 {
			appendWait(t, a, followedBatch(r, round*40+k))
			if k%13 == 0 {
				at = follow(t, a, at, b, 1+r.IntN(100_000))
			}
		}
		at = follow(t, a, at, b, 1)
		if _, err := b.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		b.Marks(func(m model.Mark) {
			if m.Key == "standby" && m.Value != fmt.Sprint(at) {
				t.Errorf("the mark says %s, expected %d", m.Value, at)
			}
		})
		if round == 3 {
			if err := errors.Join(b.ClosePair(ctx), b.buildTiers(ctx)); err != nil {
				t.Fatal(err)
			}
			if p, err := b.Recompress(ctx, everything("zstd:3")); err != nil || p.WrittenPairs == 0 {
				t.Fatalf("%+v %v", p, err)
			}
		}
		one, err := a.Digest(ctx, everyTime)
		if err != nil {
			t.Fatal(err)
		}
		two, err := b.Digest(ctx, everyTime)
		if err != nil || one != two || one.Values == 0 || one.Values != uint64(len(readAllItems(t, a))) {
			t.Fatalf("round %d: %v values %d and %v values %d, %v; a read gives %d", round, one, one.Values, two, two.Values, err, len(readAllItems(t, a)))
		}
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDigest_Add makes the digest of a store from what was sent to it, in another order and in parts.
func TestDigest_Add(t *testing.T) {
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer db.Close()
	b := model.NewBatch()
	b.AppendFloat(2, testBase, 1.5)
	b.AppendFloat(2, testBase+7, -0.1)
	b.AppendUint(1, testBase, 9)
	appendWait(t, db, b)
	var want Digest
	want.Add(&model.Columns{Item: 1, Type: model.Uint, At: []int64{testBase}, Bits: []uint64{9}})
	want.Add(&model.Columns{Item: 2, Type: model.Float, At: []int64{testBase + 7}, Bits: []uint64{math.Float64bits(-0.1)}})
	want.Add(&model.Columns{Item: 2, Type: model.Float, At: []int64{testBase}, Bits: []uint64{math.Float64bits(1.5)}})
	if got, err := db.Digest(context.Background(), everyTime); err != nil || got != want || want.Values != 3 {
		t.Errorf("%v of %d values, expected %v of %d; %v", got, got.Values, want, want.Values, err)
	}
}

func TestDB_Digest_tellsDifferences(t *testing.T) {
	digest := func(fill func(b *model.Batch)) Digest {
		db := openTest(t, vfs.NewMem(), smallOptions())
		defer db.Close()
		b := model.NewBatch()
		b.AppendFloat(1, testBase, 1)
		fill(b)
		appendWait(t, db, b)
		d, err := db.Digest(context.Background(), everyTime)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := map[Digest]int{}
	for i, fill := range []func(b *model.Batch){
		func(*model.Batch) {},
		func(b *model.Batch) { b.AppendFloat(2, testBase, 2) },
		func(b *model.Batch) { b.AppendFloat(2, testBase, 3) },
		func(b *model.Batch) { b.AppendFloat(2, testBase+1, 2) },
		func(b *model.Batch) { b.AppendFloat(3, testBase, 2) },
		func(b *model.Batch) { b.AppendUint(2, testBase, 2) },
		func(b *model.Batch) { b.AppendString(2, testBase, model.Text, "2") },
	} {
		d := digest(fill)
		if other, taken := seen[d]; taken {
			t.Errorf("contents %d and %d have the digest %v", i, other, d)
		}
		seen[d] = i
	}
}

// TestDB_ReadLog_behind asks for what was recycled and for what was never there.
func TestDB_ReadLog_behind(t *testing.T) {
	o := smallOptions()
	o.limits.segmentBytes, o.limits.logFloorBytes, o.limits.logBytes = 64<<10, 256<<10, 512<<10
	db := openTest(t, vfs.NewMem(), o)
	defer db.Close()
	r := rand.New(rand.NewPCG(3, 4))
	for k := 0; db.log.First() == 0; k++ {
		appendWait(t, db, followedBatch(r, k))
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		db.recycle(context.Background())
	}
	for _, lsn := range []model.LSN{0, db.DurableLSN() + 1, db.DurableLSN() - 1, 1 << 60} {
		if b, err := db.ReadLog(lsn, 1000); !errors.Is(err, ErrPosition) {
			t.Errorf("LSN %d of %d to %d gives %d bytes, %v", lsn, db.log.First(), db.DurableLSN(), len(b), err)
		}
	}
	if b, err := db.ReadLog(db.DurableLSN(), 1000); err != nil || len(b) != 0 {
		t.Errorf("behind the end: %d bytes, %v", len(b), err)
	}
}

// TestDB_Synchronous acknowledges only what a standby has, and nothing when it must refuse.
func TestDB_Synchronous(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer db.Close()
	db.Synchronous()
	send := func(second int) (*model.Completion, model.LSN, error) {
		b := model.NewBatch()
		b.AppendFloat(1, testBase+int64(second)*int64(time.Second), 1)
		c := model.NewCompletion()
		b.Done = append(b.Done, c)
		lsn, err := db.Append(ctx, b)
		return c, lsn, err
	}
	finished := func(c *model.Completion) bool {
		select {
		case <-c.Done():
			return true
		default:
			return false
		}
	}
	first, lsn, err := send(1)
	if err != nil {
		t.Fatal(err)
	}
	second, end, err := send(2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sync(ctx); err != nil || finished(first) || finished(second) {
		t.Fatalf("acknowledged without the standby: %v %v, %v", finished(first), finished(second), err)
	}
	db.Replicated(lsn)
	if <-first.Done(); first.Err() != nil || finished(second) {
		t.Fatalf("the standby has the first: %v, the second finished is %v", first.Err(), finished(second))
	}
	alone := errors.New("alone")
	db.Refuse(alone)
	if <-second.Done(); !errors.Is(second.Err(), alone) {
		t.Fatalf("refused with %v", second.Err())
	}
	if _, _, err := send(3); !errors.Is(err, alone) {
		t.Fatalf("taken while refusing: %v", err)
	}
	db.Refuse(nil)
	db.Replicated(end)
	again, _, err := send(2) // a duplicate now
	if err != nil {
		t.Fatal(err)
	}
	if <-again.Done(); again.Err() != nil {
		t.Fatal(again.Err())
	}
	if len(readAllItems(t, db)) != 2 {
		t.Errorf("%d values, expected 2", len(readAllItems(t, db)))
	}
}
