package rest

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"tidemark/catalog"
	"tidemark/model"
	"tidemark/wire/queryplan"
)

// TestMongo_plan shows a shape's plan in its profile, and null where nobody asked.
func TestMongo_plan(t *testing.T) {
	f := newFakeServer(t)
	_, from, to := f.watchCapture(t, "crud_go.pcap")
	list := answer[MongoInstanceList](t, f, "/api/mongo/instances")
	span := "instance=" + url.QueryEscape(list.Instances[0].ID) + "&from=" + strconv.FormatInt(from, 10) + "&to=" + strconv.FormatInt(to, 10)
	first := answer[MongoRanking](t, f, "/api/mongo/requests?"+span).Rows[0]
	path := "/api/mongo/requests/" + first.ID + "?" + span
	if p := answer[MongoProfile](t, f, path); p.Plan != nil {
		t.Errorf("a plan that nobody told: %+v", p.Plan)
	}
	entries, _, err := f.catalog.Declare(t.Context(), 1, "db1", []catalog.Declaration{{Key: "mongo.plan[" + list.Instances[0].Address + "," + first.ID + "]", ValueType: model.Text}})
	if err != nil {
		t.Fatal(err)
	}
	batch := model.NewBatch()
	plan := queryplan.Plan{Summary: "COLLSCAN", Stages: []string{"COLLSCAN"}, Scans: true, Trial: &queryplan.Trial{Documents: 50, Keys: 0, Returned: 2}, Hints: []queryplan.Hint{{Key: "{a: 1}", Why: "equality on a"}}}
	batch.AppendBytes(entries[0].ID, from*1e6+1, model.Text, []byte(queryplan.Encode(&plan)))
	if _, err := f.engine.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	p := answer[MongoProfile](t, f, path).Plan
	if p == nil || p.Summary != "COLLSCAN" || !p.Scans || p.Trial == nil || *p.Trial.ExaminedPerReturned != 25 || len(p.Hints) != 1 || p.At != from {
		t.Errorf("plan %+v", p)
	}
	if body := f.do("GET", path, "").Body.String(); strings.Contains(body, `"notes":null`) || strings.Contains(body, `"indexes":null`) {
		t.Errorf("a list is null: %s", body)
	}
}
