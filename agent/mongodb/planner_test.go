package mongodb

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/queryplan"
)

var askedOrders = Asked{Database: "shop", Collection: "orders", Command: "find", Text: "find {status: ?, user: ?} sort {created: -1} limit ?"}

func explained() bson.D {
	return bson.D{{Key: "ok", Value: 1}, {Key: "queryPlanner", Value: bson.D{
		{Key: "queryHash", Value: "A1B2C3D4"},
		{Key: "winningPlan", Value: bson.D{{Key: "stage", Value: "SORT"}, {Key: "inputStage", Value: bson.D{
			{Key: "stage", Value: "FETCH"},
			{Key: "filter", Value: bson.D{{Key: "user", Value: bson.D{{Key: "$eq", Value: "s3cr3t"}}}}},
			{Key: "inputStage", Value: bson.D{{Key: "stage", Value: "IXSCAN"}, {Key: "keyPattern", Value: bson.D{{Key: "status", Value: 1}}}, {Key: "indexName", Value: "status_1"}}},
		}}}},
		{Key: "rejectedPlans", Value: bson.A{bson.D{}}},
	}}}
}

// TestPlanner_plan asks a server for a plan. One answer of aggregate serves the plan cache and the indexes alike.
func TestPlanner_plan(t *testing.T) {
	f := newFakeMongo(t)
	f.answer("explain", explained())
	f.answer("aggregate", cursor(bson.D{
		{Key: "name", Value: "status_1"},
		{Key: "key", Value: bson.D{{Key: "status", Value: 1}}},
		{Key: "accesses", Value: bson.D{{Key: "ops", Value: int64(42)}}},
		{Key: "creationExecStats", Value: bson.A{bson.D{{Key: "nReturned", Value: int32(2)}, {Key: "totalDocsExamined", Value: int32(900)}, {Key: "totalKeysExamined", Value: int32(901)}}}},
	}))
	p, ok := newMonitor(t, f.uri(""), nil).Planner().Plan(t.Context(), askedOrders)
	if !ok {
		t.Fatal("no plan")
	}
	if p.Summary != "IXSCAN {status: 1}" || !p.Sorts || p.Scans || !slices.Equal(p.Used, []string{"status_1"}) || p.Rejected != 1 {
		t.Errorf("plan %+v", p)
	}
	if p.Trial == nil || *p.Trial != (queryplan.Trial{Documents: 900, Keys: 901, Returned: 2}) {
		t.Errorf("trial %+v", p.Trial)
	}
	if len(p.Indexes) != 1 || p.Indexes[0].Key != "{status: 1}" || p.Indexes[0].Uses == nil || *p.Indexes[0].Uses != 42 || !p.IndexesKnown {
		t.Errorf("indexes %+v", p.Indexes)
	}
	if len(p.Hints) != 1 || p.Hints[0].Key != "{status: 1, user: 1, created: -1}" {
		t.Errorf("hints %+v", p.Hints)
	}
	if text := queryplan.Encode(p); strings.Contains(text, "s3cr3t") || len(p.Notes) != 0 {
		t.Errorf("it tells %s", text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.commands {
		if strings.Contains(c, `"verbosity": "executionStats"`) || strings.Contains(c, "allPlansExecution") {
			t.Errorf("the query is run: %s", c)
		}
	}
}

// TestPlanner_refused has a server that allows nothing, and one that is gone.
func TestPlanner_refused(t *testing.T) {
	f := newFakeMongo(t)
	for _, c := range []string{"explain", "aggregate", "listIndexes"} {
		f.answer(c, failure(codeUnauthorized, "not authorized on shop to execute command { explain: ... }"))
	}
	var log bytes.Buffer
	m := newMonitor(t, f.uri(""), slog.New(slog.NewTextHandler(&log, nil)))
	p := m.Planner()
	for range 3 {
		got, ok := p.Plan(t.Context(), askedOrders)
		if !ok || len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "the user may not ask") || got.IndexesKnown || len(got.Hints) != 0 || got.Summary != "" {
			t.Fatalf("%+v, %v", got, ok)
		}
	}
	if n := strings.Count(log.String(), "does not tell all of its plans"); n != 2 {
		t.Errorf("%d messages, want one for each part:\n%s", n, log.String())
	}
	// $indexStats is refused, listIndexes is not.
	f.answer("listIndexes", cursor(bson.D{{Key: "name", Value: "a"}, {Key: "key", Value: bson.D{{Key: "status", Value: 1}, {Key: "user", Value: 1}, {Key: "created", Value: -1}}}}))
	if got, ok := p.Plan(t.Context(), askedOrders); !ok || !got.IndexesKnown || len(got.Hints) != 0 || len(got.Indexes) != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
	down := newMonitor(t, "mongodb://127.0.0.1:9/", nil).Planner()
	if got, ok := down.Plan(t.Context(), askedOrders); ok {
		t.Errorf("a server that is down has the plan %+v", got)
	}
	for _, of := range []Asked{
		{Database: "admin", Collection: "c", Command: "find", Text: "find"},
		{Database: "shop", Collection: "system.views", Command: "find", Text: "find"},
		{Database: "shop", Collection: "c", Command: "insert", Text: "insert"},
		{Database: "shop", Command: "ping", Text: "ping"},
	} {
		if _, ok := p.Plan(t.Context(), of); ok {
			t.Errorf("%+v has a plan", of)
		}
	}
	if got, ok := p.Plan(t.Context(), Asked{Database: "shop", Collection: "c", Command: "find", Text: "find {a…"}); !ok || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
}
