package mongodb

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The bounds of what has items of its own.
const (
	maxDatabases   = 50
	maxCollections = 100
	maxIndexes     = 500
	maxMembers     = 50
	// chooseAfter is how often collections are chosen anew where not all have room, so that items do not come and go.
	chooseAfter = 10 * time.Minute
	// maxListed bounds the collections that are looked at to choose from.
	maxListed = 20_000
)

// namespace names a collection.
type namespace struct{ database, collection string }

func (n namespace) String() string { return n.database + "." + n.collection }

func (n namespace) of() [][2]string {
	return [][2]string{{"db", n.database}, {"collection", n.collection}}
}

// splitNamespace takes "database.collection" apart; false for those of the server itself.
func splitNamespace(s string) (namespace, bool) {
	database, collection, ok := strings.Cut(s, ".")
	n := namespace{database, collection}
	return n, ok && database != "" && collection != "" && !internal(database) && !strings.HasPrefix(collection, "system.") && len(s) <= 255
}

func internal(database string) bool {
	return database == "admin" || database == "config" || database == "local"
}

// choose takes the collections that have items from a list in the order of their weight, and keeps the order of names.
func (m *Monitor) choose(now time.Time, all []namespace) {
	m.chosen, m.crowded = now, len(all) > maxCollections
	if m.crowded {
		m.log.Info("MongoDB has more collections than have items of their own; the busiest do", "instance", m.instance, "collections", len(all), "limit", maxCollections)
		all = all[:maxCollections]
	}
	slices.SortFunc(all, func(a, b namespace) int { return cmp.Compare(a.String(), b.String()) })
	m.collections = all
}

// stale reports whether the collections are to be chosen anew.
func (m *Monitor) stale(now time.Time) bool {
	return !m.crowded || now.Sub(m.chosen).Abs() >= chooseAfter
}

// list finds the collections where top cannot tell them: by name, as far as the user may see them.
func (m *Monitor) list(ctx context.Context) ([]namespace, error) {
	databases, err := m.databases(ctx)
	if err != nil {
		return nil, err
	}
	var all []namespace
	for _, database := range databases {
		answer, err := m.run(ctx, database, bson.D{
			{Key: "listCollections", Value: 1},
			{Key: "nameOnly", Value: true},
			{Key: "authorizedCollections", Value: true},
			{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: maxListed}}},
		})
		if err != nil {
			return nil, err
		}
		eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
			name, kind := text(d, "name"), text(d, "type")
			if n, ok := splitNamespace(database + "." + name); ok && (kind == "" || kind == "collection" || kind == "timeseries") {
				all = append(all, n)
			}
			return len(all) < maxListed
		})
	}
	return all, nil
}

func (m *Monitor) databases(ctx context.Context) ([]string, error) {
	answer, err := m.run(ctx, "admin", bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}, {Key: "authorizedDatabases", Value: true}})
	if err != nil {
		return nil, err
	}
	var names []string
	eachDocument(answer, "databases")(func(d bson.Raw) bool {
		if name := text(d, "name"); name != "" && !internal(name) {
			names = append(names, name)
		}
		return len(names) < maxDatabases
	})
	return names, nil
}

func (m *Monitor) askDatabases(ctx context.Context, _ time.Time, put func(sample)) error {
	databases, err := m.databases(ctx)
	if err != nil {
		return err
	}
	for _, database := range databases {
		answer, err := m.run(ctx, database, bson.D{{Key: "dbStats", Value: 1}, {Key: "scale", Value: 1}})
		if err != nil {
			return err
		}
		decodeDatabase(answer, database, put)
	}
	return nil
}

func (m *Monitor) askCollections(ctx context.Context, now time.Time, put func(sample)) error {
	m.listed = m.listed || m.chosen.IsZero() // top did not tell.
	if m.listed && m.stale(now) {
		all, err := m.list(ctx)
		if err != nil {
			return err
		}
		m.choose(now, all)
	}
	left := maxIndexes
	for _, n := range m.collections {
		answer, err := m.aggregate(ctx, n.database, n.collection, bson.A{
			bson.D{{Key: "$collStats", Value: bson.D{{Key: "storageStats", Value: bson.D{}}}}}, bson.D{{Key: "$limit", Value: 1}},
		})
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
			left -= decodeCollection(d, n, left, put)
			return true
		})
	}
	return nil
}

func (m *Monitor) askIndexes(ctx context.Context, _ time.Time, put func(sample)) error {
	left := maxIndexes
	for _, n := range m.collections {
		answer, err := m.aggregate(ctx, n.database, n.collection, bson.A{
			bson.D{{Key: "$indexStats", Value: bson.D{}}},
			bson.D{{Key: "$project", Value: bson.D{{Key: "name", Value: 1}, {Key: "accesses.ops", Value: 1}}}},
			bson.D{{Key: "$limit", Value: maxBatch}},
		})
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		if left -= decodeIndexes(answer, n, left, put); left <= 0 {
			break
		}
	}
	return nil
}
