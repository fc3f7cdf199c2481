package dbengine

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
)

const (
	churnRate   = 1000 // new series a second
	churnValues = 10   // of each, one a second
	// churnSteady is what the newest pairs may hold more at the end than after the first quarter, however many series there were before.
	churnSteady = 8 << 20
)

// churn makes new series all the time, each of which stops after some values; its clock is the values' own.
type churn struct {
	db     *DB
	clock  atomic.Int64
	second int
}

// step is one second.
func (c *churn) step(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	now := testBase + int64(c.second)*int64(time.Second)
	c.clock.Store(now)
	defs := make([]storage.ItemDefinition, churnRate)
	for i := range defs {
		id := model.ItemID(1 + c.second*churnRate + i)
		defs[i] = storage.ItemDefinition{ID: id, Type: model.Float, Class: 1, Share: uint64(id / 300)}
	}
	if err := c.db.Define(ctx, defs); err != nil {
		t.Fatal(err)
	}
	b := model.NewBatch()
	defer b.Free()
	for k := max(c.second-churnValues+1, 0); k <= c.second; k++ {
		for i := range churnRate {
			b.AppendFloat(model.ItemID(1+k*churnRate+i), now, float64(i%7)+float64(c.second%3)/4)
		}
	}
	if _, err := c.db.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	if c.second++; c.second%10 == 0 {
		c.db.work(ctx)
	}
}

// held is the heap without what the page cache holds, after the pair that grows was closed and the series that stopped have left.
func (c *churn) held(t *testing.T) int64 {
	t.Helper()
	ctx := context.Background()
	if err := c.db.ClosePair(ctx); err != nil {
		t.Fatal(err)
	}
	c.clock.Add(int64(time.Hour)) // the last ones are silent for long enough
	c.db.work(ctx)
	c.clock.Add(-int64(time.Hour))
	if err := c.db.log.Wait(ctx, c.db.LastLSN()); err != nil {
		t.Fatal(err)
	}
	c.db.cache.Forget(0)
	for _, p := range c.db.pairs.all() {
		c.db.cache.Forget(p.key)
		if x := p.index.Load(); x != nil {
			c.db.cache.Forget(x.key)
		}
	}
	return int64(heap())
}

// TestDB_churn makes 1,000 new series a second, which stop after ten values: a series that stopped takes at most 96 bytes, and what is held while they come and
// go does not grow. The run has the seconds of four minutes; TIDEMARK_CHURN_SECONDS=1800 is half an hour.
func TestDB_churn(t *testing.T) {
	seconds := count(t, "TIDEMARK_CHURN_SECONDS", 240)
	c := &churn{}
	c.clock.Store(testBase)
	quota := int64(4 << 30)
	o := Options{DiskSpaceBytes: quota, PageCacheBytes: 32 << 20, Now: c.clock.Load, Classes: []Class{{}, {}}}
	o.limits = limitsFor(quota)
	o.limits.tick = time.Hour
	if seconds < 1800 { // the same in a shorter time
		o.limits.silentAge, o.limits.idleAge, o.limits.heldSeries = 20*time.Second, 20*time.Second, 1<<14
	}
	db, err := Open(context.Background(), vfs.OS{}, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.db = db
	var most [2]int64 // in the third and in the last quarter
	for range seconds / 4 {
		c.step(t)
	}
	before := c.held(t)
	stopped := -c.second * churnRate
	for k := range seconds / 4 * 3 {
		c.step(t)
		if k >= seconds/4 && k%(seconds/48) == 0 {
			half := 0
			if k >= seconds/2 {
				half = 1
			}
			most[half] = max(most[half], int64(heap())-db.cache.Stats().UsedBytes)
		}
	}
	after := c.held(t)
	stopped += c.second * churnRate
	each := float64(after-before) / float64(stopped)
	t.Logf("%d series came and went: %.1f bytes for each that stopped; at most %d MiB of heap beside the page cache in the third quarter, %d in the last; %d pairs",
		c.second*churnRate, each, most[0]>>20, most[1]>>20, len(db.Pairs()))
	if after-before > 96*int64(stopped)+churnSteady {
		t.Errorf("%.1f bytes for each series that stopped, expected at most 96", each)
	}
	// The heap rises until a pair is closed and falls then; the quarters of a short run have too few pairs to be compared.
	if seconds >= 1800 && most[1] > most[0]+most[0]/5+96*int64(stopped)/3 { // a pair is closed sooner or later
		t.Errorf("%d bytes of heap in the last quarter, %d in the one before", most[1], most[0])
	}
	runtime.KeepAlive(c)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
