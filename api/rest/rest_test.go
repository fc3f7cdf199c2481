package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/query"
	"tidemark/storage/memory"
)

var update = flag.Bool("update", false, "write testdata anew")

// testNow is the clock of the tests.
var testNow = time.Unix(1_790_000_000, 0)

// fakeServer is everything behind the interface.
type fakeServer struct {
	hosts    []*model.Host
	items    map[model.ItemID]*model.Item
	triggers []*model.Trigger
	problems []model.Problem
	graphs   []model.Graph
	imported string

	catalog *catalog.Catalog
	engine  *memory.Engine
	latest  *query.Latest
	hub     *query.Hub
	handler http.Handler
}

func (f *fakeServer) HostByID(id model.HostID) (*model.Host, bool) {
	i := slices.IndexFunc(f.hosts, func(h *model.Host) bool { return h.ID == id })
	if i < 0 {
		return nil, false
	}
	return f.hosts[i], true
}
func (f *fakeServer) Hosts() iter.Seq[*model.Host]             { return slices.Values(f.hosts) }
func (f *fakeServer) Item(id model.ItemID) (*model.Item, bool) { i, ok := f.items[id]; return i, ok }
func (f *fakeServer) Triggers() iter.Seq[*model.Trigger]       { return slices.Values(f.triggers) }
func (f *fakeServer) Trigger(id model.TriggerID) (*model.Trigger, bool) {
	i := slices.IndexFunc(f.triggers, func(t *model.Trigger) bool { return t.ID == id })
	if i < 0 {
		return nil, false
	}
	return f.triggers[i], true
}

func (f *fakeServer) Open() []model.Problem {
	var open []model.Problem
	for _, p := range f.problems {
		if p.RecoveredAt == 0 {
			open = append(open, p)
		}
	}
	return open
}

func (f *fakeServer) OpData(_ context.Context, p *model.Problem) string { return p.OpData }

func (f *fakeServer) Find(_ context.Context, filter ProblemFilter) ([]model.Problem, int, error) {
	var found []model.Problem
	total := 0
	for _, p := range slices.Backward(f.problems) {
		if filter.Open && p.RecoveredAt != 0 || filter.Host != 0 && p.HostID != filter.Host ||
			len(filter.Severities) > 0 && !slices.Contains(filter.Severities, p.Severity) ||
			filter.To != 0 && (p.At < filter.From || p.At >= filter.To) || !strings.Contains(p.Name, filter.Search) {
			continue
		}
		total++
		if (filter.Before == 0 || p.ID < filter.Before) && len(found) < filter.Limit {
			found = append(found, p)
		}
	}
	return found, total, nil
}

func (f *fakeServer) State(id model.TriggerID) (model.TriggerState, bool) {
	switch id {
	case 1:
		return model.TriggerState{TriggerID: 1, Problem: true, ChangedAt: testNow.UnixNano() - 60e9}, true
	case 2:
		return model.TriggerState{TriggerID: 2, Error: "no value"}, true
	}
	return model.TriggerState{}, false
}

func (f *fakeServer) Items(model.TriggerID) []model.ItemID { return []model.ItemID{10} }

func (f *fakeServer) Marks(context.Context, model.EventID) ([]ProblemMark, error) {
	return []ProblemMark{{At: testNow.UnixMilli(), Author: "ada", Done: "acknowledged and commented", Message: "on it"}}, nil
}

func (f *fakeServer) Import(_ context.Context, content []byte, isJSON bool) (any, error) {
	if bytes.Contains(content, []byte("broken")) {
		return nil, errors.New("line 1: this is no export")
	}
	f.imported = string(content)
	return map[string]any{"json": isJSON, "bytes": len(content)}, nil
}

