package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/sniff"
	"tidemark/sniff/capture"
)

// mongoAgent sends what an agent sends that watches MongoDB.
type mongoAgent struct {
	server   *running
	session  string
	id       int
	declare  []map[string]any
	declared map[string]bool
	data     []map[string]any
}

// add takes a value of an item as the agent sends it.
func (a *mongoAgent) add(v sniff.ItemValue, at int64) {
	text, kind := strconv.FormatUint(v.Bits, 10), "unsigned"
	switch v.Item.Type {
	case model.Float:
		text, kind = strconv.FormatFloat(math.Float64frombits(v.Bits), 'g', -1, 64), "float"
	case model.Binary:
		text, kind = base64.StdEncoding.EncodeToString(v.Bytes), "binary"
	}
	if !a.declared[v.Item.Key] {
		a.declared[v.Item.Key] = true
		labels := map[string]string{}
		for _, l := range v.Item.Labels {
			labels[l.Name] = l.Value
		}
		a.declare = append(a.declare, map[string]any{
			"key": v.Item.Key, "name": v.Item.Name, "units": v.Item.Units, "type": kind, "interval_ms": v.Item.Interval.Milliseconds(), "labels": labels,
		})
	}
	a.id++
	a.data = append(a.data, map[string]any{"host": "db-1", "key": v.Item.Key, "value": text, "id": a.id, "clock": at / 1e9, "ns": at % 1e9})
}

// send sends what was added.
func (a *mongoAgent) send() {
	a.server.t.Helper()
	body, err := json.Marshal(map[string]any{"request": "agent data", "tidemark": 1, "host": "db-1", "session": a.session, "declare": a.declare, "data": a.data})
	if err != nil {
		a.server.t.Fatal(err)
	}
	if answer := a.server.send(string(body)); !strings.Contains(answer, fmt.Sprintf("processed: %d; failed: 0", len(a.data))) {
		a.server.t.Fatalf("the agent is answered %.300s", answer)
	}
	a.declare, a.data = nil, nil
}

// watch sends a capture as of now, ten times as often as it was.
func (a *mongoAgent) watch(file string, now int64) {
	t := a.server.t
	t.Helper()
	for n := range int64(10) {
		content, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		source, err := capture.NewFile(content)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sniff.New(sniff.Options{Ports: []uint16{27117}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ReadAll(source); err != nil {
			t.Fatal(err)
		}
		source.Close()
		at := now - (9-n)*int64(10*time.Second)
		sniff.NewItems(10*time.Second).Take(s, at, func(v sniff.ItemValue) { a.add(v, at) })
	}
	a.send()
}

// TestMongo sends a capture with many errors the way an agent does: the requests are ranked, their triggers exist, and the one for errors opens a
// problem.
func TestMongo(t *testing.T) {
	r := run(t, t.TempDir())
	if answer := r.send(`{"request":"active checks","host":"db-1","host_metadata":"tidemark","tidemark":1}`); !strings.Contains(answer, "success") {
		t.Fatalf("registration is answered %s", answer)
	}
	a := &mongoAgent{server: r, session: strings.Repeat("ab", 16), declared: map[string]bool{}}
	now := time.Now().Truncate(time.Second).UnixNano()
	a.watch("../sniff/testdata/errors_go.pcap", now)

	instance := url.QueryEscape("db-1/127.0.0.1:27117")
	var ranking struct {
		Total struct{ Requests, Errors uint64 }
		Rows  []struct {
			ID    string
			Shape string
			Sums  struct {
				Requests, Errors uint64
				P95              *float64
			}
		}
	}
	r.get(fmt.Sprintf("/api/mongo/requests?instance=%s&from=%d&to=%d&limit=1000", instance, now/1e6-120_000, now/1e6), &ranking)
	var requests, errors uint64
	for _, row := range ranking.Rows {
		requests += row.Sums.Requests
		errors += row.Sums.Errors
		if row.Sums.P95 == nil || *row.Sums.P95 <= 0 {
			t.Errorf("%s has no p95", row.Shape)
		}
	}
	if ranking.Total.Requests != 190 || ranking.Total.Errors != 120 || requests != 190 || errors != 120 {
		t.Errorf("%d requests and %d errors, in rows %d and %d, want ten times the capture's 19 and 12", ranking.Total.Requests, ranking.Total.Errors, requests, errors)
	}

	var triggers struct {
		Triggers []struct{ Name, Expression string }
	}
	want := 2 + 3*len(ranking.Rows)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		triggers.Triggers = nil
		if r.get("/api/triggers?search=MongoDB&limit=1000", &triggers); len(triggers.Triggers) == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d triggers, want %d for %d shapes", len(triggers.Triggers), want, len(ranking.Rows))
		}
	}
	for _, tr := range triggers.Triggers {
		if strings.Contains(tr.Name+tr.Expression, "{#") {
			t.Errorf("a macro is left: %s: %s", tr.Name, tr.Expression)
		}
	}

	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		// More intervals, now that the triggers are there.
		a.watch("../sniff/testdata/errors_go.pcap", time.Now().UnixNano())
		var problems struct{ Problems []struct{ Name string } }
		r.get("/api/problems?open=true&search=MongoDB", &problems)
		if len(problems.Problems) > 0 && strings.Contains(problems.Problems[0].Name, "More than 5% of the requests to MongoDB at 127.0.0.1:27117 fail") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no problem of many errors within a minute: %+v", problems)
		}
	}
}

