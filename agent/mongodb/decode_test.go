package mongodb

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/model"
)

// document reads a document of testdata.
func document(t testing.TB, name string) bson.Raw {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var d bson.D
	if err := bson.UnmarshalExtJSON(b, false, &d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// gathered keeps samples as "family[…,mode]" with their values.
type gathered map[string]string

func (g gathered) put(s sample) {
	value := fmt.Sprint(s.bits)
	switch s.kind {
	case model.Float:
		value = fmt.Sprint(math.Float64frombits(s.bits))
	case model.Text:
		value = s.text
	}
	key := strings.Replace(strings.TrimPrefix(s.key("I"), "mongodb."), "[I,", "[", 1)
	if _, twice := g[key]; twice {
		value = "twice"
	}
	g[key] = value
}

// check compares all samples whose keys begin with a prefix.
func (g gathered) check(t *testing.T, prefix string, want ...string) {
	t.Helper()
	var got []string
	for k, v := range g {
		if strings.HasPrefix(k, prefix) {
			got = append(got, k+" "+v)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s…:\n got %q\nwant %q", prefix, got, want)
	}
}

func TestDecodeStatus(t *testing.T) {
	g := gathered{}
	decodeStatus(document(t, "serverstatus-4.4"), g.put)
	g.check(t, "connections", "connections[current] 12", "connections[available] 838848", "connections[created] 4711", "connections[active] 3")
	g.check(t, "operations", "operations[insert] 1", "operations[query] 2", "operations[update] 3", "operations[delete] 4", "operations[getmore] 5", "operations[command] 6")
	g.check(t, "queue", "queue[readers] 2", "queue[writers] 1")
	g.check(t, "tickets", "tickets[read.used] 2", "tickets[read.free] 126", "tickets[write.used] 1", "tickets[write.free] 127")
	g.check(t, "locks[", "locks[Global,intent.shared.count] 9000", "locks[Global,intent.exclusive.count] 700", "locks[Global,exclusive.count] 4",
		"locks[Global,intent.shared.waits] 5", "locks[Global,intent.shared.time] 2.5", "locks[Database,intent.shared.count] 8000")
	g.check(t, "memory", "memory[resident] 104857600", "memory[virtual] 1572864000")
	g.check(t, "latency", "latency[reads.time] 1.5", "latency[reads.count] 2", "latency[writes.time] 0", "latency[writes.count] 0")
	g.check(t, "cache", "cache[used] 104857600", "cache[size] 1073741824", "cache[dirty] 4096", "cache[read.pages] 77", "cache[evicted.clients] 9")
	g.check(t, "checkpoint", "checkpoint[last] 0.25", "checkpoint[time] 1")
	g.check(t, "flowcontrol", "flowcontrol[lagged] 1", "flowcontrol[time] 0.005")
	g.check(t, "cursors", "cursors[open] 6", "cursors[pinned] 1", "cursors[endless] 0", "cursors[timedout] 2")
	g.check(t, "sorts", "sorts[unindexed] 11")
	g.check(t, "scanned", "scanned[keys] 100", "scanned[documents] 200", "scanned[collections] 3")
	g.check(t, "server", "server[uptime] 3600.5")

	g = gathered{}
	decodeStatus(document(t, "serverstatus-8.0"), g.put)
	g.check(t, "connections", "connections[current] 7", "connections[rejected] 0") // A negative number is none.
	g.check(t, "tickets", "tickets[read.used] 5", "tickets[read.free] 3", "tickets[write.used] 0", "tickets[write.free] 8")
	g.check(t, "queue", "queue[tickets.read] 4")
	g.check(t, "cache", "cache[evicted.clients] 13")
	g.check(t, "checkpoint", "checkpoint[last] 0.04", "checkpoint[time] 0.08")
	g.check(t, "sorts", "sorts[spilled] 1", "sorts[bytes] 123456", "sorts[keys] 99")
	g.check(t, "replication", "replication[buffered] 3")

	g = gathered{}
	decodeFacts(document(t, "serverstatus-4.4"), g.put)
	g.check(t, "", "server[version] 4.4.29", "server[process] mongod", "server[engine] wiredTiger", "server[set] rs0")
}

func TestDecodeReplicaSet(t *testing.T) {
	g := gathered{}
	decodeReplicaSet(document(t, "replset"), g.put)
	g.check(t, "replication", "replication[state] 2", "replication[members] 4", "replication[healthy] 3", "replication[primaries] 1", "replication[lag] 3.5")
	g.check(t, "member[db1", "member[db1:27017,state] 1", "member[db1:27017,health] 1", "member[db1:27017,ping] 0.002", "member[db1:27017,lag] 0")
	g.check(t, "member[db2", "member[db2:27017,state] 2", "member[db2:27017,health] 1", "member[db2:27017,lag] 3.5")
	g.check(t, "member[arb", "member[arb:27017,state] 7", "member[arb:27017,health] 1")
}

func TestDecodeOplog(t *testing.T) {
	entry := func(at uint32) bson.Raw {
		raw, _ := bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{bson.D{{Key: "ts", Value: bson.Timestamp{T: at}}}}}}}})
		return raw
	}
	g := gathered{}
	if err := decodeOplog(entry(1000), entry(90_000), g.put); err != nil {
		t.Fatal(err)
	}
	g.check(t, "", "replication[oplog] 89000")
	if err := decodeOplog(entry(1000), bson.Raw{5, 0, 0, 0, 0}, g.put); err == nil {
		t.Error("an oplog without an end is taken")
	}
}