// newFakeServer has two hosts, configured and declared items, values of every type, triggers and problems.
func newFakeServer(t testing.TB) *fakeServer {
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
	f := &fakeServer{catalog: c, engine: memory.New(memory.Options{Now: func() int64 { return testNow.UnixNano() }}), items: map[model.ItemID]*model.Item{}}
	f.hosts = []*model.Host{
		{
			ID: 1, Host: "db1", Name: "Database 1", Enabled: true, Groups: []string{"Databases", "Linux"}, Templates: []model.TemplateID{5},
			Tags: []model.Tag{{Name: "env", Value: "prod"}}, Metadata: "Linux", Macros: []model.Macro{{Name: "{$A}", Value: "1"}, {Name: "{$PASSWORD}", Value: "secret", Secret: true}},
		},
		{ID: 2, Host: "web1", Enabled: true, Groups: []string{"Web"}},
		{ID: 3, Host: "old", Enabled: false},
	}
	f.triggers = []*model.Trigger{
		{ID: 1, HostID: 1, Name: "Load is high", Severity: model.High, Expression: "last(/db1/system.cpu.load)>10", Enabled: true},
		{ID: 2, HostID: 1, Name: "Uptime < 10m", Severity: model.Warning, Expression: "last(/db1/uptime)<10m", Enabled: true},
		{ID: 3, HostID: 2, Name: "Disk <b>full</b>", Severity: model.Average, Enabled: false},
	}
	at := testNow.UnixNano()
	f.problems = []model.Problem{
		{Event: model.Event{ID: 100, TriggerID: 2, HostID: 1, At: at - 7200e9, Problem: true, Severity: model.Warning, Name: "Uptime < 10m"}, RecoveredAt: at - 3600e9},
		{Event: model.Event{
			ID: 101, TriggerID: 1, HostID: 1, At: at - 60e9, Problem: true, Severity: model.High, Name: "Load is high", OpData: "12.5",
			Tags: []model.Tag{{Name: "scope", Value: "performance"}},
		}, Acknowledged: true},
	}
	f.fill(t, at)
	querier := query.New(f.engine, c, query.Options{Now: func() time.Time { return testNow.UTC() }})
	f.latest, f.hub = query.NewLatest(querier), query.NewHub(nil)
	retention := 12.5
	a := New(Options{
		Configuration: func() Configuration { return f }, Catalog: c, Querier: querier, Latest: f.latest, Hub: f.hub, Problems: f, Importer: f,
		Health: func() Health {
			return Health{ValuesPerSecond: 123.5, HistoryCacheUsed: 0.25, StoreUsedBytes: 1 << 30, StoreQuotaBytes: 4 << 30, StoreFrom: at - 86400e9, StoreTo: at, RetentionDays: &retention}
		},
		Seen: func(id model.HostID) int64 {
			return map[model.HostID]int64{1: at - 2e9, 2: at - 600e9}[id]
		},
		Graphs:    func(context.Context, model.HostID) ([]model.Graph, error) { return f.graphs, nil },
		ValueSeen: func(id model.HostID) (int64, bool) { return map[model.HostID]int64{3: at - 5e9}[id], true },
		Template:  func(id model.TemplateID) string { return map[model.TemplateID]string{5: "Linux by agent"}[id] },
		Version:   "0.1.0", StartedAt: testNow.Add(-time.Hour), Now: func() time.Time { return testNow },
	})
	routes := a.Routes()
	routes = append(routes, api.SpecRoute("0.1.0", routes))
	f.handler = api.NewHandler(routes, nil, api.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return f
}

func (f *fakeServer) fill(t testing.TB, at int64) {
	t.Helper()
	change := catalog.Change{Hosts: []catalog.HostName{{ID: 1, Name: "db1"}, {ID: 2, Name: "web1"}, {ID: 3, Name: "old"}}}
	add := func(id model.ItemID, key string, vt model.ValueType, item model.Item) {
		item.ID, item.HostID, item.Key, item.ValueType, item.Enabled = id, 1, key, vt, true
		f.items[id] = &item
		change.Upserts = append(change.Upserts, item)
	}
	add(10, "system.cpu.load[all,avg1]", model.Float, model.Item{
		Name: "Load", Interval: time.Second, Tags: []model.Tag{{Name: "component", Value: "cpu"}},
		Description: "Mean number of runnable processes.", History: 7 * 24 * time.Hour, Trends: 365 * 24 * time.Hour,
		Steps: []model.Step{{Type: model.StepMultiplier, Params: []string{"0.5"}}},
	})
	add(11, "net.if.in[eth0]", model.Uint, model.Item{Name: "In", Units: "B", Interval: time.Second, Labels: model.Labels{{Name: "type", Value: "counter"}}})
	add(12, "system.uname", model.Text, model.Item{Name: "Name"})
	add(13, "log[/var/log/x]", model.LogEntry, model.Item{Name: "Log"})
	add(14, "blob", model.Binary, model.Item{})
	if err := f.catalog.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.catalog.Declare(t.Context(), 2, "web1", []catalog.Declaration{{Key: "requests", Name: "Requests", Interval: 10 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	b := model.NewBatch()
	for i := range int64(20) {
		b.AppendFloat(10, at-(20-i)*1e9, float64(i)/3)
		b.AppendUint(11, at-(20-i)*1e9+1, math.MaxUint64-100+uint64(i))
	}
	b.AppendString(12, at-5e9, model.Text, "Linux <db1> \xff")
	b.AppendLog(13, at-4e9, model.Log{At: 1_700_000_000, Severity: 3, EventID: 7, Source: "kernel", Text: "out of memory"})
	b.AppendBytes(14, at-3e9, model.Binary, []byte{0, 1, 255})
	if _, err := f.engine.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func (f *fakeServer) do(method, path string, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// golden compares an answer, indented, with a file.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		t.Fatalf("%s: %v in %s", name, err, body)
	}
	out.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%s differs from %s:\n%s", name, file, out.Bytes())
	}
}

func TestAnswers_golden(t *testing.T) {
	f := newFakeServer(t)
	f.latest.Observe(&model.Batch{
		Items: []model.ItemID{14}, At: []int64{testNow.UnixNano()}, Types: []model.ValueType{model.Unsupported}, Bits: []uint64{model.Span(0, 4)},
		Flags: []model.Flag{0}, Arena: []byte("gone"),
	})
	for name, path := range map[string]string{
		"overview":       "/api/overview",
		"hosts":          "/api/hosts",
		"hosts_group":    "/api/hosts?group=Web&search=WEB",
		"host":           "/api/hosts/1",
		"items":          "/api/items?host=1",
		"items_page":     "/api/items?limit=2&search=n",
		"item":           "/api/items/10",
		"values":         "/api/values?item=11&from=1789999990000&to=1789999992000",
		"values_desc":    "/api/values?item=10&order=desc&limit=2",
		"values_text":    "/api/values?item=12",
		"values_log":     "/api/values?item=13",
		"chart":          "/api/chart?items=10,11,12&from=1789999980000&to=1790000000000&points=100",
		"chart_gathered": "/api/chart?items=10,11&from=1789999980000&to=1790000000000&points=4",
		"problems":       "/api/problems",
		"problems_open":  "/api/problems?open=true&severity=high,disaster&host=1",
		"triggers":       "/api/triggers?search=l",
		"search":         "/api/search?q=lo",
	} {
		w := f.do("GET", path, "")
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
			continue
		}
		golden(t, name, w.Body.Bytes())
	}
}

func TestErrors(t *testing.T) {
	f := newFakeServer(t)
	for path, want := range map[string]string{
		"/api/hosts/99":              "404 not_found",
		"/api/hosts/x":               "400 bad_request",
		"/api/items/99":              "404 not_found",
		"/api/items?limit=0":         "400 bad_request",
		"/api/items?limit=10001":     "400 bad_request",
		"/api/items?host=-1":         "400 bad_request",
		"/api/items?cursor=nonsense": "400 bad_request",
		"/api/hosts?cursor=" + encodeCursor("item", "1"): "400 bad_request",
		"/api/values":                                         "400 bad_request",
		"/api/values?item=10&from=5&to=5":                     "400 bad_request",
		"/api/values?item=10&order=up":                        "400 bad_request",
		"/api/values?item=10&from=99999999999999999":          "400 bad_request",
		"/api/chart":                                          "400 bad_request",
		"/api/chart?items=1,,2":                               "400 bad_request",
		"/api/chart?items=" + strings.Repeat("1,", 200) + "1": "400 bad_request",
		"/api/chart?items=10&points=4001":                     "400 bad_request",
		"/api/problems?severity=awful":                        "400 bad_request",
		"/api/problems?open=maybe":                            "400 bad_request",
		"/api/search":                                         "400 bad_request",
		"/api/search?q=" + strings.Repeat("x", 201):           "400 bad_request",
		"/api/hosts?search=%zz":                               "400 bad_request",
		"/api/live?items=a":                                   "400 bad_request",
	} {
		if got := failure(t, f.do("GET", path, "")); got != want {
			t.Errorf("%.60s: %s, want %s", path, got, want)
		}
	}
}

func failure(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body api.ErrorAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message == "" {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return fmt.Sprintf("%d %s", w.Code, body.Error.Code)
}

// allPages follows next until there is none and returns the ids in order.
func allPages(t *testing.T, f *fakeServer, path, list, id string) []string {
	t.Helper()
	var ids []string
	cursor := ""
	for range 100 {
		w := f.do("GET", path+"&cursor="+cursor, "")
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		for _, row := range body[list].([]any) {
			ids = append(ids, row.(map[string]any)[id].(string))
		}
		next, _ := body["next"].(string)
		if next == "" {
			return ids
		}
		cursor = next
	}
	t.Fatal("pages do not end")
	return nil
}

func TestPaging(t *testing.T) {
	f := newFakeServer(t)
	for _, c := range []struct {
		path, list, id string
		want           string
	}{
		{"/api/hosts?limit=1", "hosts", "id", "1 3 2"},
		{"/api/items?limit=2", "items", "id", "10 11 12 13 14 15"},
		{"/api/triggers?limit=1", "triggers", "id", "1 2 3"},
		{"/api/problems?limit=1", "problems", "event_id", "101 100"},
	} {
		if got := strings.Join(allPages(t, f, c.path, c.list, c.id), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
	all := allPages(t, f, "/api/values?item=10&limit=1000", "values", "at_ns")
	if len(all) != 20 {
		t.Fatalf("%d values", len(all))
	}
	if got := allPages(t, f, "/api/values?item=10&limit=3", "values", "at_ns"); !slices.Equal(got, all) {
		t.Errorf("ascending pages: %v", got)
	}
	slices.Reverse(all)
	if got := allPages(t, f, "/api/values?item=10&limit=3&order=desc", "values", "at_ns"); !slices.Equal(got, all) {
		t.Errorf("descending pages: %v", got)
	}
}

func TestImport(t *testing.T) {
	f := newFakeServer(t)
	w := f.do("POST", "/api/import", "zabbix_export: {}", "Content-Type", "application/yaml; charset=utf-8")
	if w.Code != 200 || f.imported != "zabbix_export: {}" || w.Body.String() != `{"bytes":17,"json":false}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := failure(t, f.do("POST", "/api/import", "{}", "Content-Type", "text/plain")); got != "415 unsupported_media_type" {
		t.Error(got)
	}
	if got := failure(t, f.do("POST", "/api/import", "broken", "Content-Type", "application/json")); got != "422 import" {
		t.Error(got)
	}
	if got := failure(t, f.do("GET", "/api/import", "")); got != "405 method_not_allowed" {
		t.Error(got)
	}
}

// TestSpec_coversEveryRoute checks that what is served is described and what is described answers.
func TestSpec_coversEveryRoute(t *testing.T) {
	f := newFakeServer(t)
	w := f.do("GET", "/api/openapi.json", "")
	var spec struct {
		Paths map[string]map[string]struct {
			Permission string `json:"x-permission"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &spec); err != nil {
		t.Fatal(err)
	}
	described := 0
	for path, methods := range spec.Paths {
		for method, operation := range methods {
			described++
			if operation.Permission == "" {
				t.Errorf("%s %s needs no permission", method, path)
			}
			if path == "/api/live" {
				continue // TestLive
			}
			if w := f.do(strings.ToUpper(method), strings.NewReplacer("{id}", "10").Replace(path), ""); w.Code == 405 || w.Code >= 500 {
				t.Errorf("%s %s answers %d", method, path, w.Code)
			}
		}
	}
	if want := len((&API{options: Options{Graphs: func(context.Context, model.HostID) ([]model.Graph, error) { return nil, nil }}}).Routes()) + 1; described != want {
		t.Errorf("%d routes are described, %d served", described, want)
	}
}

func FuzzParams(f *testing.F) {
	s := newFakeServer(f)
	for _, seed := range []string{"cursor=aXRlbTox&limit=3", "from=1&to=2&item=10", "items=10,11&points=9", "host=1&severity=high", "cursor=" + encodeCursor("value", "5")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, path := range []string{"/api/hosts", "/api/items", "/api/values", "/api/chart", "/api/problems", "/api/triggers", "/api/search", "/api/mongo/instances", "/api/mongo/requests", "/api/mongo/requests/all", "/api/mongo/compare"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host, r.URL.RawQuery = "localhost", raw
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s?%s: %d %s", path, raw, w.Code, w.Body)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("a", "b:c")
	f.Add("", "%")
	f.Fuzz(func(t *testing.T, a, b string) {
		text := encodeCursor("x", a, b)
		parts, ok := decodeCursor(text, "x", 2)
		if len(text) <= maxCursorBytes && (!ok || parts[0] != a || parts[1] != b) {
			t.Fatalf("%q %q became %q", a, b, parts)
		}
		if _, ok := decodeCursor(a, "x", 2); ok && !strings.HasPrefix(a, "e") {
			t.Fatalf("%q is a cursor", a)
		}
	})
}

// TestOverview_oldest: what somebody has seen does not stand in the place of what nobody has.
func TestOverview_oldest(t *testing.T) {
	f := newFakeServer(t)
	seen := f.problems[1]
	for i := range 4 {
		p := seen
		p.ID, p.At, p.Acknowledged = model.EventID(200+i), seen.At+int64(i)*1e9, false
		f.problems = append(f.problems, p)
	}
	var o struct {
		Oldest []struct {
			EventID string `json:"event_id"`
		}
	}
	w := f.do("GET", "/api/overview", "")
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	if len(o.Oldest) != 3 || o.Oldest[0].EventID != "200" || o.Oldest[2].EventID != "202" {
		t.Errorf("the oldest are %+v, want 200, 201 and 202", o.Oldest)
	}
}
