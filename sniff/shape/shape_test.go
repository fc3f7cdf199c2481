package shape

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/test/fuzztest"
	"tidemark/wire/mongo"
)

func doc(t testing.TB, d any) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// command makes the message of a command on database shop, written as extended JSON.
func command(t testing.TB, text string) *mongo.Message {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return request(t, d)
}

func request(t testing.TB, d bson.D) *mongo.Message {
	t.Helper()
	return &mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: doc(t, append(d, bson.E{Key: "$db", Value: "shop"}))}
}

func find(t testing.TB, f *Finder, m *mongo.Message) string {
	t.Helper()
	var c Command
	if !f.Find(m, &c) {
		t.Fatal("no command")
	}
	var texts []string
	for _, s := range c.Statements {
		texts = append(texts, fmt.Sprintf("%s×%d", s.Shape.Text, s.Count))
	}
	return strings.TrimSuffix(strings.Join(texts, " | "), "×1")
}

// TestNormalForm is the normal form by example; docs/protocol/query-shape.md states the rules.
func TestNormalForm(t *testing.T) {
	f := NewFinder(0, 1)
	for _, c := range []struct{ command, want string }{
		// Values, order of keys, equality.
		{`{"find":"u","filter":{"b":1,"a":"x"}}`, "find {a: ?, b: ?}"},
		{`{"find":"u","filter":{"a":{"$eq":"x"},"b":2}}`, "find {a: ?, b: ?}"},
		{`{"find":"u","filter":{"a":{"$gte":1,"$lt":5}}}`, "find {a: {$gte: ?, $lt: ?}}"},
		{`{"find":"u","filter":{"a":{"x":1,"y":{"z":null}}}}`, "find {a: {x: ?, y: {z: ?}}}"},
		{`{"find":"u"}`, "find"},
		{`{"find":"u","filter":{}}`, "find {}"},
		// Lists.
		{`{"find":"u","filter":{"a":{"$in":[1,2,3]}}}`, "find {a: {$in: [?]}}"},
		{`{"find":"u","filter":{"a":{"$in":[]}}}`, "find {a: {$in: [?]}}"},
		{`{"find":"u","filter":{"a":{"$in":["x",null,{"$oid":"507f1f77bcf86cd799439011"}]}}}`, "find {a: {$in: [?]}}"},
		{`{"find":"u","filter":{"$or":[{"b":1},{"a":1},{"b":2}]}}`, "find {$or: [{a: ?}, {b: ?}]}"},
		{`{"find":"u","filter":{"a":{"$elemMatch":{"y":1,"x":2}}}}`, "find {a: {$elemMatch: {x: ?, y: ?}}}"},
		// Order that has a meaning.
		{`{"find":"u","filter":{},"sort":{"b":-1,"a":1}}`, "find {} sort {b: -1, a: 1}"},
		{`{"find":"u","filter":{},"sort":{"s":{"$meta":"textScore"}}}`, "find {} sort {s: {$meta: ?}}"},
		{`{"createIndexes":"u","indexes":[{"key":{"b":1,"a":-1,"loc":"2dsphere"},"name":"x"}]}`, `createIndexes [{key: {b: 1, a: -1, loc: "2dsphere"}, name: ?}]`},
		// What says how, not what, is left out.
		{`{"find":"u","filter":{"a":1},"maxTimeMS":5,"comment":"who","lsid":{"id":1},"txnNumber":3,"readConcern":{"level":"local"},"batchSize":7,"$readPreference":{"mode":"primary"}}`, "find {a: ?}"},
		{`{"find":"u","filter":{"a":1},"limit":5,"skip":2,"projection":{"a":1,"_id":0}}`, "find {a: ?} projection {_id: ?, a: ?} skip ? limit ?"},
		{`{"find":"u","filter":{"a":1},"limit":0}`, "find {a: ?}"},
		// Keys that are data.
		{`{"find":"u","filter":{"a.17.b":1}}`, "find {a.*.b: ?}"},
		{`{"find":"u","filter":{"scores.507f1f77bcf86cd799439011":1}}`, "find {scores.*: ?}"},
		{`{"find":"u","filter":{"x.123e4567-e89b-12d3-a456-426614174000.n":1}}`, "find {x.*.n: ?}"},
		{`{"find":"u","filter":{"days.2024-01-15":1,"phone_15550123456":2,"joe@example.com":3}}`, "find {*: ?, days.*: ?}"},
		{`{"find":"u","filter":{"face":1,"deadbeef":2,"v2":3,"a1b2":4}}`, "find {a1b2: ?, deadbeef: ?, face: ?, v2: ?}"},
		// Pipelines.
		{`{"aggregate":"u","pipeline":[{"$match":{"b":1,"a":"$notapath"}},{"$group":{"_id":"$city","n":{"$sum":1}}},{"$sort":{"n":-1}},{"$limit":5}]}`, "aggregate [{$match: {a: ?, b: ?}}, {$group: {_id: $city, n: {$sum: ?}}}, {$sort: {n: -1}}, {$limit: ?}]"},
		{`{"aggregate":"u","pipeline":[{"$project":{"x":{"$eq":["$a",5]},"y":{"$literal":"$secret"}}}]}`, "aggregate [{$project: {x: {$eq: [$a, ?]}, y: {$literal: ?}}}]"},
		{`{"aggregate":"u","pipeline":[{"$match":{"$expr":{"$gt":["$a","$b.c"]}}}]}`, "aggregate [{$match: {$expr: {$gt: [$a, $b.c]}}}]"},
		{`{"aggregate":"u","pipeline":[{"$geoNear":{"near":[1,2],"query":{"name":"$secret"}}}]}`, "aggregate [{$geoNear: {near: [?], query: {name: ?}}}]"},
		{`{"aggregate":"u","pipeline":[{"$search":{"text":{"query":"$secret","path":"a"}}}]}`, "aggregate [{$search: {text: {path: ?, query: ?}}}]"},
		{`{"aggregate":"u","pipeline":[{"$facet":{"a":[{"$match":{"x":"$s"}},{"$sort":{"x":1}}]}}]}`, "aggregate [{$facet: {a: [{$match: {x: ?}}, {$sort: {x: 1}}]}}]"},
		{`{"aggregate":"u","pipeline":[{"$lookup":{"from":"o","let":{"i":"$_id"},"pipeline":[{"$match":{"$expr":{"$eq":["$u","$$i"]}}}],"as":"o"}}]}`, "aggregate [{$lookup: {as: ?, from: ?, let: {i: $_id}, pipeline: [{$match: {$expr: {$eq: [$u, $$i]}}}]}}]"},
		// Writes: a shape for each distinct statement.
		{`{"update":"u","updates":[{"q":{"_id":1},"u":{"$set":{"a":1}}},{"q":{"_id":2},"u":{"$set":{"a":"x"}}},{"q":{"a":3},"u":{"a":1},"multi":true,"upsert":true}]}`, "update {_id: ?} {$set: {a: ?}}×2 | update {a: ?} {a: ?} multi upsert"},
		{`{"update":"u","updates":[{"q":{"_id":1},"u":[{"$set":{"a":"$b"}}]}]}`, "update {_id: ?} [{$set: {a: $b}}]"},
		{`{"delete":"u","deletes":[{"q":{"a":1},"limit":1},{"q":{"a":1},"limit":0}]}`, "delete {a: ?} one×1 | delete {a: ?}"},
		{`{"insert":"u","documents":[{"secret":1}]}`, "insert"},
		{`{"findAndModify":"u","query":{"a":1},"update":{"$inc":{"n":1}},"new":true}`, "findAndModify {a: ?} update {$inc: {n: ?}}"},
		{`{"findandmodify":"u","query":{"a":1},"remove":true}`, "findAndModify {a: ?} remove"},
		{`{"distinct":"u","key":"a.5.b","query":{"x":1}}`, "distinct a.*.b {x: ?}"},
		{`{"count":"u","query":{"a":{"$ne":5}}}`, "count {a: {$ne: ?}}"},
		{`{"explain":{"find":"u","filter":{"a":1}},"verbosity":"queryPlanner"}`, "explain find {a: ?}"},
		{`{"fooBar":"u","b":{"x":1},"a":[1,2]}`, "fooBar b {x: ?} a [?]"},
		// Secrets: the name only.
		{`{"saslStart":1,"mechanism":"PLAIN","payload":"secret"}`, "saslStart"},
		{`{"createUser":"joe","pwd":"secret"}`, "createUser"},
	} {
		if got := find(t, f, command(t, c.command)); got != c.want {
			t.Errorf("%s\n got  %s\n want %s", c.command, got, c.want)
		}
	}
}

