package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff/shape"
	"tidemark/wire/mongo"
)

// shapeOf prints the shape of a command in extended JSON.
func shapeOf(t testing.TB, text string) (command, printed string) {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	body, err := bson.Marshal(append(d, bson.E{Key: "$db", Value: "shop"}))
	if err != nil {
		t.Fatal(err)
	}
	var c shape.Command
	if !shape.NewFinder(0, 1).Find(&mongo.Message{Header: mongo.Header{Op: mongo.OpMsg}, Body: body}, &c) {
		t.Fatal("no command")
	}
	return c.Statements[0].Shape.Command, c.Statements[0].Shape.Text
}

func TestExplain(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		q, err := Parse(shapeOf(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		d, err := q.Explain("u")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		raw, err := bson.MarshalExtJSON(d[0].Value, false, false)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != want {
			t.Errorf("%s\n got  %s\n want %s", text, raw, want)
		}
	}
	f(`{"find":"u","filter":{"b":17,"a":"secret"},"sort":{"c":-1},"limit":5,"skip":3}`, `{"find":"u","filter":{"a":"","b":""},"sort":{"c":-1},"skip":1,"limit":10}`)
	f(`{"find":"u"}`, `{"find":"u","filter":{}}`)
	f(`{"find":"u","filter":{"_id":17}}`, `{"find":"u","filter":{"_id":{"$oid":"000000000000000000000000"}}}`)
	f(`{"find":"u","filter":{"a":{"$gte":17,"$lt":18},"b":{"$in":[1,2,3]},"c":{"$exists":false}}}`, `{"find":"u","filter":{"a":{"$gte":1,"$lt":2},"b":{"$in":[""]},"c":{"$exists":true}}}`)
	f(`{"find":"u","filter":{"$or":[{"a":1},{"b":{"$regex":"^x","$options":"i"}}],"m":{"$mod":[4,1]}}}`, `{"find":"u","filter":{"$or":[{"a":""},{"b":{"$options":"","$regex":"x"}}],"m":{"$mod":[2,0]}}}`)
	f(`{"find":"u","filter":{"list":{"$elemMatch":{"x":1,"y":{"$gt":2}}}}}`, `{"find":"u","filter":{"list":{"$elemMatch":{"x":"","y":{"$gt":1}}}}}`)
	f(`{"update":"u","updates":[{"q":{"a":1},"u":{"$set":{"b":2}},"multi":true}]}`, `{"find":"u","filter":{"a":""}}`)
	f(`{"update":"u","updates":[{"q":{},"u":[{"$set":{"b":2}}]}]}`, `{"find":"u","filter":{}}`)
	f(`{"delete":"u","deletes":[{"q":{"a":1},"limit":1}]}`, `{"find":"u","filter":{"a":""}}`)
	f(`{"findAndModify":"u","query":{"a":1},"sort":{"d":1},"update":{"$set":{"b":2}}}`, `{"find":"u","filter":{"a":""},"sort":{"d":1}}`)
	f(`{"count":"u","query":{"a":{"$ne":1}}}`, `{"find":"u","filter":{"a":{"$ne":""}}}`)
	f(`{"distinct":"u","key":"k","query":{"a":1}}`, `{"find":"u","filter":{"a":""}}`)
	f(`{"aggregate":"u","pipeline":[{"$match":{"a":1}},{"$sort":{"b":1}},{"$limit":3},{"$group":{"_id":"$x"}}]}`, `{"find":"u","filter":{"a":""},"sort":{"b":1},"limit":10}`)
	f(`{"aggregate":"u","pipeline":[{"$group":{"_id":"$x"}},{"$match":{"a":1}}]}`, `{"find":"u","filter":{}}`)
	f(`{"find":"u","filter":{"x":{"y":1,"z":[1,2]},"größe":2}}`, `{"find":"u","filter":{"größe":"","x":{"y":"","z":[""]}}}`)
}

// What no placeholder fits, or is no reading of a collection, is refused with a reason.
func TestExplain_refused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		q, err := Parse(shapeOf(t, text))
		if err == nil {
			_, err = q.Explain("u")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	f(`{"insert":"u","documents":[{"a":1}]}`, "looks for no documents")
	f(`{"find":"u","filter":{"a.17.b":1}}`, "names of its fields are data")
	f(`{"find":"u","filter":{"$where":"this.a"}}`, "nothing can stand for the values of $where")
	f(`{"find":"u","filter":{"$text":{"$search":"x"}}}`, "$text")
	f(`{"find":"u","filter":{"a b: c":1}}`, "field name of letters")
	f(`{"find":"u","filter":{"a":1},"sort":{"s":{"$meta":"textScore"}}}`, "sorted by s")
	f(`{"aggregate":"u","pipeline":[{"$geoNear":{"near":[1,2]}}]}`, "begins with $geoNear")
	if _, err := Parse("find", "find {"+strings.Repeat("a: {", 100)); err == nil {
		t.Error("endless nesting is taken")
	}
	if _, err := Parse("find", "find {a: ?, …}"); err == nil {
		t.Error("a shape that was cut is taken")
	}
}

func TestHints(t *testing.T) {
	key := func(text string) (k Key) {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatal(err)
		}
		raw, _ := bson.Marshal(d)
		return DecodeKey(raw)
	}
	f := func(command string, there []Index, want ...string) {
		t.Helper()
		q, err := Parse(shapeOf(t, command))
		if err != nil {
			t.Errorf("%s: %v", command, err)
			return
		}
		var got []string
		for _, h := range q.Hints(there) {
			got = append(got, h.Key)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", command, got, want)
		}
	}
	on := func(text string) []Index {
		return []Index{{Name: "_id_", Key: key(`{"_id":1}`), Unique: true}, {Name: "x", Key: key(text)}}
	}
	const esr = `{"find":"u","filter":{"status":1,"age":{"$gte":1}},"sort":{"created":-1}}`
	f(esr, nil, "{status: 1, created: -1, age: 1}")
	f(esr, on(`{"status":1}`), "{status: 1, created: -1, age: 1}")
	f(esr, on(`{"status":1,"age":1,"created":-1}`), "{status: 1, created: -1, age: 1}")
	f(esr, on(`{"status":-1,"created":1,"age":1}`))
	f(esr, on(`{"status":1,"created":-1,"age":1,"more":1}`))
	f(esr, on(`{"status":1,"created":"hashed","age":1}`), "{status: 1, created: -1, age: 1}")
	f(`{"find":"u","filter":{"a":1,"b":2}}`, on(`{"b":1,"a":1}`))
	f(`{"find":"u","filter":{"a":1,"b":2}}`, on(`{"b":1}`), "{a: 1, b: 1}")
	f(`{"find":"u","filter":{"a":1,"b":2}}`, []Index{{Name: "b", Key: key(`{"b":1}`), Unique: true}})
	f(`{"find":"u","filter":{"a":1}}`, []Index{{Name: "a", Key: key(`{"a":1}`), Partial: true}}, "{a: 1}")
	f(`{"find":"u","filter":{"a":1}}`, on(`{"a":"hashed"}`))
	f(`{"find":"u","filter":{"a":{"$gt":1}}}`, on(`{"a":"hashed"}`), "{a: 1}")
	f(`{"find":"u","filter":{},"sort":{"a":1,"b":-1}}`, on(`{"a":1,"b":1}`), "{a: 1, b: -1}")
	f(`{"find":"u","filter":{},"sort":{"a":1,"b":-1}}`, on(`{"a":-1,"b":1}`))
	f(`{"find":"u","filter":{"a":1},"sort":{"a":1}}`, on(`{"a":1}`))
	f(`{"find":"u","filter":{"_id":1,"a":1}}`, nil)
	f(`{"find":"u","filter":{},"sort":{"_id":1}}`, nil)
	f(`{"find":"u"}`, nil)
	f(`{"find":"u","filter":{"a":{"$ne":1}}}`, nil)
	f(`{"find":"u","filter":{"$or":[{"a":1},{"b":2}],"c":3}}`, on(`{"c":1,"a":1}`), "{c: 1, b: 1}")
	f(`{"find":"u","filter":{"$and":[{"a":1},{"b":{"$lt":2}}]}}`, nil, "{a: 1, b: 1}")
	f(`{"find":"u","filter":{"l":{"$elemMatch":{"x":1,"y":2}}}}`, nil, "{l.x: 1, l.y: 1}")
	f(`{"find":"u","filter":{"l.17.x":1}}`, nil)
	f(`{"aggregate":"u","pipeline":[{"$match":{"a":1}},{"$sort":{"b":-1}}]}`, nil, "{a: 1, b: -1}")
}

