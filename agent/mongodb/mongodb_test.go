package mongodb

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"tidemark/sniff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// round is one Collect as a map from keys to values.
func round(t *testing.T, m *Monitor, now time.Time) map[string]Value {
	t.Helper()
	out := map[string]Value{}
	m.Collect(t.Context(), now, func(v Value) {
		if _, twice := out[v.Item.Key]; twice {
			t.Errorf("%s has two values", v.Item.Key)
		}
		out[v.Item.Key] = v
	})
	return out
}

func newMonitor(t *testing.T, uri string, log *slog.Logger) *Monitor {
	t.Helper()
	m, err := Open(Options{URI: uri, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func cursor(documents ...any) bson.D {
	return bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "a.b"}, {Key: "firstBatch", Value: bson.A(documents)}}}}
}

func TestCollect(t *testing.T) {
	f := newFakeMongo(t)
	f.answer("serverStatus", document(t, "serverstatus-4.4"))
	f.answer("replSetGetStatus", failure(codeNoReplication, "not running with --replSet"))
	f.answer("top", document(t, "top"))
	f.answer("listDatabases", bson.D{{Key: "ok", Value: 1}, {Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "shop"}}, bson.D{{Key: "name", Value: "admin"}}}}})
	f.answer("dbStats", document(t, "dbstats"))
	f.answer("aggregate", failure(codeUnauthorized, "not authorized on shop to execute command"))
	var log bytes.Buffer
	m := newMonitor(t, f.uri(""), slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Unix(1_700_000_000, 0)
	got := round(t, m, now)
	key := func(s string) string { return strings.Replace(s, "[", "["+m.Instance()+",", 1) }
	check := func(k string, want uint64) {
		t.Helper()
		if v, ok := got[key(k)]; !ok || v.Bits != want {
			t.Errorf("%s is %+v, want %d", k, v, want)
		}
	}
	check("mongodb.self[up]", 1)
	check("mongodb.connections[current]", 12)
	check("mongodb.database[shop,documents]", 1000)
	check("mongodb.collection[shop,users,total.count]", 10)
	// The replica set, the operations, the oplog, collections and indexes.
	check("mongodb.self[skipped]", 5)
	if m.Connections() != 12 {
		t.Errorf("%d connections", m.Connections())
	}
	for _, want := range []string{"the server is no member of a replica set", "grant it the role clusterMonitor", "this server does not know the command"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in\n%s", want, log.String())
		}
	}

	// What is left out is not asked for again at once, what is slow neither, and nothing is told twice.
	log.Reset()
	tops, stats := f.count("top"), f.count("dbStats")
	again := round(t, m, now.Add(10*time.Second))
	if f.count("replSetGetStatus") != 1 || f.count("dbStats") != stats || f.count("top") != tops+1 || log.Len() > 0 {
		t.Errorf("asked %v; told %s", f.asked, log.String())
	}
	if a, b := got[key("mongodb.connections[current]")].Item, again[key("mongodb.connections[current]")].Item; a != b {
		t.Error("an item is another one in the next round")
	}
	got = again
	check("mongodb.self[skipped]", 5)

	// After ten minutes it is tried again.
	f.answer("replSetGetStatus", document(t, "replset"))
	got = round(t, m, now.Add(retryAfter+10*time.Second))
	check("mongodb.replication[state]", 2)
	check("mongodb.self[skipped]", 4)
	if !strings.Contains(log.String(), "there again") {
		t.Errorf("told %s", log.String())
	}
}

// TestCollect_listsCollections is a server without top.
func TestCollect_listsCollections(t *testing.T) {
	f := newFakeMongo(t)
	f.answer("serverStatus", document(t, "serverstatus-8.0"))
	f.answer("listDatabases", bson.D{{Key: "ok", Value: 1}, {Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "shop"}}}}})
	f.answer("dbStats", document(t, "dbstats"))
	f.answer("listCollections", cursor(bson.D{{Key: "name", Value: "users"}, {Key: "type", Value: "collection"}}, bson.D{{Key: "name", Value: "system.views"}, {Key: "type", Value: "collection"}},
		bson.D{{Key: "name", Value: "recent"}, {Key: "type", Value: "view"}}))
	f.answer("aggregate", document(t, "collstats"))
	m := newMonitor(t, f.uri(""), nil)
	got := round(t, m, time.Unix(1_700_000_000, 0))
	if fmt.Sprint(m.collections) != "[shop.users]" {
		t.Errorf("collections %v", m.collections)
	}
	if v := got["mongodb.collection["+m.Instance()+",shop,users,documents]"]; v.Bits != 20 || v.Item.Interval != slowInterval {
		t.Errorf("documents: %+v", v)
	}
}

