package dbengine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/extent"
	"tidemark/storage/storagetest"
)

// TestDB_recompressFolds puts late values into the pages where they belong, and keeps those that belong to another pair.
func TestDB_recompressFolds(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewMem()
	db := openTest(t, fsys, tinyOptions())
	second := int64(1_000_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	want := 0
	for n := int64(0); n < 300; n++ {
		b := &model.Batch{}
		for item := model.ItemID(1); item <= 8; item++ {
			b.AppendUint(item, storagetest.Base+n*10*second, uint64(r.IntN(1000)))
			if n%5 == 4 {
				b.AppendUint(item, storagetest.Base+(n-int64(r.IntN(60)))*10*second-second*int64(1+r.IntN(9)), uint64(r.IntN(1000)))
			}
		}
		want += b.Len()
		if err := appendAll(db, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(ctx), db.buildTiers(ctx)); err != nil {
		t.Fatal(err)
	}
	contents := func() string {
		var text strings.Builder
		n := 0
		for item := model.ItemID(1); item <= 8; item++ {
			values := storagetest.Collect(t, db, storagetest.All(item))
			n += len(values)
			fmt.Fprintln(&text, values)
		}
		return fmt.Sprint(n, "\n", text.String())
	}
	before := contents()
	done, err := db.Recompress(ctx, everything("none"))
	if err != nil || done.FoldedValues == 0 || done.WrittenPairs == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if after := contents(); after != before {
		t.Errorf("before %.300s\nafter %.300s", before, after)
	}
	if again, err := db.Recompress(ctx, everything("none")); err != nil || again.Pairs != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFolding checks that folding keeps every value, of all types and mixtures.
func TestFolding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var f folding
	for range 300 {
		var pages []coldPage
		want := map[string]int{}
		at := int64(0)
		mixed := r.IntN(4) == 0
		kinds := []model.ValueType{model.Float, model.Uint}
		kind := kinds[r.IntN(2)]
		for range 1 + r.IntN(6) {
			if mixed {
				kind = kinds[r.IntN(2)]
			}
			pages = append(pages, randomPage(r, kind, extent.Values, &at))
		}
		for range r.IntN(4) {
			late := int64(r.IntN(int(at)))
			pages = append(pages, randomPage(r, kind, extent.Late, &late))
		}
		tally := func(p *extent.Page, by int) {
			var d decoded
			if err := d.decode(p); err != nil {
				t.Fatal(err)
			}
			for i := range d.at {
				if i > 0 && d.at[i] <= d.at[i-1] {
					t.Fatalf("page of kind %d falls at %d", p.Kind, i)
				}
				want[fmt.Sprint(d.valueType, d.at[i], d.bits[i])] += by
			}
		}
		for i := range pages {
			tally(&pages[i].Page, 1)
		}
		out, err := f.item(pages)
		if err != nil {
			t.Fatal(err)
		}
		last := int64(-1)
		for i := range out {
			tally(&out[i].Page, -1)
			if out[i].Kind == extent.Values {
				if out[i].From <= last {
					t.Fatal("pages of values overlap")
				}
				last = out[i].To
			}
		}
		for value, n := range want {
			if n != 0 {
				t.Fatalf("%s is there %d times too little", value, n)
			}
		}
	}
}

func randomPage(r *rand.Rand, t model.ValueType, kind uint8, at *int64) coldPage {
	d := decoded{valueType: t}
	for range 1 + r.IntN(20) {
		*at += 1 + int64(r.IntN(3))
		d.at, d.bits = append(d.at, *at), append(d.bits, uint64(r.IntN(50))<<52)
	}
	var f folding
	f.emit(&d, kind, 7)
	return f.out[0]
}
