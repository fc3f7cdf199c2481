package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/api/rest"
	"tidemark/collect/trapper"
)

// ask sends JSON and reads the answer, whose status must be as wanted.
func (r *running) ask(method, path string, body, into any, status int) {
	r.t.Helper()
	text, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		text = string(encoded)
	}
	request, err := http.NewRequest(method, r.http+path, strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		r.t.Fatalf("%s %s: %s, want %d: %v %s", method, path, answer.Status, status, err, got)
	}
	if into != nil {
		if err := json.Unmarshal(got, into); err != nil {
			r.t.Fatalf("%s %s: %v in %s", method, path, err, got)
		}
	}
}

// yaml is the export of a host as a file.
func (r *running) yaml(host string) string {
	r.t.Helper()
	answer, err := http.Get(r.http + "/api/export?host=" + host)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

const webHost = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"Web servers"}],"hosts":[{"host":"web-1","name":"Web one","groups":[{"name":"Web servers"}],
"interfaces":[{"ip":"127.0.0.1","port":"10050"}],"macros":[{"macro":"{$LIMIT}","value":"10"},{"macro":"{$PASSWORD}","type":"SECRET_TEXT","value":"hunter2"}],
"items":[{"name":"Temperature","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","units":"C","triggers":[
{"expression":"last(/web-1/temperature)>{$LIMIT}","name":"Too warm","priority":"HIGH"}]}]}]}}`

// TestConfigure_story makes a host, changes it as the page, the interface and a file would, and finds the same each time.
func TestConfigure_story(t *testing.T) {
	r := run(t, t.TempDir())
	var made, changed applied
	r.ask("POST", "/api/configuration/hosts", webHost, &made, 200)
	if made.ID == "" || made.Revision == "" {
		t.Fatalf("made %+v", made)
	}
	r.ask("POST", "/api/configuration/hosts", webHost, nil, 422)
	var d document
	r.get("/api/configuration/hosts/web-1", &d)
	if strings.Contains(string(d.Document), "hunter2") {
		t.Error("the document shows a secret")
	}
	before := r.yaml("web-1")

	// What is read and written back changes nothing, and what is changed there is changed in the file.
	r.ask("PUT", "/api/configuration/hosts/web-1?revision="+d.Revision, string(d.Document), &changed, 200)
	if changed.Report.Changed() || changed.Revision != d.Revision || r.yaml("web-1") != before {
		t.Errorf("its own document changes the host: %s", changed.Report)
	}
	next := strings.Replace(string(d.Document), `"units":"C"`, `"units":"F"`, 1)
	var plan applied
	r.ask("POST", "/api/configuration/plan?exact=true", next, &plan, 200)
	if len(plan.Report.Objects) != 1 || plan.Report.Objects[0].Name != "temperature" || r.yaml("web-1") != before {
		t.Errorf("plan %+v", plan.Report.Objects)
	}
	var wrong struct {
		Error struct{ Code, Message string }
	}
	r.ask("POST", "/api/configuration/plan", "{\n\"zabbix_export\": {\n\"version\": ]", &wrong, 400)
	if wrong.Error.Code != "bad_request" || !strings.Contains(wrong.Error.Message, "line 3") {
		t.Errorf("a malformed plan answers %+v", wrong.Error)
	}
	r.ask("PUT", "/api/configuration/hosts/web-1?revision="+d.Revision, next, &changed, 200)
	if after := r.yaml("web-1"); after != strings.Replace(before, "units: C", "units: F", 1) {
		t.Errorf("the file is\n%s", after)
	}
	r.ask("PUT", "/api/configuration/hosts/web-1?revision="+d.Revision, next, nil, 409)
	file := r.yaml("web-1")
	answer, err := http.Post(r.http+"/api/import", "application/yaml", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 200 || r.yaml("web-1") != file {
		t.Error("an import of the export changes the host")
	}

	// Mistakes are named by their field, and nothing is changed.
	var refused struct {
		Report struct{ Remarks []struct{ At, Reason string } }
	}
	r.ask("PUT", "/api/configuration/hosts/web-1", strings.Replace(next, `"value_type":"FLOAT"`, `"value_type":"NUMBER"`, 1), &refused, 422)
	if m := refused.Report.Remarks; len(m) == 0 || m[0].At != "hosts[0].items[0].value_type" {
		t.Errorf("remarks %+v", m)
	}
	r.ask("PUT", "/api/configuration/hosts/web-1", strings.Replace(next, `"host":"web-1"`, `"host":"web-2"`, 1), nil, 400)
	r.ask("PUT", "/api/configuration/hosts/web-9", next, nil, 404)
	if r.yaml("web-1") != file {
		t.Error("a refused document changed the host")
	}

	// The audit log has what became different and no secret.
	var audit struct {
		Entries []struct {
			Action, Object string
			Before, After  json.RawMessage
		}
	}
	r.get("/api/audit", &audit)
	found := false
	for _, e := range audit.Entries {
		found = found || e.Object == "host web-1" && strings.Contains(string(e.After), `"units":"F"`) && strings.Contains(string(e.Before), `"units":"C"`)
		if strings.Contains(string(e.Before)+string(e.After), "hunter2") || strings.Contains(e.Action, "/plan") {
			t.Errorf("audit %s %s %s", e.Action, e.Before, e.After)
		}
	}
	if !found {
		t.Errorf("no entry of the change in %d", len(audit.Entries))
	}
	r.ask("DELETE", "/api/configuration/hosts/web-1", "", nil, 200)
	r.ask("DELETE", "/api/configuration/hosts/web-1", "", nil, 404)
}

func TestConfigure_templates(t *testing.T) {
	r := run(t, t.TempDir())
	var list templateRows
	r.get("/api/configuration", &list)
	if len(list.Templates) == 0 {
		t.Fatal("no templates")
	}
	const text = `{"zabbix_export":{"version":"7.0","template_groups":[{"name":"Templates"}],"templates":[{"template":"Mine","name":"Mine","groups":[{"name":"Templates"}],
"items":[{"uuid":"0123456789ab4def8123456789abcde7","name":"One","type":"TRAP","key":"one","value_type":"FLOAT","preprocessing":[{"type":"MULTIPLIER","parameters":["{$X}"]}]}],"macros":[{"macro":"{$X}","value":"8"}]}]}}`
	r.ask("POST", "/api/configuration/templates", text, nil, 200)
	var d document
	r.get("/api/configuration/templates/Mine", &d)
	var tested itemTested
	// A template without hosts can be tested too, its macros are known.
	r.ask("POST", "/api/configuration/test-item", map[string]any{"document": d.Document, "key": "one", "value": "2"}, &tested, 200)
	if tested.Value != "16" || len(tested.Steps) != 1 {
		t.Errorf("tested %+v", tested)
	}
	r.ask("POST", "/api/configuration/test-item", map[string]any{"document": d.Document, "key": "one"}, nil, 400)
	r.ask("POST", "/api/configuration/test-item", map[string]any{"document": d.Document, "key": "two", "value": "2"}, nil, 404)
	var hosts rest.HostList
	r.get("/api/hosts", &hosts)
	if hosts.Total != 0 {
		t.Errorf("a test made the hosts %+v", hosts.Hosts)
	}
	r.ask("DELETE", "/api/configuration/templates/Mine", "", nil, 200)
}

// TestConfigure_testItem asks for values of items that are not stored yet.
func TestConfigure_testItem(t *testing.T) {
	r := run(t, t.TempDir())
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"temperature":21.5}`) }))
	defer web.Close()
	r.ask("POST", "/api/configuration/hosts", webHost, nil, 200)
	var d document
	r.get("/api/configuration/hosts/web-1", &d)
	items := fmt.Sprintf(`"items":[{"name":"Page","type":"HTTP_AGENT","key":"page","url":%q,"value_type":"TEXT"},
{"name":"Part","type":"DEPENDENT","key":"part","value_type":"FLOAT","master_item":{"key":"page"},"preprocessing":[{"type":"JSONPATH","parameters":["$.temperature"]},{"type":"MULTIPLIER","parameters":["2"]}]},
{"name":"Sum","type":"CALCULATED","key":"sum","params":"1+{$LIMIT}"},`, web.URL)
	text := strings.Replace(string(d.Document), `"items":[`, items, 1)
	try := func(key string) itemTested {
		var out itemTested
		r.ask("POST", "/api/configuration/test-item", map[string]any{"document": json.RawMessage(text), "host": "web-1", "key": key}, &out, 200)
		return out
	}
	if got := try("page"); got.Collected == nil || !strings.Contains(*got.Collected, "21.5") || got.Value != `{"temperature":21.5}` {
		t.Errorf("page: %+v", got)
	}
	if got := try("part"); got.Value != "43" || len(got.Steps) != 2 || got.Steps[0].Value != "21.5" {
		t.Errorf("part: %+v", got)
	}
	if got := try("sum"); got.Value != "11" {
		t.Errorf("sum: %+v", got)
	}
	web.Close()
	if got := try("page"); got.CollectError == "" || got.Error == "" {
		t.Errorf("a page that is gone: %+v", got)
	}
	// Values that come by themselves are not asked for.
	r.ask("POST", "/api/configuration/test-item", map[string]any{"document": d.Document, "host": "web-1", "key": "temperature"}, nil, 400)
}

