package confcache

import (
	"slices"
	"testing"

	"tidemark/model"
)

func TestSnapshot_dependents(t *testing.T) {
	dependent := func(id model.ItemID, key, master string) model.ItemConfig {
		i := item(id, 1, key)
		i.Type, i.Delay, i.MasterKey = model.Dependent, "0", master
		return i
	}
	s := newSource()
	h := hostConfig(1, "h", dependent(2, "b", "get[{$P}]"), item(1, 1, "get[{$P}]"), dependent(3, "c", "b"), dependent(4, "d", "none"),
		dependent(5, "e", ""), dependent(6, "f", "get[x]"))
	h.Host.Macros = []model.Macro{{Name: "{$P}", Value: "x"}}
	h.Items[5].Enabled = false
	calculated := item(7, 1, "sum")
	calculated.Type, calculated.Params = model.Calculated, "last(//b)*{$P}"
	h.Items = append(h.Items, calculated)
	s.put(h)
	c := New(s, Options{})
	refresh(t, c)
	snap := c.Snapshot()
	ids := func(master model.ItemID) (out []model.ItemID) {
		for _, i := range snap.Dependents(master) {
			out = append(out, i.ID)
			if i.MasterID != master {
				t.Errorf("item %d has master %d, want %d", i.ID, i.MasterID, master)
			}
		}
		return out
	}
	if got := ids(1); !slices.Equal(got, []model.ItemID{2}) {
		t.Errorf("dependents of 1: %v, want 2 (6 is disabled)", got)
	}
	if got := ids(2); !slices.Equal(got, []model.ItemID{3}) {
		t.Errorf("dependents of 2: %v, want 3", got)
	}
	if got := ids(99); got != nil {
		t.Errorf("dependents of an unknown item: %v", got)
	}
	for id, want := range map[model.ItemID]bool{1: true, 2: true, 3: false, 7: false} {
		if i, _ := snap.Item(id); i.HasDependents != want {
			t.Errorf("item %d has dependents: %v, want %v", id, i.HasDependents, want)
		}
	}
	if i, _ := snap.Item(7); i.Params != `last(//b)*x` {
		t.Errorf("formula %q", i.Params)
	}
	var faults []string
	for _, f := range snap.Faults(1) {
		faults = append(faults, f.Object+": "+f.Reason)
	}
	if want := []string{"e: a dependent item without master item", "d: the master item none does not exist"}; !slices.Equal(faults, want) {
		t.Errorf("faults %q, want %q", faults, want)
	}
}
