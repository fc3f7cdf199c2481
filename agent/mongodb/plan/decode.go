package plan

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/queryplan"
)

// The bounds of what is read of an answer.
const (
	maxStageDepth = 32
	maxStageCount = 200
	maxTextBytes  = 128
	maxKeyFields  = 32
)

// Explained is what an explain says.
type Explained struct {
	Summary        string
	Stages, Used   []string
	Scans, Sorts   bool
	Rejected       int
	hash, hashName string
	seen           int
	summaries      []string
}

// Hash is the server's name of the query in its plan cache, with the field that has it; empty where it does not say.
func (e *Explained) Hash() (field, hash string) { return e.hashName, e.hash }

// DecodeExplain reads the winning plan of an answer to explain: of a find or a pipeline, by either engine, of one server or of shards. Of filters and bounds,
// which have values, nothing is read. False when the answer has no plan in a form that is known.
func DecodeExplain(answer bson.Raw) (*Explained, bool) {
	e := &Explained{}
	e.answer(answer, 0)
	if len(e.Stages) == 0 {
		return nil, false
	}
	e.Summary = strings.Join(e.summaries, ", ")
	if e.Summary == "" {
		e.Summary = e.Stages[len(e.Stages)-1]
	}
	return e, true
}

// answer reads an answer, or that of one shard to a pipeline.
func (e *Explained) answer(d bson.Raw, depth int) {
	if e.seen++; depth > 1 || e.seen > maxStageCount {
		return
	}
	if planner, ok := d.Lookup("queryPlanner").DocumentOK(); ok {
		e.planner(planner, 0)
	}
	if list, ok := d.Lookup("stages").ArrayOK(); ok {
		e.pipeline(documents(list))
	}
	if shards, ok := d.Lookup("shards").DocumentOK(); ok {
		elements, err := shards.Elements()
		if err != nil {
			return
		}
		for _, s := range elements {
			if inner, ok := s.Value().DocumentOK(); ok {
				e.answer(inner, depth+1)
			}
		}
	}
}

// pipeline reads the stages of a pipeline that the classic engine runs; the first holds the plan of what is read.
func (e *Explained) pipeline(stages []bson.Raw) {
	for _, d := range stages {
		first, err := d.IndexErr(0)
		if err != nil || e.seen > maxStageCount {
			return
		}
		e.seen++
		if planner, ok := d.Lookup("$cursor", "queryPlanner").DocumentOK(); ok {
			e.planner(planner, 0)
			continue
		}
		if name := first.Key(); strings.HasPrefix(name, "$") && len(name) <= maxTextBytes {
			e.Stages = append(e.Stages, strings.ToValidUTF8(name, "?"))
		}
	}
}

// planner reads the plan of one server, or of a router with those of its shards.
func (e *Explained) planner(d bson.Raw, depth int) {
	for _, name := range []string{"planCacheShapeHash", "queryHash"} {
		if s, ok := d.Lookup(name).StringValueOK(); ok && e.hash == "" && len(s) <= maxTextBytes {
			e.hashName, e.hash = name, s
		}
	}
	if list, ok := d.Lookup("rejectedPlans").ArrayOK(); ok {
		e.Rejected += len(documents(list))
	}
	if winning, ok := d.Lookup("winningPlan").DocumentOK(); ok {
		e.stage(winning, depth)
	}
}

// stage reads one stage and those below it.
func (e *Explained) stage(d bson.Raw, depth int) {
	if e.seen++; depth > maxStageDepth || e.seen > maxStageCount {
		return
	}
	if inner, ok := d.Lookup("queryPlan").DocumentOK(); ok { // The slot-based engine.
		e.stage(inner, depth+1)
		return
	}
	if name := label(d, "stage"); name != "" {
		e.Stages = append(e.Stages, name)
		e.note(name, d)
	}
	for _, name := range []string{"inputStage", "outerStage", "innerStage", "thenStage", "elseStage"} {
		if inner, ok := d.Lookup(name).DocumentOK(); ok {
			e.stage(inner, depth+1)
		}
	}
	if list, ok := d.Lookup("inputStages").ArrayOK(); ok {
		for _, inner := range documents(list) {
			e.stage(inner, depth+1)
		}
	}
	if list, ok := d.Lookup("shards").ArrayOK(); ok {
		for _, inner := range documents(list) {
			e.planner(inner, depth+1)
		}
	}
}

