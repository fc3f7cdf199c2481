package preproc

import (
	"testing"

	"tidemark/model"
)

// remoteItems has one item with a step and a dependent item, which a proxy preprocesses.
type remoteItems struct{ item model.Item }

func (r *remoteItems) Item(model.ItemID) (*model.Item, bool)              { return &r.item, true }
func (r *remoteItems) ItemByKey(model.HostID, string) (*model.Item, bool) { return nil, false }
func (r *remoteItems) Dependents(model.ItemID) []*model.Item              { panic("asked for dependents") }

func (r *remoteItems) Take(_ *model.Item, text []byte, reason string, _ []*model.Completion) {
	r.item.Name = string(text) + reason
}

// What a proxy has preprocessed is converted to the item's type and nothing else; values of discovery rules go to their rules.
func TestProcess_remote(t *testing.T) {
	items := &remoteItems{item: model.Item{
		ID: 1, HostID: 1, ValueType: model.Uint, Remote: true, HasDependents: true, Steps: []model.Step{{Type: model.StepMultiplier, Params: []string{"10"}}},
	}}
	p := New(Options{Items: items, Rules: items})
	b := model.NewBatch()
	b.AppendString(1, 5, model.Raw, "42")
	if p.process(b); b.Len() != 1 || b.Types[0] != model.Uint || b.Bits[0] != 42 {
		t.Errorf("batch: %+v", b)
	}
	items.item.RuleID = 3
	b.Reset()
	b.AppendString(1, 5, model.Raw, "[]")
	if p.process(b); b.Len() != 0 || items.item.Name != "[]" {
		t.Errorf("rule: %d rows, taken %q", b.Len(), items.item.Name)
	}
}