// TestConfigure_preview shows how often a trigger would have fired, before it is stored.
func TestConfigure_preview(t *testing.T) {
	r := run(t, t.TempDir())
	r.ask("POST", "/api/configuration/hosts", webHost, nil, 200)
	begin := time.Now().Add(-3 * time.Hour).Unix()
	var values []string
	for i := range 40 { // 0 to 39 °C in four waves of ten minutes
		values = append(values, fmt.Sprintf(`{"host":"web-1","key":"temperature","value":"%d","clock":%d}`, i%10*4, begin+int64(i)*60))
	}
	if answer := r.send(`{"request":"sender data","data":[` + strings.Join(values, ",") + `]}`); !strings.Contains(answer, "processed: 40; failed: 0") {
		t.Fatal(answer)
	}
	var d document
	r.get("/api/configuration/hosts/web-1", &d)
	look := func(expression string) preview {
		text := strings.Replace(string(d.Document), `last(/web-1/temperature)\u003e{$LIMIT}`, expression, 1)
		if !strings.Contains(text, expression) {
			t.Fatalf("no expression in %s", text)
		}
		var out preview
		r.ask("POST", "/api/configuration/preview-trigger", map[string]any{"document": json.RawMessage(text), "host": "web-1", "trigger": "Too warm"}, &out, 200)
		return out
	}
	got := look("last(/web-1/temperature)>30")
	if got.Fired != 4 || len(got.Problems) != 4 || got.Values != 40 || len(got.Items) != 1 || got.Items[0].ValuesFrom == nil {
		t.Errorf("preview %+v", got)
	}
	if first := got.Problems[0]; first.From != (begin+8*60)*1000 || first.To == nil || *first.To != (begin+10*60)*1000 {
		t.Errorf("first problem %+v, values begin at %d", first, begin)
	}
	if got = look("last(/web-1/temperature)>{$LIMIT}*5"); got.Fired != 0 {
		t.Errorf("with a macro %+v", got)
	}
	if got = look("avg(/web-1/temperature,10m)>16 and last(/web-1/temperature)>35"); got.Fired != 4 {
		t.Errorf("average %+v", got)
	}
	// Without values for five minutes: once, when the waves are over.
	if got = look("nodata(/web-1/temperature,5m)=1"); got.Fired != 2 || len(got.Problems) != 2 {
		t.Errorf("nodata %+v", got)
	}
}

