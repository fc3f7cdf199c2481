package confdb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tidemark/model"
)

const documentHost = `"templates":[{"template":"T","name":"T","groups":[{"name":"Templates"}],"items":[{"name":"Inherited","key":"inherited","type":"TRAP"}]}],
"hosts":[{"host":"h","name":"Host","groups":[{"name":"A"},{"name":"B"}],"templates":[{"name":"T"}],"tags":[{"tag":"role","value":"db"}],
"macros":[{"macro":"{$KEY}","type":"SECRET_TEXT","value":"hunter2"}],"valuemaps":[{"name":"m","mappings":[{"value":"1","newvalue":"one"}]}],
"items":[{"name":"One","key":"one","type":"TRAP","triggers":[{"name":"High","expression":"last(/h/one)>1","priority":"HIGH"}]},{"name":"Two","key":"two","type":"TRAP"}]}]`

func document(t *testing.T, d *DB) Document {
	t.Helper()
	x, err := d.HostDocument(context.Background(), "h")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestDocument_roundTrip(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	before := document(t, d)
	for name, text := range map[string][]byte{"JSON": before.JSON, "YAML": before.YAML} {
		r, err := d.Import(ctx, name, text, ImportOptions{Exact: true, Strict: true})
		if err != nil || r.Changed() || len(r.Objects) > 0 {
			t.Errorf("the host's own %s changes it: %v %v", name, err, r)
		}
	}
	if after := document(t, d); string(after.YAML) != string(before.YAML) || string(after.JSON) != string(before.JSON) {
		t.Errorf("another document:\n%s\n%s", before.YAML, after.YAML)
	}
	if _, err := d.HostDocument(ctx, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a host that does not exist: %v", err)
	}
}

func TestImport_exact(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	var kept model.ItemID
	for _, i := range hosts(t, d)["h"].Items {
		if i.Key == "one" {
			kept = i.ID
		}
	}
	next := `{"zabbix_export":{"version":"7.0","hosts":[{"host":"h","name":"Host","groups":[{"name":"B"}],"items":[{"name":"One","key":"one","type":"TRAP","delay":"0"}]}]}}`
	plan, err := d.Import(ctx, "plan", []byte(next), ImportOptions{Exact: true, Plan: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := document(t, d); !strings.Contains(string(got.YAML), "two") {
		t.Error("a plan changed the host")
	}
	var list []string
	for _, o := range plan.Objects {
		list = append(list, o.What+" "+o.Kind+" "+o.Name)
	}
	got := strings.Join(list, ", ")
	for _, want := range []string{"updated hosts h", "deleted value maps m", "deleted items two", "deleted triggers High"} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan %q lacks %q", got, want)
		}
	}
	if _, err := d.Import(ctx, "apply", []byte(next), ImportOptions{Exact: true, Strict: true}); err != nil {
		t.Fatal(err)
	}
	h := hosts(t, d)["h"]
	if len(h.Items) != 1 || h.Items[0].Key != "one" || h.Items[0].ID != kept || len(h.Triggers) != 0 || len(h.Host.Groups) != 1 || len(h.Host.Templates) != 0 {
		t.Errorf("the host is %+v with %+v", h.Host, h.Items)
	}
}

func TestImport_strict(t *testing.T) {
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	bad := `{"zabbix_export":{
"version":"7.0","hosts":[{"host":"h","groups":[{"name":"A"}],"items":[
{"key":"fine","type":"TRAP"},
{"name":"No type",
"key":"one two",
"type":"TRAP"}]}]}}`
	var refused *RefusedError
	_, err := d.Import(context.Background(), "bad", []byte(bad), ImportOptions{Exact: true, Strict: true})
	if !errors.As(err, &refused) {
		t.Fatalf("the error is %v", err)
	}
	if m := refused.Report.Remarks; len(m) != 1 || m[0].At != "hosts[0].items[1]" || !m[0].Refused {
		t.Errorf("remarks %+v", m)
	}
	if got := document(t, d); !strings.Contains(string(got.YAML), "two") {
		t.Error("a refused file changed the host")
	}
}

func TestImport_warnings(t *testing.T) {
	d := open(t, t.TempDir())
	text := `{"zabbix_export":{"version":"7.0","hosts":[{"host":"h","groups":[{"name":"A"}],"items":[
{"key":"one","name":"One",
"delay":"often",
"history":"long",
"triggers":[
{"name":"X","expression":"last(/h/none)>1"}]}]}]}}`
	r, err := d.Import(context.Background(), "x", []byte(text), ImportOptions{
		Plan: true, Strict: true, Collected: []model.ItemType{model.PassiveAgent}, Known: func(string, string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, m := range r.Remarks {
		at = append(at, m.At)
	}
	if got := strings.Join(at, " "); got != "hosts[0].items[0].delay hosts[0].items[0].history hosts[0].items[0].triggers[0]" {
		t.Errorf("remarks at %s\n%v", got, r)
	}
}

// Intervals are remarked that the collectors cannot read, and no others.
func TestCheckDelay(t *testing.T) {
	for _, delay := range []string{
		"", "0", "0s", "30", "1m", "1d", "{$DELAY}", "{#DELAY};m/5", "{$DELAY};10s/1-5,09:00-18:00", "0s;m/1", "0;wd1-5h9-18m/15", "md1-7wd1h8,20m/30", "1m;10s/1-5,9:00-18:00;h9",
	} {
		if err := checkDelay(delay); err != nil {
			t.Errorf("%q: %v", delay, err)
		}
	}
	for _, delay := range []string{"often", "1x", "2d", "0s;n/1", "1m;10s/1-5", "{$DELAY};m/0", "1m;s/x"} {
		if checkDelay(delay) == nil {
			t.Errorf("%q is taken for an interval", delay)
		}
	}
}

func TestDraft(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	template := `{"zabbix_export":{"version":"7.0","templates":[{"template":"T","groups":[{"name":"Templates"}],"items":[{"key":"inherited","type":"TRAP","units":"B"},{"key":"new","type":"TRAP"}]}]}}`
	_, h, err := d.Draft(ctx, []byte(template), ImportOptions{Exact: true}, "h")
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	units := ""
	for _, i := range h.Items {
		if i.Key == "inherited" {
			units = i.Units
		}
	}
	if len(h.Items) != 4 || units != "B" {
		t.Errorf("the draft has %d items, units %q", len(h.Items), units)
	}
	if got := hosts(t, d)["h"]; len(got.Items) != 3 {
		t.Errorf("a draft stays: %d items", len(got.Items))
	}
}

func TestDeleteTemplate(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	if err := d.DeleteTemplate(ctx, "T"); err != nil {
		t.Fatal(err)
	}
	if h := hosts(t, d)["h"]; len(h.Items) != 2 || len(h.Host.Templates) != 0 {
		t.Errorf("the host has %d items and templates %v", len(h.Items), h.Host.Templates)
	}
	if err := d.DeleteTemplate(ctx, "T"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestPurge(t *testing.T) {
	ctx := context.Background()
	d := open(t, t.TempDir())
	importText(t, d, documentHost)
	h := hosts(t, d)["h"]
	before := h.Items
	purged, err := d.Purge(ctx, h.Host.ID, []model.ItemID{before[0].ID, 999})
	if err != nil || len(purged) != 1 || purged[before[0].ID] == 0 {
		t.Fatal(purged, err)
	}
	after := hosts(t, d)["h"].Items
	if after[0].Key != before[0].Key || after[0].ID == before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("items %v, before %v", after, before)
	}
}