// note keeps what a stage tells of reading: the whole collection, or an index.
func (e *Explained) note(name string, d bson.Raw) {
	summary := ""
	switch {
	case name == "COLLSCAN":
		e.Scans, summary = true, name
	case name == "SORT" || strings.HasPrefix(name, "SORT_") && name != "SORT_MERGE" && name != "SORT_KEY_GENERATOR":
		e.Sorts = true
	case name == "IDHACK" || name == "EOF" || strings.HasPrefix(name, "EXPRESS") || name == "CLUSTERED_IXSCAN":
		summary = name
	case strings.HasPrefix(name, "EQ_LOOKUP"):
		// Its index is one of the other collection.
		if how := label(d, "strategy"); how != "" {
			name += " " + how
		}
		e.summarize(name)
		return
	}
	index := label(d, "indexName")
	if index != "" {
		if !slices.Contains(e.Used, index) {
			e.Used = append(e.Used, index)
		}
		summary = name
		if pattern, ok := d.Lookup("keyPattern").DocumentOK(); ok {
			summary += " " + DecodeKey(pattern).String()
		} else if pattern := label(d, "keyPattern"); pattern != "" {
			// As the express stages of 8.0 write it: "{ a: 1 }".
			summary += " " + strings.NewReplacer("{ ", "{", " }", "}").Replace(pattern)
		}
	}
	e.summarize(summary)
}

// summarize adds to the summary what is not in it.
func (e *Explained) summarize(text string) {
	if text != "" && !slices.Contains(e.summaries, text) && len(e.summaries) < queryplan.MaxHints {
		e.summaries = append(e.summaries, text)
	}
}

// label reads a short text.
func label(d bson.Raw, name string) string {
	s, ok := d.Lookup(name).StringValueOK()
	if !ok {
		return ""
	}
	if len(s) > maxTextBytes {
		s = s[:maxTextBytes]
	}
	return strings.ToValidUTF8(s, "?")
}

// documents are those of a list, as far as it can be read.
func documents(list bson.RawArray) []bson.Raw {
	values, err := list.Values()
	if err != nil {
		return nil
	}
	var out []bson.Raw
	for _, v := range values {
		if d, ok := v.DocumentOK(); ok {
			out = append(out, d)
		}
	}
	return out
}

// DecodeKey reads the specification of an index.
func DecodeKey(pattern bson.Raw) Key {
	elements, err := pattern.Elements()
	if err != nil {
		return nil
	}
	var key Key
	for _, e := range elements[:min(len(elements), maxKeyFields)] {
		p := Part{Field: strings.ToValidUTF8(e.Key(), "?")}
		if len(p.Field) > maxTextBytes {
			p.Field = strings.ToValidUTF8(p.Field[:maxTextBytes], "")
		}
		if n, ok := e.Value().AsFloat64OK(); ok {
			p.Direction = 1
			if n < 0 {
				p.Direction = -1
			}
		} else if s, ok := e.Value().StringValueOK(); ok && len(s) <= maxTextBytes {
			p.Kind = strings.ToValidUTF8(s, "?")
		}
		key = append(key, p)
	}
	return key
}

// DecodeIndex reads an index as $indexStats or listIndexes tells it, and how often it was used where that is told.
func DecodeIndex(d bson.Raw) (i Index, uses *uint64, ok bool) {
	i.Name = label(d, "name")
	pattern, ok := d.Lookup("key").DocumentOK()
	if !ok || i.Name == "" {
		return i, nil, false
	}
	i.Key = DecodeKey(pattern)
	spec := d
	if inner, ok := d.Lookup("spec").DocumentOK(); ok {
		spec = inner
	}
	truth := func(name string) bool { v, ok := spec.Lookup(name).BooleanOK(); return ok && v }
	i.Unique = truth("unique") || len(i.Key) == 1 && i.Key[0].Field == "_id"
	_, partial := spec.Lookup("partialFilterExpression").DocumentOK()
	i.Partial = partial || truth("sparse") || truth("hidden")
	if n, ok := d.Lookup("accesses", "ops").AsInt64OK(); ok && n >= 0 {
		u := uint64(n)
		uses = &u
	}
	return i, uses, true
}

// DecodeTrial reads what an entry of the plan cache measured; false where it does not say.
func DecodeTrial(d bson.Raw) (queryplan.Trial, bool) {
	list, ok := d.Lookup("creationExecStats").ArrayOK()
	if !ok {
		return queryplan.Trial{}, false
	}
	trials := documents(list)
	if len(trials) == 0 {
		return queryplan.Trial{}, false
	}
	// The first is that of the plan that won.
	count := func(name string) (uint64, bool) {
		n, ok := trials[0].Lookup(name).AsInt64OK()
		return uint64(max(n, 0)), ok
	}
	docs, ok1 := count("totalDocsExamined")
	keys, ok2 := count("totalKeysExamined")
	returned, ok3 := count("nReturned")
	return queryplan.Trial{Documents: docs, Keys: keys, Returned: returned}, ok1 && ok2 && ok3
}