// TestPurge_story asks twice, and finds no values afterwards.
func TestPurge_story(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.ask("POST", "/api/configuration/hosts", webHost, nil, 200)
	r.sender("5", time.Now().Unix())
	item := func() rest.Item {
		var items rest.ItemList
		r.get("/api/items?search=temperature", &items)
		if len(items.Items) != 1 {
			t.Fatalf("items %+v", items)
		}
		return items.Items[0]
	}
	wait(t, "the value", func() bool { return item().Last != nil })
	before := item()
	var first, second purgeAnswer
	r.ask("POST", "/api/purge", purgeRequest{Host: "web-1"}, &first, 200)
	if first.Purged || first.Token == "" || first.Confirm != "web-1" || first.Items != 1 || item().Last == nil {
		t.Fatalf("first answer %+v", first)
	}
	r.ask("POST", "/api/purge", purgeRequest{Host: "web-1", Token: first.Token, Confirm: "web"}, nil, 400)
	r.ask("POST", "/api/purge", purgeRequest{Host: "web-1", Key: "temperature", Token: first.Token, Confirm: "temperature"}, nil, 409)
	r.ask("POST", "/api/purge", purgeRequest{Host: "web-1", Token: first.Token, Confirm: "web-1"}, &second, 200)
	r.ask("POST", "/api/purge", purgeRequest{Host: "web-1", Token: first.Token, Confirm: "web-1"}, nil, 409)
	after := item()
	if !second.Purged || after.Last != nil || after.ID == before.ID {
		t.Errorf("after the purge %+v: %+v", second, after)
	}
	r.call("GET", "/api/values?from=1&item="+before.ID, "", 404)
	r.auditedPurge()
	var values rest.ValueList
	r.get("/api/values?from=1&item="+after.ID, &values)
	if len(values.Values) != 0 {
		t.Errorf("values %+v", values.Values)
	}
	r.sender("7", time.Now().Unix())
	wait(t, "the next value", func() bool { return item().Last != nil })
	r.stop()
	r = run(t, dir)
	r.get("/api/values?from=1&item="+after.ID, &values)
	if len(values.Values) != 1 {
		t.Errorf("values after a restart %+v", values.Values)
	}
}

