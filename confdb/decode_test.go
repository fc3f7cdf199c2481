package confdb

import (
	"os"
	"testing"

	"tidemark/model"
)

// FuzzDecode reads exports without storing them, which is far quicker than FuzzImport.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"template-6.0.yaml", "host-7.0.json", "template-6.4.yaml", "mistakes-7.0.yaml"} {
		src, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("zabbix_export: &a\n  version: '7.0'\n  hosts: [*a]\n"))
	f.Add([]byte(`{"zabbix_export":{"version":"6.0","triggers":[{"name":"n","expression":"last(/h/k[{#A},\"]\"])>{$M:\"}\"}"}]}}`))
	f.Add([]byte(`{"zabbix_export":{"version":"7.0","hosts":[{"host":"h","macros":[{"macro":"{$A}"}],"items":[{"key":1,"tags":{}}]}]}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		r := &Report{}
		x, _, err := decodeExport(src, r, &ImportOptions{Collected: []model.ItemType{model.Trapper}})
		if (x == nil) == (err == nil) {
			t.Fatalf("decodeExport gave %v and %v", x, err)
		}
		if err != nil {
			return
		}
		for _, o := range append(x.templates, x.hosts...) {
			for _, i := range o.items {
				if CheckKey(i.key) != nil {
					t.Errorf("item with the key %q was taken", i.key)
				}
				if _, err := unpackSteps(i.steps); err != nil {
					t.Error(err)
				}
				if _, err := unpackTags(i.tags); err != nil {
					t.Error(err)
				}
			}
		}
		_ = r.String()
	})
}
