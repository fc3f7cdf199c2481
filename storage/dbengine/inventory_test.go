package dbengine

import (
	"context"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/dbengine/header"
)

func TestDB_pairs(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, vfs.NewMem(), smallOptions())
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	write := func(from, count int) {
		for k := range count {
			b := model.NewBatch()
			for item := model.ItemID(1); item <= 10; item++ {
				b.AppendFloat(item, testBase+int64(from+k)*int64(time.Second), float64(item)+float64(k)*0.25)
			}
			appendWait(t, db, b)
		}
	}
	write(0, 300)
	if err := db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.buildTiers(ctx); err != nil {
		t.Fatal(err)
	}
	write(300, 50)
	if err := db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	bytes, values, open := int64(0), uint64(0), 0
	seen := map[header.Tier]int{}
	for _, p := range db.Pairs() {
		seen[p.Tier]++
		bytes += p.Bytes
		values += p.Values
		if p.Open {
			open++
		}
		if p.Bytes <= 0 || p.Pages <= 0 {
			t.Errorf("%s takes %d bytes and has %d pages", p.Name, p.Bytes, p.Pages)
		}
		if p.From < testBase-int64(time.Hour) || p.To < p.From || p.To >= testBase+350*int64(time.Second) {
			t.Errorf("%s of %v holds %d to %d, written were %d and 350 s more", p.Name, p.Tier, p.From, p.To, testBase)
		}
		if (p.Tier == header.Raw) != (p.Values > 0) {
			t.Errorf("%s of %v has %d values", p.Name, p.Tier, p.Values)
		}
	}
	if values != 3500 {
		t.Errorf("the pairs have %d values, written were 3500", values)
	}
	if open != 1 || seen[header.Raw] < 2 || seen[header.Minute] == 0 || seen[header.Hour] == 0 {
		t.Errorf("%d grow, by tier %v; expected one to grow, two of values or more, and some of each tier", open, seen)
	}
	log, limit := db.LogBytes()
	if used := db.Stats().DiskBytes; bytes+log > used || log <= 0 || log > limit {
		t.Errorf("pairs take %d and the log %d of %d bytes, all together %d", bytes, log, limit, used)
	}
	if got := db.TierLimitBytes(header.Raw); got != smallOptions().DiskSpaceBytes {
		t.Errorf("values may take %d bytes", got)
	}
}
