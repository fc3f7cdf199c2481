package dbengine

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// TestDB_Classes fills a store with values of each class, whose numbers are known, and adds up what each takes.
func TestDB_Classes(t *testing.T) {
	ctx := context.Background()
	o := smallOptions()
	o.limits.pageValues, o.MinuteShare, o.HourShare = 200, -1, -1
	db := openTest(t, vfs.NewMem(), o)
	if list, err := db.Classes(ctx); err != nil || len(list) != 0 {
		t.Fatalf("an empty store has %+v, %v", list, err)
	}
	r := rand.New(rand.NewPCG(1, 9))
	const rounds = 400
	for n := range rounds {
		b := &model.Batch{}
		at := storagetest.Base + int64(n)*int64(time.Second)
		b.AppendUint(1, at, 7)                         // stays the same
		b.AppendUint(2, at, uint64(n)*3)               // grows evenly
		b.AppendUint(3, at, uint64(r.IntN(1_000_000))) // varies
		b.AppendFloat(4, at, r.NormFloat64())
		b.AppendString(5, at, model.Text, "a text of some length")
		b.AppendBytes(6, at, model.Binary, []byte{byte(n), byte(n >> 8), 1, 2})
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"", "none", "zstd:3"} {
		if codec != "" {
			again := everything(codec)
			again.Again = true
			if _, err := db.Recompress(ctx, again); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Classes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		found, total := map[ItemClass]ClassUse{}, int64(0)
		for i, u := range list {
			found[u.ItemClass] = u
			total += u.Bytes
			if i > 0 && u.Bytes > list[i-1].Bytes {
				t.Errorf("%q: not in the order of size: %+v", codec, list)
			}
		}
		for c, want := range map[ItemClass]uint64{
			{Type: model.Uint, Steady: true}: 2 * rounds, {Type: model.Uint}: rounds, {Type: model.Float}: rounds, {Type: model.Text}: rounds, {Type: model.Binary}: rounds,
		} {
			if found[c].Values != want || found[c].Bytes <= 0 {
				t.Errorf("%q: %+v: %+v, expected %d values", codec, c, found[c], want)
			}
		}
		if all := db.Pairs()[0].Bytes; total > all || total < all/4 {
			t.Errorf("%q: the classes take %d bytes, the pair %d", codec, total, all)
		}
		if steady, varies := found[ItemClass{model.Uint, true}], found[ItemClass{Type: model.Float}]; steady.Bytes*2 > varies.Bytes {
			t.Errorf("%q: %d values that do not change take %d bytes, %d that do %d", codec, steady.Values, steady.Bytes, varies.Values, varies.Bytes)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
