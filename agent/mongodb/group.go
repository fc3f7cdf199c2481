package mongodb

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// group is a part of what is asked: a server that lacks it, or does not allow it, has the other parts all the same.
type group struct {
	name string
	slow bool
	ask  func(*Monitor, context.Context, time.Time, func(sample)) error

	next   time.Time
	reason string // why it is left out
}

func newGroups() []*group {
	return []*group{
		{name: "server status", ask: (*Monitor).askStatus},
		{name: "replica set", ask: (*Monitor).askReplicaSet},
		{name: "operations under way", ask: (*Monitor).askOperations},
		{name: "time per collection", ask: (*Monitor).askTop},
		{name: "facts", ask: (*Monitor).askFacts, slow: true},
		{name: "oplog", ask: (*Monitor).askOplog, slow: true},
		{name: "databases", ask: (*Monitor).askDatabases, slow: true},
		{name: "collections", ask: (*Monitor).askCollections, slow: true},
		{name: "indexes", ask: (*Monitor).askIndexes, slow: true},
	}
}

// due reports whether the group is to be asked, and sets when it is next.
func (g *group) due(now time.Time, interval time.Duration) bool {
	// A tenth of an interval early is in time: ticks are not exact.
	if now.Before(g.next.Add(-interval/10)) && g.next.Sub(now) <= retryAfter {
		return false
	}
	if g.slow {
		interval = max(interval, slowInterval)
	}
	g.next = now.Add(interval)
	return true
}

// ask asks for one group. It reports false when the server does not answer at all.
func (m *Monitor) ask(ctx context.Context, g *group, now time.Time, put func(Value)) bool {
	err := g.ask(m, ctx, now, func(s sample) { m.put(put, s) })
	if err == nil {
		if g.reason != "" {
			m.log.Info("MongoDB counters are there again", "instance", m.instance, "part", g.name)
		}
		g.reason = ""
		return true
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return true // The agent ends.
	}
	refusal, ok := refused(err)
	if !ok && g.slow && mongo.IsTimeout(err) {
		refusal, ok = "the server takes too long", true
	}
	if !ok {
		if m.up || !m.known {
			m.log.Warn("MongoDB does not answer; its counters have no values until it does", "instance", m.instance, "error", m.scrub(err.Error()))
		}
		return false
	}
	reason := refusal + ": " + m.scrub(err.Error())
	if reason != g.reason {
		m.log.Warn("MongoDB counters are left out", "instance", m.instance, "part", g.name, "reason", reason)
	}
	g.reason = reason
	g.next = now.Add(retryAfter)
	return true
}

// Error numbers of MongoDB (src/mongo/base/error_codes.yml of the server).
const (
	codeUnauthorized        = 13
	codeNamespaceNotFound   = 26
	codeCommandNotFound     = 59
	codeNoReplication       = 76
	codeNotYetInitialized   = 94
	codeCommandNotSupported = 115
	codeNotOnView           = 166
	codeNotImplemented      = 238
	codeUnknownStage        = 40324
)

// refused says in words why a server that answers did not do what was asked; false when it did not answer.
func refused(err error) (string, bool) {
	if errors.Is(err, errNothing) {
		return "there is nothing to tell", true
	}
	var answer mongo.CommandError
	var connection topology.ConnectionError // Among others, a refused password.
	if !errors.As(err, &answer) || errors.As(err, &connection) || mongo.IsNetworkError(err) || mongo.IsTimeout(err) {
		return "", false
	}
	switch answer.Code {
	case codeUnauthorized:
		return "the user may not ask for it; grant it the role clusterMonitor on the database admin", true
	case codeCommandNotFound, codeCommandNotSupported, codeNotImplemented, codeUnknownStage:
		return "this server does not know the command", true
	case codeNoReplication, codeNotYetInitialized:
		return "the server is no member of a replica set", true
	}
	return "the server refuses", true
}

// errNothing is a group that has nothing on this server.
var errNothing = errors.New("the answer is empty")

