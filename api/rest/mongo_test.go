package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"tidemark/catalog"
	"tidemark/model"
	"tidemark/sniff"
	"tidemark/sniff/capture"
	"tidemark/sniff/reqstat"
)

// watchCapture stores a capture as an agent on host db1 would have done, and returns its statistics in one piece and its range.
func (f *fakeServer) watchCapture(t testing.TB, file string) (whole *reqstat.Instance, from, to int64) {
	t.Helper()
	open := func() *capture.File {
		content, err := os.Open("../../sniff/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		source, err := capture.NewFile(content)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = source.Close() })
		return source
	}
	sniffer := func() *sniff.Sniffer {
		s, err := sniff.New(sniff.Options{Ports: []uint16{27117}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	once, parts := sniffer(), sniffer()
	if err := once.ReadAll(open()); err != nil {
		t.Fatal(err)
	}
	items, batch, from := sniff.NewItems(time.Second), model.NewBatch(), int64(math.MaxInt64)
	take := func(v sniff.ItemValue) {
		entries, _, err := f.catalog.Declare(t.Context(), 1, "db1", []catalog.Declaration{
			{Key: v.Item.Key, Name: v.Item.Name, Units: v.Item.Units, ValueType: v.Item.Type, Labels: v.Item.Labels, Interval: v.Item.Interval},
		})
		if err != nil {
			t.Fatal(err)
		}
		if v.Item.Type == model.Binary {
			batch.AppendBytes(entries[0].ID, v.At, model.Binary, v.Bytes)
		} else {
			batch.Append(entries[0].ID, v.At, v.Item.Type, v.Bits)
		}
	}
	tick := func(a, b int64) {
		from, to = min(from, a), b
		items.Take(parts, b, take)
	}
	if err := parts.Run(t.Context(), open(), sniff.RunOptions{Interval: time.Second, Tick: tick}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return once.Statistics().Instances()[0], from/1e6 - 1, to/1e6 + 1
}

// answer calls a path and reads what it answers.
func answer[T any](t *testing.T, f *fakeServer, path string) (out T) {
	t.Helper()
	w := f.do("GET", path, "")
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// same says how an answer's sums differ from statistics.
func same(got *MongoSums, want *reqstat.Statistics) string {
	if got.Requests != want.Requests || got.Errors != want.Errors || got.BytesIn != want.RequestBytes || got.BytesOut != want.ReplyBytes || got.Docs != want.Documents ||
		math.Abs(got.Seconds-float64(want.TimeNanos)/1e9) > 1e-9 {
		return fmt.Sprintf("%+v, want %+v", *got, *want)
	}
	return ""
}

func TestMongo_capture(t *testing.T) {
	for _, file := range []string{"crud_go.pcap", "errors_go.pcap", "node_mixed.pcap", "bulk_go.pcap"} {
		f := newFakeServer(t)
		want, from, to := f.watchCapture(t, file)
		span := fmt.Sprintf("&from=%d&to=%d", from, to)
		list := answer[MongoInstanceList](t, f, "/api/mongo/instances?"+span[1:])
		if len(list.Instances) != 1 || list.Instances[0].HostName != "Database 1" {
			t.Fatalf("%s: instances %+v", file, list)
		}
		if d := same(&list.Instances[0].Total, &want.Total); d != "" {
			t.Errorf("%s: instance: %s", file, d)
		}
		id := "instance=" + url.QueryEscape(list.Instances[0].ID)
		ranking := answer[MongoRanking](t, f, "/api/mongo/requests?"+id+span+"&limit=1000")
		if len(ranking.Rows) != len(want.Shapes) || ranking.Found != len(want.Shapes) {
			t.Errorf("%s: %d rows, want %d", file, len(ranking.Rows), len(want.Shapes))
		}
		for s, st := range want.Shapes {
			found := false
			for i := range ranking.Rows {
				row := &ranking.Rows[i]
				if row.ID != s.Fingerprint.String() {
					continue
				}
				found = true
				if d := same(&row.Sums, &st.Statistics); d != "" {
					t.Errorf("%s: %s: %s", file, s.Text, d)
				}
				if p95 := st.Latency.Quantile(0.95) / 1e9; st.Latency.Count > 0 && (row.Sums.P95 == nil || *row.Sums.P95 != p95) {
					t.Errorf("%s: %s: p95 %v, want %v", file, s.Text, row.Sums.P95, p95)
				}
				codes := uint64(0)
				for _, c := range answer[MongoProfile](t, f, "/api/mongo/requests/"+row.ID+"?"+id+span).Codes {
					codes += c.Count
				}
				if codes != st.Errors {
					t.Errorf("%s: %s: %d errors have a number, want %d", file, s.Text, codes, st.Errors)
				}
				if row.Shape != s.Text || row.DB != s.Database || row.Collection != s.Collection || row.Command != s.Command {
					t.Errorf("%s: names %+v", file, row.MongoNames)
				}
			}
			if !found {
				t.Errorf("%s: %s %s is missing", file, s.Namespace(), s.Text)
			}
		}
		for _, group := range []string{"application", "client"} {
			for _, row := range answer[MongoRanking](t, f, "/api/mongo/requests?"+id+span+"&group_by="+group).Rows {
				if row.Sums.Requests > row.Sums.Errors && row.Sums.Seconds > 0 && row.Sums.P95 == nil {
					t.Errorf("%s: %s %q has no percentiles", file, group, row.ID)
				}
			}
		}
		profile := answer[MongoProfile](t, f, "/api/mongo/requests/all?"+id+span)
		cells := uint64(0)
		for _, c := range profile.Heat.Cells {
			cells += c[2]
		}
		if d := same(&profile.Total, &want.Total); d != "" || cells != want.Latency.Count {
			t.Errorf("%s: profile: %s; %d requests in cells, want %d", file, d, cells, want.Latency.Count)
		}
		first := ranking.Rows[0]
		if found := answer[SearchAnswer](t, f, "/api/search?limit=50&q="+url.QueryEscape(first.ID)); len(found.Results) == 0 || found.Results[0].Kind != "request" || !strings.Contains(found.Results[0].URL, "shape="+first.ID) {
			t.Errorf("%s: a search for %s finds %+v", file, first.ID, found.Results)
		}
		one := answer[MongoProfile](t, f, "/api/mongo/requests/"+first.ID+"?"+id+span+"&points=20")
		if one.Shape != first.Shape || one.Total.Requests != first.Sums.Requests || len(one.At) > 20 || len(one.At) != len(one.Rate) {
			t.Errorf("%s: profile of %s: %+v", file, first.ID, one)
		}
		changes := answer[MongoComparison](t, f, "/api/mongo/compare?"+id+span)
		if len(changes.Rows) != len(want.Shapes) || changes.Rows[0].Verdict != "new" || changes.Before.Total.Requests != 0 {
			t.Errorf("%s: comparison with a day without values: %+v", file, changes)
		}
	}
}

func TestMongo_errors(t *testing.T) {
	f := newFakeServer(t)
	_, from, to := f.watchCapture(t, "crud_go.pcap")
	list := answer[MongoInstanceList](t, f, "/api/mongo/instances")
	id := "instance=" + url.QueryEscape(list.Instances[0].ID)
	span := fmt.Sprintf("&from=%d&to=%d", from, to)
	for path, want := range map[string]string{
		"/api/mongo/requests":                                        "400 bad_request",
		"/api/mongo/requests?instance=nowhere":                       "404 not_found",
		"/api/mongo/requests?" + id + "&group_by=color":              "400 bad_request",
		"/api/mongo/requests?" + id + "&order=name":                  "400 bad_request",
		"/api/mongo/requests?" + id + "&limit=5001":                  "400 bad_request",
		"/api/mongo/requests?" + id + "&slices=121":                  "400 bad_request",
		"/api/mongo/requests?" + id + "&from=9&to=9":                 "400 bad_request",
		"/api/mongo/requests?" + id + "&from=0&to=9":                 "200",
		"/api/mongo/requests?" + id + "&from=-9223372036854":         "422 limit",
		"/api/mongo/requests/0123" + "?" + id + span:                 "404 not_found",
		"/api/mongo/requests/all?" + id + "&points=501":              "400 bad_request",
		"/api/mongo/compare?" + id + "&before_from=10&before_to=10":  "400 bad_request",
		"/api/mongo/compare?" + id + "&before_from=x":                "400 bad_request",
		"/api/mongo/instances?from=1&to=0":                           "400 bad_request",
		"/api/mongo/requests?" + id + "&collection=&command=find":    "200",
		"/api/mongo/requests?" + id + "&group_by=client&order=p95":   "200",
		"/api/mongo/requests?" + id + "&search=" + fmt.Sprint(1e300): "200",
	} {
		w := f.do("GET", path, "")
		got := "200"
		if w.Code != 200 {
			got = failure(t, w)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
