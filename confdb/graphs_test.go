package confdb

import (
	"fmt"
	"testing"

	"tidemark/model"
)

// TestGraphs reads the graphs of a host, of its template and of the template that this one is linked with.
func TestGraphs(t *testing.T) {
	d := open(t, t.TempDir())
	graph := func(name, kind, host, key string) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"graph_items":[{"color":"1A7C11","item":{"host":%q,"key":%q}}]}`, name, kind, host, key)
	}
	importText(t, d, `"groups":[{"name":"G"}],"templates":[
		{"template":"Base","name":"Base","groups":[{"name":"G"}],"items":[{"name":"a","type":"TRAP","key":"a","delay":"0"}],
			"discovery_rules":[{"name":"r","key":"r","type":"TRAP","delay":"0","item_prototypes":[{"name":"p","type":"TRAP","key":"p[{#X}]","delay":"0"}],
				"graph_prototypes":[`+graph("Proto {#X}", "NORMAL", "Base", "p[{#X}]")+`]}]},
		{"template":"Upper","name":"Upper","groups":[{"name":"G"}],"templates":[{"name":"Base"}],"items":[{"name":"b","type":"TRAP","key":"b","delay":"0"}]}],
		"hosts":[{"host":"h","name":"h","groups":[{"name":"G"}],"templates":[{"name":"Upper"}]},{"host":"other","name":"other","groups":[{"name":"G"}]}],
		"graphs":[`+graph("Of base", "STACKED", "Base", "a")+`,`+graph("Of upper", "NORMAL", "Upper", "b")+`]`)
	for host, want := range map[string]string{
		"h":     "[{Of base false true [a]} {Of upper false false [b]} {Proto {#X} true false [p[{#X}]]}]",
		"other": "[]",
	} {
		id := hosts(t, d)[host].Host.ID
		list, err := d.Graphs(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(list); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	if list, err := d.Graphs(t.Context(), model.HostID(999)); err != nil || len(list) != 0 {
		t.Errorf("no host: %v, %v", list, err)
	}
}
