package proxyconfig

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tidemark/model"
)

// webConfiguration is a host with a web scenario of two steps.
func webConfiguration() (*Configuration, *model.WebScenario) {
	scenario := &model.WebScenario{
		Name: "Shop", Agent: "Zabbix", Proxy: "http://p", Attempts: 3, Variables: []model.Pair{{Name: "{a}", Value: "regex:x"}}, Headers: []model.Pair{{Name: "H", Value: "v: w"}},
		AuthType: "DIGEST", Username: "u", Password: "p", CertFile: "c", KeyFile: "k", KeyPassword: "s", VerifyPeer: true,
		Steps: []model.WebStep{
			{Name: "open", URL: "http://x/", Query: []model.Pair{{Name: "q", Value: "1"}}, Posts: "raw", FollowRedirects: true, Retrieve: "BOTH", TimeoutText: "7s", Required: "ok", StatusCodes: "200"},
			{
				Name: "log in", URL: "http://x/{a}", Form: []model.Pair{{Name: "f", Value: "2"}}, Variables: []model.Pair{{Name: "{b}", Value: "1"}}, Headers: []model.Pair{{Name: "G", Value: "w"}},
				Retrieve: "BODY", TimeoutText: "15s",
			},
		},
	}
	items := []*model.Item{{ID: 20, HostID: 7, Type: model.WebTest, Key: "web.test[Shop]", ValueType: model.Text, Delay: "30s", Collect: &model.Collect{Web: scenario}}}
	for n, path := range []string{"$.fail", "$.error", "$.in", "$.steps[1].rspcode", "$.steps[0].time", "$.steps[1].in"} {
		items = append(items, &model.Item{
			ID: model.ItemID(21 + n), HostID: 7, Type: model.Dependent, Key: fmt.Sprint("k", n), ValueType: model.Uint, MasterID: 20,
			Steps: []model.Step{{Type: model.StepJSONPath, Params: []string{path}, OnFail: model.FailDiscard}},
		})
	}
	items = append(items,
		&model.Item{ID: 40, HostID: 7, Type: model.Dependent, Key: "own", ValueType: model.Text, MasterID: 20, Steps: []model.Step{{Type: model.StepJSONPath, Params: []string{"$"}}}},
		&model.Item{ID: 41, HostID: 7, Type: model.Dependent, Key: "below", ValueType: model.Uint, MasterID: 21})
	return &Configuration{Hosts: []Host{{Host: &model.Host{ID: 7, Host: "db1", Name: "db1"}, Items: items}}}, scenario
}

// A scenario and its items come out as they went in, though the tables of Zabbix have no item that runs the scenario.
func TestWebScenario(t *testing.T) {
	sent, want := webConfiguration()
	body, err := Encode(nil, sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		table  string
		id     float64
		column string
		want   any
	}{
		{"items", 21, "type", 9.0},
		{"items", 21, "master_itemid", nil},
		{"items", 21, "delay", "30s"},
		{"items", 41, "type", 18.0},
		{"items", 41, "master_itemid", 21.0},
		{"httptest", 20, "authentication", 4.0},
		{"httptestitem", 22, "type", 4.0},
		{"httpstep", 20001, "post_type", 0.0},
		{"httpstep", 20002, "post_type", 1.0},
		{"httpstepitem", 24, "httpstepid", 20002.0},
		{"httptest_field", 200001, "name", "H"},
	} {
		if got := cellOf(t, body, c.table, c.id, c.column); got != c.want {
			t.Errorf("%s %v %s: %v, want %v", c.table, c.id, c.column, got, c.want)
		}
	}
	if items, _, _ := strings.Cut(string(body[strings.Index(string(body), `"items":`):]), "]]"); strings.Contains(items, "web.test[Shop]") || strings.Contains(items, `"own"`) {
		t.Errorf("items have what Zabbix has not: %s", items)
	}
	got, err := Decode(body)
	if err != nil || len(got.Hosts) != 1 || len(got.Hosts[0].Items) != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
	var run model.ItemConfig
	paths := map[model.ItemID]string{}
	for _, i := range got.Hosts[0].Items {
		if IsOwn(i.ID) {
			run = i
			continue
		}
		if i.Type != model.Dependent || i.Delay != "0" && i.Delay != "" {
			t.Errorf("item %+v", i)
		}
		if len(i.Steps) == 1 && i.Steps[0].OnFail == model.FailDiscard {
			paths[i.ID] = i.Steps[0].Params[0] + " of " + i.MasterKey
		}
	}
	if run.Type != model.WebTest || run.Delay != "30s" || run.ValueType != model.Binary || !reflect.DeepEqual(run.Collect.Web, want) {
		t.Errorf("scenario %+v, want %+v", run.Collect.Web, want)
	}
	if !reflect.DeepEqual(paths, map[model.ItemID]string{
		21: "$.fail of " + run.Key, 22: "$.error of " + run.Key, 23: "$.in of " + run.Key,
		24: "$.steps[1].rspcode of " + run.Key, 25: "$.steps[0].time of " + run.Key, 26: "$.steps[1].in of " + run.Key,
	}) {
		t.Errorf("items take %v", paths)
	}
}

func TestDecode_webErrors(t *testing.T) {
	const host = `{"hosts":{"fields":["hostid","host"],"data":[[1,"a"]]},`
	f := func(tables, want string) {
		t.Helper()
		if _, err := Decode([]byte(host + tables + "}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tables, err, want)
		}
	}
	f(`"httptest":{"fields":["httptestid","hostid"],"data":[[5,1],[5,1]]}`, "web scenario 5 is there twice")
	f(`"httptest":{"fields":["httptestid","hostid"],"data":[[2305843009213693952,1]]}`, "too large")
	f(`"items":{"fields":["itemid","hostid"],"data":[[2305843009213693953,1]]}`, "too large")
	f(`"httptest":{"fields":["httptestid","hostid"],"data":[[5,1]]},"httpstep":{"fields":["httpstepid","httptestid"],"data":[[6,5],[6,5]]}`, "step 6 of a web scenario is there twice")
}
