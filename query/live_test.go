package query

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/model"
)

func batchOf(rows func(*model.Batch)) *model.Batch {
	b := new(model.Batch)
	rows(b)
	return b
}

func latest(t *testing.T, l *Latest, id model.ItemID) string {
	t.Helper()
	values, err := l.Get(t.Context(), []model.ItemID{id})
	if err != nil {
		t.Fatal(err)
	}
	show := func(v *Value) string {
		switch {
		case v == nil:
			return "-"
		case v.Type.InArena():
			return fmt.Sprintf("%.8s@%d", v.Bytes, v.At)
		}
		return fmt.Sprintf("%v@%d", v.Float(), v.At)
	}
	return strings.TrimSpace(show(values[0].Last) + " " + show(values[0].Previous) + " " + values[0].Reason)
}

func TestLatest_ordersAndSeeds(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Float, time.Second, "")
	f.batches[id].AppendFloat(id, 10, 1)
	f.batches[id].AppendFloat(id, 20, 2)
	l := NewLatest(newTestQuerier(f, time.Unix(1, 0), Options{}))
	l.Observe(batchOf(func(b *model.Batch) { b.AppendFloat(id, 30, 3) }))
	if got := latest(t, l, id); got != "3@30 2@20" {
		t.Errorf("seeded behind a new value: %s", got)
	}
	l.Observe(batchOf(func(b *model.Batch) {
		b.AppendFloat(id, 25, 2.5) // late
		b.AppendFloat(id, 30, 9)
		b.Flags[1] |= model.Duplicate
		b.AppendString(id, 31, model.Unsupported, "no such device")
	}))
	if got := latest(t, l, id); got != "3@30 2.5@25 no such device" {
		t.Errorf("after a late value: %s", got)
	}
	l.Observe(batchOf(func(b *model.Batch) { b.AppendFloat(id, 40, 4) }))
	if got := latest(t, l, id); got != "4@40 3@30" {
		t.Errorf("after recovery: %s", got)
	}
	reads := f.reads
	latest(t, l, id)
	none := f.item(model.Float, time.Second, "")
	latest(t, l, none)
	if got := latest(t, l, none); got != "- -" || f.reads != reads+1 {
		t.Errorf("an item without values: %s, engine asked %d times", got, f.reads-reads)
	}
	if l.LastAt(id) != 40 {
		t.Errorf("last at %d", l.LastAt(id))
	}
	if n := l.Sweep(func(other model.ItemID) bool { return other != id }); n != 1 || l.LastAt(id) != 0 {
		t.Error("the item is not forgotten")
	}
}

func TestLatest_texts(t *testing.T) {
	f := newFakeStore()
	id := f.item(model.Text, time.Second, "")
	l := NewLatest(newTestQuerier(f, time.Unix(1, 0), Options{}))
	put := func(at int64, text string) {
		f.batches[id].AppendString(id, at, model.Text, text)
		l.Observe(batchOf(func(b *model.Batch) { b.AppendString(id, at, model.Text, text) }))
	}
	put(1, "one")
	put(2, "two")
	if got := latest(t, l, id); got != "two@2 one@1" {
		t.Error(got)
	}
	put(3, strings.Repeat("long", 2000))
	values, err := l.Get(t.Context(), []model.ItemID{id})
	if err != nil || len(values[0].Last.Bytes) != 8000 || string(values[0].Previous.Bytes) != "two" {
		t.Errorf("a long text: %d bytes, %v", len(values[0].Last.Bytes), err)
	}
	put(4, "four")
	if got := latest(t, l, id); got != "four@4 longlong@3" {
		t.Error(got)
	}
}

func TestHub_deliversAndDrops(t *testing.T) {
	h := NewHub(nil)
	s, err := h.Subscribe([]model.ItemID{1, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	h.Publish(batchOf(func(b *model.Batch) {
		b.AppendFloat(1, 10, 1)
		b.AppendFloat(3, 10, 3)
		b.AppendString(2, 11, model.Text, "x")
		b.AppendString(2, 11, model.Unsupported, "broken")
	}))
	<-s.Ready()
	updates, problems := s.Take()
	if len(updates) != 2 || updates[0].Item != 1 || string(updates[1].Value.Bytes) != "x" || problems {
		t.Errorf("got %+v, %v", updates, problems)
	}
	for i := range 3 * maxPending {
		h.Publish(batchOf(func(b *model.Batch) { b.AppendFloat(1, int64(i), 1) }))
	}
	updates, _ = s.Take()
	if len(updates) > maxPending || s.Dropped() != uint64(3*maxPending-len(updates)) || updates[len(updates)-1].Value.At != 3*maxPending-1 {
		t.Errorf("%d updates, %d dropped", len(updates), s.Dropped())
	}
	s.SetItems([]model.ItemID{3})
	h.Publish(batchOf(func(b *model.Batch) { b.AppendFloat(1, 1, 1) }))
	h.ProblemsChanged()
	if updates, problems = s.Take(); len(updates) != 0 || !problems {
		t.Errorf("after SetItems: %v %v", updates, problems)
	}
	s.Close()
	s.Close()
	if len(h.byItem) != 0 || len(h.all) != 0 || h.open.Load() != 0 {
		t.Error("the hub keeps a closed subscription")
	}
}

func TestHub_limit(t *testing.T) {
	h := NewHub(nil)
	for range MaxSubscriptions {
		s, err := h.Subscribe(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	if _, err := h.Subscribe(nil); !errors.Is(err, ErrTooManySubscriptions) {
		t.Errorf("error %v", err)
	}
}

func TestHub_concurrent(t *testing.T) {
	h := NewHub(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				s, err := h.Subscribe([]model.ItemID{model.ItemID(i % 3)})
				if err != nil {
					t.Error(err)
					return
				}
				h.Publish(batchOf(func(b *model.Batch) { b.AppendFloat(model.ItemID(i%3), int64(i), 1) }))
				h.ProblemsChanged()
				s.Take()
				s.Close()
			}
		})
	}
	wg.Wait()
}