// TestMongo_yesterday sends statistics of yesterday and of now: the server and a shape became slow, another shape is new and most of the load.
func TestMongo_yesterday(t *testing.T) {
	r := run(t, t.TempDir())
	r.send(`{"request":"active checks","host":"db-1","host_metadata":"tidemark","tidemark":1}`)
	a := &mongoAgent{server: r, session: strings.Repeat("cd", 16), declared: map[string]bool{}}
	value := func(thing, measure string, v float64, at time.Time) {
		item := &sniff.Item{Key: thing + "," + measure + "]", Name: measure, Type: model.Float, Interval: 10 * time.Second, Labels: model.Labels{{Name: "instance", Value: "10.0.0.9:27017"}}}
		bits := math.Float64bits(v)
		if measure == "requests" || measure == "errors" {
			item.Type, bits = model.Uint, uint64(v)
		}
		if name, ok := strings.CutPrefix(thing, "mongo.shape[10.0.0.9:27017,"); ok {
			item.Labels = model.Labels{
				{Name: "command", Value: "find"},
				{Name: "fingerprint", Value: name},
				{Name: "instance", Value: "10.0.0.9:27017"},
				{Name: "namespace", Value: "shop." + name},
				{Name: "shape", Value: "find {a: ?}"},
			}
		}
		a.add(sniff.ItemValue{Item: item, At: at.UnixNano(), Bits: bits}, at.UnixNano())
	}
	put := func(thing string, requests, seconds, p95 float64, at time.Time) {
		value(thing, "requests", requests, at)
		value(thing, "errors", 0, at)
		value(thing, "time", seconds, at)
		value(thing, "p95", p95, at)
	}
	const server, old, fresh = "mongo.instance[10.0.0.9:27017", "mongo.shape[10.0.0.9:27017,aa", "mongo.shape[10.0.0.9:27017,bb"
	now := time.Now().Truncate(time.Second)
	// From an hour and a half before this time of yesterday to as long after it, so that it does not matter in which minute the test runs.
	for minute := -90; minute <= 90; minute += 5 {
		at := now.AddDate(0, 0, -1).Add(time.Duration(minute) * time.Minute)
		put(server, 500, 1, 0.004, at)
		put(old, 500, 1, 0.004, at)
	}
	a.send()
	interval := func(at time.Time) {
		put(old, 500, 5, 0.02, at)
		put(fresh, 500, 40, 0.08, at)
		put(server, 1000, 45, 0.08, at)
	}
	for n := 11; n >= 0; n-- {
		interval(now.Add(-time.Duration(n) * 10 * time.Second))
	}
	a.send()
	wanted := []string{
		"Requests to MongoDB at 10.0.0.9:27017 take more than twice as long as in the same hour yesterday",
		"find on shop.aa takes more than twice as long as in the same hour yesterday",
		"New on MongoDB at 10.0.0.9:27017, and expensive: find on shop.bb",
		"find on shop.bb is more than 60% of the load of MongoDB at 10.0.0.9:27017",
	}
	for deadline := time.Now().Add(120 * time.Second); ; time.Sleep(time.Second) {
		// The triggers of items that came with their first values are evaluated with the next ones, as an agent sends them.
		interval(time.Now())
		a.send()
		var answer struct{ Problems []struct{ Name string } }
		r.get("/api/problems?open=true&limit=1000", &answer)
		open := map[string]bool{}
		for _, p := range answer.Problems {
			open[p.Name] = true
		}
		missing := ""
		for _, name := range wanted {
			if !open[name] {
				missing += "\n" + name
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("within two minutes these problems did not open:%s\nthese did: %v", missing, answer.Problems)
		}
	}
	var answer struct{ Problems []struct{ Name string } }
	r.get("/api/problems?open=true&limit=1000&search=shop.", &answer)
	if len(answer.Problems) != 3 {
		t.Errorf("problems of shapes: %v, want the three above", answer.Problems)
	}
}
