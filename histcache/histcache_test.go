package histcache

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"tidemark/model"
)

func batch(values ...uint64) *model.Batch {
	b := model.NewBatch()
	for _, v := range values {
		b.AppendUint(1, int64(v), v)
	}
	return b
}

func TestOrderAndMerge(t *testing.T) {
	c := New(Options{TakeValues: 4})
	ctx := context.Background()
	for i := range 5 {
		if err := c.Put(ctx, batch(uint64(2*i), uint64(2*i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(ctx, batch(1)); !errors.Is(err, ErrClosed) {
		t.Fatalf("Put after Close: %v, want ErrClosed", err)
	}
	var got []uint64
	for {
		b, size, err := c.Take(ctx)
		if errors.Is(err, ErrClosed) {
			break
		}
		if b.Len() > 4 {
			t.Errorf("took %d values, want at most 4", b.Len())
		}
		got = append(got, b.Bits...)
		c.Done(size)
	}
	for i, v := range got {
		if v != uint64(i) {
			t.Fatalf("order %v", got)
		}
	}
	if len(got) != 10 {
		t.Fatalf("got %d values, want 10", len(got))
	}
	if used, _ := c.Used(); used != 0 {
		t.Errorf("%d bytes in use after all are done", used)
	}
}

func TestPutBlocksWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{LimitBytes: 700})
		ctx := context.Background()
		if err := c.Put(ctx, batch(1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Put(ctx, batch(2)); err != nil {
			t.Fatal(err)
		}
		canceled, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Put(canceled, batch(9)); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled Put: %v", err)
			}
		})
		done := false
		wg.Go(func() {
			if err := c.Put(ctx, batch(3)); err != nil {
				t.Error(err)
			}
			done = true
		})
		synctest.Wait()
		if done {
			t.Error("Put did not block at the limit")
		}
		cancel()
		synctest.Wait()
		b, size, err := c.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if done {
			t.Error("Put went on before Done; taken values still count")
		}
		b.Free()
		c.Done(size)
		wg.Wait()
		if !done {
			t.Error("Put did not go on after Done")
		}
	})
}

func TestEmptyBatchTravels(t *testing.T) {
	c := New(Options{})
	done := model.NewCompletion()
	b := model.NewBatch()
	b.Done = append(b.Done, done)
	if err := c.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	got, _, err := c.Take(context.Background())
	if err != nil || len(got.Done) != 1 {
		t.Fatalf("took %v with %d completions, want 1", err, len(got.Done))
	}
}