// TestCollect_manyCollections has more collections than have items.
func TestCollect_manyCollections(t *testing.T) {
	f := newFakeMongo(t)
	totals := bson.D{}
	for i := range 5000 {
		totals = append(totals, bson.E{Key: fmt.Sprint("shop.c", i), Value: bson.D{{Key: "total", Value: bson.D{{Key: "time", Value: i}, {Key: "count", Value: 1}}}}})
	}
	f.answer("serverStatus", document(t, "serverstatus-8.0"))
	f.answer("top", bson.D{{Key: "ok", Value: 1}, {Key: "totals", Value: totals}})
	f.answer("aggregate", document(t, "collstats"))
	m := newMonitor(t, f.uri(""), nil)
	got := round(t, m, time.Unix(1_700_000_000, 0))
	n := 0
	for k := range got {
		if strings.HasSuffix(k, ",total.count]") {
			n++
		}
	}
	if _, ok := got["mongodb.collection["+m.Instance()+",shop,c4999,total.count]"]; n != maxCollections || !ok || len(m.items) > maxItems {
		t.Errorf("%d collections have items, the busiest %v; %d items", n, ok, len(m.items))
	}
}

// TestCollect_down is a server that goes and comes.
func TestCollect_down(t *testing.T) {
	f := newFakeMongo(t)
	f.answer("serverStatus", document(t, "serverstatus-8.0"))
	var log bytes.Buffer
	m := newMonitor(t, f.uri("alice:s3cr3t%2Fx@"), slog.New(slog.NewTextHandler(&log, nil)))
	up := "mongodb.self[" + m.Instance() + ",up]"
	// The fake does not know saslStart, so that the password is refused: the driver's message tells of it.
	for i := range 2 {
		got := round(t, m, time.Unix(1_700_000_000+int64(i)*10, 0))
		if v, ok := got[up]; !ok || v.Bits != 0 || m.Connections() != 0 {
			t.Errorf("round %d: %+v", i, got)
		}
	}
	if strings.Count(log.String(), "does not answer") != 1 || strings.Contains(log.String(), "s3cr3t") || strings.Contains(log.String(), "alice") {
		t.Errorf("told %s", log.String())
	}
}

func TestOpen(t *testing.T) {
	f := func(uri, instance, wrong string) {
		t.Helper()
		m, err := Open(Options{URI: uri})
		if err != nil {
			if wrong == "" || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%q: %v, want %q", uri, err, wrong)
			}
			for _, secret := range []string{"s3cr3t", "alice", "k3y"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q: the error holds %s: %v", uri, secret, err)
				}
			}
			return
		}
		defer m.Close()
		if wrong != "" || m.Instance() != instance {
			t.Errorf("%q: instance %q, want %q", uri, m.Instance(), instance)
		}
	}
	f("mongodb://127.0.0.1:27017/", "127.0.0.1:27017", "")
	f("mongodb://127.0.0.1", "127.0.0.1:27017", "")
	f("mongodb://[::1]:28000/?w=1", "[::1]:28000", "")
	f("mongodb://[::1]/", "[::1]:27017", "")
	f("mongodb://alice:s3cr3t@db1:27018/admin?authSource=admin", "db1:27018", "")
	f("mongodb://alice:s3cr3t%2F%40@db1/?tls=true", "db1:27017", "")
	f("mongodb://%2Ftmp%2Fmongodb-27017.sock/", "/tmp/mongodb-27017.sock", "")
	f("mongodb://alice:s3cr3t@a,b/?replicaSet=rs0", "", "several servers")
	f("mongodb+srv://alice:s3cr3t@db1/", "", "expected mongodb://")
	f("alice:s3cr3t", "", "expected mongodb://")
	f("mongodb://", "", "expected mongodb://")
	f("mongodb://alice:s3cr3t%zz@db1/", "", "connection string")
	f("mongodb://alice:s3cr3t@db1/?authMechanism=alice-s3cr3t", "", "connection string")
	f("mongodb://alice:s3cr3t@db1/?tls=k3y&tlsCertificateKeyFilePassword=k3y", "", "connection string")
}

// TestCollect_profiler reads a profiler that is on, from what is written after it was found.
func TestCollect_profiler(t *testing.T) {
	f := newFakeMongo(t)
	now := time.Unix(1_700_000_000, 0)
	f.answer("serverStatus", document(t, "serverstatus-8.0"))
	f.answer("listDatabases", bson.D{{Key: "ok", Value: 1}, {Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "shop"}}}}})
	f.answer("profile", bson.D{{Key: "ok", Value: 1}, {Key: "was", Value: 1}, {Key: "slowms", Value: 100}})
	entry := func(at time.Time) bson.D {
		return bson.D{
			{Key: "op", Value: "query"},
			{Key: "ns", Value: "shop.users"},
			{Key: "command", Value: bson.D{{Key: "find", Value: "users"}, {Key: "$db", Value: "shop"}}},
			{Key: "millis", Value: 120},
			{Key: "ts", Value: bson.NewDateTimeFromTime(at)},
		}
	}
	f.answer("find", cursor(entry(now.Add(time.Second)), entry(now.Add(2*time.Second))))
	slow := 0
	m, err := Open(Options{URI: f.uri(""), Profile: func(v Verdict, told *sniff.Told) {
		if v == Slow && told.LatencyNanos == 120e6 {
			slow++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := round(t, m, now)
	if v := got["mongodb.self["+m.Instance()+",profilers]"]; slow != 2 || v.Bits != 1 {
		t.Errorf("%d requests, %+v", slow, v)
	}
	if at := m.profile.since["shop"]; at != now.Add(2*time.Second).UnixMilli() {
		t.Errorf("read up to %d", at)
	}
}