// auditedPurge expects of the audit log the request and the deletion of the host's history, once each, and nothing of what was refused.
func (r *running) auditedPurge() {
	r.t.Helper()
	var log rest.AuditList
	r.get("/api/audit?search=purge", &log)
	var got []string
	for _, e := range log.Entries {
		got = append(got, e.Action+": "+e.Object+" "+string(e.Before))
	}
	want := []string{
		`POST /api/purge: history of host web-1 deleted {"items":1}`,
		"POST /api/purge: history of host web-1: asked to be deleted, not yet confirmed null",
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("the audit log has %q, want %q", got, want)
	}
}

// TestPurge_declared purges an item that an agent declared.
func TestPurge_declared(t *testing.T) {
	s := openForTest(t)
	id, _, err := s.db.RegisterHost(t.Context(), "own", "tidemark")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, _ := s.cache.Snapshot().HostByID(id)
	d := &declarer{definitions: s.definitions, engine: s.engine, classes: s.classes, db: s.db, changed: s.itemsChanged, logger: s.logger}
	old, err := d.Declare(t.Context(), id, []trapper.Declaration{{Key: "own.value", Name: "Own", Type: 0, Labels: nil}})
	if err != nil || len(old) != 1 {
		t.Fatal(old, err)
	}
	if err := s.purgeItems(t.Context(), h, old); err != nil {
		t.Fatal(err)
	}
	e, ok := s.catalog.ByKey(id, "own.value")
	if _, there := s.catalog.Item(old[0]); there || !ok || e.ID == old[0] || e.Name != "Own" {
		t.Errorf("the item is %+v, its old id %d is there: %t", e, old[0], there)
	}
}
