package preproc

import (
	"context"
	"testing"

	"tidemark/model"
)

func TestPut_noData(t *testing.T) {
	var quiet map[model.HostID]int64
	sink := &keeping{}
	p := New(Options{Items: twoHosts{}, Sink: sink, NoData: func() map[model.HostID]int64 { return quiet }})
	f := func(want ...int64) {
		t.Helper()
		b := model.NewBatch()
		for at := int64(1); at <= 2; at++ {
			b.AppendFloat(1, at, 1)
			b.AppendFloat(2, 10+at, 1)
		}
		sink.at = nil
		if err := p.Put(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if len(sink.at) != len(want) {
			t.Fatalf("times %v, want %v", sink.at, want)
		}
		for i := range want {
			if sink.at[i] != want[i] {
				t.Errorf("times %v, want %v", sink.at, want)
			}
		}
	}
	f(1, 11, 2, 12)
	quiet = map[model.HostID]int64{1: 2}
	f(1, 11, 12)
	quiet = map[model.HostID]int64{1: 0, 2: 0}
	f()
	quiet = nil
	f(1, 11, 2, 12)
	if n := p.unwanted.Get(); n != 5 {
		t.Errorf("%d unwanted values, want 5", n)
	}
}

// keeping is a Sink that keeps the times of the last batch.
type keeping struct{ at []int64 }

func (k *keeping) Put(_ context.Context, b *model.Batch) error {
	k.at = append(k.at, b.At...)
	return nil
}

// twoHosts has item 1 on host 1 and item 2 on host 2.
type twoHosts struct{}

func (twoHosts) Item(id model.ItemID) (*model.Item, bool) {
	return &model.Item{ID: id, HostID: model.HostID(id), ValueType: model.Float}, true
}
func (twoHosts) ItemByKey(model.HostID, string) (*model.Item, bool) { return nil, false }
func (twoHosts) Dependents(model.ItemID) []*model.Item              { return nil }
