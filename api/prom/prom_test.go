package prom

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/query"
	tidepromql "tidemark/query/promql"
	"tidemark/storage/memory"
)

// start is the time of the first value.
const start = 1_790_000_000

type fakeServer struct {
	hosts    []*model.Host
	triggers []*model.Trigger
	problems []model.Problem
	handler  http.Handler
	api      *API
}

func (f *fakeServer) HostByID(id model.HostID) (*model.Host, bool) {
	i := slices.IndexFunc(f.hosts, func(h *model.Host) bool { return h.ID == id })
	if i < 0 {
		return nil, false
	}
	return f.hosts[i], true
}
func (f *fakeServer) Hosts() iter.Seq[*model.Host]       { return slices.Values(f.hosts) }
func (f *fakeServer) Triggers() iter.Seq[*model.Trigger] { return slices.Values(f.triggers) }
func (f *fakeServer) Open() []model.Problem              { return f.problems }
func (f *fakeServer) State(id model.TriggerID) (model.TriggerState, bool) {
	return model.TriggerState{TriggerID: id, Error: map[model.TriggerID]string{2: "no value"}[id]}, id < 3
}

// newFakeServer has a gauge and a counter on two hosts, one value a second for a minute.
func newFakeServer(t testing.TB, series int) *fakeServer {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), mem, "/data/catalog", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	now := func() time.Time { return time.Unix(start+60, 0) }
	engine := memory.New(memory.Options{Now: func() int64 { return now().UnixNano() }})
	for host := range 2 {
		decls := []catalog.Declaration{
			{Key: "system.cpu.util", Name: "CPU", Units: "%", Interval: time.Second},
			{
				Key: "net.if.in[eth0]", Help: "Bytes <received>.", Units: "B", ValueType: model.Uint, Interval: time.Second,
				Labels: model.Labels{{Name: "type", Value: "counter"}, {Name: "{#IFNAME}", Value: "eth0"}},
			},
			{Key: "system.uname", ValueType: model.Text},
		}
		for i := range series {
			decls = append(decls, catalog.Declaration{Key: fmt.Sprintf("bench[%d]", i), Interval: time.Second})
		}
		entries, _, err := c.Declare(t.Context(), model.HostID(host+1), fmt.Sprintf("db%d", host+1), decls)
		if err != nil {
			t.Fatal(err)
		}
		b := model.NewBatch()
		for i := range int64(60) {
			at := (start+i)*1e9 + 123e6
			b.AppendFloat(entries[0].ID, at, float64(i)/4)
			b.AppendUint(entries[1].ID, at, uint64(i)*1000)
			for _, e := range entries[3:] {
				b.AppendFloat(e.ID, at, float64(i))
			}
		}
		if _, err := engine.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	f := &fakeServer{
		hosts: []*model.Host{{ID: 1, Host: "db1"}, {ID: 2, Host: "db2"}},
		triggers: []*model.Trigger{
			{ID: 1, HostID: 1, Name: "Load", Severity: model.High, Expression: "last(/db1/x)>1", Enabled: true, Comments: "Look."},
			{ID: 2, HostID: 2, Name: "Disk", Severity: model.Warning, Enabled: true},
			{ID: 3, HostID: 2, Name: "Off"},
		},
		problems: []model.Problem{{Event: model.Event{
			ID: 9, TriggerID: 1, HostID: 1, At: start * 1e9, Severity: model.High, Name: "Load", OpData: "3",
			Tags: []model.Tag{{Name: "scope", Value: "performance"}, {Name: "host", Value: "x"}},
		}}},
	}
	querier := query.New(engine, c, query.Options{Now: now})
	f.api = New(Options{
		Engine: tidepromql.New(querier, tidepromql.Options{}), Catalog: c, Configuration: func() Configuration { return f },
		Problems: f, Version: "0.1.0", Now: now,
	})
	f.handler = api.NewHandler(f.api.Routes(), nil, api.Options{})
	return f
}