// The fingerprints of published shapes never change.
func TestFingerprint_stable(t *testing.T) {
	f := NewFinder(0, 1)
	var c Command
	f.Find(command(t, `{"find":"u","filter":{"a":1},"sort":{"b":-1}}`), &c)
	s := c.Statements[0].Shape
	if got := s.Namespace() + " " + s.Fingerprint.String(); got != "shop.u 47022be92a5775b9" {
		t.Errorf("fingerprint %s", got)
	}
	if back, err := ParseFingerprint(s.Fingerprint.String()); err != nil || back != s.Fingerprint {
		t.Errorf("read back %v %v", back, err)
	}
}

// randomValue makes values from a small alphabet, so that documents often look alike.
func randomValue(r *rand.Rand, depth int) any {
	if depth > 3 {
		return int32(1)
	}
	switch r.IntN(9) {
	case 0:
		return "$a"
	case 1:
		return "text"
	case 2:
		return int32(r.IntN(3) - 1)
	case 3, 4:
		list := bson.A{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth+1))
		}
		return list
	case 5:
		return 1.0
	default:
		return randomDocument(r, depth+1)
	}
}

func randomDocument(r *rand.Rand, depth int) bson.D {
	keys := []string{"a", "b", "$eq", "$in", "$match", "$sort", "$expr", "$group", "$facet", "pipeline", "a.1", "a.2", "$literal", "sortBy", "2dsphere"}
	d := bson.D{}
	for range r.IntN(4) {
		d = append(d, bson.E{Key: keys[r.IntN(len(keys))], Value: randomValue(r, depth)})
	}
	return d
}

