package confdb

import (
	"testing"

	"tidemark/model"
)

func TestDisplay(t *testing.T) {
	d := open(t, t.TempDir())
	importText(t, d, `"templates":[{"template":"T","name":"T","valuemaps":[{"name":"state","mappings":[{"value":"1","newvalue":"up"},{"type":"DEFAULT","newvalue":"down"}]}],
 "items":[{"key":"a","name":"a","type":"TRAP","valuemap":{"name":"state"},"inventory_link":"OS_FULL"},{"key":"b","name":"b","type":"TRAP","valuemap":{"name":"none"}}]}],
 "hosts":[{"host":"h","templates":[{"name":"T"}],"inventory_mode":"AUTOMATIC","inventory":{"location":"here"},"valuemaps":[{"name":"state","mappings":[{"type":"IN_RANGE","value":"1-2","newvalue":"own"}]}],
 "items":[{"key":"c","name":"c","type":"TRAP","valuemap":{"name":"state"}}]}]`)
	h := hosts(t, d)["h"]
	if got := h.Host.Inventory.Get("location"); got != "here" || !h.Host.AutomaticInventory {
		t.Errorf("inventory %v, automatic %v", h.Host.Inventory, h.Host.AutomaticInventory)
	}
	f := func(key, value, want, field string) {
		t.Helper()
		for _, i := range h.Items {
			if i.Key != key {
				continue
			}
			if got, _ := i.ValueMap.Map(value, true); got != want || i.InventoryField != field {
				t.Errorf("%s: %s is %q, want %q; fills %q, want %q", key, value, got, want, i.InventoryField, field)
			}
		}
	}
	f("a", "1", "up", "os_full")
	f("a", "2", "down", "os_full")
	f("b", "1", "", "")
	f("c", "2", "own", "")
	if len(h.Items) != 3 {
		t.Errorf("%d items", len(h.Items))
	}
	for text, want := range map[string]model.Labels{
		`{"inventory_mode":"DISABLED","inventory":{"a":"b"}}`: nil, `{"inventory":{"b":"2","a":"1","inventory_mode":"AUTOMATIC"}}`: {{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
	} {
		fields, automatic, err := unpackInventory(text)
		if err != nil || len(fields) != len(want) || automatic != (want != nil) {
			t.Errorf("%s: %v %v %v", text, fields, automatic, err)
		}
	}
}
