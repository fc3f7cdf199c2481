package mongo

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/agent/mongodb"
)

// TestInternals asks FerretDB for its counters, as far as it has them.
func TestInternals(t *testing.T) {
	server := startServer(t, "127.0.0.1")
	dropDatabases(t, server)
	goWork(t, server)
	m, err := mongodb.Open(mongodb.Options{URI: "mongodb://" + server + "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	values := map[string]mongodb.Value{}
	m.Collect(t.Context(), time.Now(), func(v mongodb.Value) { values[v.Item.Key] = v })
	f := func(key string, want uint64) {
		t.Helper()
		key = strings.Replace(key, "[", "["+server+",", 1)
		if v, ok := values[key]; !ok || v.Bits != want {
			t.Errorf("%s is %d (there: %v), want %d", key, v.Bits, ok, want)
		}
	}
	f("mongodb.self[up]", 1)
	f("mongodb.database[shop,collections]", 3)
	f("mongodb.collection[shop,users,documents]", rounds)
	f("mongodb.collection[shop,orders,documents]", 101)
	f("mongodb.collection[shop,users,indexes]", 1)
	if v := values["mongodb.self["+server+",skipped]"]; v.Bits == 0 {
		t.Error("FerretDB has no replica set, but nothing is left out")
	}
	if v := values["mongodb.server["+server+",version]"]; v.Text == "" {
		t.Error("no version")
	}
}

// TestAgent runs server and agent in one process, which watch the traffic and ask the server, and reads both back.
func TestAgent(t *testing.T) {
	server := startServer(t, "127.0.0.1")
	dropDatabases(t, server)
	goWork(t, server)
	page, trapper := freeAddress(t, "127.0.0.1"), freeAddress(t, "127.0.0.1")
	dir := t.TempDir()
	uri := filepath.Join(dir, "uri")
	if err := os.WriteFile(uri, []byte("mongodb://"+server+"/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("data: %s\nhttp:\n  listen: %s\ntrapper:\n  listen: %s\nagent:\n  host: db1\n  mongo:\n    interface: lo\n    ports: %d\n    uri_file: %s\n    interval: 1s\n    plans: 10s\n",
		filepath.Join(dir, "data"), page, trapper, netip.MustParseAddrPort(server).Port(), uri)
	file := filepath.Join(dir, "tidemark.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, tidemark, "up", "--config", file)
	eventually(t, "the agent asks the server", func() bool {
		return query(t, page, `mongodb_self{key="mongodb.self[`+server+`,up]"}`) == 1
	})
	// What the agent itself asks goes over the same port, and is counted as well.
	requests := `sum(sum_over_time(mongo_client{host="db1",application="go-shop",key=~".*,requests]"}[10m]))`
	eventually(t, "the store has the documents of a collection", func() bool {
		return query(t, page, `mongodb_collection{host="db1",db="shop",collection="users",mode="documents"}`) == rounds
	})
	dropDatabases(t, server)
	before := query(t, page, requests)
	if math.IsNaN(before) {
		before = 0
	}
	l := goWork(t, server)
	want := before + float64(l.requests())
	eventually(t, fmt.Sprintf("the store has %v requests", want), func() bool { return query(t, page, requests) >= want })
	if got := query(t, page, requests); got != want {
		t.Errorf("%v requests of the client are kept, the driver says %v", got, want)
	}
	if got := query(t, page, `count(mongo_shape{collection="users",command="insert",key=~".*,requests]"})`); got != 1 {
		t.Errorf("%v shapes of inserts", got)
	}
	checkPlan(t, page, "db1/"+server)
}

// checkPlan waits for the plan of a request of the client, and expects the index that it lacks.
func checkPlan(t *testing.T, page, instance string) {
	t.Helper()
	var ranking struct {
		Rows []struct{ ID, Command, Shape string }
	}
	var profile struct {
		Plan *struct {
			Summary      string
			IndexesKnown bool `json:"indexes_known"`
			Indexes      []struct{ Name string }
			Hints        []struct{ Key string }
			Notes        []string
		}
	}
	eventually(t, "a request has a plan", func() bool {
		if !getJSON("http://"+page+"/api/mongo/requests?limit=100&collection=users&command=find&instance="+url.QueryEscape(instance), &ranking) {
			return false
		}
		for _, row := range ranking.Rows {
			if strings.Contains(row.Shape, "name") && getJSON("http://"+page+"/api/mongo/requests/"+row.ID+"?instance="+url.QueryEscape(instance), &profile) && profile.Plan != nil {
				return true
			}
		}
		return false
	})
	p := profile.Plan
	if !p.IndexesKnown || len(p.Indexes) == 0 || p.Indexes[0].Name != "_id_" || len(p.Hints) != 1 || !strings.Contains(p.Hints[0].Key, "name: 1") {
		t.Errorf("plan %+v", p)
	}
	t.Logf("FerretDB says %q, notes %q", p.Summary, p.Notes)
}

// getJSON reads an answer of the server; false when there is none.
func getJSON(address string, to any) bool {
	answer, err := http.Get(address)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(to) == nil
}

// query asks for one number; NaN when there is none.
func query(t *testing.T, page, expression string) float64 {
	t.Helper()
	nothing := math.NaN()
	answer, err := http.Get("http://" + page + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nothing
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || len(body.Data.Result) != 1 {
		return nothing
	}
	text, _ := body.Data.Result[0].Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nothing
	}
	return v
}

// TestPrivileges runs an agent as root, which is to have no privilege left in any thread once it captures, and to go on all the same.
func TestPrivileges(t *testing.T) {
	trapper, page := freeAddress(t, "127.0.0.1"), freeAddress(t, "127.0.0.1")
	run(t, tidemark, "server", "--data", filepath.Join(t.TempDir(), "server"), "--http", page, "--trapper", trapper, "--autoregistration")
	agent := run(t, tidemark, "agent", "--server", trapper, "--host", "db1", "--mongo", "lo", "--data", filepath.Join(t.TempDir(), "agent"))
	eventually(t, "every thread is without privileges", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", agent.Process.Pid))
		for _, thread := range threads {
			status, err := os.ReadFile(thread)
			if err != nil {
				continue // It ended.
			}
			for _, want := range []string{"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
				if !strings.Contains(string(status), want) {
					return false
				}
			}
		}
		return err == nil && len(threads) > 0
	})
	eventually(t, "it captures", func() bool { return query(t, page, `mongo_sniff{host="db1",key="mongo.sniff[connections]"}`) >= 0 })
	before := query(t, page, `max(timestamp(system_uptime{host="db1"}))`)
	eventually(t, "values go on", func() bool { return query(t, page, `max(timestamp(system_uptime{host="db1"}))`) > before })
}
