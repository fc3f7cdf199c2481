package mongodb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"tidemark/agent/mongodb/plan"
	"tidemark/wire/queryplan"
)

// Asked is a shape whose plan is asked for.
type Asked struct {
	Database, Collection, Command string
	// Text is the printed form of the shape.
	Text string
}

// Planner asks a server how it answers shapes. No value of a field is sent or read: explain gets placeholders and does not run the query, of the plan
// cache only numbers are asked for. It may be used beside its Monitor, by one goroutine.
type Planner struct {
	monitor *Monitor
	log     *slog.Logger
	// told are the messages that were logged, so that each is logged once.
	told map[string]bool
}

// Planner returns one that asks the server of the monitor.
func (m *Monitor) Planner() *Planner {
	return &Planner{monitor: m, log: m.log, told: map[string]bool{}}
}

// left notes that a part of a plan cannot be told, and why.
func (p *Planner) left(out *queryplan.Plan, part string, err error) {
	refusal, ok := refused(err)
	if !ok {
		refusal = "the server does not answer"
		if mongo.IsTimeout(err) {
			refusal = "the server takes too long"
		}
	}
	if code := codeOf(err); code == codeUnauthorized {
		refusal = "the user may not ask for it; docs/user/mongodb.md has the role that allows it"
	}
	out.Notes = append(out.Notes, part+": "+refusal)
	if !p.told[part+refusal] && len(p.told) < 100 {
		p.told[part+refusal] = true
		p.log.Warn("MongoDB does not tell all of its plans", "instance", p.monitor.instance, "part", part, "reason", refusal, "error", p.monitor.scrub(err.Error()))
	}
}

func codeOf(err error) int32 {
	var answer mongo.CommandError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// Plan asks how the server answers a shape. It reports false when the shape looks for no documents, so that there is no plan, and when the server does
// not answer at all.
func (p *Planner) Plan(ctx context.Context, of Asked) (*queryplan.Plan, bool) {
	if of.Database == "" || of.Collection == "" || internal(of.Database) || strings.HasPrefix(of.Collection, "system.") || !looks(of.Command) {
		return nil, false
	}
	out := &queryplan.Plan{}
	query, err := plan.Parse(of.Command, of.Text)
	if err != nil {
		out.Notes = append(out.Notes, err.Error())
		return out, true
	}
	if command, err := query.Explain(of.Collection); err != nil {
		out.Notes = append(out.Notes, "not asked with placeholders: "+err.Error())
	} else if !p.explain(ctx, of, command, out) {
		return nil, false
	}
	there, err := p.indexes(ctx, of, out)
	if err != nil {
		p.left(out, "indexes", err)
		return out, ctx.Err() == nil
	}
	out.IndexesKnown = true
	out.Hints = query.Hints(there)
	return out, true
}

// looks reports whether a command looks for documents of a collection.
func looks(command string) bool {
	switch command {
	case "find", "aggregate", "count", "distinct", "findAndModify", "update", "delete":
		return true
	}
	return false
}

// explain asks for the plan and what the plan cache has measured; false when the server does not answer.
func (p *Planner) explain(ctx context.Context, of Asked, command bson.D, out *queryplan.Plan) bool {
	answer, err := p.monitor.run(ctx, of.Database, command)
	if err != nil {
		p.left(out, "explain", err)
		return answers(ctx, err)
	}
	e, ok := plan.DecodeExplain(answer)
	if !ok {
		out.Notes = append(out.Notes, "explain: the server's answer has no plan in a form that is known")
		return true
	}
	out.Summary, out.Stages, out.Used, out.Scans, out.Sorts, out.Rejected = e.Summary, e.Stages, e.Used, e.Scans, e.Sorts, e.Rejected
	if field, hash := e.Hash(); hash != "" {
		p.trial(ctx, of, field, hash, out)
	}
	return true
}

// answers reports whether a server is there that refused, or took too long.
func answers(ctx context.Context, err error) bool {
	var away topology.ServerSelectionError
	if errors.As(err, &away) {
		return false
	}
	_, refusal := refused(err)
	return refusal || mongo.IsTimeout(err) && ctx.Err() == nil
}

// trial reads what the plan cache measured of the query.
func (p *Planner) trial(ctx context.Context, of Asked, field, hash string, out *queryplan.Plan) {
	answer, err := p.monitor.aggregate(ctx, of.Database, of.Collection, bson.A{
		bson.D{{Key: "$planCacheStats", Value: bson.D{}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: field, Value: hash}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "isActive", Value: -1}, {Key: "timeOfCreation", Value: -1}}}},
		bson.D{{Key: "$limit", Value: 1}},
		bson.D{{Key: "$project", Value: bson.D{
			{Key: "creationExecStats.nReturned", Value: 1}, {Key: "creationExecStats.totalDocsExamined", Value: 1}, {Key: "creationExecStats.totalKeysExamined", Value: 1},
		}}},
	})
	if err != nil {
		p.left(out, "plan cache", err)
		return
	}
	eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
		if t, ok := plan.DecodeTrial(d); ok {
			out.Trial = &t
		}
		return false
	})
}

// indexes lists those of the collection, with their uses where the server tells them.
func (p *Planner) indexes(ctx context.Context, of Asked, out *queryplan.Plan) ([]plan.Index, error) {
	answer, err := p.monitor.aggregate(ctx, of.Database, of.Collection, bson.A{
		bson.D{{Key: "$indexStats", Value: bson.D{}}},
		bson.D{{Key: "$project", Value: bson.D{
			{Key: "name", Value: 1},
			{Key: "key", Value: 1},
			{Key: "accesses.ops", Value: 1},
			{Key: "spec.unique", Value: 1},
			{Key: "spec.sparse", Value: 1},
			{Key: "spec.hidden", Value: 1},
			// Whether it is partial; the filter itself has values.
			{Key: "spec.partialFilterExpression", Value: bson.D{{Key: "$cond", Value: bson.A{
				bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: "$spec.partialFilterExpression"}}, "object"}}}, bson.D{{Key: "$literal", Value: bson.D{}}}, "$$REMOVE",
			}}}},
		}}},
		bson.D{{Key: "$limit", Value: maxBatch}},
	})
	if err != nil && answers(ctx, err) {
		answer, err = p.monitor.run(ctx, of.Database, bson.D{{Key: "listIndexes", Value: of.Collection}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: maxBatch}}}})
	}
	if err != nil {
		return nil, fmt.Errorf("list the indexes of %s.%s: %w", of.Database, of.Collection, err)
	}
	var there []plan.Index
	eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
		if i, uses, ok := plan.DecodeIndex(d); ok {
			there = append(there, i)
			out.Indexes = append(out.Indexes, queryplan.Index{Name: i.Name, Key: i.Key.String(), Uses: uses})
		}
		return len(there) < maxBatch
	})
	return there, nil
}

// PlanTimeout bounds what asking for one plan may take.
const PlanTimeout = 3 * commandTimeout

// PlanInterval is how often plans are asked for where nobody says otherwise.
const PlanInterval = 10 * time.Minute