// The quick hash must be finer than the printed form: what it takes for the same must print the same. Otherwise a shape's text would
// depend on who came first.
func TestQuickHash_finerThanText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := map[uint64]string{}
	for range 15_000 {
		var d bson.D
		switch r.IntN(4) {
		case 0:
			d = bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: randomDocument(r, 0)}, {Key: "sort", Value: randomDocument(r, 2)}, {Key: "projection", Value: randomDocument(r, 2)}}
		case 1:
			d = bson.D{{Key: "aggregate", Value: "u"}, {Key: "pipeline", Value: bson.A{randomDocument(r, 0), randomDocument(r, 1)}}, {Key: "hint", Value: randomValue(r, 2)}}
		case 2:
			d = bson.D{{Key: "update", Value: "u"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: randomDocument(r, 1)}, {Key: "u", Value: randomValue(r, 0)}}}}}
		case 3:
			d = bson.D{{Key: "createIndexes", Value: "u"}, {Key: "indexes", Value: randomValue(r, 0)}}
		}
		f := NewFinder(0, 1)
		m := request(t, d)
		text := find(t, f, m)
		var c Command
		if hash, found := f.quickFind(m, &c); hash != 0 && c.Name != "update" {
			if was, known := texts[hash]; known && was != text {
				t.Fatalf("the same quick hash finds %s and %s", was, text)
			}
			texts[hash] = text
			if found && c.Statements[0].Shape.Text != text {
				t.Fatalf("found %s for %s", c.Statements[0].Shape.Text, text)
			}
		}
		if len(f.quick) != 1 {
			t.Fatalf("%d hashes for one statement", len(f.quick))
		}
		for hash := range f.quick {
			if was, known := texts[hash]; known && was != text {
				t.Fatalf("the same hash prints %s and %s", was, text)
			}
			texts[hash] = text
		}
	}
	if len(texts) < 1000 {
		t.Errorf("only %d different hashes; the documents are too much alike", len(texts))
	}
}

