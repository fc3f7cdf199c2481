package confdb

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"tidemark/model"
)

const shopYAML = "testdata/web-6.0.yaml"

// A scenario gives a host the items that Zabbix gives it, and a changed one takes and leaves them.
func TestScenario_items(t *testing.T) {
	ctx := context.Background()
	src, err := os.ReadFile(shopYAML)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, t.TempDir())
	types := ImportOptions{Collected: []model.ItemType{model.WebTest}}
	r, err := d.Import(ctx, shopYAML, src, types)
	if err != nil || len(r.Remarks) > 0 {
		t.Fatal(err, r)
	}
	if _, err := d.Import(ctx, "host", []byte(`zabbix_export: {version: '6.0', hosts: [{host: shop, templates: [{name: Shop by web scenario}]}]}`), types); err != nil {
		t.Fatal(err)
	}
	keys := func() map[string]model.ItemConfig {
		found := map[string]model.ItemConfig{}
		for _, i := range hosts(t, d)["shop"].Items {
			found[i.Key] = i
		}
		return found
	}
	got := keys()
	want := []string{
		`web.test["Shop, login"]`, `web.test.error["Shop, login"]`, `web.test.fail["Shop, login"]`, `web.test.in["Shop, login",,bps]`,
		`web.test.in["Shop, login",form,bps]`, `web.test.in["Shop, login",log in,bps]`, `web.test.rspcode["Shop, login",form]`, `web.test.rspcode["Shop, login",log in]`,
		`web.test.time["Shop, login",form,resp]`, `web.test.time["Shop, login",log in,resp]`,
	}
	for _, key := range want {
		if _, ok := got[key]; !ok {
			t.Errorf("there is no item %s", key)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d items, want %d", len(got), len(want))
	}
	run := got[want[0]]
	if run.Type != model.WebTest || run.Delay != "2m" || run.Collect == nil || run.Collect.Web == nil || run.HistoryText != "0" || len(run.Tags) != 1 {
		t.Fatalf("%+v", run)
	}
	w := run.Collect.Web
	if w.Attempts != 2 || w.Agent != "Tester" || w.AuthType != "BASIC" || !w.VerifyPeer || w.VerifyHost || len(w.Steps) != 2 {
		t.Errorf("%+v", w)
	}
	if s := w.Steps[1]; s.FollowRedirects || s.Retrieve != "HEADERS" || s.TimeoutText != "15s" || !slices.Equal(s.Form, []model.Pair{{Name: "token", Value: "{token}"}}) {
		t.Errorf("%+v", s)
	}
	code := got[`web.test.rspcode["Shop, login",log in]`]
	if code.MasterKey != run.Key || code.Type != model.Dependent || code.Steps[0].Params[0] != "$.steps[1].rspcode" || code.ValueType != model.Uint {
		t.Errorf("%+v", code)
	}
	if triggers := hosts(t, d)["shop"].Triggers; len(triggers) != 1 || !strings.Contains(triggers[0].Expression, `/shop/web.test.fail["Shop, login"]`) {
		t.Errorf("%+v", triggers)
	}
	fail := got[`web.test.fail["Shop, login"]`].ID
	less := strings.Replace(string(src), "name: log in", "name: enter", 1)
	if r, err = d.Import(ctx, shopYAML, []byte(less), types); err != nil || r.String() == "" {
		t.Fatal(err)
	}
	got = keys()
	if _, ok := got[`web.test.rspcode["Shop, login",log in]`]; ok || len(got) != len(want) || got[`web.test.fail["Shop, login"]`].ID != fail {
		t.Errorf("after a change of a step: %d items, fail has the id %d, had %d", len(got), got[`web.test.fail["Shop, login"]`].ID, fail)
	}
	at := strings.Index(less, "      httptests:")
	end := strings.Index(less, "      macros:")
	gone := less[:at] + less[end:strings.Index(less, "  triggers:")]
	if _, err = d.Import(ctx, shopYAML, []byte(gone), types); err != nil {
		t.Fatal(err)
	}
	if got = keys(); len(got) != 0 {
		t.Errorf("without scenarios there are %d items", len(got))
	}
}

func TestScenario_mistakes(t *testing.T) {
	f := func(scenario, want string) {
		t.Helper()
		d := open(t, t.TempDir())
		text := `{"zabbix_export": {"version": "6.0", "hosts": [{"host": "h", "httptests": [` + scenario + `]}]}}`
		r, err := d.Import(context.Background(), "file", []byte(text), ImportOptions{Collected: []model.ItemType{model.WebTest}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Remarks) == 0 || !strings.Contains(r.Remarks[0].Reason, want) {
			t.Errorf("%s: %+v, want %s", scenario, r.Remarks, want)
		}
		if n := len(hosts(t, d)["h"].Items); n > 7 {
			t.Errorf("%s: %d items were taken", scenario, n)
		}
	}
	const step = `{"name": "s", "url": "http://a/"}`
	f(`{"name": "w"}`, "0 steps; expected 1 to 250")
	f(`{"name": "w", "attempts": "11", "steps": [`+step+`]}`, "attempts is \"11\"; expected 1 to 10")
	f(`{"name": "w", "authentication": "X", "steps": [`+step+`]}`, `authentication is "X"`)
	f(`{"name": "w", "steps": [`+step+`,`+step+`]}`, "another step has the name s")
	f(`{"name": "w", "steps": [{"name": "s"}]}`, "step s has no url")
	f(`{"name": "w", "steps": [{"name": "s", "url": "a", "retrieve_mode": "X"}]}`, `retrieve_mode is "X"`)
	f(`{"name": "w", "variables": [{"name": "x", "value": "y"}], "steps": [`+step+`]}`, `variable "x"; expected the form {name}`)
	f(`{"name": "w", "steps": [`+step+`]}, {"name": "w", "steps": [`+step+`]}`, "another web scenario has the name")
}