// answer makes an answer of the server from extended JSON.
func answer(t testing.TB, text string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDecodeExplain(t *testing.T) {
	f := func(text, summary, stages, used string, scans, sorts bool) {
		t.Helper()
		e, ok := DecodeExplain(answer(t, text))
		if !ok {
			t.Errorf("%s is not understood", text)
			return
		}
		if e.Summary != summary || strings.Join(e.Stages, " ") != stages || strings.Join(e.Used, " ") != used || e.Scans != scans || e.Sorts != sorts {
			t.Errorf("%s: %+v", text, *e)
		}
		if all, _ := json.Marshal(e); strings.Contains(string(all), "secret") {
			t.Errorf("a value is kept: %s", all)
		}
	}
	f(`{"queryPlanner":{"queryHash":"AB12","winningPlan":{"stage":"COLLSCAN","filter":{"a":{"$eq":"secret"}},"direction":"forward"},"rejectedPlans":[]}}`, "COLLSCAN", "COLLSCAN", "", true, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"SORT","inputStage":{"stage":"FETCH","inputStage":{"stage":"IXSCAN","keyPattern":{"a":1,"b":-1},"indexName":"a_1_b_-1","indexBounds":{"a":["[\"secret\", \"secret\"]"]}}}}}}`,
		"IXSCAN {a: 1, b: -1}", "SORT FETCH IXSCAN", "a_1_b_-1", false, true)
	f(`{"queryPlanner":{"winningPlan":{"isCached":false,"queryPlan":{"stage":"FETCH","inputStage":{"stage":"IXSCAN","keyPattern":{"a":1},"indexName":"a_1"}},"slotBasedPlan":{"stages":"secret"}}}}`, "IXSCAN {a: 1}", "FETCH IXSCAN", "a_1", false, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"SUBPLAN","inputStage":{"stage":"FETCH","inputStage":{"stage":"OR","inputStages":[{"stage":"IXSCAN","keyPattern":{"a":1},"indexName":"a"},{"stage":"IXSCAN","keyPattern":{"b":1},"indexName":"b"}]}}}}}`,
		"IXSCAN {a: 1}, IXSCAN {b: 1}", "SUBPLAN FETCH OR IXSCAN IXSCAN", "a b", false, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"SHARD_MERGE","shards":[{"shardName":"s0","winningPlan":{"stage":"COLLSCAN"}}]}}}`, "COLLSCAN", "SHARD_MERGE COLLSCAN", "", true, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"EXPRESS_IXSCAN","keyPattern":"{ a: 1 }","indexName":"a_1"}}}`, "EXPRESS_IXSCAN {a: 1}", "EXPRESS_IXSCAN", "a_1", false, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"IDHACK"}}}`, "IDHACK", "IDHACK", "", false, false)
	f(`{"queryPlanner":{"winningPlan":{"stage":"EOF"}}}`, "EOF", "EOF", "", false, false)
	for _, bad := range []string{`{}`, `{"queryPlanner":1}`, `{"queryPlanner":{}}`, `{"queryPlanner":{"winningPlan":{}}}`, `{"queryPlanner":{"winningPlan":{"stage":1}}}`} {
		if _, ok := DecodeExplain(answer(t, bad)); ok {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestDecodeTrial(t *testing.T) {
	got, ok := DecodeTrial(answer(t, `{"creationExecStats":[{"nReturned":2,"totalDocsExamined":500,"totalKeysExamined":501},{"nReturned":0,"totalDocsExamined":9,"totalKeysExamined":9}]}`))
	if !ok || got.Returned != 2 || got.Documents != 500 || got.Keys != 501 {
		t.Errorf("%+v %v", got, ok)
	}
	for _, bad := range []string{`{}`, `{"creationExecStats":[]}`, `{"creationExecStats":[1]}`, `{"creationExecStats":[{"nReturned":"x"}]}`} {
		if _, ok := DecodeTrial(answer(t, bad)); ok {
			t.Errorf("%s is taken", bad)
		}
	}
}

// Shapes and answers come from outside: nothing breaks on them, and what is explained is a document that can be written.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"find {a: ?, b: {$in: [?]}} sort {c: -1} limit ?", "aggregate [{$match: {a: ?}}, {$sort: {b: 1}}]", "update {_id: ?} {$set: {a: ?}} multi", "distinct k {}", "find {", "delete {a: [{b: ?}, ?]} one"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		command, _, _ := strings.Cut(text, " ")
		q, err := Parse(command, text)
		if err != nil {
			return
		}
		q.Hints(nil)
		d, err := q.Explain("u")
		if err != nil {
			return
		}
		if _, err := bson.Marshal(d); err != nil {
			t.Errorf("%q gives a command that cannot be written: %v", text, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(answer(f, `{"queryPlanner":{"queryHash":"x","winningPlan":{"stage":"FETCH","inputStage":{"stage":"IXSCAN","keyPattern":{"a":1},"indexName":"a_1"}}}}`)))
	f.Add([]byte(answer(f, `{"name":"a","key":{"a":1},"spec":{"unique":true},"accesses":{"ops":{"$numberLong":"3"}},"creationExecStats":[{"nReturned":1}]}`)))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if bson.Raw(raw).Validate() != nil {
			return // The driver checks answers before it hands them on.
		}
		DecodeExplain(raw)
		DecodeIndex(raw)
		DecodeTrial(raw)
	})
}
