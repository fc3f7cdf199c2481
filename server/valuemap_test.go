package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/api/rest"
)

const mappedHost = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"Tests"}],"hosts":[{"host":"web-1","name":"Web","groups":[{"name":"Tests"}],
"inventory_mode":"AUTOMATIC","inventory":{"location":"rack 7"},"valuemaps":[{"name":"mode","mappings":[{"value":"2","newvalue":"standby"}]}],
"items":[{"name":"Mode","type":"TRAP","key":"temperature","valuemap":{"name":"mode"},"inventory_link":"TYPE","triggers":[
{"expression":"last(/web-1/temperature)=2","name":"Mode is {ITEM.VALUE}","priority":"HIGH"}]}]}]}}`

// TestValueMap_story shows a mapped value in items, values, the name of a problem and the inventory of its host.
func TestValueMap_story(t *testing.T) {
	r := run(t, t.TempDir())
	r.call(http.MethodPost, "/api/import", mappedHost, http.StatusUnsupportedMediaType)
	r.importText(mappedHost)
	r.sender("2", time.Now().Unix())
	var items rest.ItemList
	wait(t, "the value", func() bool {
		r.get("/api/items", &items)
		return len(items.Items) == 1 && items.Items[0].Last != nil
	})
	if v := items.Items[0].Last.Value; v.V != "2" || v.Mapped != "standby" {
		t.Errorf("last value %+v", v)
	}
	var values rest.ValueList
	r.get("/api/values?from=1&item="+items.Items[0].ID, &values)
	if len(values.Values) != 1 || values.Values[0].Value.Mapped != "standby" {
		t.Errorf("values %+v", values.Values)
	}
	var host rest.Host
	r.get("/api/hosts/"+items.Items[0].HostID, &host)
	if host.Inventory["location"] != "rack 7" || host.Inventory["type"] != "standby" {
		t.Errorf("inventory %v", host.Inventory)
	}
	var problems rest.ProblemList
	wait(t, "the problem", func() bool { r.get("/api/problems", &problems); return len(problems.Problems) == 1 })
	if name := problems.Problems[0].Name; name != "Mode is standby (2)" {
		t.Errorf("problem %q", name)
	}
}

// importText imports an export in JSON.
func (r *running) importText(text string) {
	r.t.Helper()
	request, err := http.NewRequest(http.MethodPost, r.http+"/api/import", strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		r.t.Fatalf("import: %s", answer.Status)
	}
}