func TestDecodeOperations(t *testing.T) {
	g := gathered{}
	decodeOperations(document(t, "currentop"), g.put)
	g.check(t, "", "running[all] 10", "running[waiting] 2", "running[longest] 1.5", "running[query] 3", "running[update] 2", "running[none] 4", "running[other] 1")
}

func TestDecodeTop(t *testing.T) {
	answer := document(t, "top")
	all := busiest(answer)
	if got := fmt.Sprint(all); got != "[shop.orders.2026 shop.users]" {
		t.Errorf("busiest are %s", got)
	}
	g := gathered{}
	decodeTop(answer, all[1:], g.put)
	g.check(t, "", "collection[shop,users,total.time] 2.5", "collection[shop,users,total.count] 10", "collection[shop,users,reads.time] 2", "collection[shop,users,reads.count] 8",
		"collection[shop,users,writes.time] 0.5", "collection[shop,users,writes.count] 2")
}

func TestDecodeSizes(t *testing.T) {
	g := gathered{}
	decodeDatabase(document(t, "dbstats"), "shop", g.put)
	g.check(t, "", "database[shop,collections] 3", "database[shop,documents] 1000", "database[shop,data] 100500", "database[shop,storage] 65536", "database[shop,indexes] 4", "database[shop,index.storage] 40960")

	users := namespace{"shop", "users"}
	f := func(limit, want int, keys ...string) {
		t.Helper()
		g, told := gathered{}, 0
		eachDocument(document(t, "collstats"), "cursor", "firstBatch")(func(d bson.Raw) bool {
			told += decodeCollection(d, users, limit, g.put)
			return true
		})
		if told != want {
			t.Errorf("%d indexes with room for %d, want %d", told, limit, want)
		}
		g.check(t, "index", keys...)
		g.check(t, "collection", "collection[shop,users,documents] 20", "collection[shop,users,data] 2048", "collection[shop,users,document] 102", "collection[shop,users,storage] 4096",
			"collection[shop,users,storage.free] 1024", "collection[shop,users,indexes] 2", "collection[shop,users,index.storage] 8192", "collection[shop,users,cached] 3000", "collection[shop,users,read] 500")
	}
	f(10, 2, "index[shop,users,_id_,storage] 4096", "index[shop,users,email_1,storage] 4096")
	f(1, 1, "index[shop,users,_id_,storage] 4096")

	g = gathered{}
	if n := decodeIndexes(document(t, "indexstats"), users, 1, g.put); n != 1 {
		t.Errorf("%d indexes with room for one", n)
	}
	decodeIndexes(document(t, "indexstats"), namespace{"shop", "other"}, 5, g.put)
	g.check(t, "index", "index[shop,users,_id_,uses] 44", "index[shop,other,_id_,uses] 44", "index[shop,other,email_1,uses] 0")
}

// TestSample checks what makes an item.
func TestSample(t *testing.T) {
	s := whole("index", "uses", "Uses", "", 1, true).about([2]string{"db", "a"}, [2]string{"collection", `b[",]`}, [2]string{"index", strings.Repeat("x", 300)})
	if key := s.key("h:1"); key != `mongodb.index[h:1,a,"b[\",]",`+strings.Repeat("x", maxNameBytes)+`,uses]` {
		t.Errorf("key %s", key)
	}
	labels := s.labels("h:1")
	if labels.Get("db") != "a" || labels.Get("instance") != "h:1" || labels.Get("type") != "counter" || labels.Get("mode") != "uses" || !slices.IsSortedFunc(labels, func(a, b model.Label) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("labels %v", labels)
	}
	if name := whole("x", "y", "Title", "", 0, false).about([2]string{"db", "a"}, [2]string{"collection", "b"}); name.name() != "MongoDB a.b: Title" {
		t.Errorf("name %q", name.name())
	}
}

func TestFieldsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range [][]field{statusFields, databaseFields, collectionFields} {
		for _, f := range list {
			if key := f.family + "," + f.mode; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
		}
	}
}

// FuzzDecode reads any bytes as every answer: nothing panics, and what comes out is bounded.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"serverstatus-4.4", "serverstatus-8.0", "replset", "top", "currentop", "dbstats", "collstats", "indexstats"} {
		f.Add([]byte(document(f, name)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		answer, n := bson.Raw(b), 0
		put := func(s sample) {
			if n++; len(s.key("instance")) > 2000 {
				t.Errorf("a key of %d bytes", len(s.key("instance")))
			}
		}
		decodeStatus(answer, put)
		decodeFacts(answer, put)
		decodeReplicaSet(answer, put)
		_ = decodeOplog(answer, answer, put)
		decodeOperations(answer, put)
		decodeTop(answer, busiest(answer), put)
		decodeDatabase(answer, "db", put)
		decodeCollection(answer, namespace{"a", "b"}, 5, put)
		decodeIndexes(answer, namespace{"a", "b"}, 5, put)
		eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
			decodeCollection(d, namespace{"a", "b"}, 5, put)
			return true
		})
	})
}