// A command that a template fits has the shape that the slow way finds, and templates keep no value.
func TestTemplate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	fitted := 0
	for range 6000 {
		command := bson.D{
			{Key: "find", Value: "u"},
			{Key: "filter", Value: randomDocument(r, 1)},
			{Key: "sort", Value: randomDocument(r, 2)},
			{Key: "projection", Value: randomDocument(r, 2)},
			{Key: "limit", Value: r.IntN(2)},
			{Key: "maxTimeMS", Value: int64(r.IntN(100))},
		}
		if r.IntN(3) > 0 {
			command = append(command[:2], command[4:]...)
		}
		m := request(t, command)
		steps := newTemplate(m.Body, frequent.find)
		if steps == nil {
			continue
		}
		if !fits(steps, m.Body) {
			// Only an end too short to be read by eights.
			continue
		}
		fitted++
		text := find(t, NewFinder(0, 1), m)
		for range 20 {
			// A bit of another body: a name, a kind, a length, or a value.
			other := &mongo.Message{Header: m.Header, Body: slices.Clone(m.Body)}
			other.Body[4+r.IntN(len(other.Body)-4)] ^= 1 << r.IntN(8)
			if !fits(steps, other.Body) {
				continue
			}
			var c Command
			if f := NewFinder(0, 1); !f.Find(other, &c) || c.Statements[0].Shape.Text != text {
				t.Fatalf("%q fits the template of %q: %s", other.Body, m.Body, text)
			}
		}
	}
	if fitted < 500 {
		t.Errorf("only %d commands had a template", fitted)
	}
	steps := newTemplate(request(t, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "a", Value: "secret"}, {Key: "b", Value: bson.D{{Key: "$gt", Value: "secret"}}}}}, {Key: "comment", Value: "secret"}}).Body, frequent.find)
	if len(steps) == 0 || strings.Contains(fmt.Sprintf("%+v", steps), "secret") {
		t.Errorf("template %+v", steps)
	}
	for _, d := range []bson.D{
		{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "507f1f77bcf86cd799439011", Value: 1}}}},
		{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: bson.A{1}}}}}}},
		{{Key: "find", Value: "u"}, {Key: "sort", Value: bson.D{{Key: "a", Value: 17}}}},
		{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$gt", Value: "secret"}}}}}},
		{{Key: "find", Value: "u"}, {Key: "shardVersion", Value: bson.D{}}},
	} {
		if newTemplate(request(t, d).Body, frequent.find) != nil {
			t.Errorf("%v has a template", d)
		}
	}
}

// The statements of one collection take turns, and each is found.
func TestTemplate_turns(t *testing.T) {
	f := NewFinder(0, 1)
	var c Command
	for i := range 300 {
		key := string(rune('k' + i%5))
		m := request(t, bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: bson.D{{Key: key, Value: i}}}, {Key: "limit", Value: i % 2}})
		want := "find {" + key + ": ?}"
		if i%2 == 1 {
			want += " limit ?"
		}
		if !f.Find(m, &c) || len(c.Statements) != 1 || c.Statements[0].Shape.Text != want || c.Database == "" {
			t.Fatalf("request %d: %+v", i, c)
		}
	}
	if f.templated != 10 {
		t.Errorf("%d templates", f.templated)
	}
	f.Forget([]*Shape{c.Statements[0].Shape})
	if f.byTemplate(request(t, bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: bson.D{{Key: "k", Value: 1}}}, {Key: "limit", Value: 0}}), &c) {
		t.Error("a template outlives the shapes")
	}
}

// Depth, width, length and number are bounded.
func TestFinder_bounds(t *testing.T) {
	f := NewFinder(10, 1)
	deep := bson.D{{Key: "a", Value: 1}}
	for range 3000 {
		deep = bson.D{{Key: "a", Value: deep}}
	}
	if text := find(t, f, request(t, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: deep}})); len(text) > MaxTextBytes || !strings.Contains(text, "…") {
		t.Errorf("deep: %d bytes %s", len(text), text)
	}
	wide := bson.D{}
	for i := range 5000 {
		wide = append(wide, bson.E{Key: fmt.Sprintf("k%04d", i), Value: bson.D{{Key: "x", Value: 1}}})
	}
	if text := find(t, f, request(t, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: wide}})); len(text) > MaxTextBytes {
		t.Errorf("wide: %d bytes", len(text))
	}
	for i := range 100 {
		find(t, f, request(t, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: fmt.Sprintf("key%c%c", 'a'+i%26, 'a'+i/26), Value: 1}}}}))
	}
	if f.Len() != 10 || f.Overflow == 0 {
		t.Errorf("%d shapes, overflow %d", f.Len(), f.Overflow)
	}
	for range 20_000 {
		f.name([]byte(fmt.Sprint("collection", rand.Uint64())))
	}
	if len(f.names) > maxNames || len(f.quick) > maxQuick {
		t.Errorf("%d names, %d hashes", len(f.names), len(f.quick))
	}
	var all []*Shape
	for _, s := range f.shapes {
		all = append(all, s)
	}
	f.Forget(all)
	if f.Len() != 0 || !all[0].Forgotten() || f.Other().Forgotten() {
		t.Errorf("%d shapes after all were forgotten", f.Len())
	}
}

