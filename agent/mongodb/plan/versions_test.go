package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDecodeExplain_versions reads answers in the forms of the versions from 4.4 to 8.0: the classic engine (explainVersion 1, or none before 5.1), the slot-based one (2), routers of a cluster, and pipelines.
func TestDecodeExplain_versions(t *testing.T) {
	const (
		ixscan = `{"stage":"IXSCAN","keyPattern":{"a":1},"indexName":"a_1","isMultiKey":false,"multiKeyPaths":{"a":[]},"isUnique":false,"isSparse":false,"isPartial":false,"indexVersion":2,"direction":"forward","indexBounds":{"a":["[\"secret\", \"secret\"]"]}}`
		other  = `{"stage":"IXSCAN","keyPattern":{"b":-1},"indexName":"b_-1","indexBounds":{"b":["[\"secret\", \"secret\"]"]}}`
		scan   = `{"stage":"COLLSCAN","filter":{"a":{"$eq":"secret"}},"direction":"forward"}`
		head   = `"namespace":"shop.u","indexFilterSet":false,"parsedQuery":{"a":{"$eq":"secret"}},"maxIndexedOrSolutionsReached":false,`
		slots  = `,"slotBasedPlan":{"slots":"$$RESULT=s5 env: { s1 = \"secret\" }","stages":"[2] nlj inner [] [s3] ixseek \"secret\""}`
	)
	for _, c := range []struct {
		name, answer, summary, stages, used string
		scans, sorts                        bool
		rejected                            int
		hash                                string
	}{
		{
			"4.4, index", `{"queryPlanner":{"plannerVersion":1,` + head + `"queryHash":"4B53BE76","planCacheKey":"C5D80B8F","winningPlan":{"stage":"FETCH","inputStage":` + ixscan + `},"rejectedPlans":[{"stage":"FETCH","inputStage":` + other + `}]},"ok":1}`,
			"IXSCAN {a: 1}", "FETCH IXSCAN", "a_1", false, false, 1, "queryHash 4B53BE76",
		},
		{
			"4.4, sort in memory", `{"queryPlanner":{"plannerVersion":1,` + head + `"winningPlan":{"stage":"SORT","sortPattern":{"c":-1},"memLimit":104857600,"type":"simple","inputStage":` + scan + `},"rejectedPlans":[]}}`,
			"COLLSCAN", "SORT COLLSCAN", "", true, true, 0, "",
		},
		{
			"4.2, sort in memory", `{"queryPlanner":{"plannerVersion":1,"winningPlan":{"stage":"SORT","sortPattern":{"c":-1},"inputStage":{"stage":"SORT_KEY_GENERATOR","inputStage":` + scan + `}},"rejectedPlans":[]}}`,
			"COLLSCAN", "SORT SORT_KEY_GENERATOR COLLSCAN", "", true, true, 0, "",
		},
		{
			"5.0, merge of sorted branches", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"FETCH","inputStage":{"stage":"SORT_MERGE","sortPattern":{"c":1},"inputStages":[` + ixscan + `,` + other + `]}},"rejectedPlans":[]}}`,
			"IXSCAN {a: 1}, IXSCAN {b: -1}", "FETCH SORT_MERGE IXSCAN IXSCAN", "a_1 b_-1", false, false, 0, "",
		},
		{
			"5.0, or", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"SUBPLAN","inputStage":{"stage":"FETCH","inputStage":{"stage":"OR","inputStages":[` + ixscan + `,` + other + `]}}},"rejectedPlans":[]}}`,
			"IXSCAN {a: 1}, IXSCAN {b: -1}", "SUBPLAN FETCH OR IXSCAN IXSCAN", "a_1 b_-1", false, false, 0, "",
		},
		{
			"5.0, intersection", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"FETCH","filter":{"a":{"$eq":"secret"}},"inputStage":{"stage":"AND_SORTED","inputStages":[` + ixscan + `,` + other + `]}},"rejectedPlans":[]}}`,
			"IXSCAN {a: 1}, IXSCAN {b: -1}", "FETCH AND_SORTED IXSCAN IXSCAN", "a_1 b_-1", false, false, 0, "",
		},
		{"5.0, by _id", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"IDHACK"},"rejectedPlans":[]}}`, "IDHACK", "IDHACK", "", false, false, 0, ""},
		{
			"5.0, count", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"COUNT","inputStage":{"stage":"COUNT_SCAN","keyPattern":{"a":1},"indexName":"a_1","indexBounds":{"startKey":{"a":"secret"},"endKey":{"a":"secret"}}}},"rejectedPlans":[]}}`,
			"COUNT_SCAN {a: 1}", "COUNT COUNT_SCAN", "a_1", false, false, 0, "",
		},
		{
			"6.0, distinct", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"PROJECTION_COVERED","transformBy":{"a":1,"_id":0},"inputStage":{"stage":"DISTINCT_SCAN","keyPattern":{"a":1},"indexName":"a_1","indexBounds":{"a":["[MinKey, MaxKey]"]}}},"rejectedPlans":[]}}`,
			"DISTINCT_SCAN {a: 1}", "PROJECTION_COVERED DISTINCT_SCAN", "a_1", false, false, 0, "",
		},
		{
			"6.0, clustered", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"CLUSTERED_IXSCAN","filter":{"_id":{"$eq":"secret"}},"direction":"forward","minRecord":"secret","maxRecord":"secret"},"rejectedPlans":[]}}`,
			"CLUSTERED_IXSCAN", "CLUSTERED_IXSCAN", "", false, false, 0, "",
		},
		{
			"6.0, text", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"TEXT_MATCH","indexPrefix":{},"indexName":"t_text","parsedTextQuery":{"terms":["secret"]},"inputStage":{"stage":"FETCH","inputStage":{"stage":"OR","inputStage":{"stage":"IXSCAN","keyPattern":{"_fts":"text","_ftsx":1},"indexName":"t_text"}}}},"rejectedPlans":[]}}`,
			`TEXT_MATCH, IXSCAN {_fts: "text", _ftsx: 1}`, "TEXT_MATCH FETCH OR IXSCAN", "t_text", false, false, 0, "",
		},
		{
			"6.0, near", `{"explainVersion":"1","queryPlanner":{` + head + `"winningPlan":{"stage":"GEO_NEAR_2DSPHERE","keyPattern":{"place":"2dsphere"},"indexName":"place_2dsphere","indexVersion":2},"rejectedPlans":[]}}`,
			`GEO_NEAR_2DSPHERE {place: "2dsphere"}`, "GEO_NEAR_2DSPHERE", "place_2dsphere", false, false, 0, "",
		},
		{
			"6.0, slots", `{"explainVersion":"2","queryPlanner":{` + head + `"queryHash":"AB","winningPlan":{"queryPlan":{"stage":"FETCH","planNodeId":2,"inputStage":` + ixscan + `}` + slots + `},"rejectedPlans":[{"queryPlan":{"stage":"FETCH","inputStage":` + other + `}` + slots + `}]}}`,
			"IXSCAN {a: 1}", "FETCH IXSCAN", "a_1", false, false, 1, "queryHash AB",
		},
		{
			"7.0, group by slots", `{"explainVersion":"2","queryPlanner":{` + head + `"winningPlan":{"queryPlan":{"stage":"GROUP","planNodeId":3,"inputStage":` + scan + `}` + slots + `},"rejectedPlans":[]}}`,
			"COLLSCAN", "GROUP COLLSCAN", "", true, false, 0, "",
		},
		{
			"7.0, lookup by slots", `{"explainVersion":"2","queryPlanner":{` + head + `"winningPlan":{"queryPlan":{"stage":"EQ_LOOKUP","planNodeId":2,"foreignCollection":"shop.v","localField":"x","foreignField":"y","asField":"z","strategy":"IndexedLoopJoin","indexName":"y_1","indexKeyPattern":{"y":1},"inputStage":` + scan + `}` + slots + `},"rejectedPlans":[]}}`,
			"EQ_LOOKUP IndexedLoopJoin, COLLSCAN", "EQ_LOOKUP COLLSCAN", "", true, false, 0, "",
		},
		{
			"8.0, express", `{"explainVersion":"1","queryPlanner":{` + head + `"planCacheShapeHash":"CD","winningPlan":{"isCached":false,"stage":"EXPRESS_IXSCAN","keyPattern":"{ _id: 1 }","indexName":"_id_"},"rejectedPlans":[]}}`,
			"EXPRESS_IXSCAN {_id: 1}", "EXPRESS_IXSCAN", "_id_", false, false, 0, "planCacheShapeHash CD",
		},
		{"8.0, express, clustered", `{"explainVersion":"1","queryPlanner":{"winningPlan":{"isCached":false,"stage":"EXPRESS_CLUSTERED_IXSCAN"},"rejectedPlans":[]}}`, "EXPRESS_CLUSTERED_IXSCAN", "EXPRESS_CLUSTERED_IXSCAN", "", false, false, 0, ""},
		{
			"8.0, slots", `{"explainVersion":"2","queryShapeHash":"00FF","queryPlanner":{` + head + `"queryHash":"AB","planCacheShapeHash":"AB","winningPlan":{"isCached":true,"queryPlan":{"stage":"LIMIT","limitAmount":10,"inputStage":{"stage":"FETCH","inputStage":` + ixscan + `}}` + slots + `},"rejectedPlans":[]}}`,
			"IXSCAN {a: 1}", "LIMIT FETCH IXSCAN", "a_1", false, false, 0, "planCacheShapeHash AB",
		},
		{"8.0, nothing there", `{"explainVersion":"1","queryPlanner":{"winningPlan":{"isCached":false,"stage":"EOF","type":"nonExistentNamespace"},"rejectedPlans":[]}}`, "EOF", "EOF", "", false, false, 0, ""},
		{
			"router, 4.4", `{"queryPlanner":{"mongosPlannerVersion":1,"winningPlan":{"stage":"SHARD_MERGE","shards":[{"shardName":"s0","connectionString":"s0/h:1","plannerVersion":1,"queryHash":"EF","winningPlan":{"stage":"FETCH","inputStage":{"stage":"SHARDING_FILTER","inputStage":` + ixscan + `}},"rejectedPlans":[{"stage":"FETCH"}]},{"shardName":"s1","winningPlan":` + scan + `,"rejectedPlans":[]}]}}}`,
			"IXSCAN {a: 1}, COLLSCAN", "SHARD_MERGE FETCH SHARDING_FILTER IXSCAN COLLSCAN", "a_1", true, false, 1, "queryHash EF",
		},
		{
			"router, 7.0, one shard, slots", `{"queryPlanner":{"winningPlan":{"stage":"SINGLE_SHARD","shards":[{"explainVersion":"2","shardName":"s0","winningPlan":{"queryPlan":{"stage":"FETCH","inputStage":` + ixscan + `}` + slots + `},"rejectedPlans":[]}]}}}`,
			"IXSCAN {a: 1}", "SINGLE_SHARD FETCH IXSCAN", "a_1", false, false, 0, "",
		},
		{"router, sorted", `{"queryPlanner":{"winningPlan":{"stage":"SHARD_MERGE_SORT","shards":[{"shardName":"s0","winningPlan":` + ixscan + `,"rejectedPlans":[]}]}}}`, "IXSCAN {a: 1}", "SHARD_MERGE_SORT IXSCAN", "a_1", false, false, 0, ""},
		{
			"pipeline, classic", `{"explainVersion":"1","stages":[{"$cursor":{"queryPlanner":{` + head + `"queryHash":"12","winningPlan":{"stage":"FETCH","inputStage":` + ixscan + `},"rejectedPlans":[]}}},{"$lookup":{"from":"v","as":"secret"}},{"$group":{"_id":"secret"}}],"ok":1}`,
			"IXSCAN {a: 1}", "FETCH IXSCAN $lookup $group", "a_1", false, false, 0, "queryHash 12",
		},
		{
			"router, pipeline", `{"mergeType":"mongos","splitPipeline":{"shardsPart":[{"$match":{"a":"secret"}}]},"shards":{"s0":{"explainVersion":"1","stages":[{"$cursor":{"queryPlanner":{"winningPlan":` + scan + `,"rejectedPlans":[]}}}]},"s1":{"explainVersion":"2","queryPlanner":{"winningPlan":{"queryPlan":` + ixscan + slots + `},"rejectedPlans":[]}}}}`,
			"COLLSCAN, IXSCAN {a: 1}", "COLLSCAN IXSCAN", "a_1", true, false, 0, "",
		},
	} {
		e, ok := DecodeExplain(answer(t, c.answer))
		if !ok {
			t.Errorf("%s is not understood", c.name)
			continue
		}
		field, hash := e.Hash()
		if got := strings.TrimSpace(field + " " + hash); e.Summary != c.summary || strings.Join(e.Stages, " ") != c.stages || strings.Join(e.Used, " ") != c.used || e.Scans != c.scans || e.Sorts != c.sorts || e.Rejected != c.rejected || got != c.hash {
			t.Errorf("%s: %q, hash %q, %+v", c.name, e.Summary, got, *e)
		}
		if all, _ := json.Marshal(e); strings.Contains(string(all), "secret") {
			t.Errorf("%s: a value is kept: %s", c.name, all)
		}
	}
}

// Hostile answers end.
func TestDecodeExplain_bounded(t *testing.T) {
	deep := `{"stage":"COLLSCAN"}`
	for range 80 {
		deep = `{"stage":"X","inputStage":` + deep + `}`
	}
	e, ok := DecodeExplain(answer(t, `{"queryPlanner":{"winningPlan":`+deep+`}}`))
	if !ok || len(e.Stages) > maxStageDepth+1 {
		t.Errorf("%v stages", len(e.Stages))
	}
	wide := `{"stage":"IXSCAN","indexName":"` + strings.Repeat("n", 500) + `"}`
	e, ok = DecodeExplain(answer(t, `{"stages":[`+strings.Repeat(`{"$match":{}},`, 500)+`{"$cursor":{"queryPlanner":{"winningPlan":{"stage":"OR","inputStages":[`+strings.Repeat(wide+",", 500)+wide+`]}}}}]}`))
	if !ok || len(e.Stages) > maxStageCount+1 {
		t.Errorf("%v stages", len(e.Stages))
	}
}