// gone reports whether one collection cannot be asked because it is gone, or a view.
func gone(err error) bool {
	var answer mongo.CommandError
	return errors.As(err, &answer) && (answer.Code == codeNamespaceNotFound || answer.Code == codeNotOnView)
}

// statusCommand leaves out the parts of serverStatus that cost the most and are not used.
var statusCommand = bson.D{
	{Key: "serverStatus", Value: 1},
	{Key: "sharding", Value: 0},
	{Key: "mirroredReads", Value: 0},
	{Key: "hedgingMetrics", Value: 0},
	{Key: "defaultRWConcern", Value: 0},
	{Key: "electionMetrics", Value: 0},
	{Key: "security", Value: 0},
	{Key: "twoPhaseCommitCoordinator", Value: 0},
}

func (m *Monitor) askStatus(ctx context.Context, _ time.Time, put func(sample)) error {
	answer, err := m.run(ctx, "admin", statusCommand)
	if err != nil {
		return err
	}
	m.connections = 0
	if n, ok := number(answer, "connections", "current"); ok && n > 0 {
		m.connections = uint64(n)
	}
	decodeStatus(answer, put)
	return nil
}

func (m *Monitor) askFacts(ctx context.Context, _ time.Time, put func(sample)) error {
	answer, err := m.run(ctx, "admin", statusCommand)
	if err == nil {
		decodeFacts(answer, put)
	}
	return err
}

func (m *Monitor) askReplicaSet(ctx context.Context, _ time.Time, put func(sample)) error {
	answer, err := m.run(ctx, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
	if err == nil {
		decodeReplicaSet(answer, put)
	}
	return err
}

// askOperations has the server count: not one operation, only numbers travel.
func (m *Monitor) askOperations(ctx context.Context, _ time.Time, put func(sample)) error {
	answer, err := m.aggregate(ctx, "admin", 1, bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: true}, {Key: "idleConnections", Value: false}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "active", Value: true}, {Key: "appName", Value: bson.D{{Key: "$ne", Value: Application}}}}}},
		bson.D{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: bson.D{{Key: "op", Value: "$op"}, {Key: "waits", Value: "$waitingForLock"}}},
			{Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}},
			{Key: "longest", Value: bson.D{{Key: "$max", Value: "$microsecs_running"}}},
		}}},
		bson.D{{Key: "$limit", Value: maxBatch}},
	})
	if err == nil {
		decodeOperations(answer, put)
	}
	return err
}

func (m *Monitor) askTop(ctx context.Context, now time.Time, put func(sample)) error {
	answer, err := m.run(ctx, "admin", bson.D{{Key: "top", Value: 1}})
	if err != nil {
		return err
	}
	m.listed = false
	if m.stale(now) {
		m.choose(now, busiest(answer))
	}
	decodeTop(answer, m.collections, put)
	return nil
}

// maxBatch is how many documents an aggregation may give, so that one batch has them all.
const maxBatch = 256

// aggregate runs a pipeline of which one batch has everything. target is a collection's name, or 1.
func (m *Monitor) aggregate(ctx context.Context, database string, target any, pipeline bson.A) (bson.Raw, error) {
	return m.run(ctx, database, bson.D{
		{Key: "aggregate", Value: target}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: maxBatch + 1}}},
	})
}

// askOplog finds how far back the oplog goes.
func (m *Monitor) askOplog(ctx context.Context, _ time.Time, put func(sample)) error {
	var ends [2]bson.Raw
	for i, direction := range [...]int{1, -1} {
		answer, err := m.run(ctx, "local", bson.D{
			{Key: "find", Value: "oplog.rs"},
			{Key: "sort", Value: bson.D{{Key: "$natural", Value: direction}}},
			{Key: "limit", Value: 1},
			{Key: "projection", Value: bson.D{{Key: "ts", Value: 1}}},
			{Key: "singleBatch", Value: true},
		})
		if err != nil {
			return err
		}
		ends[i] = answer
	}
	return decodeOplog(ends[0], ends[1], put)
}