func (f *fakeServer) do(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	if method == http.MethodGet && len(form) > 0 {
		r.URL.RawQuery = form.Encode()
	} else {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Host = "localhost"
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// values makes a form of name, value, name, value, ….
func values(pairs ...string) url.Values {
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return form
}

func TestAnswers(t *testing.T) {
	f := newFakeServer(t, 0)
	for _, c := range []struct {
		path string
		form url.Values
		want string
	}{
		{
			"/api/v1/query", values("query", `timestamp(system_cpu_util{host="db1"})`),
			`{"resultType":"vector","result":[{"metric":{"host":"db1","key":"system.cpu.util"},"value":[1790000060,"1790000059.123"]}]}`,
		},
		{
			"/api/v1/query", values("query", `system_cpu_util{host="db1"}`, "time", "1790000030.5"),
			`{"resultType":"vector","result":[{"metric":{"__name__":"system_cpu_util","host":"db1","key":"system.cpu.util"},"value":[1790000030.500,"7.5"]}]}`,
		},
		{"/api/v1/query", values("query", `sum(rate(net_if_in[30s]))`), `{"resultType":"vector","result":[{"metric":{},"value":[1790000060,"2000"]}]}`},
		{"/api/v1/query", values("query", "1/0", "time", "-1.25"), `{"resultType":"scalar","result":[-1.250,"+Inf"]}`},
		{"/api/v1/query", values("query", `"a<b"`, "time", "2026-09-21T16:53:20Z"), `{"resultType":"string","result":[1790009600,"a\u003cb"]}`},
		{
			"/api/v1/query", values("query", `net_if_in{host="db2"}[2s]`),
			`{"resultType":"matrix","result":[{"metric":{"__name__":"net_if_in","host":"db2","ifname":"eth0","key":"net.if.in[eth0]","type":"counter"},"values":[[1790000058.123,"58000"],[1790000059.123,"59000"]]}]}`,
		},
		{"/api/v1/query", values("query", "nothing"), `{"resultType":"vector","result":[]}`},
		{
			"/api/v1/query_range", values("query", `sum by (host) (system_cpu_util)`, "start", "1790000010", "end", "1790000020", "step", "5s"),
			`{"resultType":"matrix","result":[{"metric":{"host":"db1"},"values":[[1790000010,"2.25"],[1790000015,"3.5"],[1790000020,"4.75"]]},{"metric":{"host":"db2"},"values":[[1790000010,"2.25"],[1790000015,"3.5"],[1790000020,"4.75"]]}]}`,
		},
		{
			"/api/v1/query_range", values("query", "vector(0)/0", "start", "0", "end", "1", "step", "1"),
			`{"resultType":"matrix","result":[{"metric":{},"values":[[0,"NaN"],[1,"NaN"]]}]}`,
		},
		{"/api/v1/labels", nil, `["__name__","host","ifname","key","type"]`},
		{"/api/v1/labels", values("match[]", "system_cpu_util"), `["__name__","host","key"]`},
		{"/api/v1/label/__name__/values", nil, `["net_if_in","system_cpu_util"]`},
		{"/api/v1/label/host/values", values("match[]", `{host=~"db1|db9"}`, "match[]", "nothing"), `["db1"]`},
		{"/api/v1/label/U__a_2e_b/values", nil, `[]`},
		{
			"/api/v1/series", values("match[]", `net_if_in{host="db1"}`, "match[]", `{host="db1",type="counter"}`),
			`[{"__name__":"net_if_in","host":"db1","ifname":"eth0","key":"net.if.in[eth0]","type":"counter"}]`,
		},
		{"/api/v1/metadata", nil, `{"net_if_in":[{"type":"counter","help":"Bytes \u003creceived\u003e.","unit":"B"}],"system_cpu_util":[{"type":"unknown","help":"CPU","unit":"%"}]}`},
		{"/api/v1/metadata", values("metric", "absent"), `{}`},
		{"/api/v1/query_exemplars", values("query", "up", "start", "1", "end", "2"), `[]`},
		{"/api/v1/format_query", values("query", "sum (x)by(y)"), `"sum by (y) (x)"`},
		{"/api/v1/alerts", nil, `{"alerts":[{"labels":{"alertname":"Load","exported_host":"x","host":"db1","scope":"performance","severity":"high"},"annotations":{"opdata":"3"},"state":"firing","activeAt":"2026-09-21T14:13:20Z","value":"1"}]}`},
		{"/api/v1/rules", values("type", "record"), `{"groups":[]}`},
	} {
		w := f.do(http.MethodGet, c.path, c.form)
		if want := `{"status":"success","data":` + c.want + `}`; w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s %v:\n got %d %s\nwant %s", c.path, c.form, w.Code, w.Body, want)
		}
		if c.form == nil || strings.Contains(c.path, "/label/") || strings.HasSuffix(c.path, "/metadata") || strings.HasSuffix(c.path, "/rules") {
			continue
		}
		if post := f.do(http.MethodPost, c.path, c.form); post.Body.String() != w.Body.String() {
			t.Errorf("POST %s differs from GET: %s", c.path, post.Body)
		}
	}
}

func TestLimitAndWarnings(t *testing.T) {
	f := newFakeServer(t, 0)
	for path, form := range map[string]url.Values{
		"/api/v1/query":                 values("query", "system_cpu_util", "limit", "1"),
		"/api/v1/labels":                values("limit", "1"),
		"/api/v1/label/__name__/values": values("limit", "1"),
		"/api/v1/series":                values("limit", "1", "match[]", "system_cpu_util"),
	} {
		w := f.do(http.MethodGet, path, form)
		if w.Code != 200 || !strings.HasSuffix(w.Body.String(), `,"warnings":["results truncated due to limit"]}`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := f.do(http.MethodGet, "/api/v1/query", values("query", "rate(system_cpu_util[10s])"))
	if !strings.Contains(w.Body.String(), `"infos":["PromQL info: metric might not be a counter`) {
		t.Errorf("no info: %s", w.Body)
	}
}

func TestErrors(t *testing.T) {
	f := newFakeServer(t, 0)
	for _, c := range []struct {
		path string
		form url.Values
		want string
	}{
		{"/api/v1/query", nil, "400 bad_data"},
		{"/api/v1/query", values("query", "sum("), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "time", "soon"), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "time", "NaN"), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "time", "1e300"), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "timeout", "-1s"), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "limit", "-1"), "400 bad_data"},
		{"/api/v1/query", values("query", "1", "lookback_delta", "1000h"), "400 bad_data"},
		{"/api/v1/query", values("query", "label_replace(system_cpu_util, \"a\", \"$1\", \"b\", \"(\")"), "422 execution"},
		{"/api/v1/query", values("query", "system_cpu_util", "timeout", "0.000000001"), "503 timeout"},
		{"/api/v1/query_range", values("query", "1", "start", "1", "end", "2"), "400 bad_data"},
		{"/api/v1/query_range", values("query", "1", "start", "1", "end", "2", "step", "0"), "400 bad_data"},
		{"/api/v1/query_range", values("query", "1", "start", "2", "end", "1", "step", "1"), "400 bad_data"},
		{"/api/v1/query_range", values("query", "1", "start", "0", "end", "11001", "step", "1"), "400 bad_data"},
		{"/api/v1/series", nil, "400 bad_data"},
		{"/api/v1/series", values("match[]", "{}"), "400 bad_data"},
		{"/api/v1/series", values("match[]", `{a=~".*"}`), "400 bad_data"},
		{"/api/v1/labels", values("start", "5", "end", "1"), "400 bad_data"},
		{"/api/v1/label/%FF/values", nil, "400 bad_data"},
		{"/api/v1/metadata", values("limit", "x"), "400 bad_data"},
		{"/api/v1/rules", values("type", "x"), "400 bad_data"},
		{"/api/v1/rules", values("group_next_token", "!"), "400 bad_data"},
		{"/api/v1/query_exemplars", values("query", "("), "400 bad_data"},
		{"/api/v1/format_query", values("query", "("), "400 bad_data"},
	} {
		w := f.do(http.MethodGet, c.path, c.form)
		var body struct{ Status, ErrorType, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d %s", w.Code, body.ErrorType); got != c.want || body.Status != "error" || body.Error == "" {
			t.Errorf("%s %v: %s %s, want %s", c.path, c.form, got, w.Body, c.want)
		}
	}
	if w := f.do(http.MethodGet, "/api/v1/query_range", values("query", "1", "start", "0", "end", "11000", "step", "1")); w.Code != 200 {
		t.Errorf("11,000 points: %d %s", w.Code, w.Body)
	}
}

