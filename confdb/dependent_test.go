package confdb

import (
	"testing"
)

func TestImport_keepsMastersAndFormulas(t *testing.T) {
	d := open(t, t.TempDir())
	importText(t, d, `"templates":[{"template":"t","items":[
		{"name":"get","key":"get","type":"TRAP"},
		{"name":"part","key":"part","type":"DEPENDENT","master_item":{"key":"get"}},
		{"name":"sum","key":"sum","type":"CALCULATED","params":"last(//part)*2"}]}],
		"hosts":[{"host":"h","templates":[{"name":"t"}],"items":[{"name":"own","key":"own","type":"DEPENDENT","master_item":{"key":"part"}}]}]`)
	got := map[string][2]string{}
	for _, i := range hosts(t, d)["h"].Items {
		got[i.Key] = [2]string{i.MasterKey, i.Params}
	}
	want := map[string][2]string{"get": {}, "part": {"get", ""}, "sum": {"", "last(//part)*2"}, "own": {"part", ""}}
	for key, w := range want {
		if got[key] != w {
			t.Errorf("item %s has master and formula %q, want %q", key, got[key], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d items, want %d", len(got), len(want))
	}
}