// Bytes of a wire may hold anything; what is printed is valid text without control characters.
func TestText_printable(t *testing.T) {
	f := NewFinder(0, 1)
	bad := doc(t, bson.D{{Key: "find", Value: "us\x01er\xffs"}, {Key: "filter", Value: bson.D{{Key: "k\x02\xfe", Value: 1}}}, {Key: "$db", Value: "shop"}})
	var c Command
	f.Find(&mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: bad}, &c)
	if s := c.Statements[0].Shape; s.Text != "find {k??: ?}" || s.Collection != "us?er?s" {
		t.Errorf("%q on %q", s.Text, s.Collection)
	}
}

// FuzzFind reads any bytes as a command, whole and as every legacy operation.
func FuzzFind(f *testing.F) {
	f.Add(doc(f, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.A{1, "x"}}}}, {Key: "$db", Value: "d"}}), byte(0))
	f.Add(doc(f, bson.D{{Key: "update", Value: "u"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.A{}}}}}, {Key: "$db", Value: "d"}}), byte(0))
	f.Add(doc(f, bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: bson.A{bson.D{{Key: "insert", Value: 3}}}}, {Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "a.b"}}}}, {Key: "$db", Value: "d"}}), byte(0))
	f.Add(doc(f, bson.D{{Key: "$query", Value: bson.D{{Key: "a", Value: 1}}}}), byte(1))
	ops := []mongo.Op{mongo.OpMsg, mongo.OpQuery, mongo.OpUpdate, mongo.OpDelete, mongo.OpInsert, mongo.OpCommand}
	finder := NewFinder(100, 1)
	f.Fuzz(func(t *testing.T, b []byte, op byte) {
		fuzztest.Within(t, 16<<20, func() {
			m := &mongo.Message{Header: mongo.Header{Op: ops[int(op)%len(ops)]}, Body: b, Second: b, Namespace: []byte("shop.$cmd")}
			m.Sequences[0] = mongo.Sequence{Identifier: []byte("ops"), Documents: b}
			m.SequenceCount = 1
			var c Command
			if !finder.Find(m, &c) {
				return
			}
			for _, s := range c.Statements {
				if len(s.Shape.Text) > MaxTextBytes || s.Count < 1 {
					t.Errorf("text of %d bytes, count %d", len(s.Shape.Text), s.Count)
				}
			}
			if finder.Len() > 100 {
				t.Errorf("%d shapes", finder.Len())
			}
		})
	})
}

// typicalFind is the command of the research: name, age range, limit, sort, session, deadline.
func typicalFind(t testing.TB) *mongo.Message {
	return request(t, bson.D{
		{Key: "find", Value: "users"},
		{Key: "filter", Value: bson.D{{Key: "name", Value: "somebody"}, {Key: "age", Value: bson.D{{Key: "$gte", Value: 18}, {Key: "$lt", Value: 65}}}}},
		{Key: "limit", Value: int64(1)},
		{Key: "singleBatch", Value: true},
		{Key: "sort", Value: bson.D{{Key: "name", Value: 1}}},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}},
		{Key: "maxTimeMS", Value: int64(5000)},
	})
}

func BenchmarkFind(b *testing.B) {
	f := NewFinder(0, 1)
	m := typicalFind(b)
	var c Command
	b.ReportAllocs()
	for b.Loop() {
		if !f.Find(m, &c) {
			b.Fatal("no command")
		}
	}
}

// What a general BSON library needs for the same command, for the ratio.
func BenchmarkFind_bsonM(b *testing.B) {
	m := typicalFind(b)
	b.ReportAllocs()
	for b.Loop() {
		var d bson.M
		if err := bson.Unmarshal(m.Body, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func TestFind_noAllocations(t *testing.T) {
	f := NewFinder(0, 1)
	m := typicalFind(t)
	var c Command
	if n := testing.AllocsPerRun(200, func() { f.Find(m, &c) }); n != 0 {
		t.Errorf("%v allocations for a known shape", n)
	}
}

// A list cut off at any byte gives the shape of the whole list.
func TestFind_cutList(t *testing.T) {
	f := NewFinder(0, 1)
	m := request(t, bson.D{{Key: "find", Value: "u"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: bson.A{"x", "y", "z", "w"}}}}}}})
	for cut := 10; cut < len(m.Body); cut++ {
		b := bytes.Clone(m.Body[:cut:cut])
		var c Command
		f.Find(&mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: b}, &c)
		for _, s := range c.Statements {
			if strings.ContainsAny(s.Shape.Text, "xyzw") {
				t.Fatalf("cut at %d: %s", cut, s.Shape.Text)
			}
		}
	}
}
