package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDashboards saves, conflicts, restores, exports, plans and applies over the interface.
func TestDashboards(t *testing.T) {
	r := run(t, t.TempDir())
	must := func(status int, method, path, body string) string {
		t.Helper()
		return r.call(method, path, body, status)
	}
	var head struct {
		ID      string
		Version int
	}
	text := must(200, "POST", "/api/dashboards", `{"dashboard":{"name":"Fleet","widgets":[{"kind":"text","x":0,"y":0,"w":4,"h":2,"text":"one"}]}}`)
	if err := json.Unmarshal([]byte(text), &head); err != nil || head.Version != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	path := "/api/dashboards/" + head.ID
	must(200, "PUT", path, `{"version":1,"note":"second","dashboard":{"name":"Fleet","widgets":[{"kind":"text","x":0,"y":0,"w":4,"h":2,"text":"two"}]}}`)
	conflict := must(409, "PUT", path, `{"version":1,"dashboard":{"name":"Fleet","widgets":[]}}`)
	if !strings.Contains(conflict, "you changed version 1, and version 2 was saved since") || strings.Contains(conflict, "config.db") {
		t.Errorf("conflict: %s", conflict)
	}
	if old := must(200, "GET", path+"?version=1", ""); !strings.Contains(old, `"text":"one"`) || !strings.Contains(old, `"newest":2`) {
		t.Errorf("version 1: %s", old)
	}
	if list := must(200, "GET", path+"/versions", ""); !strings.Contains(list, `"note":"second"`) {
		t.Errorf("versions: %s", list)
	}
	must(422, "POST", "/api/dashboards", `{"dashboard":{"name":"fleet","widgets":[]}}`)
	must(422, "POST", "/api/dashboards", `{"dashboard":{"name":"x","widgets":[{"kind":"pie","x":0,"y":0,"w":1,"h":1}]}}`)
	must(400, "POST", "/api/dashboards", `{"version":3,"dashboard":{"name":"x","widgets":[]}}`)
	must(400, "PUT", path, `{"dashboard":{"name":"Fleet","widgets":[]}}`)
	must(404, "GET", path+"?version=7", "")
	must(404, "GET", "/api/dashboards/999", "")
	must(400, "GET", "/api/dashboards/18446744073709551615", "")

	file := must(200, "GET", "/api/dashboard-file", "")
	if steps := must(200, "POST", "/api/dashboard-file/plan", file); !strings.Contains(steps, `"what":"unchanged"`) {
		t.Errorf("plan of what there is: %s", steps)
	}
	changed := strings.Replace(file, "text: two", "text: three", 1)
	if steps := must(200, "POST", "/api/dashboard-file/plan?replace=true", changed); !strings.Contains(steps, `"what":"change"`) || !strings.Contains(steps, "text: three") {
		t.Errorf("plan of a change: %s", steps)
	}
	if now := must(200, "GET", "/api/dashboard-file", ""); now != file {
		t.Errorf("a plan changed something: %s", now)
	}
	must(200, "PUT", "/api/dashboard-file", changed)
	if now := must(200, "GET", "/api/dashboard-file?name=fleet", ""); now != changed {
		t.Errorf("exported as\n%s\nafter\n%s", now, changed)
	}
	must(422, "PUT", "/api/dashboard-file", "dashboards: [{name: x, colour: red}]")
	must(404, "GET", "/api/dashboard-file?name=none", "")
	must(200, "PUT", "/api/dashboard-file?replace=true", "dashboards: []")
	must(404, "GET", path, "")
}