func TestRules(t *testing.T) {
	f := newFakeServer(t, 0)
	var body struct {
		Data struct {
			Groups         []group
			GroupNextToken string
		}
	}
	if err := json.Unmarshal(f.do(http.MethodGet, "/api/v1/rules", values("group_limit", "1")).Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	g := body.Data.Groups
	if len(g) != 1 || g[0].Name != "db1" || len(g[0].Rules) != 1 || g[0].Rules[0].State != "firing" || g[0].Rules[0].Health != "ok" || len(g[0].Rules[0].Alerts) != 1 {
		t.Errorf("first page %+v", g)
	}
	w := f.do(http.MethodGet, "/api/v1/rules", values("group_next_token", body.Data.GroupNextToken))
	body.Data.GroupNextToken = ""
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	g = body.Data.Groups
	if len(g) != 1 || g[0].Name != "db2" || len(g[0].Rules) != 1 || g[0].Rules[0].LastError != "no value" || body.Data.GroupNextToken != "" {
		t.Errorf("second page %s", w.Body)
	}
}

func TestBuildInfo(t *testing.T) {
	w := newFakeServer(t, 0).do(http.MethodGet, "/api/v1/status/buildinfo", nil)
	if !strings.Contains(w.Body.String(), `"version":"3.16.0"`) || !strings.Contains(w.Body.String(), "tidemark 0.1.0") {
		t.Errorf("%s", w.Body)
	}
}

// TestEncode_isReadBack encodes results of all kinds with awkward values and reads them as JSON.
func TestEncode_isReadBack(t *testing.T) {
	large := promql.Matrix{{}}
	for i := range int64(20_000) {
		large[0].Floats = append(large[0].Floats, promql.FPoint{T: i, F: math.Sqrt(float64(i))})
	}
	for _, v := range []parser.Value{large, promql.Matrix{}, promql.Vector{{T: -1, F: math.Inf(-1)}}, promql.Scalar{T: math.MaxInt64, V: 5e-324}, promql.String{V: "\x00\xff\"\\é"}} {
		w := httptest.NewRecorder()
		writeResult(w, v, []string{"a\nb"}, nil)
		var body struct {
			Data struct {
				ResultType string
				Result     any
			}
			Warnings []string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%v in %.200s", err, w.Body)
		}
		if body.Data.ResultType != string(v.Type()) || body.Warnings[0] != "a\nb" {
			t.Errorf("%s: %+v", v.Type(), body)
		}
	}
}

func FuzzForm(f *testing.F) {
	s := newFakeServer(f, 0)
	for _, seed := range []string{"query=up&time=1", "query=sum(rate(a[5m]))&start=0&end=10&step=1", "match[]={a=\"b\"}&limit=1", "lookback_delta=5m&timeout=1&query=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, r := range s.api.Routes() {
			request := httptest.NewRequest(r.Method, strings.Replace(r.Pattern, "{name}", "host", 1), strings.NewReader(raw))
			request.Host, request.URL.RawQuery = "localhost", raw
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, request)
			if w.Code == 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s %s: %d %s", r.Pattern, raw, w.Code, w.Body)
			}
		}
	})
}

func BenchmarkQueryRange(b *testing.B) {
	f := newFakeServer(b, 500)
	form := values("query", "bench", "start", fmt.Sprint(start), "end", fmt.Sprint(start+60), "step", "1")
	b.ReportAllocs()
	for b.Loop() {
		if w := f.do(http.MethodGet, "/api/v1/query_range", form); w.Code != 200 || w.Body.Len() < 1<<20 {
			b.Fatal(w.Code, w.Body.Len())
		}
	}
}
